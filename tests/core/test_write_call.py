"""What a row and its contract say: what of a request is sent, and what a reply is worth."""

from __future__ import annotations

from typing import Any

import pytest

from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, OnLost, Verdict, WriteCall, judge
from tests.support.calls import FACTS, GOOD, OWN_MESSAGES

SAID = [{"role": "user", "content": "I like tea"}]
TOOLS = [{"type": "function", "function": {"name": "f"}}]
SAMPLING = {"temperature": 0.3, "stop": ["}"], "n": 3, "stream_options": {"include_usage": True}}


def test_what_would_cut_or_double_a_reply_is_not_sent() -> None:
    request = Request(SAID, {"type": "json_object"}, TOOLS, "auto", {**SAMPLING, "parallel_tool_calls": True}, 7)
    kept = {"temperature": 0.3, "parallel_tool_calls": True}
    assert Contract().asked(request) == Request(SAID, {"type": "json_object"}, TOOLS, "auto", kept, 7)


def test_messages_of_its_own_stand_for_tools_and_format_too() -> None:
    request = Request(SAID, {"type": "json_object"}, TOOLS, "auto", {**SAMPLING, "parallel_tool_calls": True}, 7)
    asked = Contract(messages=OWN_MESSAGES).asked(request)
    assert asked == Request(OWN_MESSAGES, sampling={"temperature": 0.3}, max_tokens=7)


def test_what_a_row_and_a_contract_say_where_they_say_nothing() -> None:
    row, contract = WriteCall("demo.call", lambda _: None), Contract()
    assert (row.on_lost, row.summary, row.typical, row.swallowed, row.writes) == (OnLost.RAISE, "", None, "", True)
    assert (contract.schema, contract.fallback, contract.messages, contract.left_behind) == (None, None, None, "")
    assert (contract.check({}), contract.undecided({}), contract.render({"a": "{"})) == ((), (), '{"a": "\\u007b"}')


def test_what_people_read_of_a_loss() -> None:
    """In the list of calls, and in the JSON that scripts read."""
    assert {lost.name: lost.value for lost in OnLost} == {
        "RAISE": "raises",
        "SALVAGE": "salvages",
        "EMPTY": "returns empty",
    }


# -- replies that were stopped ------------------------------------------------------------------------

LOOP = '{"facts": ["' + " \n" * 200
THOUGHT = "Tea, so I should"
STOPPED: dict[str, tuple[Reply, str, str]] = {
    "cut": (Reply("{", None, "length", tokens_out=5), "truncated", "the reply was cut after 5 tokens: "),
    "cut, not counted": (Reply("{", None, "length"), "truncated", "the reply was cut: "),
    "cut at once": (Reply(None, None, "length"), "truncated", "the reply was cut: "),
    "looping": (Reply(LOOP, None, "length"), "looping", "the reply went round in circles and was cut"),
    "looping in reasoning": (Reply(None, LOOP, "length"), "looping", "the reply went round in circles and was cut"),
    "thinking": (Reply(None, THOUGHT, "length", tokens_out=5), "reasoning_only", "only reasoning came back, and was "),
    "thinking of X": (Reply(" ", "X likes tea", "length"), "reasoning_only", "only reasoning came back, and was cut: "),
    "an object in reasoning": (Reply(None, '\n{"facts', "length"), "truncated", "the reply was cut: "),
    "a list in reasoning": (Reply(None, '["Likes', "length"), "truncated", "the reply was cut: "),
    "text after thinking": (Reply("{", THOUGHT, "length"), "truncated", "the reply was cut: "),
    "filtered": (Reply(GOOD, None, "content_filter"), "finish_reason", "the server's content filter stopped "),
    "aborted": (Reply(GOOD, None, "abort"), "finish_reason", "the server aborted "),
    "failed": (Reply(GOOD, None, "error"), "finish_reason", "the server failed "),
}


@pytest.mark.parametrize(("reply", "rule", "message"), STOPPED.values(), ids=STOPPED)
def test_the_finish_reason_decides_first(reply: Reply, rule: str, message: str) -> None:
    verdict = judge(reply, Contract(FACTS))
    (problem,) = verdict.problems
    assert (problem.rule, problem.message[: len(message)]) == (rule, message)
    assert verdict.value is None


# -- values --------------------------------------------------------------------------------------------


def _renamed(value: Any) -> Any:
    return {"facts": value["Facts"]} if isinstance(value, dict) and "Facts" in value else value


