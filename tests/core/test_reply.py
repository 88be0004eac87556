"""Reading a reply: every normalisation, every problem, and that no cut reply is ever taken for a whole one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hymemory_adapters.core import reply as reply_module
from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.reply import NORMALISATIONS, Reading, Reply, is_looping, read_json, read_text
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, Verdict, judge
from tests.support.cases import HarmlessReply, MalformedReply, harmless, malformed
from tests.support.strategies import replies, texts, written

_TEXT = {"type": "string", "minLength": 1}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


_MEMORY = _object({"id": _TEXT, "text": _TEXT, "age": {"type": "integer"}})

# Four shapes that write calls have, each with a good reply.
SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "strings": ({"facts": ["Likes tea", "Is 30"]}, _object({"facts": {"type": "array", "items": _TEXT}})),
    "objects": (
        {"memory": [{"id": "0", "text": "Likes {tea}, ```json``` and <b>", "age": 1}]},
        _object(
            {"memory": {"type": "array", "items": _object({"id": _TEXT, "text": _TEXT, "age": {"type": "integer"}})}}
        ),
    ),
    "array": ([{"text": "Likes \u8336"}], {"type": "array", "items": _object({"text": _TEXT})}),
    "empty": ({"memory": []}, _object({"memory": {"type": "array"}})),
}


def _cases(derive: Any) -> list[Any]:
    found = [(shape, case) for shape, (good, _) in SHAPES.items() for case in derive(good)]
    return [pytest.param(shape, case, id=f"{shape}-{case.name}") for shape, case in found]


def _judged(shape: str, case: MalformedReply | HarmlessReply) -> Verdict:
    schema = Schema(SHAPES[shape][1])
    return judge(Reply(case.text, case.reasoning, case.finish_reason, tokens_out=5), Contract(schema=schema))


@pytest.mark.parametrize(("shape", "case"), _cases(malformed))
def test_malformed_reply_is_a_problem(shape: str, case: MalformedReply) -> None:
    verdict = _judged(shape, case)
    assert verdict.problems
    assert verdict.problems[0].rule == case.rule
    assert verdict.problems[0].message, "the model is told nothing"
    assert verdict.value is None


@pytest.mark.parametrize(("shape", "case"), _cases(harmless))
def test_harmless_reply_is_taken_as_it_was_meant(shape: str, case: HarmlessReply) -> None:
    verdict = _judged(shape, case)
    assert verdict.problems == ()
    # repr, so that 1.0 and True are not taken for 1.
    assert repr(verdict.value) == repr(case.value)
    assert verdict.normalisations == case.normalisations


def test_every_shared_normalisation_is_tried() -> None:
    tried = {name for good, _ in SHAPES.values() for case in harmless(good) for name in case.normalisations}
    assert tried == set(NORMALISATIONS)


@pytest.mark.parametrize(
    ("text", "value", "names"),
    [
        pytest.param('[{"text": "pasta,]"},]', [{"text": "pasta,]"}], ("trailing_comma",), id="comma_in_string_stays"),
        pytest.param('{"a": "x\\",}", }', {"a": 'x",}'}, ("trailing_comma",), id="comma_after_escaped_quote_stays"),
        pytest.param('{"a": [1,], "b": "c"}', {"a": [1], "b": "c"}, ("trailing_comma",), id="comma_between_strings"),
        pytest.param('["", "a,]",]', ["", "a,]"], ("trailing_comma",), id="comma_after_nothing_stays"),
        pytest.param('["x\\" y", "a,]",]', ['x" y', "a,]"], ("trailing_comma",), id="comma_after_a_quote_stays"),
        pytest.param('["\\n\\" y", "a,]",]', ['\n" y', "a,]"], ("trailing_comma",), id="comma_after_two_escapes_stays"),
        pytest.param('["\\\\", "a,]",]', ["\\", "a,]"], ("trailing_comma",), id="comma_after_a_backslash_stays"),
        pytest.param('{"a": ["\\n",], "b": "c"}', {"a": ["\n"], "b": "c"}, ("trailing_comma",), id="comma_inside"),
        pytest.param('["a\nb",]', ["a\nb"], ("trailing_comma", "raw_control"), id="comma_and_line_break"),
        pytest.param('<think>a</think>\n<think>b', None, (), id="second_think_block_unclosed"),
        pytest.param('<think>a</think>{"a": "</think>"}', {"a": "</think>"}, ("think",), id="closer_in_string_stays"),
        pytest.param('hm</think>{"a": "</think>"}', {"a": "</think>"}, ("think_unopened",), id="two_closers"),
        pytest.param('</think>{"a": 1}', {"a": 1}, ("think_unopened",), id="closer_comes_first"),
        pytest.param('Hm.</THINK>{"a": 1}', {"a": 1}, ("think_unopened",), id="closer_in_capitals"),
        pytest.param('<think:v1.2-b>hm</think:v1.2-b>{"a": 1}', {"a": 1}, ("think",), id="suffix"),
        pytest.param('hm</think:v1.2-b>{"a": 1}', {"a": 1}, ("think_unopened",), id="suffix_of_a_closer"),
        pytest.param('```ld+json-1\n{"a": 1}\n```', {"a": 1}, ("fence",), id="fence_with_an_odd_language"),
        pytest.param('Well.<think>hm</think>{"a": 1}', {"a": 1}, ("think_unopened",), id="prose_before_thinking"),
        pytest.param('{"a": "<think>"}', {"a": "<think>"}, (), id="opener_in_string_stays"),
        pytest.param('{"a": "```json"}', {"a": "```json"}, (), id="fence_in_string_stays"),
        pytest.param('["\\ud83d\\ude80"]', ["\U0001f680"], (), id="escaped_pair_is_one_character"),
        pytest.param('["\\u00e9\\/\\b"]', ["\u00e9/\b"], (), id="legal_escapes"),
        pytest.param("[1.0, -0.0, 1e5, 2345678901234567890]", [1.0, -0.0, 1e5, 2345678901234567890], (), id="numbers"),
        pytest.param("[true] [true]", [True], ("repeated",), id="repeated"),
        pytest.param("[true] [1]", None, (), id="true_is_not_one"),
        pytest.param("[1] [1.0]", None, (), id="one_is_not_one_point_zero"),
        pytest.param('"Likes tea"', None, (), id="a_string_is_no_answer"),
        pytest.param("[,]", None, (), id="comma_without_a_value"),
        pytest.param("{ ,}", None, (), id="comma_without_a_key"),
        pytest.param('{"a": [1, 2,,]}', None, (), id="two_trailing_commas"),
    ],
)  # fmt: skip
def test_reading(text: str, value: Any, names: tuple[str, ...]) -> None:
    reading = read_json(text)
    assert repr(reading.value) == repr(value)
    assert reading.normalisations == names
    assert bool(reading.problems) == (value is None)


@pytest.mark.parametrize(
    ("text", "rule", "path", "said"),
    [
        pytest.param('{"a": 1, "a": 2,}', "duplicate_key", "", "same key twice", id="also_a_trailing_comma"),
        pytest.param('["a\nb", 1e999]', "not_json", "", "too large", id="also_a_line_break"),
        pytest.param('[\n  "a",\n  b]', "not_json", "", "line 3 column 3", id="where_the_json_breaks"),
        pytest.param('["a\\\nb"]', "not_json", "", "line 1 column 4", id="backslash_before_a_line_break"),
        pytest.param('["a", "b\\u0000"]', "bad_character", "$[1]", "NUL", id="nul_in_a_list"),
        pytest.param('[["a", {"k": ["\\ud83d"]}]]', "bad_character", '$[0][1]["..."][0]', "surrogate", id="half_pair"),
        pytest.param('{"k\\u0000": 1}', "bad_character", "$", "NUL", id="nul_in_a_key"),
    ],
)
def test_the_model_is_told_what_is_wrong_and_where(text: str, rule: str, path: str, said: str) -> None:
    (problem,) = read_json(text).problems
    assert (problem.rule, problem.path) == (rule, path)
    assert said in problem.message


@pytest.mark.parametrize(
    "character",
    ["\\u0000", "\\ud800", "\\uD83D", "\\ud9ff", "\\uDBFF", "\\udc00", "\\uDfff", "\x00", "\ud800", chr(0xDFFF)],
    ids=ascii,
)
def test_what_no_store_can_keep_is_refused(character: str) -> None:
    assert [problem.rule for problem in read_json(f'["a", "b{character}c"]').problems] == ["bad_character"]


@pytest.mark.parametrize(
    ("text", "rule", "value", "names"),
    [
        ("Likes tea.", "", "Likes tea.", ()),
        ("  Likes {tea.\n", "", "Likes {tea.", ()),
        ("\ufeff<think>hm</think>\nLikes tea", "", "Likes tea", ("bom", "think")),
        ("hm {x}</think>Likes tea", "", "Likes tea", ("think_unopened",)),
        ("", "empty", None, ()),
        ("<think>hm</think> \n", "empty", None, ()),
        ("<think>hm", "thinking_only", None, ()),
        ("<THINKING:v1.2-b>hm", "thinking_only", None, ()),
        ("Likes <think>hm</think> tea", "think_inside", None, ()),
        ("Likes <THINK:v1.2-b>hm</THINK:v1.2-b> tea", "think_inside", None, ()),
        ("hm</think>Writes <think> tags", "", "Writes <think> tags", ("think_unopened",)),
        ("a\x00b", "bad_character", None, ()),
        ("a\ud800b", "bad_character", None, ()),
    ],
)
def test_free_text(text: str, rule: str, value: str | None, names: tuple[str, ...]) -> None:
    reading = read_text(text)
    assert (reading.value, reading.normalisations) == (value, names)
    assert [problem.rule for problem in reading.problems] == ([rule] if rule else [])
    assert all(problem.message for problem in reading.problems), "the model is told nothing"


def _deep(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


_BIG = json.dumps({"facts": ['Likes "tea" and \\ {x} json'] * 60_000})

# Some of these take minutes if any step is quadratic; the test only says what comes out.
HUGE: dict[str, tuple[str, str]] = {
    "opening_braces": ("{" * 20_000, "too_deep"),
    "opening_brackets": ("[" * 5_000 + "]" * 5_000, "too_deep"),
    "deep_objects": (_deep(5_000), "too_deep"),
    "one_too_deep": (_deep(65), "too_deep"),
    "deep_enough": (_deep(64), ""),
    "one_list_too_deep": ("[" * 65 + "]" * 65, "too_deep"),
    "big": (_BIG, ""),
    "big_and_cut": (_BIG[:-1], "truncated"),
    "big_with_trailing_commas": (_BIG[:-2] + ",]" + ",}", ""),
    "big_string_that_never_ends": ('{"a": "' + '\\"{' * 500_000, "truncated"),
    "one_big_string": ('{"a": "' + 'x\\"{' * 500_000 + '"}', ""),
    "many_equal_values": ('{"a": 1}\n' * 20_000, ""),
    "many_values": ('{"a": 1}\n' * 20_000 + "[]", "ambiguous"),
    "many_braces_in_prose": ("{x} " * 20_000, "not_json"),
    "many_think_blocks": ("<think>x</think>" * 125_000 + "[1]", ""),
    "many_think_openers": ("<think>" * 220_000, "thinking_only"),
    "many_think_closers": ("</think>" * 220_000 + "[1]", ""),
    "many_backticks": ("[1]" + "`" * 1_000_000 + "!", ""),
    "many_tildes": ("[1]" + "~" * 1_000_000 + "!", ""),
    "many_backticks_after_fence": ("```json\n[1]\n" + "`" * 1_000_000 + "!", ""),
    "many_commas": ("[" + "," * 1_000_000 + "]", "not_json"),
    "much_white_space": ("[1" + "," + " " * 1_000_000 + "x]", "not_json"),
    "much_white_space_after_fence": ("```json" + " " * 1_000_000 + "[1] ```" + "\n" * 1_000_000 + "x", ""),
    "long_enough": ("x" * 8_000_000, "not_json"),
    "too_long": ("x" * 8_000_001, "too_long"),
}


@pytest.mark.parametrize(("text", "rule"), HUGE.values(), ids=HUGE)
def test_work_grows_with_the_length_alone(text: str, rule: str) -> None:
    problems = read_json(text).problems
    assert [problem.rule for problem in problems] == ([rule] if rule else [])
    assert all(problem.message for problem in problems), "the model is told nothing"


_WORDS = "".join(f"{number:03}" for number in range(200))


@pytest.mark.parametrize(
    ("text", "looping"),
    [
        ("", False),
        ("likes tea " * 19, False),  # too short to be sure
        ("likes tea " * 60, True),
        ("x" + " \n" * 150, True),
        ("ab" * 99 + " " * 101, True),
        ("".join(f"fact {i}; " for i in range(200)), False),
        ("\u8336" * 600, True),
        ("x" + "likes tea " * 60, True),  # how it began does not matter
        (" " + "ab" * 50 + " " * 100, False),  # half white space is not over half
        (_WORDS[:150] * 4, True),
        (_WORDS[:151] * 4, False),  # not quite four rounds in what is looked at
        ("x" * 400 + "".join(f"{i}," for i in range(100)), False),
    ],
)
def test_looping(text: str, looping: bool) -> None:
    assert is_looping(text) is looping


@settings(max_examples=100, deadline=None)
@given(replies())
def test_no_cut_reply_is_taken(text: str) -> None:
    assert read_json(text).problems == ()
    for cut in range(len(text)):
        reading = read_json(text[:cut])
        assert reading.problems, text[:cut]
        assert reading.value is None


@settings(max_examples=150, deadline=None)
@given(written())
def test_every_answer_is_read_back_as_it_was_written(case: tuple[Any, str]) -> None:
    value, text = case
    reading = read_json(text)
    assert reading.problems == ()
    assert repr(reading.value) == repr(value)
    assert reading.normalisations == ()


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60) | texts())
def test_reading_never_raises_and_says_nothing_of_the_reply(text: str) -> None:
    for reading in (read_json(text), read_text(text)):
        assert (reading.value is None) == bool(reading.problems)


_SECRET = "swordfish"


@pytest.mark.parametrize("case", malformed({"facts": ["x"], _SECRET: [_SECRET]}), ids=lambda case: case.name)
def test_problems_hold_no_text_of_the_reply(case: MalformedReply) -> None:
    verdict = judge(Reply(case.text, case.reasoning, case.finish_reason), Contract(schema=Schema(SHAPES["strings"][1])))
    assert verdict.problems
    assert not [problem for problem in verdict.problems if _SECRET in str(problem)]


@pytest.mark.parametrize(
    ("problem", "shown"),
    [
        (Problem("empty", "the reply is empty"), "the reply is empty"),
        (Problem("schema", "must be ADD", json_path(("memory", 0, "event"))), "$.memory[0].event: must be ADD"),
        (Problem("schema", "no", json_path(("has a space", 1))), '$["..."][1]: no'),
        (Problem("schema", "no", json_path(("x" * 41,))), '$["..."]: no'),
        (Problem("schema", "no", json_path(())), "$: no"),
    ],
)
def test_problem_is_shown_with_its_path(problem: Problem, shown: str) -> None:
    assert str(problem) == shown


def test_a_reply_has_what_the_server_sent_and_nothing_else() -> None:
    reply = Reply("Likes tea", completion=_SECRET)
    unsent = (reply.reasoning, reply.finish_reason, reply.tokens_in, reply.tokens_out, reply.tool_calls)
    assert unsent == (None, None, None, None, ())
    # The whole answer is for hosts: it is shown in no log, and two replies that say the same are equal.
    assert _SECRET not in repr(reply)
    assert reply == Reply("Likes tea")
    assert (Reading().value, Reading().problems, Reading().normalisations) == (None, (), ())


def test_limits_are_what_the_documentation_says() -> None:
    assert (reply_module.MAX_CHARS, reply_module.MAX_DEPTH) == (8_000_000, 64)
