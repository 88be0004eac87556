"""``with_structured_output``: what comes back was validated, or nothing does."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel, Field, field_validator

from hymemory_adapters import MalformedWriteError
from tests.support.scripted import ScriptedEndpoint


class Person(BaseModel):
    """A person."""

    name: str = Field(description="first name only")
    age: int

    @field_validator("age")
    @classmethod
    def _is_born(cls, age: int) -> int:
        if age < 0:
            raise ValueError("must not be negative")
        return age


class PersonDict(TypedDict):
    """A person."""

    name: str
    age: int


SCHEMAS = {"pydantic": Person, "typed dict": PersonDict, "json schema": Person.model_json_schema()}
METHODS = ("json_schema", "json_mode", "function_calling")
each_form = pytest.mark.parametrize(
    ("schema", "method"),
    [pytest.param(schema, method, id=f"{name} {method}") for name, schema in SCHEMAS.items() for method in METHODS],
)


def said(schema: Any, method: str, value: Any) -> str:
    """A reply with this value."""
    name = getattr(schema, "__name__", "Person")
    call = {"tool_calls": [{"name": name, "arguments": value}]}
    return json.dumps(call if method == "function_calling" else value)


def as_dict(value: Any) -> Any:
    return value.model_dump() if isinstance(value, BaseModel) else value


@each_form
@pytest.mark.parametrize("include_raw", [False, True])
def test_what_does_not_fit_is_asked_again(
    schema: Any, method: str, include_raw: bool, model: Any, endpoint: ScriptedEndpoint
) -> None:
    answer = model.with_structured_output(schema, method=method, include_raw=include_raw)
    endpoint.play(
        said(schema, method, {"name": "Ann", "age": "x"}),
        said(schema, method, {"name": "Ann"}),
        said(schema, method, {"name": "Ann", "age": 3.0}),
    )
    got = answer.invoke("Who?")
    assert as_dict(got["parsed"] if include_raw else got) == {"name": "Ann", "age": 3}
    assert len(endpoint.chats) == 3
    assert endpoint.chats[0].body["response_format"]["type"] == "json_schema"
    if include_raw:
        assert got["parsing_error"] is None
        assert bool(got["raw"].tool_calls) == (method == "function_calling")


@each_form
@pytest.mark.parametrize("include_raw", [False, True])
def test_what_never_fits_raises(
    schema: Any, method: str, include_raw: bool, model: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(said(schema, method, {"name": "Ann"}))
    with pytest.raises(MalformedWriteError, match='the key "age" is missing'):
        model.with_structured_output(schema, method=method, include_raw=include_raw).invoke("Who?")
    assert len(endpoint.chats) == 3


@pytest.mark.parametrize("method", METHODS)
def test_a_pydantic_class_has_the_last_word(method: str, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(said(Person, method, {"name": "Ann", "age": -1}), said(Person, method, {"name": "Ann", "age": 1}))
    assert model.with_structured_output(Person, method=method).invoke("Who?").age == 1
    assert "age: Value error, must not be negative" in endpoint.chats[1].messages[-1]["content"]


def test_a_problem_holds_no_word_of_the_reply(model: Any, endpoint: ScriptedEndpoint) -> None:
    class Word(BaseModel):
        """A word."""

        word: str

        @field_validator("word")
        @classmethod
        def _is_known(cls, word: str) -> str:
            raise ValueError(f"{word} is not known")

    endpoint.play('{"word": "confidential"}')
    with pytest.raises(MalformedWriteError) as raised:
        model.with_structured_output(Word).invoke("Which?")
    assert "confidential" not in str(raised.value)
    assert r"$.word: is refused (value_error)" in str(raised.value)


CUT = '{"name": "Ann", "age": 3'


@each_form
def test_a_cut_reply_is_not_repaired(schema: Any, method: str, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(said(schema, method, {"name": "Ann", "age": 3})[:-1], said(schema, method, {"name": "Bo", "age": 4}))
    assert as_dict(model.with_structured_output(schema, method=method).invoke("Who?")) == {"name": "Bo", "age": 4}


def test_json_mode_without_a_schema(model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("words", "[1]", '{"any": [1]}')
    assert model.with_structured_output(method="json_mode").invoke("Answer in JSON") == {"any": [1]}
    assert len(endpoint.chats) == 3


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_it_streams_one_value(schema: Any, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("words", '{"name": "Ann", "age": 3}')
    assert [as_dict(part) for part in model.with_structured_output(schema).stream("Who?")] == [
        {"name": "Ann", "age": 3}
    ]


@pytest.mark.parametrize("method", METHODS)
def test_nothing_cuts_the_value_in_two(method: str, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(said(Person, method, {"name": "Ann", "age": 3}))
    answer = model.with_structured_output(Person, method=method, stop=["n"], n=2)
    assert [part.age for part in answer.stream("Who?")] == [3]
    assert not {"stop", "n", "stream", "stream_options"} & set(endpoint.chats[0].body)


def test_descriptions_are_told(model: Any, endpoint: ScriptedEndpoint) -> None:
    """They stand nowhere else: servers show the model no schema."""
    endpoint.play('{"name": "Ann", "age": 3}')
    model.with_structured_output(Person).invoke("Who?")
    assert "first name only" in endpoint.chats[0].messages[0]["content"]
    assert "first name only" not in json.dumps(endpoint.chats[0].body["response_format"])


WIRE = {
    "pattern": {"type": "string", "pattern": "^[a-z]+$"},
    "max_length": {"type": "string", "maxLength": 3},
    "unique": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    "multiple": {"type": "integer", "multipleOf": 5},
}
BAD_AND_GOOD: dict[str, tuple[Any, Any]] = {
    "pattern": ("A1", "ab"),
    "max_length": ("abcd", "abc"),
    "unique": (["a", "a"], ["a"]),
    "multiple": (4, 5),
}


@pytest.mark.parametrize("keyword", WIRE)
def test_what_servers_do_not_take_is_checked_here(keyword: str, model: Any, endpoint: ScriptedEndpoint) -> None:
    schema = {"title": "Thing", "type": "object", "properties": {"x": WIRE[keyword]}, "required": ["x"]}
    bad, good = ({"x": value} for value in BAD_AND_GOOD[keyword])
    endpoint.play(json.dumps(bad), json.dumps(good))
    assert model.with_structured_output(schema).invoke("What?") == good
    sent = json.dumps(endpoint.chats[0].body["response_format"])
    assert not [word for word in ("pattern", "maxLength", "uniqueItems", "multipleOf") if word in sent]


FORMATS: dict[str, Callable[[Any], Any]] = {
    "dict": lambda model: model.bind(response_format={"type": "json_object"}),
    "schema": lambda model: model.bind(
        response_format={"type": "json_schema", "json_schema": {"name": "a b", "schema": {"type": "object"}}}
    ),
    "class": lambda model: model.bind(response_format=Person),
}


@pytest.mark.parametrize("bound", FORMATS.values(), ids=FORMATS)
def test_a_format_that_is_bound_by_hand(bound: Callable[[Any], Any], model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("words", '{"name": "Ann", "age": 3}')
    assert json.loads(bound(model).invoke("Who?").content) == {"name": "Ann", "age": 3}
    assert len(endpoint.chats) == 2
