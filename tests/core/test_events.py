"""Who hears of a write, what the log says of it, and whose write it was."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import asdict, replace
from typing import Any

import pytest

from hymemory_adapters import WriterSettings, on_write, write_context
from hymemory_adapters.core import events
from hymemory_adapters.core.events import Attempt, WriteEvent, current_context, publish, say_once
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, WriteCall
from hymemory_adapters.core.writer import Writer
from tests.support.scripted import ScriptedEndpoint

CUT = Attempt(1, "length", (Problem("truncated", "the reply was cut", "$.memory"),), 100, 4096, 1.5)
TWICE = Attempt(1, "stop", (Problem("one", "no", "$"), Problem("two", "nor", "$.a")))
CONTRACT = Contract(schema=Schema({"type": "object", "required": ["facts"]}))
REQUEST = Request([{"role": "user", "content": "I like tea"}])


def _event(outcome: Any = "ok", attempts: int = 1, **more: Any) -> WriteEvent:
    return WriteEvent("host", "host.call", "hy-memory", "m", outcome, (CUT,) * attempts, **more)


def _writer(url: str) -> Writer:
    return Writer("host", (WriteCall("host.call", lambda _: CONTRACT),), WriterSettings(base_url=url))


TAKEN_LATER = replace(_event("retried"), attempts=(TWICE, CUT))


def test_subscribers_hear_every_event_in_the_order_they_came() -> None:
    heard: list[tuple[str, str]] = []
    on_write(lambda event: heard.append(("first", event.outcome)))
    on_write(lambda event: heard.append(("second", event.outcome)))
    publish(_event("ok"))
    publish(_event("lost"))
    assert heard == [("first", "ok"), ("second", "ok"), ("first", "lost"), ("second", "lost")]


def test_unsubscribing_is_of_one_subscriber_and_may_be_done_twice() -> None:
    heard: list[str] = []
    stop = on_write(lambda _: heard.append("stopped"))
    on_write(lambda _: heard.append("stays"))
    stop()
    stop()
    publish(_event())
    assert heard == ["stays"]


def test_a_subscriber_may_unsubscribe_itself_while_it_is_called() -> None:
    heard: list[str] = []
    stops: list[Callable[[], None]] = []

    def once(_: WriteEvent) -> None:
        heard.append("once")
        stops[0]()

    stops.append(on_write(once))
    on_write(lambda _: heard.append("always"))
    publish(_event())
    publish(_event())
    assert heard == ["once", "always", "always"]


def test_what_a_subscriber_raises_reaches_neither_the_host_nor_the_others(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[str] = []

    def broken(event: WriteEvent) -> None:
        raise RuntimeError(f"cannot store {event}")

    on_write(broken)
    on_write(lambda event: heard.append(event.outcome))
    with ScriptedEndpoint('{"facts": ["swordfish"]}') as endpoint:
        written = _writer(endpoint.url).write(REQUEST)
    assert json.loads(written.value) == {"facts": ["swordfish"]}
    assert heard == ["ok"]
    (warning,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert "RuntimeError" in warning
    assert "cannot store" not in warning  # the text may hold the conversation


def test_the_event_is_heard_in_the_thread_that_writes_and_before_the_host_has_the_value() -> None:
    threads: list[int] = []
    on_write(lambda _: threads.append(threading.get_ident()))
    with ScriptedEndpoint('{"facts": []}') as endpoint, ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: (_writer(endpoint.url).write(REQUEST), threading.get_ident(), len(threads)))
        _, ident, told = writing.result()
    assert threads == [ident]
    assert told == 1


@pytest.mark.parametrize(
    ("event", "level", "words"),
    [
        (_event("ok"), logging.DEBUG, r"host\.call: ok .* 1 attempt"),
        (
            replace(_event("retried"), attempts=(TWICE, CUT)),
            logging.INFO,
            r"host\.call: .* 2 attempts; .*: \$: no; \$\.a: nor",
        ),
        (_event("declined", 2), logging.DEBUG, r"host\.call: declined .* 2 attempts"),
        (
            _event("lost", 3, error="host.call: no reply"),
            logging.ERROR,
            r"write lost .* 3 attempts: host\.call: no reply",
        ),
        (
            _event("lost", 1, error="host.call: no reply"),
            logging.ERROR,
            r"write lost .* 1 attempt: host\.call: no reply",
        ),
        (_event("salvaged", 3, error="host.call: cut"), logging.ERROR, r"write salvaged .*: host\.call: cut"),
        (_event("cancelled", 0), logging.DEBUG, r"host\.call: cancelled .* 0 attempts"),
    ],
    ids=lambda value: value.outcome if isinstance(value, WriteEvent) else None,
)
def test_one_line_in_the_log(event: WriteEvent, level: int, words: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "hymemory_adapters"):
        publish(event)
    ((name, logged_level, message),) = caplog.record_tuples
    assert (name, logged_level) == ("hymemory_adapters", level)
    assert re.fullmatch(words, message)


def test_what_an_event_says_when_it_is_told_little() -> None:
    """Apps build events for their own tests."""
    before = time.time()
    event = WriteEvent("host", "host.call", "hy-memory", "m", "ok")
    assert before <= event.at <= time.time()
    nothing = {"attempts": (), "normalisations": (), "error": None, "repeat": False, "context": {}}
    assert {key: event.as_dict()[key] for key in nothing} == nothing
    assert asdict(Attempt(1)) == {
        "number": 1,
        "finish_reason": None,
        "problems": (),
        "tokens_in": None,
        "tokens_out": None,
        "seconds": 0.0,
        "transport_retries": 0,
    }


def test_an_event_as_plain_data() -> None:
    event = _event("lost", 1, error="host.call: cut", normalisations=("fence",), context={"user": "u1"}, at=1.0)
    data = event.as_dict()
    assert json.loads(json.dumps(data)) == {
        "host": "host",
        "call": "host.call",
        "writer": "hy-memory",
        "model": "m",
        "outcome": "lost",
        "attempts": [
            {
                "number": 1,
                "finish_reason": "length",
                "problems": [{"rule": "truncated", "message": "the reply was cut", "path": "$.memory"}],
                "tokens_in": 100,
                "tokens_out": 4096,
                "seconds": 1.5,
                "transport_retries": 0,
            }
        ],
        "normalisations": ["fence"],
        "error": "host.call: cut",
        "repeat": False,
        "context": {"user": "u1"},
        "at": 1.0,
    }


def test_say_once(caplog: pytest.LogCaptureFixture) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: say_once("key", "it is so"), range(40)))
    say_once("other", "it is otherwise")
    assert [record.message for record in caplog.records] == ["it is so", "it is otherwise"]


# -- whose write it was ----------------------------------------------------------------------------


def test_context_nests_and_ends() -> None:
    seen = [dict(current_context())]
    with write_context(user="u1"):
        with write_context(request="r1"):
            seen.append(dict(current_context()))
            with write_context(user="u2", request=None):
                seen.append(dict(current_context()))
        seen.append(dict(current_context()))
    seen.append(dict(current_context()))
    assert seen == [{}, {"user": "u1", "request": "r1"}, {"user": "u2", "request": "r1"}, {"user": "u1"}, {}]


def test_context_ends_with_an_exception() -> None:
    with pytest.raises(KeyError), write_context(user="u1"):
        raise KeyError
    assert dict(current_context()) == {}


def test_context_stands_in_the_event(heard: list[WriteEvent]) -> None:
    with ScriptedEndpoint('{"facts": []}') as endpoint:
        with write_context(user="u1", request="r1"):
            _writer(endpoint.url).write(REQUEST)
        _writer(endpoint.url).write(REQUEST)
    assert [dict(event.context) for event in heard] == [{"user": "u1", "request": "r1"}, {}]


def test_a_thread_has_the_context_that_is_copied_into_it_and_no_other(heard: list[WriteEvent]) -> None:
    with ScriptedEndpoint('{"facts": []}') as endpoint, ThreadPoolExecutor(1) as pool:
        writer = _writer(endpoint.url)
        with write_context(user="u1"):
            pool.submit(writer.write, REQUEST).result()
            pool.submit(copy_context().run, writer.write, REQUEST).result()
    assert [dict(event.context) for event in heard] == [{}, {"user": "u1"}]


def test_tasks_do_not_mix_their_contexts(heard: list[WriteEvent]) -> None:
    users = [f"u{i}" for i in range(12)]

    async def write(writer: Writer, user: str) -> None:
        with write_context(user=user):
            await writer.awrite(Request([{"role": "user", "content": user}]))

    async def write_all() -> None:
        writer = _writer(endpoint.url)
        await asyncio.gather(*(write(writer, user) for user in users))

    # Every first reply is cut, so that each task waits several times while the others go on.
    with ScriptedEndpoint(lambda body: "{" if len(body["messages"]) == 1 else '{"facts": []}') as endpoint:
        asyncio.run(write_all())
    assert sorted(event.context["user"] for event in heard) == sorted(users)
    assert {event.outcome for event in heard} == {"retried"}


def test_requests_that_no_row_knows_are_counted_and_told_to_nobody(heard: list[WriteEvent]) -> None:
    with ScriptedEndpoint("Hello!") as endpoint:
        writer = Writer("host", (), WriterSettings(base_url=endpoint.url))
        assert writer.write(REQUEST).value is None
    assert heard == []
    assert events.passed_through == {"host": 1}
