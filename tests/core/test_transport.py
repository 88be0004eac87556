"""No reply: what is sent again, for how long, and what people are told."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from types import SimpleNamespace
from typing import Any

import pytest

from hymemory_adapters.core import budget, events, patience
from hymemory_adapters.core import endpoint as endpoint_module
from hymemory_adapters.core.budget import Budget
from hymemory_adapters.core.failure import Failure
from hymemory_adapters.core.lost import EndpointError
from hymemory_adapters.core.recovery import GoAround
from tests.support.calls import GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import Drop, Fail, Say, Script, ScriptedEndpoint


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_SHORTEST_PAUSE", 0.001)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that refuses connections; it stays reserved, so that nobody else opens it."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        yield reserved.getsockname()[1]


# -- sent again -------------------------------------------------------------------------------------

AGAIN: dict[str, Script] = {
    "dropped": Drop(),
    **{str(status): Fail(status) for status in (408, 409, 425, 429, 500, 502, 503, 504, 529)},
    "HTML": Fail(502, body=b"<html><h1>502 Bad Gateway</h1></html>"),
    "Retry-After": Fail(429, headers={"Retry-After": "0.01"}),
    "Retry-After in the past": Fail(503, headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
    "Retry-After nonsense": Fail(503, headers={"Retry-After": "soon"}),
    "retry-after below zero": Fail(503, headers={"Retry-After": "-5"}),
}


@both_ways
@pytest.mark.parametrize("failure", AGAIN.values(), ids=AGAIN)
def test_a_passing_failure_costs_no_attempt(write: Write, failure: Script) -> None:
    with ScriptedEndpoint(failure, failure, GOOD) as endpoint:
        written = write(writer_at(endpoint, attempts=1), ask())
        assert [chat.raw for chat in endpoint.chats[:2]] == [endpoint.chats[0].raw] * 2, "the very same request"
        assert len(endpoint.requests) == 3
    assert (written.event.outcome, [a.transport_retries for a in written.event.attempts]) == ("ok", [2])


@both_ways
def test_transport_and_format_are_counted_apart(write: Write) -> None:
    with ScriptedEndpoint(Fail(503), "prose", Fail(503), Drop(), "prose", GOOD) as endpoint:
        written = write(writer_at(endpoint), ask())
    assert [a.transport_retries for a in written.event.attempts] == [1, 2, 0]


@both_ways
@pytest.mark.parametrize("failure", [Drop(), Fail(503, "busy")], ids=["dropped", "503"])
def test_patience_ends(
    write: Write, failure: Script, heard: list[events.WriteEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count()  # a second passes from failure to failure
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with ScriptedEndpoint(failure) as endpoint:
        with pytest.raises(EndpointError, match=r"HYMEMORY_RETRY_SECONDS") as lost:
            write(writer_at(endpoint, retry_seconds=3.5), ask())
        assert len(endpoint.chats) == 5, "0, 1, 2, 3 seconds after the first failure, and at 4 no more"
    assert lost.value.status == getattr(failure, "status", None)
    assert [event.outcome for event in heard] == ["lost"]


@both_ways
def test_without_patience_a_failure_is_final(write: Write) -> None:
    with ScriptedEndpoint(Fail(503), GOOD) as endpoint, pytest.raises(EndpointError):
        write(writer_at(endpoint, retry_seconds=0), ask())
    assert len(endpoint.chats) == 1


def _in(seconds: float) -> str:
    return format_datetime(datetime.now(timezone.utc) + timedelta(seconds=seconds), usegmt=True)


@both_ways
@pytest.mark.parametrize("value", ["3600", "11.5", _in(3600), "inf"], ids=["an hour", "just beyond", "a date", "inf"])
def test_a_retry_after_beyond_the_patience_ends_it_at_once(write: Write, value: str) -> None:
    with ScriptedEndpoint(Fail(429, "slow down", headers={"Retry-After": value}), GOOD) as endpoint:
        with pytest.raises(EndpointError, match="slow down"):
            write(writer_at(endpoint, retry_seconds=10), ask())
        assert len(endpoint.chats) == 1


@pytest.mark.parametrize(
    ("failure", "remaining", "least", "most"),
    [
        (Failure("transport", "", 503), 60, 0.05, 0.1),
        (Failure("transport", "", 429, retry_after=3.0), 60, 3.0, 3.0),
        (Failure("transport", "", 429, retry_after=0.01), 60, 0.05, 0.1),
        (Failure("transport", "", 429, retry_after=3.0), 2.0, None, None),
        (Failure("transport", "", 429, retry_after=10.5), 60, None, None),
        (Failure("refused", ""), 60, 0.05, 0.1),
        (Failure("read_timeout", ""), 60, 0.0, 0.0),
    ],
    ids=["503", "asked to wait", "asked for less", "beyond the deadline", "beyond patience", "refused", "timeout"],
)
def test_how_long_is_waited(
    failure: Failure, remaining: float, least: float | None, most: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "_SHORTEST_PAUSE", 0.1)
    pause = patience.Patience(10).pause(failure, remaining)
    assert pause is None if least is None else least <= pause <= most


# -- timeouts and the deadline ----------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("patient", [1, 0], ids=["the second is answered", "neither is"])
def test_a_read_timeout_is_sent_again_once(write: Write, patient: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[float] = []
    over = threading.Event()

    def request_timeout(_: Budget) -> float:
        sent.append(30.0 if patient and sent else 0.3)
        return sent[-1]

    def answer(_: dict[str, Any]) -> str:
        if sent[-1] < 1:
            over.wait(30)
        return GOOD

    monkeypatch.setattr(Budget, "request_timeout", property(request_timeout))
    with ScriptedEndpoint(answer) as endpoint:
        if patient:
            assert write(writer_at(endpoint), ask()).event.attempts[0].transport_retries == 1
        else:
            with pytest.raises(EndpointError, match=r"took the request twice.*HYMEMORY_TIMEOUT"):
                write(writer_at(endpoint), ask())
        over.set()


@both_ways
@pytest.mark.parametrize("reply", ["prose", Fail(503)], ids=["malformed", "503"])
def test_the_deadline_ends_whatever_goes_on(write: Write, reply: Say | Fail, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def takes_forty_seconds(_: dict[str, Any]) -> Any:
        nonlocal now
        now += 40
        return reply

    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now))
    with ScriptedEndpoint(takes_forty_seconds) as endpoint:
        with pytest.raises(EndpointError, match=r"100.*HYMEMORY_DEADLINE"):
            write(writer_at(endpoint, deadline=100, attempts=10, retry_seconds=600), ask())
        assert len(endpoint.chats) == 3


@both_ways
def test_waiting_for_a_place_ends_with_the_deadline(write: Write) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        patient = writer_at(endpoint, concurrency=1)
        write(patient, ask())  # whatever has to be imported is
        gate = endpoint_module._gate(1)
        gate.enter(1)
        with pytest.raises(EndpointError, match="HYMEMORY_CONCURRENCY"):
            write(writer_at(endpoint, concurrency=1, deadline=0.3), ask())
        gate.leave()
        assert write(patient, ask(text="other")).event.outcome == "ok"
        assert len(endpoint.chats) == 2


def test_the_time_spent_waiting_for_a_place_is_no_longer_there_for_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now))
    operation = writer_at("http://127.0.0.1:9/v1", timeout=120, deadline=600)._begin(ask()).next_operation()
    now = 590.0
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **sent: sent)))
    assert operation(client)["timeout"].read == 10


# -- refused by the server --------------------------------------------------------------------------

FINAL: dict[str, tuple[Fail, str]] = {
    "400": (Fail(400, "temperature must be in [0, 2], got 9.0. (parameter=temperature, value=9.0)"), "temperature"),
    "401 of vLLM": (Fail(401, body={"error": "Unauthorized"}), "HTTP 401.*HYMEMORY_API_KEY"),
    "403": (Fail(403), "HTTP 403.*HYMEMORY_API_KEY"),
    "404 without a list": (Fail(404, "no such page"), "should the URL end in /v1"),
    "413": (Fail(413, "too large"), "HTTP 413"),
    "422": (Fail(422, body={"detail": [{"loc": ["body"], "msg": "field required"}]}), "HTTP 422"),
}


@both_ways
@pytest.mark.parametrize(("failure", "words"), FINAL.values(), ids=FINAL)
def test_a_refusal_is_final_and_says_what_to_do(
    write: Write, failure: Fail, words: str, heard: list[events.WriteEvent]
) -> None:
    with ScriptedEndpoint(failure) as endpoint:
        endpoint.models_fail = True
        with pytest.raises(EndpointError, match=words) as lost:
            write(writer_at(endpoint), ask())
        assert len(endpoint.chats) == 1
    assert (lost.value.status, "\n" in str(lost.value)) == (failure.status, False)
    assert [event.error for event in heard] == [str(lost.value)]


@both_ways
@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_a_key_that_a_gateway_quotes_is_hidden(write: Write, status: int, caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedEndpoint(Fail(status, "no such key: sk-s3cret-key, x-org: acme-s3cret")) as endpoint:
        endpoint.models_fail = True
        writer = writer_at(endpoint, api_key="sk-s3cret-key", headers={"x-org": "acme-s3cret"}, retry_seconds=0)
        with pytest.raises(EndpointError) as lost:
            write(writer, ask())
    assert "s3cret" not in f"{lost.value}{caplog.text}{lost.value.attempts}"


@both_ways
def test_a_model_that_is_not_served_is_told_with_those_that_are(write: Write) -> None:
    unknown = "The model `gpt-4o-mini` does not exist. Valid aliases: hy-memory."
    refusal = Fail(404, body={"error": {"message": unknown, "type": "NotFoundError", "param": "model", "code": 404}})
    with ScriptedEndpoint(refusal, models=["hy-memory", "other"]) as endpoint:
        writer = writer_at(endpoint, model="gpt-4o-mini")
        for text in ("one", "two"):
            with pytest.raises(EndpointError, match=r"'gpt-4o-mini'.* it serves 'hy-memory', 'other'") as lost:
                write(writer, ask(text=text))
            assert lost.value.status == 404
        paths = [request.path.rpartition("/")[2] for request in endpoint.requests]
    assert paths == ["completions", "models", "completions"]


@both_ways
def test_a_list_that_could_not_be_had_is_asked_for_again(write: Write) -> None:
    """A server that is still loading its model may have no list yet."""
    with ScriptedEndpoint(Fail(404, "no such model"), models=["other"]) as endpoint:
        for fail, said in ((True, "should the URL end in /v1"), (False, "it serves 'other'")):
            endpoint.models_fail = fail
            with pytest.raises(EndpointError, match=said):
                write(writer_at(endpoint), ask())


def test_what_needs_no_pause_has_none() -> None:
    assert GoAround().pause == 0


# -- nothing listens --------------------------------------------------------------------------------


@both_ways
def test_after_a_refused_connection_the_next_calls_fail_at_once(
    write: Write, closed_port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(endpoint_module, "DOWN_SECONDS", 600.0)
    writer = writer_at(f"http://127.0.0.1:{closed_port}/v1", retry_seconds=0.1)
    tried: list[int] = []
    send: Callable[..., Any] = endpoint_module.Endpoint.chat

    def counted(self: Any, *args: Any, **more: Any) -> Any:
        tried.append(1)
        return send(self, *args, **more)

    monkeypatch.setattr(endpoint_module.Endpoint, "chat", counted)
    with pytest.raises(EndpointError, match=r"nothing answers.*vllm serve.*HYMEMORY_BASE_URL"):
        write(writer, ask())
    assert len(tried) > 1, "retried first"
    tried.clear()
    for text in ("one", "two", "three"):
        with pytest.raises(EndpointError, match="refused a moment ago"):
            write(writer, ask(text=text))
    assert tried == []
    errors = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 4, "each write is one line"
    assert all("\n" not in error for error in errors)
    monkeypatch.setattr(endpoint_module, "DOWN_SECONDS", 0.0)
    writer.endpoint.mark_down()
    with pytest.raises(EndpointError):
        write(writer, ask(text="four"))
    assert tried, "after a while it is tried again"


@both_ways
def test_a_server_that_starts_within_the_patience_gets_the_write(write: Write) -> None:
    with socket.socket() as not_yet:  # bound: the port refuses until somebody listens
        not_yet.bind(("127.0.0.1", 0))
        endpoint = ScriptedEndpoint(GOOD)
        endpoint._server.socket.close()
        endpoint._server.socket, endpoint._server.server_address = not_yet, not_yet.getsockname()
        writer = writer_at(endpoint, retry_seconds=20)
        refused: list[Failure] = []
        pause = patience.Patience.pause

        def starting(self: patience.Patience, failure: Failure, remaining: float) -> float | None:
            refused.append(failure)
            if len(refused) == 3:
                not_yet.listen(16)
                endpoint.__enter__()
            return pause(self, failure, remaining)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(patience.Patience, "pause", starting)
            written = write(writer, ask())
        endpoint.__exit__()
    assert [failure.kind for failure in refused] == ["refused"] * 3
    assert (written.event.outcome, written.event.attempts[0].transport_retries) == ("ok", 3)


@both_ways
def test_a_call_in_flight_does_not_end_because_another_gave_up(write: Write) -> None:
    with ScriptedEndpoint(Fail(503), "prose", GOOD) as endpoint:
        writer = writer_at(endpoint)

        def another_gives_up(body: dict[str, Any]) -> str:
            writer.endpoint.mark_down()
            return GOOD if len(body["messages"]) > 2 else "prose"

        endpoint.script = [another_gives_up]
        assert json.loads(write(writer, ask()).value) == {"facts": ["Likes tea"]}
        endpoint.play(GOOD)
        assert write(writer, ask(text="next")).event.outcome == "ok", "it answered since"


@both_ways
def test_a_call_that_is_waiting_goes_on_waiting_when_another_gives_up(write: Write) -> None:
    def another_gives_up(_: dict[str, Any]) -> Fail:
        writer.endpoint.mark_down()
        return Fail(503)

    with ScriptedEndpoint(another_gives_up, GOOD) as endpoint:
        writer = writer_at(endpoint)
        assert write(writer, ask()).event.outcome == "ok"
