"""Every call with every malformed kind, through the host's own API: nothing is lost silently, nothing loops."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langmem import create_manage_memory_tool, create_memory_manager
from pydantic import BaseModel, field_validator

from hymemory_adapters import HyMemoryError
from hymemory_adapters.core.events import WriteEvent
from tests.langchain.host import (
    OLD,
    SAID,
    Run,
    assert_on_the_wire,
    both_ways,
    fix,
    in_a_thread,
    memory,
    patch,
    replace,
    reply,
    texts,
)
from tests.support.cases import MalformedReply, harmless, malformed
from tests.support.scripted import Fail, ScriptedEndpoint

ATTEMPTS = 3
LOOP_ENDS = {"recursion_limit": 60}


class Year(BaseModel):
    """A year."""

    year: int

    @field_validator("year")
    @classmethod
    def _is_late(cls, year: int) -> int:
        if year < 1900:
            raise ValueError("too early")
        return year


class Tea(BaseModel, extra="forbid"):
    """A tea."""

    name: str


@dataclass(frozen=True)
class Row:
    """One call of the table, and how the host makes it.

    Attributes:
        ask: make it, with this model and in this way; return what it brought in words.
        good: the good reply's value.
        brought: what ``ask`` returns then.
        lost: what it returns when the call is lost; ``None`` where it raises.
        before: good replies that the host asks for first.
        writes: whether an event is published of it.
    """

    ask: Callable[[Any, Run], list[str]]
    good: Mapping[str, Any]
    brought: list[str]
    lost: list[str] | None = None
    before: tuple[str, ...] = ()
    writes: bool = True


def _manager(existing: list[Any], model: Any, run: Run) -> list[str]:
    return texts(run(create_memory_manager(model), {"messages": SAID, "existing": existing}, **LOOP_ENDS))


def _years(model: Any, run: Run) -> list[str]:
    return [str(each.content.year) for each in run(create_memory_manager(model, schemas=[Year]), {"messages": SAID})]


def _memory_tool(model: Any, run: Run) -> list[str]:
    bound = model.bind_tools([create_manage_memory_tool(NAMESPACE_OF_TOOL)])
    return [call["args"]["content"] for call in run(bound, "I drink tea").tool_calls]


def _any_tool(model: Any, run: Run) -> list[str]:
    return [call["args"]["name"] for call in run(model.bind_tools([Tea], tool_choice="any"), "Green").tool_calls]


def _structured(method: str, model: Any, run: Run) -> list[str]:
    return [run(model.with_structured_output(Tea, method=method), "Green").name]


NAMESPACE_OF_TOOL = ("memories",)
GOOD_TOOL = json.loads(reply(("Tea", {"name": "green"})))
ROWS = {
    "langmem.extract": Row(
        partial(_manager, []), json.loads(reply(memory("Drinks tea"), memory("Dog Rex"))), ["Dog Rex", "Drinks tea"]
    ),
    "langmem.update": Row(
        partial(_manager, [OLD]),
        json.loads(reply(patch("old", replace("/content", "Drinks tea")), memory("Dog Rex"))),
        ["Dog Rex", "Drinks tea"],
        lost=["Drinks coffee"],
    ),
    "langmem.repair": Row(
        _years,
        json.loads(reply(fix(replace("/year", 1999)))),
        ["1999", "2000"],
        lost=["2000"],  # the tool call beside it, which was good
        before=(reply(("Year", {"year": 5}), ("Year", {"year": 2000})),),
    ),
    "langmem.manage_memory": Row(
        _memory_tool, json.loads(reply(("manage_memory", {"content": "Drinks tea"}), content="")), ["Drinks tea"]
    ),
    "langchain.tools": Row(_any_tool, GOOD_TOOL, ["green"], writes=False),
    "langchain.structured": Row(partial(_structured, "json_schema"), {"name": "green"}, ["green"], writes=False),
    "langchain.structured json_mode": Row(
        partial(_structured, "json_mode"), {"name": "green"}, ["green"], writes=False
    ),
    "langchain.tools named": Row(partial(_structured, "function_calling"), GOOD_TOOL, ["green"], writes=False),
}
each_row = pytest.mark.parametrize(("name", "row"), ROWS.items(), ids=ROWS)
MALFORMED = [
    pytest.param(name, row, kind, id=f"{name}-{kind.name}")
    for name, row in ROWS.items()
    for kind in malformed(row.good)
    if " " not in name
]
HARMLESS = [
    pytest.param(row, kind, id=f"{name}-{kind.name}")
    for name, row in ROWS.items()
    for kind in harmless(row.good)
    if " " not in name and kind.value == row.good
]
BOTH = [
    pytest.param(name, row, kind, id=f"{name}-{kind.name}")
    for name, row in ROWS.items()
    for kind in malformed(row.good)
    if kind.name in ("null_content", "cut_half_length", "prose", "refusal", "unclosed_think", "empty_object")
]


@each_row
@both_ways
def test_a_good_reply_costs_one_request(
    name: str, row: Row, run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(*row.before, json.dumps(row.good))
    assert row.ask(model, run) == row.brought
    assert len(endpoint.chats) == len(row.before) + 1
    for chat in endpoint.chats:
        assert_on_the_wire(chat.body)
    assert [event.call for event in heard if event.call == name] == [name] * row.writes
    assert {event.outcome for event in heard} <= {"ok"}


@pytest.mark.parametrize(("name", "row", "kind"), MALFORMED)
def test_malformed_then_good_is_taken(
    name: str, row: Row, kind: MalformedReply, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(*row.before, kind.say(), json.dumps(row.good))
    assert row.ask(model, in_a_thread) == row.brought
    assert len(endpoint.chats) == len(row.before) + 2
    assert [event.outcome for event in heard if event.call == name] == ["retried"] * row.writes


@pytest.mark.parametrize(("row", "kind"), HARMLESS)
def test_an_odd_but_harmless_reply_is_taken_at_once(
    row: Row, kind: Any, model: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(*row.before, kind.say())
    assert row.ask(model, in_a_thread) == row.brought
    assert len(endpoint.chats) == len(row.before) + 1


@pytest.mark.parametrize(("name", "row", "kind"), BOTH)
@both_ways
def test_always_malformed_ends_soon_and_is_told(
    name: str,
    row: Row,
    kind: MalformedReply,
    run: Run,
    make_model: Callable[..., Any],
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal = tmp_path / "lost.jsonl"
    endpoint.play(*row.before, kind.say())
    _lose(row, make_model(attempts=ATTEMPTS, journal=str(journal)), run)
    assert len(endpoint.chats) <= ATTEMPTS * 2
    assert len(endpoint.chats) == len(row.before) + ATTEMPTS
    lost = [event.call for event in heard if event.outcome == "lost"]
    lines = journal.read_text().splitlines() if journal.exists() else []
    errors = [r for r in caplog.records if r.levelname == "ERROR" and r.name == "hymemory_adapters"]
    assert lost == [name] * row.writes
    assert [json.loads(line)["call"] for line in lines] == lost
    assert len(errors) == len(lost)


@each_row
@both_ways
@pytest.mark.parametrize("status", [400, 401, 500], ids=str)
def test_a_server_that_refuses_ends_soon(
    name: str,
    row: Row,
    status: int,
    run: Run,
    make_model: Callable[..., Any],
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
) -> None:
    endpoint.play(*row.before, Fail(status, "something else"))
    _lose(row, make_model(retry_seconds=0), run)
    assert len(endpoint.chats) == len(row.before) + 1
    assert [event.call for event in heard if event.outcome == "lost"] == [name] * row.writes


def _lose(row: Row, model: Any, run: Run) -> None:
    if row.lost is None:
        with pytest.raises(HyMemoryError):
            row.ask(model, run)
    else:
        assert row.ask(model, run) == row.lost
