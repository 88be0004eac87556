"""Lost writes: what the host gets, what people read, and what a host's own repeat costs."""

from __future__ import annotations

import json
import logging
import pickle
import stat
import traceback
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hymemory_adapters.core import events, lost
from hymemory_adapters.core.lost import ConfigurationError, EndpointError, HyMemoryError, MalformedWriteError
from hymemory_adapters.core.writer import Writer
from tests.support.calls import CALLS, EMPTY, GOOD, SAID, Write, ask, both_ways, writer_at
from tests.support.scripted import Drop, Fail, Say, Script, ScriptedEndpoint

KEY = "sk-very-secret-key"

LOSSES: dict[str, Script] = {
    "malformed": f'{{"facts": ["{SAID}", "forbidden"]}}',
    "prose": f"I think {SAID}",
    "cut": Say(f'{{"facts": ["{SAID}', finish_reason="length"),
    "no context left": Say(f'{{"facts": ["{SAID}', finish_reason="length", tokens_out=9),
    "content filter": Say(SAID, finish_reason="content_filter"),
    "only reasoning": Say(None, reasoning=SAID),
    "400 that quotes": Fail(400, f"cannot process: {SAID}"),
    "500 that quotes": Fail(500, f"cannot process: {SAID}"),
    "401": Fail(401, body={"error": "Unauthorized"}),
    "404": Fail(404, f"no model, you said {SAID}"),
    "429": Fail(429, "slow down", headers={"Retry-After": "999"}),
    "dropped": Drop(),
    "no completion": Fail(200, body={"said": SAID}),
    "no JSON": Fail(200, body=SAID.encode()),
}


def loss(write: Write, endpoint: ScriptedEndpoint, call: str = "facts", **settings: Any) -> Any:
    return write(writer_at(endpoint, attempts=2, retry_seconds=0.05, api_key=KEY, **settings), ask(call))


@both_ways
@pytest.mark.parametrize("script", LOSSES.values(), ids=LOSSES)
def test_a_loss_is_raised_in_one_line_without_key_or_conversation(
    write: Write, script: Script, heard: list[events.WriteEvent], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hymemory_adapters")
    with ScriptedEndpoint(script) as endpoint, pytest.raises(HyMemoryError) as raised:
        loss(write, endpoint)
    error = raised.value
    assert (str(error).startswith("demo.facts: "), "\n" in str(error), error.call) == (True, False, "demo.facts")
    assert isinstance(error, (MalformedWriteError, EndpointError))
    shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    # The source lines of a traceback are code, what is said in it are the exceptions' own lines.
    said = [line for line in shown.splitlines() if not line.startswith(" ")]
    for text in (*said, str(error), repr(error), *map(str, error.attempts), caplog.text, str(heard)):
        assert SAID not in text
        assert SAID[:24] not in text
        assert KEY not in text
    assert [(event.outcome, event.error, event.attempts) for event in heard] == [("lost", str(error), error.attempts)]
    assert len([record for record in caplog.records if record.levelno >= logging.ERROR]) == 1


@both_ways
def test_the_error_says_which_call_attempt_path_and_finish_reason(write: Write) -> None:
    with ScriptedEndpoint("prose", '{"facts": ["ok", 5]}') as endpoint, pytest.raises(MalformedWriteError) as raised:
        loss(write, endpoint)
    for part in ("demo.facts", "none of 2 replies", "Attempt 2", "$.facts[1]", "finish reason stop", "20 tokens"):
        assert part in str(raised.value)


@both_ways
def test_a_reply_that_the_server_quotes_is_left_out_too(write: Write) -> None:
    """Asking again sends the failed reply, so a refusal may quote that as well."""
    told = "Bob keeps the spare key under the third flower pot"
    refusal = Fail(400, f"bad message: {told}")
    with ScriptedEndpoint(told, refusal) as endpoint, pytest.raises(EndpointError) as raised:
        loss(write, endpoint)
    assert "flower" not in str(raised.value)


@both_ways
@pytest.mark.parametrize("script", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize(("call", "outcome"), [("kept", "salvaged"), ("emptied", "lost")])
def test_a_host_that_cannot_use_an_exception_gets_a_reply(
    write: Write, script: Script, call: str, outcome: str, heard: list[events.WriteEvent]
) -> None:
    with ScriptedEndpoint(script) as endpoint:
        written = loss(write, endpoint, call)
    fitted = script is LOSSES["malformed"]
    kept = ["kept", SAID, "forbidden"] if fitted else ["kept"]
    assert json.loads(written.value) == {"facts": kept if call == "kept" else ([])}
    assert [event.outcome for event in heard] == [outcome]
    assert written.event is heard[0]
    assert written.event.error


@pytest.mark.parametrize("kind", [HyMemoryError, MalformedWriteError, EndpointError, ConfigurationError])
def test_errors_survive_pickling(kind: type[HyMemoryError]) -> None:
    """Worker processes hand them back."""
    error = kind("demo.facts: no", call="demo.facts", attempts=[events.Attempt(1, "stop")])
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), str(twin), twin.call, twin.attempts) == (kind, str(error), error.call, error.attempts)


