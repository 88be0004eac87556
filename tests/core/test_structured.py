"""Structured output: what is asked for, and what a class has against a reply."""

from __future__ import annotations

import copy
import json
from datetime import date
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, field_validator

from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.structured import AnswerFormat, misfits, structured_contract
from hymemory_adapters.core.write_call import judge

ASKED = [{"role": "user", "content": "Who?"}]


class Person(BaseModel):
    name: str
    born: date | None = None

    @field_validator("name")
    @classmethod
    def _is_capital(cls, name: str) -> str:
        if not name[:1].isupper():
            raise ValueError(f"{name} starts with no capital")
        return name


class Strict(Person):
    model_config = ConfigDict(strict=True)


def asked(response_format: Any, **more: Any) -> Request:
    return Request(ASKED, response_format=response_format, **more)


@pytest.mark.parametrize(
    ("response_format", "more"),
    [(None, {}), ({"type": "text"}, {}), (AnswerFormat(Person), {"tools": [{"function": {"name": "f"}}]})],
    ids=["none", "text", "with_tools"],
)
def test_other_requests_have_no_contract(response_format: Any, more: dict[str, Any]) -> None:
    assert structured_contract(asked(response_format, **more)) is None


def test_an_answer_format_is_plain_data() -> None:
    wanted = AnswerFormat(Person)
    assert json.loads(json.dumps(wanted)) == wanted
    assert wanted["json_schema"]["name"] == "Person"
    assert wanted.answer is Person
    assert copy.copy(dict(wanted)) == wanted


@pytest.mark.parametrize("name", ["List[Person]", "Ab c" * 30, ""])
def test_a_name_is_fit_for_the_wire(name: str) -> None:
    named = {"name": name, "schema": {"type": "object"}}
    contract = structured_contract(asked({"type": "json_schema", "json_schema": named}))
    assert contract is not None
    assert contract.schema is not None
    assert contract.schema.name
    assert len(contract.schema.name) <= 64
    assert contract.schema.name.replace("_", "").isalnum()


def test_the_schema_is_told_and_the_hosts_format_stays_off_the_wire() -> None:
    request = asked(AnswerFormat(Person))
    contract = structured_contract(request)
    assert contract is not None
    sent = contract.asked(request)
    assert sent.response_format is None
    assert '"born"' in sent.messages[0]["content"]
    assert sent.messages[1:] == ASKED


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"name": "Ana"}, True),
        ({"name": "Ana", "born": "1990-02-01"}, True),
        ({"name": "ana"}, False),
        ({"name": "Ana", "born": "1990-02-31"}, False),
        ({"born": None}, False),
    ],
)
@pytest.mark.parametrize("answer", [Person, Strict])
def test_a_class_judges_what_came_as_json(answer: type[BaseModel], value: Any, fits: bool) -> None:
    contract = structured_contract(asked(AnswerFormat(answer)))
    assert contract is not None
    verdict = judge(Reply(json.dumps(value), finish_reason="stop"), contract)
    assert (not verdict.problems) is fits


def test_a_problem_holds_no_word_of_the_reply() -> None:
    (problem,) = misfits(Person, {"name": "privateword"}, ("a", 0))
    assert (problem.rule, problem.path) == ("schema", "$.a[0].name")
    assert "privateword" not in problem.message


@pytest.mark.parametrize("answer", [None, dict, {"type": "object"}])
def test_what_is_no_class_has_nothing_against_it(answer: Any) -> None:
    assert misfits(answer, {"x": 1}) == []
