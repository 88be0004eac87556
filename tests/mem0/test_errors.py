"""Lost writes: what the app gets, what the log, the events and the journal say, and what they never say."""

from __future__ import annotations

import json
import logging
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters import EndpointError, HyMemoryError, WriteEvent, write_context
from hymemory_adapters.mem0 import calls as table
from tests.mem0.host import (
    CALLS,
    MAJOR,
    USER,
    add_all,
    done,
    facts_reply,
    hymemory,
    only_two_calls,
    only_v2,
    seed,
    stored,
    writes,
)
from tests.support.scripted import Drop, Fail, Say, Script, ScriptedEndpoint

BuildMemory = Callable[..., Any]

KEY, TALK = "sk-very-secret-key", "My diary says that the blue door is locked"
HASTY = {"retry_seconds": 0, "api_key": KEY}

ERRORS: dict[str, tuple[Script, str, int | None, int]] = {
    # what the server does: (its answer, what the error says, its status, requests)
    "key": (Fail(401, "Invalid key"), r"refused the key \(HTTP 401\), which is from", 401, 1),
    "forbidden": (Fail(403, "No"), r"refused the key \(HTTP 403\)", 403, 1),
    "refusal": (Fail(400, "no such parameter"), r"refused the request \(HTTP 400\): no such parameter", 400, 1),
    "refusal_with_quote": (Fail(400, f"bad: {TALK}"), r"refused the request \(HTTP 400\)", 400, 1),
    "too_large": (Fail(413, "too large"), r"refused the request \(HTTP 413\)", 413, 1),
    "overload": (Fail(503, "busy"), r"did not answer \(HTTP 503\): busy. It was tried for 0 seconds", 503, 1),
    "rate": (Fail(429, "slow down", {"Retry-After": "60"}), r"HTTP 429\), asking to wait 60 s", 429, 1),
    "dropped": (Drop(), r"did not answer", None, 1),
    "timeout": (Say("late", delay=0.3), r"took the request twice .* HYMEMORY_TIMEOUT is 0.15 seconds", None, 2),
    "no_completion": (Fail(200, body={"hello": "world"}), r"is no chat completion", None, 1),
    "web_page": (Fail(200, body=b"<html>hello</html>"), r"its answer cannot be read \(JSONDecodeError\)", None, 1),
}


def ours(error: BaseException) -> HyMemoryError:
    """Mem0 2.x wraps the error in its own LLMError and keeps it as the cause."""
    found = error.__cause__ if MAJOR >= 2 else error
    assert isinstance(found, HyMemoryError)
    return found


def assert_says_nothing_private(*texts: str) -> None:
    for text in texts:
        assert KEY not in text
        assert "blue door" not in text


@pytest.mark.parametrize(("answer", "message", "status", "requests"), ERRORS.values(), ids=ERRORS)
def test_an_endpoint_that_fails_is_one_clear_line(
    answer: Script,
    message: str,
    status: int | None,
    requests: int,
    make_memory: BuildMemory,
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
    caplog: pytest.LogCaptureFixture,
) -> None:
    timeout = {"timeout": 0.15, "max_tokens": 1} if "twice" in message else {}
    memory = make_memory(**HASTY, **timeout)
    endpoint.play(answer)
    with caplog.at_level(logging.DEBUG, "hymemory_adapters"), pytest.raises(Exception, match=message) as caught:
        memory.add(TALK, user_id=USER)

    error = ours(caught.value)
    assert isinstance(error, EndpointError)
    assert (error.status, error.call) == (status, CALLS[0])
    assert "\n" not in str(error)
    assert len(endpoint.chats) == requests
    assert stored(memory) == []
    (event,) = heard
    assert (event.outcome, event.error) == ("lost", str(error))
    log = [record.getMessage() for record in caplog.records if record.name == "hymemory_adapters"]
    assert [line for line in log if str(error) in line]
    assert_says_nothing_private(str(caught.value), str(error), repr(error), repr(event), *log)