@pytest.mark.parametrize("kind", [HyMemoryError, MalformedWriteError, EndpointError, ConfigurationError])
def test_an_error_outside_of_a_call_names_none(kind: type[HyMemoryError]) -> None:
    error = kind("no")
    assert (error.call, error.attempts, getattr(error, "status", None)) == ("", (), None)
    assert EndpointError("no", status=503).status == 503


def test_a_malformed_write_is_a_value_error_and_an_endpoint_error_is_none() -> None:
    assert issubclass(MalformedWriteError, ValueError)
    assert not issubclass(EndpointError, ValueError)


@both_ways
def test_a_fault_in_a_hosts_row_is_loud_and_told(write: Write, heard: list[events.WriteEvent], tmp_path: Path) -> None:
    def faulty(_: Any) -> Any:
        raise KeyError("x")

    contract = CALLS[0].recognise(ask())
    row = replace(CALLS[0], recognise=lambda _: replace(contract, check=faulty))
    journal = tmp_path / "lost.jsonl"
    with ScriptedEndpoint(GOOD) as endpoint:
        writer = Writer("demo", [row], writer_at(endpoint, journal=str(journal)).settings)
        with pytest.raises(KeyError):
            write(writer, ask())
    assert [(event.outcome, event.error) for event in heard] == [("lost", "demo.facts: KeyError")]
    assert json.loads(journal.read_text())["messages"] == list(ask().messages)


# -- the host repeats -------------------------------------------------------------------------------


def test_what_was_lost_is_remembered_for_two_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(lost, "time", SimpleNamespace(monotonic=lambda: now[0]))
    remembered = lost.JustLost()
    for key in ("one", "two"):
        remembered.add(key)
    remembered.discard("two")
    remembered.discard("never seen")
    assert ["one" in remembered, "two" in remembered, len(remembered)] == [True, False, 1]
    now[0] += 119.9
    assert "one" in remembered
    now[0] += 0.1
    assert "one" not in remembered


def test_only_the_last_losses_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost, "_REMEMBERED", 2)
    remembered = lost.JustLost()
    for key in ("one", "two", "one", "three"):  # "one" was lost again: "two" is the oldest
        remembered.add(key)
    assert [key in remembered for key in ("one", "two", "three")] == [True, False, True]


