"""One write call from its first attempt to its end: what is kept of it, and what goes back."""

from __future__ import annotations

import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hymemory_adapters.core import budget, exchange
from hymemory_adapters.core.events import WriteEvent
from hymemory_adapters.core.lost import EndpointError, HyMemoryError, MalformedWriteError
from hymemory_adapters.core.writer import Writer
from tests.support.calls import CALLS, CONTRACTS, GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import Drop, Fail, Say, Script, ScriptedEndpoint

BAD = '{"facts": ["forbidden"]}'
LOOP = '{"facts": ["' + " \n" * 200


def with_row(endpoint: ScriptedEndpoint, row: str, **contract: Any) -> Writer:
    """A writer whose row ``row`` has another contract."""
    call = next(call for call in CALLS if call.name == f"demo.{row}")
    changed = replace(CONTRACTS[row], **contract)
    settings = writer_at(endpoint, attempts=2, retry_seconds=0).settings
    return Writer("demo", [replace(call, recognise=lambda _: changed)], settings)


# -- what goes back ---------------------------------------------------------------------------------


@both_ways
def test_the_servers_last_reply_is_kept(write: Write) -> None:
    with ScriptedEndpoint("prose", GOOD) as endpoint:
        assert write(writer_at(endpoint), ask()).reply.text == GOOD
    with ScriptedEndpoint(GOOD, BAD) as endpoint:
        written = write(writer_at(endpoint, attempts=2), ask("kept"))
        assert (written.reply.text, written.event.outcome) == (GOOD, "ok")
        assert (written.event.host, written.event.call) == ("demo", "demo.kept")
        written = write(writer_at(endpoint, attempts=2), ask("kept", text="again"))
        assert (written.reply.text, written.event.outcome) == (BAD, "salvaged")
    with ScriptedEndpoint(Drop()) as endpoint:
        assert write(writer_at(endpoint, retry_seconds=0), ask("kept")).reply is None


@both_ways
@pytest.mark.parametrize(
    ("replies", "fitting"),
    [
        (["prose"], None),
        ([BAD, "prose"], {"facts": ["forbidden"]}),
        ([BAD, '{"facts": ["forbidden", "later"]}'], {"facts": ["forbidden", "later"]}),
        ([Fail(401)], None),
    ],
    ids=["none", "the one that fitted", "the last that fitted", "no reply"],
)
def test_a_fallback_is_made_from_the_last_value_that_fitted(write: Write, replies: list[Script], fitting: Any) -> None:
    seen: list[Any] = []

    def fallback(value: Any) -> Any:
        seen.append(value)
        return {"facts": []}

    with ScriptedEndpoint(*replies) as endpoint:
        write(with_row(endpoint, "kept", fallback=fallback), ask("kept"))
    assert seen == [fitting]


@both_ways
def test_a_row_that_raises_does_so_with_a_fallback_too(write: Write, heard: list[WriteEvent]) -> None:
    with ScriptedEndpoint("prose") as endpoint, pytest.raises(MalformedWriteError):
        write(with_row(endpoint, "facts", fallback=lambda _: {"facts": []}), ask())
    assert [event.outcome for event in heard] == ["lost"]


@both_ways
def test_a_row_that_salvages_raises_where_it_has_no_fallback(write: Write, heard: list[WriteEvent]) -> None:
    with ScriptedEndpoint("prose") as endpoint, pytest.raises(MalformedWriteError):
        write(with_row(endpoint, "kept", fallback=None), ask("kept"))
    assert [event.outcome for event in heard] == ["lost"]


@both_ways
@pytest.mark.parametrize("script", ["prose", Fail(401)], ids=["malformed", "401"])
def test_an_error_says_what_the_host_has_left_behind(write: Write, script: Script) -> None:
    with ScriptedEndpoint(script) as endpoint, pytest.raises(HyMemoryError, match=r"[^.]\. The old one is deleted$"):
        write(with_row(endpoint, "facts", left_behind="The old one is deleted"), ask())


# -- what is kept of it -----------------------------------------------------------------------------


FAULTS: dict[str, tuple[Script, str, str]] = {
    "401": (Fail(401), "key", "wants a key"),
    "dropped": (Drop(), "transport", "did not answer"),
    "no room": (Fail(400, "prompt is too long"), "context", "--max-model-len"),
    "no JSON": (Fail(200, body=b"<html>"), "request", "its answer cannot be read"),
}


