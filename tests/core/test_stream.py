"""Requests that pass through as a stream: what comes is passed on, and a place is held while it comes."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from contextlib import aclosing, closing
from typing import Any

import pytest

from hymemory_adapters import EndpointError
from hymemory_adapters.core import endpoint as endpoints
from hymemory_adapters.core import events
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.writer import Writer
from tests.support.calls import ask, soon, writer_at
from tests.support.scripted import Drop, Fail, Say, ScriptedEndpoint

WORDS = "One two three four."
HELLO = Request([{"role": "user", "content": "hello"}])


def in_a_thread(writer: Writer, take: int | None = None) -> list[Any]:
    with closing(writer.stream(HELLO)) as chunks:  # type: ignore[type-var]
        return _some(chunks, take)


def _some(chunks: Any, take: int | None) -> list[Any]:
    taken = []
    for chunk in chunks:
        taken.append(chunk)
        if len(taken) == take:
            break
    return taken


def in_a_loop(writer: Writer, take: int | None = None) -> list[Any]:
    async def collect() -> list[Any]:
        taken = []
        async with aclosing(writer.astream(HELLO)) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                taken.append(chunk)
                if len(taken) == take:
                    break
        return taken

    return asyncio.run(collect())


both_ways = pytest.mark.parametrize("stream", [in_a_thread, in_a_loop], ids=["stream", "astream"])
Stream = Callable[..., list[Any]]


def text(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


@both_ways
def test_chunks_come_as_the_server_sends_them(stream: Stream) -> None:
    with ScriptedEndpoint(WORDS) as endpoint:
        chunks = stream(writer_at(endpoint, no_think={"chat_template_kwargs": {"think": False}}))
    assert text(chunks) == WORDS
    assert len(chunks) == 5
    body = endpoint.chats[0].body
    assert body["stream"] is True
    assert body["chat_template_kwargs"] == {"think": False}


REFUSALS: dict[str, tuple[Any, str, int]] = {
    "key": (Fail(401), "wants a key", 1),
    "request": (Fail(400, "no such thing"), "refused the request", 1),
    "model": (Fail(404), "does not serve", 1),
}


@both_ways
@pytest.mark.parametrize(("refusal", "message", "requests"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_is_told_as_ever(stream: Stream, refusal: Any, message: str, requests: int) -> None:
    with ScriptedEndpoint(refusal, models=["other"]) as endpoint, pytest.raises(EndpointError, match=message):
        stream(writer_at(endpoint))
    assert len(endpoint.chats) == requests


@both_ways
@pytest.mark.parametrize("first", [Fail(503), Drop()], ids=["503", "drop"])
def test_a_beginning_that_fails_is_tried_again(stream: Stream, first: Any) -> None:
    with ScriptedEndpoint(first, WORDS) as endpoint:
        assert text(stream(writer_at(endpoint))) == WORDS
    assert len(endpoint.chats) == 2


BROKEN: dict[str, tuple[Say, str]] = {
    # openai 3 says what happened; of what openai 1 and 2 let through, only the name is told
    "connection": (Say(WORDS, breaks_off=True), r"(peer closed .*|RemoteProtocolError)"),
    "chunk": (Say(WORDS, garbled=True), r"JSONDecodeError"),
}


@both_ways
@pytest.mark.parametrize(("answer", "detail"), BROKEN.values(), ids=BROKEN)
def test_what_breaks_off_is_not_begun_anew(stream: Stream, answer: Say, detail: str) -> None:
    with ScriptedEndpoint(answer) as endpoint, pytest.raises(EndpointError) as raised:
        stream(writer_at(endpoint))
    told = rf"demo: the server at {endpoint.url} broke off in the middle of its answer: {detail}"
    assert re.fullmatch(told, str(raised.value))
    assert len(endpoint.chats) == 1


@both_ways
@pytest.mark.parametrize("take", [None, 1], ids=["to its end", "stopped"])
def test_the_place_is_given_back(stream: Stream, take: int | None) -> None:
    with ScriptedEndpoint(WORDS) as endpoint:
        writer = writer_at(endpoint, concurrency=1, deadline=5)
        for _ in range(3):  # with one place, a second stream would wait for ever
            assert stream(writer, take)
    assert len(endpoint.chats) == 3


@both_ways
def test_the_place_is_given_back_after_an_error(stream: Stream) -> None:
    with ScriptedEndpoint(Fail(400), Say(WORDS, breaks_off=True), WORDS) as endpoint:
        writer = writer_at(endpoint, concurrency=1, deadline=5)
        for _ in range(2):
            with pytest.raises(EndpointError):
                stream(writer)
        assert text(stream(writer)) == WORDS


def test_the_place_is_held_while_it_streams() -> None:
    with ScriptedEndpoint(WORDS) as endpoint:
        writer = writer_at(endpoint, concurrency=1, deadline=5)
        chunks = writer.stream(HELLO)
        next(chunks)
        waiting = threading.Thread(target=lambda: writer.write(HELLO))
        waiting.start()
        assert soon(lambda: bool(endpoints._gate(1)._waiting)), "the other is in the queue"
        assert len(endpoint.chats) == 1
        chunks.close()  # type: ignore[attr-defined]
        waiting.join(10)
    assert len(endpoint.chats) == 2


@both_ways
def test_no_place_comes_free(stream: Stream) -> None:
    with ScriptedEndpoint(WORDS) as endpoint:
        writer = writer_at(endpoint, concurrency=1, deadline=0.2)
        with endpoints.endpoint_of(writer.settings).place(1), pytest.raises(EndpointError, match="CONCURRENCY"):
            stream(writer)
    assert endpoint.chats == []


def test_the_connection_is_closed_when_the_app_stops() -> None:
    with ScriptedEndpoint("word " * 200_000) as endpoint:
        assert len(in_a_thread(writer_at(endpoint), 3)) == 3
        assert soon(lambda: endpoint.streams_cut == 1)


def test_what_is_streamed_is_no_write_call(heard: list[events.WriteEvent]) -> None:
    """Even where a row would recognise it: the app reads chunks, which nobody can validate."""
    with ScriptedEndpoint(WORDS) as endpoint, closing(writer_at(endpoint).stream(ask())) as chunks:  # type: ignore[type-var]
        assert text(list(chunks)) == WORDS
        assert "response_format" not in endpoint.chats[0].body
    assert heard == []
