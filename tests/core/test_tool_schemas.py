"""The schemas of the tools that users write: what becomes of them on the wire, and what still validates."""

from __future__ import annotations

import copy
import json
from datetime import date
from typing import Any

import pytest

from hymemory_adapters import ConfigurationError
from hymemory_adapters.core.tools import Answer, ToolCall, closed
from tests.support.tools import FORGET, PING, REMEMBER, TEA, judged, reply, tools_of


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
        "properties": {"a": {"$ref": "#/definitions/A~1B~0C"}},
        "required": ["a"],
        "definitions": {"A/B~C": {"enum": ["x", "y"]}},
    },
}
INSIDE: dict[str, Any] = {  # a reference to a part of a definition, beside another whose name begins alike
    "name": "inside",
    "parameters": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Pair/properties/left"}, "b": {"$ref": "#/$defs/PairOf"}},
        "required": ["a", "b"],
        "$defs": {"Pair": {"properties": {"left": {"type": "string"}}}, "PairOf": {"type": "integer"}},
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
    "inside": ([PING, INSIDE], ("inside", {"a": "x", "b": 1}), True),
    "inside_wrong": ([PING, INSIDE], ("inside", {"a": 1, "b": 1}), False),
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


def test_the_wire_of_a_tool() -> None:
    """Whole: a server compiles what stands here, and nothing that only means the same."""
    none = {"type": "object", "properties": {}, "additionalProperties": False}
    call = {
        "type": "object",
        "properties": {"name": {"const": "ping"}, "arguments": none},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }
    calls = {"type": "array", "items": call, "minItems": 1, "maxItems": 1}
    schema = tools_of(PING, tool_choice="ping").schema
    assert (schema.name, schema.wire) == (
        "tool_calls",
        {
            "type": "object",
            "properties": {"tool_calls": calls},
            "required": ["tool_calls"],
            "additionalProperties": False,
        },
    )
    free = tools_of(PING, text=True).schema.wire
    assert next(iter(free["properties"].items())) == ("content", {"type": "string"})
    assert free["required"] == ["content", "tool_calls"], "asked for are both"
    assert "minItems" not in free["properties"]["tool_calls"]


def test_what_is_said_of_values_is_left_as_it_is() -> None:
    """An enum or a const may hold what looks like a schema."""
    value = {"type": "object", "properties": {"a": 1}}
    open_ended = {"properties": {"x": {"type": "string"}}}
    parameters = {"type": "object", "properties": {"e": {"enum": [value]}, "c": {"const": value}, "o": open_ended}}
    wire = closed(parameters)
    assert wire == {**parameters, "additionalProperties": False}


def test_a_default_that_json_does_not_know() -> None:
    dated = copy.deepcopy(REMEMBER)
    dated["parameters"]["properties"]["day"] = {"type": "string", "default": date(2026, 11, 30)}
    assert judged(reply(TEA), tools_of(dated)) == Answer((ToolCall(*TEA),))


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