@both_ways
@pytest.mark.parametrize(("fault", "rule", "words"), FAULTS.values(), ids=FAULTS)
def test_a_request_without_a_reply_is_an_attempt_too(
    write: Write, fault: Script, rule: str, words: str, heard: list[WriteEvent]
) -> None:
    with ScriptedEndpoint("prose", fault, context=None) as endpoint, pytest.raises(EndpointError):
        write(writer_at(endpoint, retry_seconds=0), ask())
    assert [attempt.number for attempt in heard[0].attempts] == [1, 2]
    (problem,) = heard[0].attempts[1].problems
    assert problem.rule == rule
    assert words in problem.message


@both_ways
def test_an_attempts_seconds_begin_with_its_first_request(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(exchange, "time", SimpleNamespace(monotonic=lambda: now))

    def taking(seconds: float, answer: Script) -> Any:
        def play(_: dict[str, Any]) -> Any:
            nonlocal now
            now += seconds
            return answer

        return play

    with ScriptedEndpoint(taking(5, "prose"), taking(7, Fail(503)), taking(11, GOOD)) as endpoint:
        monkeypatch.setattr("hymemory_adapters.core.patience._SHORTEST_PAUSE", 0.001)
        written = write(writer_at(endpoint), ask())
    assert [attempt.seconds for attempt in written.event.attempts] == [5, 18]


def test_at_the_deadline_nothing_more_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now))
    begun = writer_at("http://127.0.0.1:9/v1", deadline=100)._begin(ask())
    now = 99.5
    assert (callable(begun.next_operation()), begun.remaining) == (True, 0.5)
    now = 100.0
    with pytest.raises(EndpointError, match="HYMEMORY_DEADLINE"):
        begun.next_operation()
    assert 0 < begun.remaining < 0.5, "whoever waits does not wait without end"


@both_ways
def test_a_loop_that_ends_early_is_no_full_context(write: Write) -> None:
    """The server stops what goes round in circles; the room is there."""
    with ScriptedEndpoint(Say(LOOP, "length", tokens_out=50), GOOD) as endpoint:
        assert write(writer_at(endpoint), ask()).event.outcome == "retried"


@both_ways
def test_a_loop_in_free_text_is_no_loop_of_json(write: Write) -> None:
    with ScriptedEndpoint(Say("tea and " * 100, "length")) as endpoint, pytest.raises(MalformedWriteError) as lost:
        write(writer_at(endpoint), ask("text"))
    assert "circles" in str(lost.value)
    assert "structured-outputs" not in str(lost.value)


# -- what is warned of ------------------------------------------------------------------------------

THINKS, FILED = "thinks before it answers", "files whole answers under reasoning"
WARNINGS: dict[str, tuple[Say, list[str]]] = {
    "a plain reply": (Say(GOOD), []),
    "a malformed reply": (Say("prose"), []),
    "thinking before": (Say(GOOD, reasoning="hm"), [THINKS]),
    "thinking alone": (Say(None, reasoning="hm, tea"), [THINKS]),
    "the answer under reasoning": (Say(None, reasoning=GOOD), [FILED]),
    "a stop in the reasoning": (Say(None, "content_filter", reasoning="hm"), []),
}


@both_ways
@pytest.mark.parametrize(("reply", "warnings"), WARNINGS.values(), ids=WARNINGS)
def test_reasoning_is_told_once_a_server(
    write: Write, reply: Say, warnings: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        with ScriptedEndpoint(reply) as endpoint:
            for call in ("kept", "emptied"):
                write(writer_at(endpoint), ask(call))
    told = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert [[words for words in (THINKS, FILED) if words in message] for message in told] == [warnings] * 2 * len(
        warnings
    )


@both_ways
def test_a_fault_of_ours_in_a_request_that_passes_is_no_lost_write(write: Write, heard: list[WriteEvent]) -> None:
    def broken(_: dict[str, Any]) -> Any:
        raise AssertionError

    with ScriptedEndpoint("hi") as endpoint, pytest.MonkeyPatch.context() as patch:
        patch.setattr(exchange, "parse_completion", broken)
        with pytest.raises(AssertionError):
            write(writer_at(endpoint), ask("chat"))
    assert heard == []
