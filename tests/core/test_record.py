"""What is kept of a write call: its event holds all of it, and who is told, and when the journal is written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters.core.events import Attempt, WriteEvent, write_context
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.record import Record
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.write_call import WriteCall
from hymemory_adapters.settings import WriterSettings
from tests.support.calls import CALLS

WRITES = CALLS[0]
ASKS = replace(WRITES, writes=False)
BAD = Problem("not_json", "there is no JSON")
MESSAGES = [{"role": "user", "content": "I like tea"}]


def _record(call: WriteCall | None = WRITES, *, repeat: bool = False, **settings: Any) -> Record:
    return Record("demo", call, WriterSettings(model="m", writer="hy-memory", **settings), repeat=repeat)


def _noted(record: Record) -> Record:
    reply = Reply("prose", "hm", "stop", tokens_in=100, tokens_out=20)
    record.note(reply, [BAD], seconds=1.23456789, transport_retries=2)
    record.note(Reply(None, "hm", "length"), [], seconds=0, transport_retries=0)
    return record


ATTEMPTS = (Attempt(1, "stop", (BAD,), 100, 20, 1.234568, 2), Attempt(2, "length"))


def test_an_event_holds_all_that_was_noted(heard: list[WriteEvent]) -> None:
    with write_context(user="u1"):
        ends = [
            _noted(_record()).taken(("fence",), declined=False),
            _noted(_record()).taken((), declined=True),
            _noted(_record(repeat=True)).lost("salvaged", "why", MESSAGES),
            _record().cancelled(),
        ]
        once = _record()
        once.note(Reply("[]"), [], seconds=0, transport_retries=0)
        ends.append(once.taken((), declined=False))
    common = WriteEvent("demo", "demo.facts", "hy-memory", "m", "retried", ATTEMPTS, context={"user": "u1"})
    told = [
        replace(common, normalisations=("fence",)),
        replace(common, outcome="declined"),
        replace(common, outcome="salvaged", error="why", repeat=True),
        replace(common, outcome="cancelled", attempts=()),
        replace(common, outcome="ok", attempts=(Attempt(1),)),
    ]
    assert [replace(event, at=0.0) for event in ends] == [replace(event, at=0.0) for event in told]
    assert heard == ends


LOST: dict[str, tuple[WriteCall | None, bool, bool]] = {
    "a write": (WRITES, False, True),
    "a repeat": (WRITES, True, False),
    "no write": (ASKS, False, False),
    "passed through": (None, False, False),
}


def test_the_journal_keeps_no_words_where_it_may_not(tmp_path: Path) -> None:
    journal = tmp_path / "lost.jsonl"
    _noted(_record(journal=str(journal), journal_content="off")).lost("lost", "why", MESSAGES)
    assert not {"messages", "replies"} & set(json.loads(journal.read_text()))


@pytest.mark.parametrize(("call", "repeat", "kept"), LOST.values(), ids=LOST)
def test_what_is_lost_is_kept_once_and_only_if_it_writes(
    call: WriteCall | None, repeat: bool, kept: bool, tmp_path: Path, heard: list[WriteEvent]
) -> None:
    journal = tmp_path / "lost.jsonl"
    event = _noted(_record(call, repeat=repeat, journal=str(journal))).lost("lost", "why", MESSAGES)
    assert (event.outcome, event.call) == ("lost", call.name if call else "")
    assert heard == ([event] if call is WRITES else [])
    assert journal.exists() is kept
    if kept:
        line = json.loads(journal.read_text())
        assert (line["messages"], line["replies"]) == (MESSAGES, ["prose", "hm"])
