"""Tool calls as schema: what goes out for a request with tools, and what comes back of its reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hymemory_adapters import ConfigurationError
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import LIST_BOUND, Schema
from hymemory_adapters.core.tools import Answer, ToolCall, Tools, tool_contract
from hymemory_adapters.core.write_call import judge
from tests.support import cases
from tests.support.tools import FORGET, PING, REMEMBER, TEA, asking, judged, reply, tools_of

# -- how often --------------------------------------------------------------------------------------

CHOICES: dict[str, tuple[Any, tuple[int, int | None, list[str]]]] = {
    "absent": (None, (0, None, ["remember", "forget"])),
    "auto": ("auto", (0, None, ["remember", "forget"])),
    "required": ("required", (1, None, ["remember", "forget"])),
    "any": ("any", (1, None, ["remember", "forget"])),
    "openai": ({"type": "function", "function": {"name": "forget"}}, (1, 1, ["forget"])),
    "flat": ({"type": "tool", "name": "forget"}, (1, 1, ["forget"])),
    "name": ("forget", (1, 1, ["forget"])),
}


@pytest.mark.parametrize(("choice", "expected"), CHOICES.values(), ids=CHOICES)
def test_the_hosts_choice(choice: Any, expected: Any) -> None:
    tools = tools_of(REMEMBER, FORGET, tool_choice=choice)
    assert (tools.at_least, tools.at_most, [f["name"] for f in tools.functions]) == expected


@pytest.mark.parametrize("request_", [asking(), asking(REMEMBER, tool_choice="none")], ids=["no tools", "none"])
def test_nothing_may_be_called(request_: Request) -> None:
    assert Tools.of(request_) is None


def test_no_parallel_calls() -> None:
    assert tools_of(REMEMBER, sampling={"parallel_tool_calls": False}).at_most == 1
    assert tools_of(REMEMBER, tool_choice="required", sampling={"parallel_tool_calls": False}).at_most == 1
    assert tools_of(REMEMBER, sampling={"parallel_tool_calls": True}).at_most is None


def test_tools_of_another_kind_are_none() -> None:
    """A server's own tools have no function."""
    request = Request(
        [], tools=[{"type": "web_search"}, {"type": "function", "function": REMEMBER}, {"function": None}]
    )
    assert Tools.of(request) == Tools((REMEMBER,))
    assert Tools.of(Request([], tools=[{"type": "web_search"}])) is None


@pytest.mark.parametrize("choice", ["forgett", {"function": {"name": "forgett"}}])
def test_a_choice_that_is_no_tool_is_an_error(choice: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"tool_choice names 'forgett', which is none of the request's tools"):
        Tools.of(asking(REMEMBER, tool_choice=choice))


# -- what a reply may be ------------------------------------------------------------------------------

REPLIES: dict[str, tuple[str, dict[str, Any], Any]] = {
    "one": (reply(TEA), {}, [TEA]),
    "two": (reply(TEA, ("forget", {"id": 3})), {}, [TEA, ("forget", {"id": 3})]),
    "same_tool_twice": (reply(TEA, TEA), {}, [TEA, TEA]),
    "nothing": (reply(), {}, []),
    "nothing_required": (reply(), {"tool_choice": "required"}, ["schema"]),
    "named": (reply(("forget", {"id": 3})), {"tool_choice": "forget"}, [("forget", {"id": 3})]),
    "named_twice": (reply(*[("forget", {"id": 3})] * 2), {"tool_choice": "forget"}, ["schema"]),
    "another_than_named": (reply(TEA), {"tool_choice": "forget"}, ["schema"]),
    "two_not_parallel": (reply(TEA, TEA), {"sampling": {"parallel_tool_calls": False}}, ["schema"]),
    "integral_float": (reply(("forget", {"id": 3.0})), {}, [("forget", {"id": 3})]),
    "unknown_tool": (reply(("remembr", {"text": "x"})), {}, ["schema"]),
    "arguments_of_another": (reply(("forget", {"text": "x"})), {}, ["schema"]),
    "arguments_missing": ('{"tool_calls": [{"name": "remember"}]}', {}, ["schema"]),
    "arguments_string": (reply(("remember", '{"text": "x"}')), {}, ["schema"]),
    "arguments_null": (reply(("remember", None)), {}, ["schema"]),
    "empty_text": (reply(("remember", {"text": ""})), {}, ["schema"]),
    "key_beside_the_call": ('{"tool_calls": [{"id": "1", "name": "ping", "arguments": {}}]}', {}, ["schema"]),
    "bare_call": ('{"name": "remember", "arguments": {"text": "x"}}', {}, ["schema"]),
    "bare_list": (f"[{json.dumps({'name': 'remember', 'arguments': {'text': 'x'}})}]", {}, ["schema"]),
    "hermes": ('<tool_call>{"name": "remember", "arguments": {"text": "x"}}</tool_call>', {}, ["schema"]),
    "prose": ("I shall remember that.", {}, ["not_json"]),
    "no_parameters": (reply(("ping", {})), {}, [("ping", {})]),
    "extra_argument": (reply(("remember", {"text": "x", "why": "y"})), {}, [("remember", {"text": "x", "why": "y"})]),
    "too_many": (reply(*[("ping", {})] * LIST_BOUND), {}, ["schema"]),
}


