"""Asking again: what the model is told, how often it is asked, and what counts as an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hymemory_adapters.core import events
from hymemory_adapters.core.lost import MalformedWriteError
from tests.support.calls import EMPTY, GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import Say, ScriptedEndpoint

pytestmark = both_ways

BAD = '{"facts": ["ok", "forbidden"]}'


def test_asking_again_only_appends(write: Write) -> None:
    with ScriptedEndpoint("x" * 1500, '{"facts": [1, ""]}', GOOD) as endpoint:
        written = write(writer_at(endpoint), ask())
        first, second, third = (chat.messages for chat in endpoint.chats)
        bodies = [{k: v for k, v in chat.body.items() if k != "messages"} for chat in endpoint.chats]
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [message["role"] for message in third[len(first) :]] == ["assistant", "user", "assistant", "user"]
    assert second[-2]["content"] == "x" * 1000 + " [...]"
    assert third[-2]["content"] == '{"facts": [1, ""]}'
    assert third[-1]["content"].splitlines() == [
        "That reply cannot be used:",
        "- $.facts[0]: must be string, is integer",
        "- $.facts[1]: must not be empty",
        "Answer the request above again, whole, in the form it asks for.",
    ]
    assert bodies == [bodies[0]] * 3, "only the messages differ"
    assert written.event.outcome == "retried"
    assert [bool(attempt.problems) for attempt in written.event.attempts] == [True, True, False]


@pytest.mark.parametrize("text", ["", "  \n", None], ids=["empty", "blank", "null"])
def test_an_empty_reply_is_malformed_and_is_shown_as_such(write: Write, text: str | None) -> None:
    with ScriptedEndpoint(Say(text), GOOD) as endpoint:
        assert write(writer_at(endpoint), ask()).event.outcome == "retried"
        assert endpoint.chats[1].messages[2]["content"] == "(an empty reply)"


def test_a_reply_of_a_thousand_characters_is_shown_whole(write: Write) -> None:
    with ScriptedEndpoint("x" * 1000, GOOD) as endpoint:
        write(writer_at(endpoint), ask())
        assert endpoint.chats[1].messages[2]["content"] == "x" * 1000


def test_a_reply_that_cannot_be_sent_back_as_it_is(write: Write) -> None:
    with ScriptedEndpoint("half a pair: \ud83d", GOOD) as endpoint:
        assert write(writer_at(endpoint), ask()).event.outcome == "retried"
        assert endpoint.chats[1].messages[2]["content"] == "half a pair: ?"


def test_ten_problems_at_most_are_told(write: Write) -> None:
    with ScriptedEndpoint(json.dumps({"facts": [1] * 40}), GOOD) as endpoint:
        write(writer_at(endpoint), ask())
        assert endpoint.chats[1].messages[-1]["content"].count("must be string") == 10


@pytest.mark.parametrize("attempts", [1, 2, 3, 10])
@pytest.mark.parametrize("reply", ["prose", BAD, Say(None)], ids=["not JSON", "a check", "null"])
def test_no_more_requests_than_attempts(
    write: Write, attempts: int, reply: str | Say, heard: list[events.WriteEvent]
) -> None:
    with ScriptedEndpoint(reply) as endpoint:
        with pytest.raises(MalformedWriteError) as lost:
            write(writer_at(endpoint, attempts=attempts), ask())
        assert len(endpoint.chats) == attempts
        # What the server says of itself is asked for once, when the first reply is malformed.
        assert len(endpoint.requests) - attempts == (attempts > 1)
    assert [attempt.number for attempt in lost.value.attempts] == list(range(1, attempts + 1))
    assert [(event.outcome, event.attempts) for event in heard] == [("lost", lost.value.attempts)]


@pytest.mark.parametrize("good_at", [1, 2, 3])
def test_the_first_good_reply_ends_it(write: Write, good_at: int) -> None:
    with ScriptedEndpoint(*["prose"] * (good_at - 1), GOOD) as endpoint:
        written = write(writer_at(endpoint), ask())
        assert len(endpoint.chats) == good_at
    assert (json.loads(written.value), len(written.event.attempts)) == ({"facts": ["Likes tea"]}, good_at)


DECISIONS: dict[str, tuple[list[str], int, str]] = {
    "decided at once": ([GOOD], 1, "ok"),
    "decided when asked": ([EMPTY, GOOD], 2, "retried"),
    "nothing, twice": ([EMPTY], 2, "declined"),
    "nothing, after a malformed reply": (["prose", EMPTY], 3, "declined"),
    "nothing, malformed, nothing": ([EMPTY, "prose", EMPTY], 3, "declined"),
    "decided in the end": ([EMPTY, "prose", GOOD], 3, "retried"),
}


@pytest.mark.parametrize(("replies", "requests", "outcome"), DECISIONS.values(), ids=DECISIONS)
def test_deciding_nothing_is_asked_about_once(write: Write, replies: list[str], requests: int, outcome: str) -> None:
    with ScriptedEndpoint(*replies) as endpoint:
        # More attempts than it takes: what ends the asking is the rule, not the limit.
        written = write(writer_at(endpoint, attempts=5), ask("decide"))
        assert len(endpoint.chats) == requests
    assert written.event.outcome == outcome
    assert json.loads(written.value)["facts"] == ([] if outcome == "declined" else ["Likes tea"])


def test_with_one_attempt_nothing_decided_is_the_answer(write: Write) -> None:
    with ScriptedEndpoint(EMPTY) as endpoint:
        assert write(writer_at(endpoint, attempts=1), ask("decide")).event.outcome == "declined"
        assert len(endpoint.chats) == 1


MODELS: dict[str, tuple[int, Any]] = {
    "no such page": (404, {"error": {"message": "no such page"}}),
    "a page for people": (200, b"<html></html>"),
    "another list": (200, {"data": ["x", {"id": None}, {}]}),
    "no list": (200, {"data": 5}),
    "nothing": (200, b""),
}


@pytest.mark.parametrize(("status", "body"), MODELS.values(), ids=MODELS)
def test_a_server_that_tells_nothing_of_itself_is_asked_again_all_the_same(
    write: Write, status: int, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(handler: Any) -> None:
        asked.append(handler.path)
        handler._answer(status, body)

    asked: list[str] = []
    monkeypatch.setattr("tests.support.scripted._Handler.do_GET", answer)
    with ScriptedEndpoint("prose", GOOD, "prose", GOOD) as endpoint:
        writer = writer_at(endpoint)
        assert [write(writer, ask()).event.outcome for _ in range(2)] == ["retried", "retried"]
    assert asked == ["/v1/models"], "once, not once a write"


def test_calls_share_nothing(write: Write) -> None:
    with ScriptedEndpoint("prose one", GOOD, "prose two", GOOD) as endpoint:
        writer = writer_at(endpoint)
        for text in ("one", "two"):
            assert len(write(writer, ask(text=text)).event.attempts) == 2
        assert [m["content"] for m in endpoint.chats[3].messages][1:3] == ["two", "prose two"]
        assert len(endpoint.chats[3].messages) == 4