def test_nothing_listens(make_memory: BuildMemory, heard: list[WriteEvent]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: connections are refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        memory = make_memory(llm=hymemory(url, **HASTY))
        for says in (f"nothing answers at {url} .*base_url in the config block.*Start the server", "a moment ago"):
            with pytest.raises(Exception, match=says) as caught:
                memory.add(TALK, user_id=USER)
            assert_says_nothing_private(str(ours(caught.value)))
    assert [event.outcome for event in heard] == ["lost", "lost"]


def test_a_url_without_v1(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    memory = make_memory(llm=hymemory(endpoint.url.removesuffix("/v1") + "/v2"))
    endpoint.play(Fail(404, "Not Found"))
    with pytest.raises(Exception, match=r"no chat completions there \(HTTP 404\): should the URL end in /v1\?"):
        memory.add(TALK, user_id=USER)


def test_a_server_that_comes_back_loses_nothing(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    first, *rest = writes("Likes green tea")
    endpoint.play(Fail(503), Drop(), Fail(429, headers={"Retry-After": "0.1"}), first, *rest)
    make_memory().add("I like green tea", user_id=USER)
    assert [event.outcome for event in heard] == ["ok"] * len(CALLS)
    assert heard[0].attempts[0].transport_retries == 3


@only_two_calls
@pytest.mark.parametrize(("answer", "message", "status", "requests"), ERRORS.values(), ids=ERRORS)
def test_the_update_call_is_salvaged_when_the_endpoint_fails(
    answer: Script,
    message: str,
    status: int | None,
    requests: int,
    make_memory: BuildMemory,
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
) -> None:
    """Mem0 swallows every exception of this call."""
    timeout = {"timeout": 0.15, "max_tokens": 1} if "twice" in message else {}
    memory = make_memory(**HASTY, **timeout)
    seed(memory, "Lives in Oslo")
    endpoint.play(facts_reply("Likes green tea", "Lives in Bergen now"), answer)
    result = memory.add(TALK, user_id=USER)
    assert done(result) == [("ADD", "Likes green tea"), ("ADD", "Lives in Bergen now")]
    assert stored(memory) == sorted(["Likes green tea", "Lives in Bergen now", "Lives in Oslo"])
    assert [(event.call, event.outcome) for event in heard] == [("mem0.facts", "ok"), ("mem0.update", "salvaged")]
    assert heard[1].error is not None
    assert len(endpoint.chats) == 1 + requests


# -- the journal -----------------------------------------------------------------------------------


def journalled(memory: Any, endpoint: ScriptedEndpoint, *replies: Script) -> None:
    endpoint.play(*replies)
    with write_context(user="u1", request="r1"):
        try:
            memory.add(TALK, user_id=USER)
        except Exception as error:
            ours(error)


@pytest.mark.parametrize("content", ["full", "off"])
@pytest.mark.parametrize("number", range(len(CALLS)), ids=CALLS)
def test_the_journal_keeps_a_lost_write(
    number: int, content: str, make_memory: BuildMemory, endpoint: ScriptedEndpoint, tmp_path: Path
) -> None:
    journal = tmp_path / "lost.jsonl"
    memory = make_memory(api_key=KEY, journal=str(journal), journal_content=content)
    before = writes("Says that the blue door is locked")[:number]
    journalled(memory, endpoint, *before, "first blue door", "second blue door", "third blue door")

    (line,) = map(json.loads, journal.read_text().splitlines())
    assert line["call"] == CALLS[number]
    assert line["outcome"] == ("salvaged" if CALLS[number] == "mem0.update" else "lost")
    assert [attempt["problems"][0]["rule"] for attempt in line["attempts"]] == ["not_json"] * 3
    assert KEY not in journal.read_text()
    if content == "full":
        assert line["messages"] == endpoint.chats[number].messages
        assert line["replies"] == ["first blue door", "second blue door", "third blue door"]
    else:
        assert "blue door" not in journal.read_text()
        assert len(line["replies_sha256"]) == 3
    if os.name == "posix":
        assert stat.S_IMODE(journal.stat().st_mode) == 0o600


@pytest.mark.parametrize("number", range(len(CALLS)), ids=CALLS)
def test_a_journal_that_fails_hides_nothing(
    number: int, make_memory: BuildMemory, endpoint: ScriptedEndpoint, tmp_path: Path, heard: list[WriteEvent]
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    memory = make_memory(journal=str(folder / "lost.jsonl"))
    folder.rmdir()
    journalled(memory, endpoint, *writes("Likes green tea")[:number], "nonsense")
    assert [event.outcome for event in heard][-1] in ("lost", "salvaged")
    assert stored(memory) == (["Likes green tea"] if number else [])


def test_a_repeat_by_the_app_costs_one_request_and_no_second_line(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, tmp_path: Path, heard: list[WriteEvent]
) -> None:
    journal = tmp_path / "lost.jsonl"
    memory = make_memory(journal=str(journal))
    journalled(memory, endpoint, "nonsense")
    journalled(memory, endpoint, "nonsense")
    assert len(endpoint.chats) == 1
    assert [event.repeat for event in heard] == [False, True]
    assert len(journal.read_text().splitlines()) == 1
    journalled(memory, endpoint, *writes("Likes green tea"))
    assert stored(memory) == ["Likes green tea"]


def test_the_context_of_the_caller_is_in_the_event(
    memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    """Mem0 0.1 and 1.x hand a synchronous write to a thread pool, which context variables do not follow."""
    journalled(memory, endpoint, *writes("Likes green tea"))
    assert [dict(event.context) for event in heard] == [{"user": "u1", "request": "r1"}] * len(CALLS)
    endpoint.play(*writes("Likes black tea"))
    memory.add("I like black tea", user_id=USER)
    assert dict(heard[-1].context) == {}


def test_a_subscriber_that_raises_does_not_reach_mem0(memory: Any, endpoint: ScriptedEndpoint) -> None:
    from hymemory_adapters import on_write

    def raises(event: WriteEvent) -> None:
        raise RuntimeError("subscriber")

    on_write(raises)
    endpoint.play(*writes("Likes green tea"))
    memory.add("I like green tea", user_id=USER)
    assert stored(memory) == ["Likes green tea"]


# -- Mem0 2.0.0 to 2.0.10 hide what is raised -------------------------------------------------------


@only_v2
@pytest.mark.parametrize(
    ("version", "hidden"),
    [("2.0.0", True), ("2.0.0rc1", True), ("2.0.10", True), ("2.0.11", False), ("2.1.0", False), ("2.2.1", False)],
)
@pytest.mark.parametrize("with_journal", [False, True], ids=["no journal", "journal"])
def test_a_version_that_hides_lost_writes_is_told_once(
    version: str,
    hidden: bool,
    with_journal: bool,
    make_memory: BuildMemory,
    endpoint: ScriptedEndpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only the version's name is another one here."""
    monkeypatch.setattr("importlib.metadata.version", lambda name: version)
    monkeypatch.setattr("hymemory_adapters.mem0.provider.calls", table._calls.__wrapped__)
    memory = make_memory(**({"journal": str(tmp_path / "lost.jsonl")} if with_journal else {}))
    endpoint.play(*writes("Likes green tea"), *writes("Likes black tea"))
    for _ in range(2):
        memory.add("I like tea", user_id=USER)
    told = [r.getMessage() for r in caplog.records if "hides errors" in r.getMessage()]
    expected = hidden and not with_journal
    assert len(told) == int(expected)
    if expected:
        assert f"Mem0 {version} hides errors" in told[0]
        assert "HYMEMORY_JOURNAL" in told[0]


@only_two_calls
def test_a_lost_facts_call_asks_nothing_more(memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("nonsense", "nonsense", "nonsense", add_all)
    with pytest.raises(HyMemoryError, match=r"mem0\.facts"):
        memory.add(TALK, user_id=USER)
    assert len(endpoint.chats) == 3
