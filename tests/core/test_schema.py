"""The schema on the wire and the schema that validates: what is left out, what is said, what is never said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hymemory_adapters.core.schema import LIST_BOUND, Schema, wire_schema
from tests.support.scripted import ScriptedEndpoint
from tests.support.strategies import json_values, texts

S: dict[str, Any] = {"type": "string"}
A: dict[str, Any] = {"type": "object", "properties": {"a": S}}

# Every keyword that a server refuses, ignores or does harm with, and those that all of them obey.
WIRE: dict[str, tuple[Any, Any]] = {
    "type": (S, S),
    "type_list": ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    "enum": ({"enum": ["a", 1, None]}, {"enum": ["a", 1, None]}),
    "enum_empty": ({"type": "string", "enum": []}, S),
    "const": ({"const": {"maxLength": 1}}, {"const": {"maxLength": 1}}),
    "required_declared": ({**A, "required": ["a"]}, {**A, "required": ["a"]}),
    "required_undeclared": ({**A, "required": ["a", "b"]}, {**A, "required": ["a"]}),
    "required_without_properties": ({"type": "object", "required": ["b"]}, {"type": "object"}),
    "min_and_max_items": ({"minItems": 1, "maxItems": 3}, {"minItems": 1, "maxItems": 3}),
    "min_length_one": ({**S, "minLength": 1}, S),
    "max_length": ({**S, "maxLength": 400}, S),
    "pattern": ({**S, "pattern": "^a$"}, S),
    "pattern_and_max_length": ({**S, "pattern": "^a$", "maxLength": 3}, S),
    "range": ({"minimum": 0, "maximum": 9}, {"minimum": 0, "maximum": 9}),
    "multiple_of": ({"type": "number", "multipleOf": 2}, {"type": "number"}),
    "any_of": ({"anyOf": [S, {"maxLength": 1}]}, {"anyOf": [S, {}]}),
    "one_of": ({"oneOf": [S, A]}, {"anyOf": [S, A]}),
    "all_of_one": ({"allOf": [{**S, "maxLength": 1}], "title": "T"}, S),
    "all_of_one_reference": ({"allOf": [{"$ref": "#/$defs/A"}], "default": 1}, {"$ref": "#/$defs/A"}),
    "all_of_two": ({"type": "object", "allOf": [A, A]}, {"type": "object"}),
    "reference": ({"$ref": "#/$defs/A", "description": "x"}, {"$ref": "#/$defs/A"}),
    "reference_to_root": ({"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}),
    "reference_beside_definitions": (
        {"$ref": "#/$defs/A", "$defs": {"A": {**S, "pattern": "x"}}},
        {"$ref": "#/$defs/A", "$defs": {"A": S}},
    ),
    "reference_remote": ({"items": {"$ref": "https://example.org/a.json"}}, {"items": {}}),
    "definitions": ({"definitions": {"A": {**S, "format": "date"}}}, {"definitions": {"A": S}}),
    "defs": ({"$defs": {"A": {**S, "format": "date"}}}, {"$defs": {"A": S}}),
    "additional_false": ({"additionalProperties": False}, {"additionalProperties": False}),
    "additional_schema": ({"additionalProperties": {**S, "title": "x"}}, {"additionalProperties": S}),
    "pattern_properties": ({**A, "patternProperties": {"^x": S}}, A),
    "prefix_items": ({"prefixItems": [{**S, "maxLength": 1}], "items": False}, {"prefixItems": [S], "items": False}),
    "unique_items": ({"type": "array", "uniqueItems": True}, {"type": "array"}),
    "contains": ({"type": "array", "contains": S}, {"type": "array"}),
    "format": ({**S, "format": "uuid"}, S),
    "dependent_required": ({**A, "dependentRequired": {"a": ["b"]}}, A),
    "not": ({**A, "not": S}, A),
    "if_then": ({**A, "if": S, "then": S, "else": S}, A),
    "unevaluated": ({**A, "unevaluatedProperties": False}, A),
    "property_names": ({**A, "propertyNames": {"minLength": 2}}, A),
    "min_properties": ({**A, "minProperties": 2}, A),
    "remarks": ({**S, "title": "t", "description": "d", "default": "", "examples": ["x"], "$id": "i"}, S),
    "keys_named_like_keywords": (
        {"properties": {"pattern": S, "maxLength": {**S, "maxLength": 2}, "$ref": S, "title": S}},
        {"properties": {"pattern": S, "maxLength": S, "$ref": S, "title": S}},
    ),
    "reference_beside_old_definitions": (
        {"$ref": "#/definitions/A", "definitions": {"A": {**S, "pattern": "x"}}},
        {"$ref": "#/definitions/A", "definitions": {"A": S}},
    ),
    "items_of_an_older_draft": ({"items": [S, S]}, {"items": {}}),
    "true": (True, True),
    "false": (False, False),
    "nested": ({"properties": {"a": {"items": {"anyOf": [{"items": {**S, "maxLength": 1}}]}}}},
               {"properties": {"a": {"items": {"anyOf": [{"items": S}]}}}}),
}  # fmt: skip


@pytest.mark.parametrize(("full", "reduced"), WIRE.values(), ids=WIRE)
def test_reduced(full: Any, reduced: Any) -> None:
    before = json.dumps(full)
    # As text, so that the order of the keys counts: servers keep a compiled grammar by the text.
    assert json.dumps(wire_schema(full)) == json.dumps(reduced)
    assert json.dumps(wire_schema(wire_schema(full))) == json.dumps(reduced)
    assert json.dumps(full) == before


def test_order_of_keys_is_the_schemas() -> None:
    full = {"required": ["b", "a"], "properties": {"b": S, "a": S}, "additionalProperties": False, "type": "object"}
    assert json.dumps(Schema(full).wire) == json.dumps(full)


def test_a_wire_schema_of_its_own_is_reduced_too_and_validates_nothing() -> None:
    schema = Schema(A, wire={"type": "array", "uniqueItems": True})
    assert schema.wire == {"type": "array"}
    assert schema.problems({"a": "x"}) == ()
    assert schema.digest == Schema(S, wire={"type": "array"}).digest != Schema(A).digest
    assert (schema.name, Schema(A, name="demo_facts").name) == ("reply", "demo_facts")


ITEM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "minLength": 1},
        "event": {"enum": ["ADD", "NONE"]},
        "n": {"type": "integer"},
    },
    "required": ["text", "event"],
    "additionalProperties": False,
}
ACTION: dict[str, Any] = {
    "anyOf": [
        {"properties": {"do": {"const": "add"}, "text": S}, "required": ["do", "text"], "additionalProperties": False},
        {"properties": {"do": {"const": "drop"}, "id": S}, "required": ["do", "id"], "additionalProperties": False},
    ]
}
THREE: dict[str, Any] = {
    "oneOf": [
        {"properties": {"do": {"const": do}, "id": S}, "required": ["do", "id"]} for do in ("add", "drop", "keep")
    ]
}
ONE_OR_NULL: dict[str, Any] = {
    "anyOf": [{"required": ["do", "id"], "properties": {"do": {"const": "add"}}}, {"type": "null"}]
}
MEMORY: dict[str, Any] = {"properties": {"memory": {"type": "array", "items": ITEM, "maxItems": 3}}}
GOOD = {"text": "x", "event": "ADD"}

SAID: dict[str, tuple[dict[str, Any], Any, list[str]]] = {
    "fits": (MEMORY, {"memory": [GOOD]}, []),
    "required": (MEMORY, {"memory": [{"text": "x"}]}, ['$.memory[0]: the key "event" is missing']),
    "two_required": (MEMORY, {"memory": [GOOD, {}]}, ['$.memory[1]: the key "text" or "event" is missing']),
    "additional": (
        MEMORY, {"memory": [{**GOOD, "colour of hair": 1, "eyes": 2}]},
        ['$.memory[0]: there is a key that does not belong here; allowed: "text" or "event" or "n"'],
    ),
    "type": (MEMORY, {"memory": "tea"}, ["$.memory: must be array, is string"]),
    "type_null": (MEMORY, {"memory": [{**GOOD, "n": None}]}, ["$.memory[0].n: must be integer, is null"]),
    "type_bool": (MEMORY, {"memory": [{**GOOD, "n": True}]}, ["$.memory[0].n: must be integer, is boolean"]),
    "type_list": ({"type": ["string", "null"]}, 1.5, ["$: must be string or null, is number"]),
    "enum": (MEMORY, {"memory": [{**GOOD, "event": "EDIT"}]}, ['$.memory[0].event: must be "ADD" or "NONE"']),
    "const": ({"const": "x"}, "y", ['$: must be "x"']),
    "not_empty": (MEMORY, {"memory": [{**GOOD, "text": ""}]}, ["$.memory[0].text: must not be empty"]),
    "min_length": ({"minLength": 3}, "ab", ["$: must have at least 3 characters"]),
    "max_items": (MEMORY, {"memory": [GOOD] * 4}, ["$.memory: may have at most 3 items"]),
    "other_keyword": ({"maximum": 3}, 4, ["$: must satisfy maximum: 3"]),
    "false": ({"properties": {"old": False}}, {"old": 1}, ["$: there is a value that does not belong here"]),
    "branch_by_discriminator": (ACTION, {"do": "drop", "text": "x"}, ['$: the key "id" is missing']),
    "unknown_discriminator": (ACTION, {"do": "edit", "text": "x"}, ['$.do: must be "add" or "drop"']),
    "null_or_object": ({"anyOf": [{"type": "null"}, ITEM]}, {"text": "x"}, ['$: the key "event" is missing']),
    "in_order": (
        {"items": {"maximum": 5}, "type": "array"}, [6, 1, 7, *[1] * 8, 8],
        [f"$[{i}]: must satisfy maximum: 5" for i in (0, 2, 11)],
    ),
    "the_first_ten": (
        {"items": S}, [1] * 15, [f"$[{i}]: must be string, is integer" for i in range(10)],
    ),
    "one_of_three": (THREE, {"do": "drop"}, ['$: the key "id" is missing']),
    "one_of_none": (THREE, {"do": "edit", "id": "1"}, ['$.do: must be "add" or "drop" or "keep"']),
    "one_of_several": ({"oneOf": [S, {"minLength": 1}]}, "x", ["$: fits more than one of the allowed forms"]),
    "one_discriminator": (ONE_OR_NULL, {"do": "edit"}, ['$: the key "id" is missing']),
    "additional_of_none": (
        {"additionalProperties": False}, {"a": 1}, ["$: there is a key that does not belong here; allowed: none"],
    ),
    "const_number": ({"const": 5}, 4, ["$: must be 5"]),
    "any_script": ({"enum": ["\u8336", "x"]}, "y", ['$: must be "\u8336" or "x"']),
    "thirty_words": ({"enum": [*range(30)]}, "x", ["$: must be " + " or ".join(map(str, range(30)))]),
    "more_words": ({"enum": [*range(31)]}, "x", ["$: must be " + " or ".join(map(str, range(30))) + " or ..."]),
    "much_to_say": ({"pattern": "y" * 300}, "x", ['$: must satisfy pattern: "' + "y" * 199]),
    "type_array": (S, [], ["$: must be string, is array"]),
    "type_object": (S, {}, ["$: must be string, is object"]),
    "type_of_a_hosts_own": (S, (), ["$: must be string, is tuple"]),
    "max_items_bound": (
        {"maxItems": 200}, [1] * 200, ["$: may have at most 199 items, and was perhaps cut there"],
    ),
    "max_items_one": ({"maxItems": 1}, [1, 2], ["$: may have at most 1 item"]),
    "max_items_of_no_list": ({"maxItems": 1}, "tea", []),
    "unknown_key_in_a_path": ({"additionalProperties": S}, {"peanuts": 1}, ['$["..."]: must be string, is integer']),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "said"), SAID.values(), ids=SAID)
def test_problems(schema: dict[str, Any], value: Any, said: list[str]) -> None:
    problems = Schema(schema).problems(value)
    assert [str(problem) for problem in problems] == said
    assert {problem.rule for problem in problems} <= {"schema"}


@pytest.mark.parametrize(
    ("bound", "items", "fits"),
    [
        (5, 5, True),
        (5, 6, False),
        (LIST_BOUND, 199, True),
        (LIST_BOUND, 200, False),
        (300, 299, True),
        (300, 300, False),
    ],
)
def test_a_list_that_reaches_the_bound_was_perhaps_cut(bound: int, items: int, fits: bool) -> None:
    schema = Schema({"type": "array", "maxItems": bound})
    assert schema.wire["maxItems"] == bound
    assert (schema.problems(["x"] * items) == ()) is fits


_SECRET = "swordfish"
_SCHEMAS: list[dict[str, Any]] = [MEMORY, ACTION, ITEM, {"additionalProperties": S}, {"items": ACTION}, {"not": {}}]
_secret_values = json_values(texts() | st.sampled_from([_SECRET, f"{_SECRET} {{}}"]))


@settings(max_examples=100, deadline=None)
@given(_secret_values, st.sampled_from(_SCHEMAS))
def test_problems_hold_no_text_of_the_reply(value: Any, schema: dict[str, Any]) -> None:
    shaped = (
        value,
        {"memory": [value, {_SECRET: value}]},
        [{"do": _SECRET, _SECRET: value}],
        {"do": "add", "text": value},
    )
    for instance in shaped:
        problems = Schema(schema).problems(instance)
        assert not [problem for problem in problems if _SECRET in str(problem)]


INTEGER: dict[str, Any] = {"type": "integer"}
INTEGRAL: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "plain": (INTEGER, 1.0, 1),
    "number": ({"type": "number"}, 1.0, 1.0),
    "negative": (INTEGER, -0.0, 0),
    "large": (INTEGER, 1e20, 10**20),
    "not_integral": (INTEGER, 1.5, 1.5),
    "boolean": (INTEGER, True, True),
    "property": ({"properties": {"n": INTEGER}}, {"n": 2.0, "m": 2.0}, {"n": 2, "m": 2.0}),
    "items": ({"items": INTEGER}, [1, 2.0], [1, 2]),
    "map": ({"additionalProperties": INTEGER}, {"a": 1.0}, {"a": 1}),
    "list_of_numbers": ({"items": {"type": "number"}}, [1.0], [1.0]),
    "map_of_numbers": ({"additionalProperties": {"type": "number"}}, {"a": 1.0}, {"a": 1.0}),
    "one_of": ({"oneOf": [INTEGER, S]}, 1.0, 1),
    "reference_in_any_of": ({"anyOf": [{"$ref": "#/$defs/N"}, S], "$defs": {"N": INTEGER}}, 1.0, 1),
    "reference_to_a_reference": (
        {"$ref": "#/$defs/A", "$defs": {"A": {"items": {"$ref": "#/$defs/N"}}, "N": INTEGER}}, [1.0], [1],
    ),
    "reference_to_nothing": ({"anyOf": [{"items": INTEGER}, {"$ref": "#/$defs/A/B"}]}, [1.0], [1]),
    "any_of": ({"anyOf": [INTEGER, {"type": "null"}]}, 1.0, 1),
    "any_of_object": ({"anyOf": [{"type": "null"}, {"properties": {"n": INTEGER}}]}, {"n": 1.0}, {"n": 1}),
    "all_of": ({"allOf": [INTEGER]}, 1.0, 1),
    "type_list": ({"type": ["integer", "null"]}, 1.0, 1),
    "reference": ({"items": {"$ref": "#/$defs/N"}, "$defs": {"N": INTEGER}}, [1.0], [1]),
    "reference_to_root": ({"properties": {"n": INTEGER, "in": {"$ref": "#"}}}, {"in": {"n": 1.0}}, {"in": {"n": 1}}),
}  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "expected"), INTEGRAL.values(), ids=INTEGRAL)
def test_integral_floats_become_integers_where_the_schema_says_so(
    schema: dict[str, Any], value: Any, expected: Any
) -> None:
    changed = Schema(schema).integers(value)
    assert repr(changed) == repr(expected)
    # The same object says that nothing was changed.
    assert (changed is value) == (repr(value) == repr(expected))


@pytest.mark.parametrize("identity", [{}, {"$id": "inner"}], ids=["quick", "by jsonschema alone"])
def test_a_remote_reference_is_never_fetched(identity: dict[str, str]) -> None:
    with ScriptedEndpoint("{}") as endpoint:
        schema = Schema({"properties": {"a": {**identity, "$ref": f"{endpoint.url}/schema.json"}}})
        assert schema.wire == {"properties": {"a": {}}}
        with pytest.raises(Exception, match="Unresolvable"):
            schema.problems({"a": 1})
        assert endpoint.requests == []
