"""The quick answer to whether a value fits is jsonschema's own."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend
from referencing import Registry

from hymemory_adapters.core.quick import quick
from tests.support.scripted import ScriptedEndpoint


def both(schema: dict[str, Any], value: Any) -> tuple[bool, bool]:
    validator = Draft202012Validator(schema, registry=Registry())
    return quick(validator).is_valid(value), validator.is_valid(value)


# Few words, so that a value often fits.
KEYS = st.sampled_from(["a", "b"])
SCALARS = st.sampled_from([None, True, 0, 1, 1.0, "a", "b", ""])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=2), max_leaves=6
)
LEAVES = st.sampled_from(
    [
        *({}, True, False, {"const": "a"}, {"enum": ["a", 1, []]}),
        *({"minLength": 1}, {"maxItems": 1}, {"required": ["a"]}),
        *({"type": kind} for kind in ("string", "object", "array", "integer", ["string", "null"])),
        *({"$ref": f"#/$defs/{name}"} for name in ("word", "tree")),
    ]
)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(KEYS, inner, max_size=2),
            "items": inner,
            "prefixItems": some,
            "anyOf": some,
            "oneOf": some,
            "allOf": some,
            "not": inner,
            "if": inner,
            "then": inner,
            "additionalProperties": inner,
            "unevaluatedProperties": st.booleans(),
            "unevaluatedItems": st.booleans(),
        },
    )


DEFINITIONS = {
    "word": {"type": "string", "minLength": 1},
    "tree": {"anyOf": [{"$ref": "#/$defs/word"}, {"type": "array", "items": {"$ref": "#/$defs/tree"}}]},
}
SCHEMAS = _larger(st.recursive(LEAVES, _larger, max_leaves=6)).map(lambda schema: {**schema, "$defs": DEFINITIONS})


@settings(max_examples=300, deadline=None)
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=4))
def test_it_says_what_jsonschema_says(schema: dict[str, Any], values: list[Any]) -> None:
    validator = Draft202012Validator(schema, registry=Registry())
    fast = quick(validator)
    for value in (*values, *values):  # a part of the schema is met again
        fits = validator.is_valid(value)
        event(f"fits: {fits}")
        assert fast.is_valid(value) is fits


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        pytest.param({"properties": {"a": {"type": "string"}}}, {"a": "x", "b": 1}, True, id="a-key-of-no-concern"),
        pytest.param({"properties": {"a": {"type": "string"}}}, {"b": 1, "a": 1}, False, id="a-property"),
        pytest.param({"properties": {"a": False}}, {}, True, id="absent"),
        pytest.param({"properties": {"a": False}}, ["a"], True, id="no-object"),
        pytest.param({"items": {"type": "string"}}, ["a", 1], False, id="the-last-item"),
        pytest.param({"items": {"type": "string"}}, "ab", True, id="no-list"),
        pytest.param({"prefixItems": [{}], "items": False}, [1], True, id="only-a-prefix"),
        pytest.param({"prefixItems": [{}], "items": False}, [1, 2], False, id="after-the-prefix"),
        pytest.param({"anyOf": [False, {"const": 1}]}, 1, True, id="the-second-branch"),
        pytest.param({"anyOf": [False, {"const": 1}]}, 2, False, id="no-branch"),
        pytest.param({"enum": ["a", {"b": 1}]}, "a", True, id="a-word"),
        pytest.param({"enum": ["a", {"b": 1}]}, "b", False, id="another-word"),
        pytest.param({"enum": ["a", {"b": 1}]}, {"b": 1.0}, True, id="an-object"),
        pytest.param({"enum": [1, "True"]}, True, False, id="true-is-not-one"),
        pytest.param({"type": "integer"}, 1.0, True, id="a-kind-that-python-calls-otherwise"),
        pytest.param({"type": "integer"}, True, False, id="no-integer"),
        pytest.param({"type": ["string", "null"]}, None, True, id="one-of-two-kinds"),
        pytest.param({"type": ["string", "null"]}, 1, False, id="neither-kind"),
        pytest.param({"type": "string", "default": date(2026, 11, 30)}, "a", True, id="what-is-no-json-stands-in-it"),
    ],
)
def test_keywords(schema: dict[str, Any], value: Any, fits: bool) -> None:
    assert both(schema, value) == (fits, fits)


def test_what_the_validator_was_extended_with_holds() -> None:
    def max_items(*_: Any) -> Any:
        yield ValidationError("never")

    ours: Any = extend(Draft202012Validator, {"maxItems": max_items})  # type: ignore[no-untyped-call]
    assert not quick(ours({"items": {"maxItems": 9}})).is_valid([[]])


@pytest.mark.parametrize(("keyword", "word"), [("type", "integer"), ("enum", [7])])
def test_what_is_left_to_the_validators_own_keywords_reaches_them_whole(keyword: str, word: Any) -> None:
    got: list[Any] = []

    def own(validator: Any, *rest: Any) -> Any:
        got.extend((validator.schema, *rest))
        yield ValidationError("never")

    schema = {keyword: word}
    ours: Any = extend(Draft202012Validator, {keyword: own})  # type: ignore[no-untyped-call]
    assert not quick(ours(schema)).is_valid(7)
    assert got == [schema, word, 7, schema]


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        pytest.param({"items": {"maxItems": 9}}, [[], []], id="items"),
        pytest.param({"items": {"properties": {"a": {"maxItems": 9}}}}, [{"a": []}, {"a": []}], id="properties"),
        pytest.param({"items": {"anyOf": [{"maxItems": 9}]}}, [[], []], id="anyOf"),
    ],
)
def test_a_part_of_the_schema_has_one_validator_however_many_values_it_meets(schema: Any, value: Any) -> None:
    """It is most of the time that jsonschema takes."""
    met: list[Any] = []

    def max_items(validator: Any, *_: Any) -> Any:
        met.append(validator)
        return ()

    ours: Any = extend(Draft202012Validator, {"maxItems": max_items})  # type: ignore[no-untyped-call]
    assert quick(ours(schema)).is_valid(value)
    assert len(met) == 2
    assert met[0] is met[1]


@pytest.mark.parametrize(
    ("keyword", "word", "value"),
    [("type", "string", "a"), ("type", "object", {}), ("type", "array", []), ("enum", ["a"], "a")],
)
def test_the_commonest_questions_are_not_asked_of_jsonschema(keyword: str, word: Any, value: Any) -> None:
    def slow(*_: Any) -> Any:
        yield ValidationError("asked")

    ours: Any = extend(Draft202012Validator, {keyword: slow})  # type: ignore[no-untyped-call]
    assert quick(ours({keyword: word})).is_valid(value)


def test_a_schema_elsewhere_is_not_fetched() -> None:
    with ScriptedEndpoint("never") as endpoint:
        validator = Draft202012Validator({"$ref": f"{endpoint.url}/schema.json"}, registry=Registry())
        with pytest.raises(Exception, match=r"schema\.json"):
            quick(validator).is_valid(1)
        assert endpoint.requests == []


@pytest.mark.parametrize("name", ["inner", "https://example.org/inner"])
def test_a_part_with_an_id_has_its_own_references(name: str) -> None:
    """``#/$defs/A`` is the part's, not the whole schema's."""
    inner = {"$id": name, "$defs": {"A": {"const": 1}}, "properties": {"n": {"$ref": "#/$defs/A"}}}
    schema = {"$id": "https://example.org/", "$defs": {"A": {"const": 2}}, "properties": {"x": inner}}
    assert both(schema, {"x": {"n": 1}}) == (True, True)
    assert both(schema, {"x": {"n": 2}}) == (False, False)


def test_an_id_of_the_whole_is_no_obstacle() -> None:
    schema = {"$id": "https://example.org/", "$defs": {"A": {"const": 2}}, "items": {"$ref": "#/$defs/A"}}
    validator = Draft202012Validator(schema, registry=Registry())
    assert quick(validator) is not validator
    assert both(schema, [2]) == (True, True)
    assert both(schema, [1]) == (False, False)
