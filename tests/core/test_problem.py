"""Where in a reply a problem is: a path that holds no text of the model's."""

from __future__ import annotations

import pytest

from hymemory_adapters.core.problem import Problem, json_path


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        ((), "$"),
        (("memory", 0, "event"), "$.memory[0].event"),
        ((0, 12), "$[0][12]"),
        (("a",), "$.a"),
        (("_Zz9_0",), "$._Zz9_0"),
        (("AZaz",), "$.AZaz"),
        (("x" * 40,), "$." + "x" * 40),
        (("x" * 41,), '$["..."]'),
        (("9a",), '$["..."]'),
        (("",), '$["..."]'),
        (("a b", "c"), '$["..."].c'),
        (("a\n",), '$["..."]'),
        (("a.b",), '$["..."]'),
        (("\u00e4",), '$["..."]'),
    ],
)
def test_a_key_that_is_no_plain_name_is_not_shown(parts: tuple[str | int, ...], path: str) -> None:
    assert json_path(parts) == path


def test_without_a_path_the_problem_is_the_whole_reply() -> None:
    problem = Problem("empty", "the reply is empty")
    assert (problem.path, str(problem)) == ("", "the reply is empty")
    assert str(Problem("schema", "no", "$.a")) == "$.a: no"
    assert {problem: 1}[Problem("empty", "the reply is empty")] == 1