@pytest.mark.parametrize(("text", "more", "expected"), REPLIES.values(), ids=REPLIES)
def test_what_a_reply_may_be(text: str, more: dict[str, Any], expected: Any) -> None:
    got = judged(text, tools_of(REMEMBER, FORGET, PING, **more))
    assert (got if isinstance(got, list) else [(call.name, call.arguments) for call in got.calls]) == expected


TEXT_REPLIES: dict[str, tuple[str, Any]] = {
    "text": (reply(content="Noted."), Answer((), "Noted.")),
    "call": (reply(TEA, content=""), Answer((ToolCall(*TEA),))),
    "both": (reply(TEA, content="Noted."), Answer((ToolCall(*TEA),), "Noted.")),
    "neither": (reply(content=" "), ["empty"]),
    "content_missing": (reply(TEA), Answer((ToolCall(*TEA),))),
    "calls_missing": ('{"content": "Noted."}', Answer((), "Noted.")),
    "both_missing": ("{}", ["empty"]),
    "bare_text": ("Noted.", ["not_json"]),
}


@pytest.mark.parametrize(("text", "expected"), TEXT_REPLIES.values(), ids=TEXT_REPLIES)
def test_where_text_is_an_answer_too(text: str, expected: Any) -> None:
    assert judged(text, tools_of(REMEMBER, text=True)) == expected


def test_a_required_call_leaves_no_room_for_text() -> None:
    assert not tools_of(REMEMBER, text=True, tool_choice="required").text


def test_the_hosts_own_checks_see_the_answer() -> None:
    def check(answer: Answer) -> list[Problem]:
        return [Problem("forbidden", "no", "$") for call in answer.calls if call.arguments.get("text") == "secret"]

    tools = tools_of(REMEMBER)
    assert judged(reply(("remember", {"text": "secret"})), tools, check=check) == ["forbidden"]
    assert judged(reply(TEA), tools, check=check, render=lambda answer: len(answer.calls)) == 1


def test_neither_text_nor_call_is_a_problem_of_the_whole_value() -> None:
    contract = tool_contract(asking(REMEMBER), tools_of(REMEMBER, text=True))
    (problem,) = judge(Reply("{}", finish_reason="stop"), contract).problems
    assert str(problem).startswith("$: there is neither a tool call nor text")


def test_what_is_left_undecided_is_seen_in_the_answer() -> None:
    def undecided(answer: Answer) -> list[Problem]:
        return [] if answer.calls else [Problem("undecided", "nothing was called")]

    contract = tool_contract(asking(REMEMBER), tools_of(REMEMBER), undecided=undecided)
    verdicts = [judge(Reply(text, finish_reason="stop"), contract) for text in (reply(), reply(TEA))]
    assert [[problem.rule for problem in verdict.undecided] for verdict in verdicts] == [["undecided"], []]


def test_a_lost_call_goes_back_in_the_hosts_form_too() -> None:
    contract = tool_contract(
        asking(REMEMBER),
        tools_of(REMEMBER),
        fallback=lambda fitting: Answer((ToolCall("remember", {"text": f"lost, {fitting}"}),)),
        render=lambda answer: [call.arguments for call in answer.calls],
        left_behind="The file stays",
    )
    assert contract.fallback is not None
    assert contract.render(contract.fallback(None)) == [{"text": "lost, None"}]
    assert contract.left_behind == "The file stays"


def test_a_row_may_have_a_schema_of_its_own_and_little_else() -> None:
    own = Schema({"type": "object", "properties": {"tool_calls": {"type": "array", "maxItems": 0}}})
    tools = tools_of(REMEMBER)
    assert tool_contract(asking(REMEMBER), tools, schema=own).schema is own
    plain = tool_contract(asking(REMEMBER), tools)
    assert (plain.schema, plain.fallback, plain.left_behind) == (tools.schema, None, "")


@pytest.mark.parametrize("malformed", cases.malformed(json.loads(reply(TEA))), ids=lambda case: case.name)
def test_the_common_malformed_replies_are_refused(malformed: Any) -> None:
    tools = tools_of(REMEMBER, FORGET)
    contract = tool_contract(asking(REMEMBER, FORGET), tools)
    assert judge(Reply(malformed.text, finish_reason=malformed.finish_reason), contract).problems
