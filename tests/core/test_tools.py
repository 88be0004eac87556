"""Tool calls as schema: what goes out for a request with tools, and what comes back of its reply."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from hymemory_adapters import ConfigurationError
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import LIST_BOUND
from hymemory_adapters.core.tools import Answer, ToolCall, Tools, tool_contract
from hymemory_adapters.core.write_call import judge
from tests.support import cases
from tests.support.tools import FORGET, PING, REMEMBER, TEA, asking, reply, tools_of


def judged(text: str, tools: Tools, **more: Any) -> Any:
    """What a reply is worth, and what the host gets of it."""
    contract = tool_contract(asking(*tools.functions), tools, **more)
    verdict = judge(Reply(text, finish_reason="stop"), contract)
    return sorted({problem.rule for problem in verdict.problems}) or contract.render(verdict.value)


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
    assert tools_of(REMEMBER, sampling={"parallel_tool_calls": True}).at_most is None


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


@pytest.mark.parametrize("malformed", cases.malformed(json.loads(reply(TEA))), ids=lambda case: case.name)
def test_the_common_malformed_replies_are_refused(malformed: Any) -> None:
    tools = tools_of(REMEMBER, FORGET)
    contract = tool_contract(asking(REMEMBER, FORGET), tools)
    assert judge(Reply(malformed.text, finish_reason=malformed.finish_reason), contract).problems


# -- schemas of users ---------------------------------------------------------------------------------


def nested(**more: Any) -> dict[str, Any]:
    return {
        "name": "save",
        "description": "d",
        "parameters": {
            "type": "object",
            "properties": {"person": {"$ref": "#/$defs/Person"}},
            "required": ["person"],
            "$defs": {
                "Person": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "friends": {"type": "array", "items": {"$ref": "#/$defs/Person"}},
                    },
                    "required": ["name"],
                }
            },
            **more,
        },
    }


def save_number() -> dict[str, Any]:
    """Another tool with a definition of the same name."""
    made = copy.deepcopy(nested())
    made["name"] = "save_number"
    made["parameters"]["$defs"] = {"Person": {"type": "integer"}}
    return made


TREE: dict[str, Any] = {
    "name": "plant",
    "parameters": {
        "type": "object",
        "properties": {"leaf": {"type": "string"}, "under": {"type": "array", "items": {"$ref": "#"}}},
        "required": ["leaf"],
        "additionalProperties": False,
    },
}
SIBLING: dict[str, Any] = {
    "name": "pair",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}},
        "required": ["a", "b"],
    },
}
OLD_STYLE: dict[str, Any] = {
    "name": "old",
    "parameters": {
        "type": "object",
        "properties": {"a": {"$ref": "#/definitions/A~1B"}},
        "required": ["a"],
        "definitions": {"A/B": {"enum": ["x", "y"]}},
    },
}
ANN = {"name": "Ann", "friends": [{"name": "Bo", "friends": [{"name": "Cy"}]}]}
DEFINED: dict[str, tuple[list[dict[str, Any]], Any, bool]] = {
    "nested": ([nested()], ("save", {"person": ANN}), True),
    "nested_wrong": ([nested()], ("save", {"person": {"name": "Ann", "friends": [{"nam": "Bo"}]}}), False),
    "beside_another": ([PING, nested()], ("save", {"person": ANN}), True),
    "same_name_other_tool": ([nested(), save_number()], ("save_number", {"person": 7}), True),
    "same_name_first_tool": ([nested(), save_number()], ("save", {"person": 7}), False),
    "recursive_root": ([PING, TREE], ("plant", {"leaf": "a", "under": [{"leaf": "b"}]}), True),
    "recursive_root_wrong": ([PING, TREE], ("plant", {"leaf": "a", "under": [{"leef": "b"}]}), False),
    "sibling": ([PING, SIBLING], ("pair", {"a": "x", "b": "y"}), True),
    "sibling_wrong": ([PING, SIBLING], ("pair", {"a": "x", "b": 1}), False),
    "definitions": ([PING, OLD_STYLE], ("old", {"a": "x"}), True),
    "definitions_wrong": ([PING, OLD_STYLE], ("old", {"a": "z"}), False),
}


@pytest.mark.parametrize(("functions", "call", "good"), DEFINED.values(), ids=DEFINED)
def test_definitions_are_hoisted(functions: list[dict[str, Any]], call: Any, good: bool) -> None:
    before = copy.deepcopy(functions)
    tools = tools_of(*functions)
    got = judged(reply(call), tools)
    assert (got == Answer((ToolCall(*call),))) if good else (got == ["schema"])
    assert functions == before
    wire = json.dumps(tools.schema.wire)
    assert "definitions" not in wire
    assert set(tools.schema.wire.get("$defs", {})) >= {
        ref.split("/")[2] for ref in _references(tools.schema.wire)
    }  # every reference starts at a definition of the root


def _references(schema: Any) -> list[str]:
    if isinstance(schema, dict):
        here = [schema["$ref"]] if isinstance(schema.get("$ref"), str) else []
        return here + [ref for part in schema.values() for ref in _references(part)]
    return [ref for part in schema for ref in _references(part)] if isinstance(schema, list) else []


@pytest.mark.parametrize("reference", ["https://example.org/person.json", "#/$defs/Persn", "other.json#/a", "#anchor"])
def test_a_reference_that_leads_nowhere_is_an_error(reference: str) -> None:
    lost = {"name": "save", "parameters": {"type": "object", "properties": {"a": {"$ref": reference}}}}
    with pytest.raises(ConfigurationError, match="the schema of the tool 'save' refers to"):
        _ = tools_of(lost).schema


def test_the_wire_lets_no_model_invent_keys_and_validation_keeps_to_the_users_schema() -> None:
    open_tool = nested(additionalProperties=True)
    for functions in ([REMEMBER], [nested()], [PING, nested()]):
        wire = tools_of(*functions).schema.wire
        assert not _open_objects(wire)
    assert tools_of(open_tool).schema.wire["properties"]["tool_calls"]["items"]["properties"]["arguments"][
        "additionalProperties"
    ]
    assert judged(reply(("remember", {"text": "x", "mood": "y"})), tools_of(REMEMBER)).calls


def _open_objects(schema: Any) -> list[Any]:
    if isinstance(schema, dict):
        here = [schema] if "properties" in schema and schema.get("additionalProperties") is not False else []
        return here + [found for part in schema.values() for found in _open_objects(part)]
    return [found for part in schema for found in _open_objects(part)] if isinstance(schema, list) else []


def test_what_servers_do_not_take_is_checked_here_and_not_sent() -> None:
    strict = copy.deepcopy(REMEMBER)
    strict["parameters"]["properties"]["text"] |= {"pattern": "^[A-Z]", "maxLength": 20, "format": "email"}
    tools = tools_of(strict)
    assert not {"pattern", "maxLength", "format", "minLength"} & {*json.dumps(tools.schema.wire).split('"')}
    assert judged(reply(("remember", {"text": "likes tea"})), tools) == ["schema"]
    assert judged(reply(("remember", {"text": "L" * 21})), tools) == ["schema"]
    assert judged(reply(TEA), tools) == Answer((ToolCall(*TEA),))


def test_the_same_tools_have_the_same_schema() -> None:
    """So that its validator is built once, and the server compiles its grammar once."""
    assert tools_of(REMEMBER, FORGET).schema is tools_of(copy.deepcopy(REMEMBER), FORGET).schema
    assert tools_of(REMEMBER, FORGET).schema is not tools_of(FORGET, REMEMBER).schema