def _first_only(value: Any) -> Any:
    facts = value.get("facts") if isinstance(value, dict) else None
    return {"facts": facts[:1]} if facts and len(facts) > 1 else value


COUNTS = Schema({
    "type": "object",
    "properties": {"facts": {"type": "array", "items": {"type": "integer"}}},
    "required": ["facts"],
    "additionalProperties": False,
})  # fmt: skip
NORMALISING = Contract(COUNTS, normalise=(("renamed", _renamed), ("first_only", _first_only)))
CHANGED: dict[str, tuple[str, Any, tuple[str, ...]]] = {
    "nothing": ('{"facts": [1]}', {"facts": [1]}, ()),
    "one": ('{"facts": [1, 2]}', {"facts": [1]}, ("first_only",)),
    "both": ('{"Facts": [1, 2]}', {"facts": [1]}, ("renamed", "first_only")),
    "all there is": (
        '```\n{"answer": {"Facts": [1.0, 2]}}\n```',
        {"facts": [1]},
        ("fence", "unwrapped", "renamed", "first_only", "integral_float"),
    ),
}


@pytest.mark.parametrize(("text", "value", "names"), CHANGED.values(), ids=CHANGED)
def test_every_change_is_named_in_order(text: str, value: Any, names: tuple[str, ...]) -> None:
    verdict = judge(Reply(text), NORMALISING)
    assert (repr(verdict.value), verdict.problems, verdict.normalisations) == (repr(value), (), names)


@pytest.mark.parametrize("text", ['["Likes tea"]', '{"a": "Likes tea"}', '{"a": ["x"], "b": ["x"]}'])
def test_only_an_object_with_one_key_wraps_an_answer(text: str) -> None:
    schema = Schema({"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {"const": "x"}}]})
    assert [problem.rule for problem in judge(Reply(text), Contract(schema)).problems] == ["schema"]


def test_what_cannot_be_taken_is_asked_for_no_decision() -> None:
    checked: list[Any] = []
    contract = Contract(FACTS, check=lambda _: [Problem("no", "no")], undecided=checked.append)
    assert judge(Reply(GOOD), contract) == Verdict({"facts": ["Likes tea"]}, (Problem("no", "no"),))
    assert checked == []


def test_reasoning_alone_is_no_answer() -> None:
    problem = Problem("reasoning_only", "only reasoning came back, and no answer")
    assert judge(Reply(None, THOUGHT), Contract(FACTS)) == Verdict(problems=(problem,))
    assert judge(Reply(" ", THOUGHT), Contract()) == Verdict(problems=(problem,))


# -- the rules of the call ----------------------------------------------------------------------------

WRONG, UNSURE = Problem("wrong", "this was not offered"), Problem("unsure", "nothing was decided")


def _rules(of: Schema | None) -> Contract:
    """Finds a value wrong, or unsure, by a word in it; what is wrong is never asked whether it is unsure."""
    return Contract(
        of,
        check=lambda value: [WRONG] if "bad" in str(value) else [],
        undecided=lambda value: [UNSURE] if "bad" in str(value) or "unsure" in str(value) else [],
    )


RULES: dict[str, tuple[Schema | None, str, Verdict]] = {
    "text": (None, "<think>hm</think>Likes tea", Verdict("Likes tea", normalisations=("think",))),
    "text like JSON": (None, '{"facts": []}', Verdict('{"facts": []}')),
    "bad text": (None, "bad", Verdict("bad", (WRONG,))),
    "unsure text": (None, "unsure", Verdict("unsure", (), (UNSURE,))),
    "value": (FACTS, f"```\n{GOOD}\n```", Verdict({"facts": ["Likes tea"]}, normalisations=("fence",))),
    "bad value": (FACTS, '{"facts": ["bad"]}', Verdict({"facts": ["bad"]}, (WRONG,))),
    "unsure value": (FACTS, '{"facts": ["unsure"]}', Verdict({"facts": ["unsure"]}, (), (UNSURE,))),
}


@pytest.mark.parametrize(("schema", "text", "verdict"), RULES.values(), ids=RULES)
def test_what_fits_is_held_against_the_calls_own_rules(schema: Schema | None, text: str, verdict: Verdict) -> None:
    assert judge(Reply(text), _rules(schema)) == verdict
    assert (Verdict().value, Verdict().problems, Verdict().undecided, Verdict().normalisations) == (None, (), (), ())
