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
from hymemory_adapters.core.write_call import Contract, judge

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


def contract_of(response_format: Any, **more: Any) -> Contract:
    contract = structured_contract(asked(response_format), **more)
    assert contract is not None
    return contract


def named(name: Any, schema: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


@pytest.mark.parametrize(
    ("name", "fit"),
    [
        ("Dict[str, Person]", "Dict_str_Person_"),
        ("Az__0-9", "Az__0-9"),
        ("Ab c" * 30, ("Ab_c" * 30)[:64]),
        ("\u540d", "_"),
        ("", "answer"),
        (None, "answer"),
    ],
)
def test_a_name_is_fit_for_the_wire(name: Any, fit: str) -> None:
    schema = contract_of(named(name, {"type": "object"})).schema
    assert schema is not None
    assert schema.name == fit


@pytest.mark.parametrize(("title", "fit"), [("My class", "My_class"), (None, "answer")])
def test_a_class_goes_by_the_title_of_its_schema(title: str | None, fit: str) -> None:
    class Untold(BaseModel):
        @classmethod
        def model_json_schema(cls, *_: Any, **__: Any) -> dict[str, Any]:
            return {"type": "object", **({"title": title} if title else {})}

    assert AnswerFormat(Untold)["json_schema"]["name"] == fit


def test_any_object_will_do_where_no_schema_is_given() -> None:
    contract = contract_of({"type": "json_object"})
    assert contract.schema is not None
    assert (contract.schema.name, contract.schema.wire) == ("answer", {"type": "object"})
    assert contract.messages is ASKED, "nothing is added to what the host says"
    assert [not judge(Reply(text, finish_reason="stop"), contract).problems for text in ('{"a": 1}', "[1]")] == [
        True,
        False,
    ]


@pytest.mark.parametrize("response_format", [{"type": "json_object"}, AnswerFormat(Person)], ids=["object", "schema"])
def test_how_the_value_goes_back(response_format: Any) -> None:
    assert contract_of(response_format).render({"a": "{"}) == '{"a": "\\u007b"}'
    assert contract_of(response_format, render=sorted).render({"b": 1, "a": 2}) == ["a", "b"]


@pytest.mark.parametrize("json_schema", [None, {}, {"schema": None}])
def test_a_format_without_a_schema_takes_any_json(json_schema: Any) -> None:
    contract = contract_of({"type": "json_schema", "json_schema": json_schema})
    assert not judge(Reply("[1]", finish_reason="stop"), contract).problems
    assert contract.schema is not None
    assert contract.schema.name == "answer"


def test_the_wire_takes_no_key_that_the_class_does_not_have_and_the_judge_does() -> None:
    contract = contract_of(AnswerFormat(Person))
    assert contract.schema is not None
    assert contract.schema.wire["additionalProperties"] is False
    assert contract.schema.name == "Person"
    assert not judge(Reply('{"name": "Ana", "more": 1}', finish_reason="stop"), contract).problems


def test_one_schema_for_every_request_with_the_same_class() -> None:
    """Its validator is made once."""
    assert contract_of(AnswerFormat(Person)).schema is contract_of(AnswerFormat(Person)).schema


def test_a_schema_may_hold_what_is_no_json() -> None:
    contract = contract_of(named("d", {"type": "object", "default": date(2026, 11, 30), "title": "\u8336"}))
    assert contract.messages is not None
    note, _, told = contract.messages[0]["content"].partition("\n")
    assert ("JSON Schema" in note, "nothing else" in note) == (True, True)
    assert json.loads(told) == {"type": "object", "default": "2026-11-30", "title": "\u8336"}
    assert "\u8336" in told, "as people write it: escapes are more tokens"


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


class Choice(BaseModel):
    choice: str

    @field_validator("choice")
    @classmethod
    def _none_will_do(cls, choice: str) -> str:
        raise ValueError(f"unknown: {choice}")


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        pytest.param("private", "is refused (value_error)", id="a-word-of-the-reply"),
        pytest.param("four", "is refused (value_error)", id="a-short-word"),
        pytest.param("val", "Value error, unknown: val", id="so-short-that-it-may-be-chance"),
    ],
)
def test_what_is_told_of_a_misfit(choice: str, message: str) -> None:
    (problem,) = misfits(Choice, {"choice": choice})
    assert (problem.rule, problem.message, problem.path) == ("schema", message, "$.choice")


def test_no_more_than_ten_misfits_are_told() -> None:
    class Numbers(BaseModel):
        numbers: list[int]

    found = misfits(Numbers, {"numbers": ["x"] * 12})
    assert [problem.path for problem in found] == [f"$.numbers[{index}]" for index in range(10)]


@pytest.mark.parametrize(("answer", "fits"), [(Person, True), (Strict, False)])
def test_a_strict_class_takes_no_text_for_a_date_where_the_host_reads_no_json(answer: Any, fits: bool) -> None:
    value = {"name": "Ana", "born": "1990-02-01"}
    assert misfits(answer, value) == []
    assert (misfits(answer, value, python=True) == []) is fits


@pytest.mark.parametrize("answer", [None, dict, {"type": "object"}, Person(name="Ana")])
def test_what_is_no_class_has_nothing_against_it(answer: Any) -> None:
    assert misfits(answer, {"x": 1}) == []