def lines(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


@both_ways
def test_a_hosts_repeat_costs_one_request_and_no_second_line(
    write: Write, tmp_path: Path, heard: list[events.WriteEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "lost.jsonl"
    with ScriptedEndpoint("prose") as endpoint:
        writer = writer_at(endpoint, journal=str(journal))

        def requests(text: str) -> int:
            endpoint.requests.clear()
            with pytest.raises(MalformedWriteError):
                write(writer, ask(text=text))
            return len(endpoint.chats)

        assert [requests("one") for _ in range(3)] == [3, 1, 1]
        assert requests("two") == 3, "another request has all attempts"
        assert [event.repeat for event in heard] == [False, True, True, False]
        assert [line["messages"][1]["content"] for line in lines(journal)] == ["one", "two"]
        monkeypatch.setattr(lost, "REPEAT_SECONDS", 0.0)
        assert requests("one") == 3, "two minutes later it is a new write"
        assert len(lines(journal)) == 3


@both_ways
def test_after_a_success_the_loss_is_forgotten(write: Write) -> None:
    with ScriptedEndpoint("prose", "prose", GOOD, "prose") as endpoint:
        writer = writer_at(endpoint, attempts=2)
        with pytest.raises(MalformedWriteError):
            write(writer, ask())
        written = write(writer, ask())
        assert (written.event.outcome, written.event.repeat, len(written.event.attempts)) == ("ok", True, 1)
        with pytest.raises(MalformedWriteError) as raised:
            write(writer, ask())
        assert len(raised.value.attempts) == 2


@both_ways
def test_the_same_words_of_another_user_are_no_repeat(write: Write, tmp_path: Path) -> None:
    journal = tmp_path / "lost.jsonl"
    with ScriptedEndpoint("prose") as endpoint:
        writer = writer_at(endpoint, attempts=2, journal=str(journal))
        for user in ("alice", "bob", "alice"):
            with events.write_context(user=user), pytest.raises(MalformedWriteError):
                write(writer, ask())
        assert len(endpoint.chats) == 5
    assert [line["context"]["user"] for line in lines(journal)] == ["alice", "bob"]


@both_ways
def test_a_repeat_after_a_transport_loss(write: Write) -> None:
    with ScriptedEndpoint(Fail(503), "prose", GOOD) as endpoint:
        writer = writer_at(endpoint, retry_seconds=0)
        with pytest.raises(EndpointError):
            write(writer, ask())
        with pytest.raises(MalformedWriteError) as raised:
            write(writer, ask())
        assert len(raised.value.attempts) == 1
        assert write(writer, ask()).event.outcome == "ok"


def test_what_is_remembered_is_bounded() -> None:
    memory = lost.JustLost()
    for number in range(2000):
        memory.add(str(number))
    assert len(memory) <= 512
    assert "1999" in memory
    assert "0" not in memory


# -- the journal ------------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("content", ["full", "off"])
def test_a_journal_line(write: Write, tmp_path: Path, content: str) -> None:
    journal = tmp_path / "lost.jsonl"
    with ScriptedEndpoint("prose \ud83d", Say(None)) as endpoint, pytest.raises(MalformedWriteError) as raised:
        loss(write, endpoint, journal=str(journal), journal_content=content)
    (line,) = lines(journal)
    assert (line["outcome"], line["call"], line["error"]) == ("lost", "demo.facts", str(raised.value))
    assert [attempt["problems"][0]["rule"] for attempt in line["attempts"]] == ["not_json", "empty"]
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    assert KEY not in journal.read_text()
    if content == "full":
        assert (line["messages"], line["replies"]) == (list(ask().messages), ["prose \ud83d", None])
    else:
        assert SAID not in journal.read_text()
        assert len(line["messages_sha256"]) == 64
        assert len(line["replies_sha256"]) == 2


@both_ways
@pytest.mark.parametrize("fault", ["a folder", "no space"])
def test_a_journal_that_fails_hides_no_error(
    write: Write, tmp_path: Path, fault: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    journal = tmp_path / "lost.jsonl"
    if fault == "a folder":
        journal.mkdir()
    else:
        monkeypatch.setattr(lost, "JOURNAL_LIMIT", 10)
    with ScriptedEndpoint("prose") as endpoint, pytest.raises(MalformedWriteError):
        loss(write, endpoint, journal=str(journal))
    assert [r.levelname for r in caplog.records if "journal" in r.message] == ["ERROR"]


@both_ways
def test_what_is_taken_or_passes_leaves_no_line(write: Write, tmp_path: Path) -> None:
    journal = tmp_path / "lost.jsonl"
    with ScriptedEndpoint("prose", GOOD, EMPTY, Fail(400, "no")) as endpoint:
        writer = writer_at(endpoint, journal=str(journal))
        write(writer, ask())
        write(writer, ask(text="other"))
        with pytest.raises(EndpointError):
            write(writer, ask("chat"))
    assert not journal.exists()


@both_ways
def test_a_subscriber_that_fails_harms_nothing(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    def fails(_: events.WriteEvent) -> None:
        raise RuntimeError(SAID)

    events.on_write(fails)
    with ScriptedEndpoint(GOOD) as endpoint:
        assert write(writer_at(endpoint), ask()).event.outcome == "ok"
    assert "RuntimeError" in caplog.text
    assert SAID not in caplog.text
