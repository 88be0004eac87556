"""The first attempt: what goes over the wire, and what comes back from a reply that can be taken."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from hymemory_adapters.core import events
from hymemory_adapters.core.lost import EndpointError, HyMemoryError, MalformedWriteError
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.writer import Writer
from tests.support.calls import CALLS, EMPTY, FACTS, GOOD, OWN_MESSAGES, SAID, Write, ask, both_ways, writer_at
from tests.support.scripted import Fail, Say, ScriptedEndpoint

pytestmark = both_ways

NO_THINK = {"chat_template_kwargs": {"reasoning_effort": "no_think"}}

MESSAGES: dict[str, list[dict[str, Any]]] = {
    "plain": [{"role": "system", "content": "call facts"}, {"role": "user", "content": SAID}],
    "white space kept": [{"role": "system", "content": "call facts"}, {"role": "user", "content": " \n\ta  b\r\n"}],
    "any script": [{"role": "system", "content": "call facts"}, {"role": "user", "content": "我喜欢喝茶 😀 e\u0301"}],
    "parts and names": [
        {"role": "system", "content": "call facts"},
        {"role": "user", "name": "alice", "content": [{"type": "text", "text": "hi"}, {"type": "text", "text": ""}]},
    ],
    "earlier tool calls": [
        {"role": "system", "content": "call facts"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "1", "content": ""},
        {"content": "the role comes last here", "role": "user"},
    ],
    "fields nobody knows": [{"role": "system", "content": "call facts", "x_host": {"b": 1, "a": [None, 1.5]}}],
}


@pytest.mark.parametrize("messages", MESSAGES.values(), ids=MESSAGES)
def test_the_hosts_messages_go_out_as_they_are(write: Write, messages: list[dict[str, Any]]) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        write(writer_at(endpoint, no_think=NO_THINK), Request(messages))
        # Compared as text: the order of keys is the host's too.
        assert [json.dumps(m) for m in endpoint.chats[0].messages] == [json.dumps(m) for m in messages]


def test_the_whole_body_of_a_first_attempt(write: Write) -> None:
    request = ask(
        response_format={"type": "json_object"},
        sampling={"temperature": 0.1, "top_p": None, "presence_penalty": 0.5},
        tools=[{"type": "function", "function": {"name": "f"}}],
        tool_choice="auto",
    )
    with ScriptedEndpoint(GOOD) as endpoint:
        written = write(writer_at(endpoint, no_think=NO_THINK), request)
        body = endpoint.chats[0].body
    assert body.pop("messages") == list(request.messages)
    assert body == {  # and nothing else: no seed, no penalty, no stream, no tool of ours
        "model": "hy-memory",
        "temperature": 0.1,
        "presence_penalty": 0.5,
        "max_tokens": 4096,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "demo_facts", "schema": FACTS.wire, "strict": True},
        },
        **NO_THINK,
    }
    assert (json.loads(written.value), written.event.outcome) == ({"facts": ["Likes tea"]}, "ok")


def test_the_no_think_switch_is_merged_into_the_hosts_own_fields(write: Write) -> None:
    request = ask(
        sampling={"reasoning_effort": "high", "temperature": 0.2, "min_p": 0.1},  # openai's client knows no min_p
        extra_body={
            "chat_template_kwargs": {"reasoning_effort": "high", "tools_in_user_message": True},
            "reasoning_effort": "low",
            "include_reasoning": False,
            "reasoning": {"effort": "high"},
            "thinking": {"type": "enabled"},
            "enable_thinking": True,
            "top_k": 20,
        },
    )
    with ScriptedEndpoint(GOOD) as endpoint:
        write(writer_at(endpoint, no_think=NO_THINK), request)
        body = endpoint.chats[0].body
    switches = {"reasoning_effort", "include_reasoning", "reasoning", "thinking", "enable_thinking"}
    assert not switches & set(body)
    assert body["chat_template_kwargs"] == {"reasoning_effort": "no_think", "tools_in_user_message": True}
    assert (body["top_k"], body["temperature"], body["min_p"]) == (20, 0.2, 0.1)
    assert request.extra_body["chat_template_kwargs"]["reasoning_effort"] == "high", "the host's own was changed"


@pytest.mark.parametrize(
    ("constrain", "types"),
    [
        ("always", ["json_schema", "json_schema"]),
        ("retry", ["json_object", "json_schema"]),
        ("off", ["json_object", "json_object"]),
    ],
)
def test_when_the_schema_constrains(write: Write, constrain: str, types: list[str]) -> None:
    with ScriptedEndpoint("no JSON", GOOD) as endpoint:
        write(writer_at(endpoint, constrain=constrain), ask(response_format={"type": "json_object"}))
        assert [chat.body["response_format"]["type"] for chat in endpoint.chats] == types


def test_a_valid_empty_result_costs_one_request(write: Write, heard: list[events.WriteEvent]) -> None:
    with ScriptedEndpoint(EMPTY) as endpoint:
        assert json.loads(write(writer_at(endpoint), ask()).value) == {"facts": []}
        assert len(endpoint.requests) == 1, "not even a question for the server's models"
    assert [(event.call, event.outcome, len(event.attempts)) for event in heard] == [("demo.facts", "ok", 1)]


def test_a_row_with_messages_of_its_own(write: Write) -> None:
    with ScriptedEndpoint("no JSON", GOOD) as endpoint:
        write(writer_at(endpoint), ask("reworded"))
        first, second = (chat.messages for chat in endpoint.chats)
    assert first == list(OWN_MESSAGES)
    assert second[:1] == first


@pytest.mark.parametrize(
    ("text", "taken"),
    [("  Likes tea.\n", "Likes tea."), ("<think>hm</think>Likes tea.", "Likes tea."), ("  \n", None), (None, None)],
    ids=["text", "after thinking", "blank", "null"],
)
def test_a_free_text_call(write: Write, text: str | None, taken: str | None) -> None:
    with ScriptedEndpoint(Say(text)) as endpoint:
        if taken is None:
            with pytest.raises(MalformedWriteError, match=r"demo\.text"):
                write(writer_at(endpoint, attempts=2), ask("text"))
        else:
            assert write(writer_at(endpoint), ask("text")).value == taken
        assert all("response_format" not in chat.body for chat in endpoint.chats)
        assert len(endpoint.chats) == (2 if taken is None else 1)


# -- reasoning --------------------------------------------------------------------------------------


def test_a_whole_answer_filed_under_reasoning_is_taken(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedEndpoint(Say(None, reasoning=GOOD)) as endpoint:
        for _ in range(2):
            written = write(writer_at(endpoint), ask())
            assert json.loads(written.value) == {"facts": ["Likes tea"]}
            assert written.event.normalisations == ("json_in_reasoning",)
        assert len(endpoint.requests) == 2
    assert sum("under reasoning" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize(
    "reasoning",
    ["Alice likes tea, so I should...", f"I answer {GOOD}", '{"other": 1}', GOOD[:-3]],
    ids=["prose", "prose around it", "another shape", "cut"],
)
def test_anything_less_under_reasoning_is_no_answer(write: Write, reasoning: str) -> None:
    with ScriptedEndpoint(Say(None, reasoning=reasoning)) as endpoint:
        with pytest.raises(MalformedWriteError, match="no_think") as lost:
            write(writer_at(endpoint, attempts=2), ask())
        assert [a.problems[0].rule for a in lost.value.attempts] == ["reasoning_only"] * 2


def test_thinking_is_noticed_once(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedEndpoint(Say(GOOD, reasoning="hm")) as endpoint:
        assert {write(writer_at(endpoint), ask()).event.outcome for _ in range(3)} == {"ok"}
    assert sum("thinks before it answers" in record.message for record in caplog.records) == 1


# -- passing through --------------------------------------------------------------------------------

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


@pytest.mark.parametrize("json_wanted", [True, False], ids=["json", "chat"])
def test_a_request_that_no_row_knows_passes_through(
    write: Write, json_wanted: bool, heard: list[events.WriteEvent], caplog: pytest.LogCaptureFixture
) -> None:
    more = {"response_format": {"type": "json_object"}} if json_wanted else {}
    request = ask("chat", tools=TOOLS, tool_choice="auto", max_tokens=7, sampling={"seed": 3}, **more)
    with ScriptedEndpoint("free {text") as endpoint:
        for _ in range(2):
            written = write(writer_at(endpoint, no_think=NO_THINK), request)
            assert (written.value, written.event, written.reply.text) == (None, None, "free {text")
        assert len(endpoint.requests) == 2
        body = endpoint.chats[0].body
    assert body == {
        "model": "hy-memory",
        "messages": list(request.messages),
        "tools": TOOLS,
        "tool_choice": "auto",
        "max_tokens": 7,
        "seed": 3,
        **more,
        **NO_THINK,
    }
    assert (heard, events.passed_through["demo"]) == ([], 2)
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == (1 if json_wanted else 0), "drift is told once, chat never"


def test_drift_is_told_of_every_host(write: Write, caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedEndpoint("hi") as endpoint:
        for host in ("demo", "other", "demo"):
            write(
                Writer(host, CALLS, writer_at(endpoint).settings), ask("chat", response_format={"type": "json_object"})
            )
    told = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert [message.split()[0] for message in told] == ["demo", "other"]
    assert all("neither constrained nor validated" in message for message in told)
    assert events.passed_through == {"demo": 2, "other": 1}


def test_without_a_budget_of_its_own_a_passing_request_has_none(write: Write) -> None:
    with ScriptedEndpoint("hi") as endpoint:
        write(writer_at(endpoint), ask("chat"))
        assert set(endpoint.chats[0].body) == {"model", "messages"}


@pytest.mark.parametrize("failure", [Fail(400, SAID), Fail(401, "no"), Fail(503, "later")], ids=["400", "401", "503"])
def test_a_passing_request_fails_under_the_hosts_name(
    write: Write, failure: Fail, heard: list[events.WriteEvent]
) -> None:
    with ScriptedEndpoint(failure) as endpoint, pytest.raises(EndpointError, match=r"^demo: ") as lost:
        write(writer_at(endpoint, retry_seconds=0), ask("chat"))
    assert (lost.value.status, SAID in str(lost.value), heard) == (failure.status, False, [])


# -- answers that are none --------------------------------------------------------------------------

ODD: dict[str, Any] = {
    "cut JSON": b'{"choices": [{"mess',
    "empty": b"",
    "null": b"null",
    "a list": [],
    "no choices": {"choices": None},
    "choices are a table": {"choices": {"a": 1}},
    "a choice is a string": {"choices": ["x"]},
    "a message is a string": {"choices": [{"message": "x"}]},
    "an error in the body": {"error": {"message": f"bad: {SAID}", "code": 400}},
}


@pytest.mark.parametrize("body", ODD.values(), ids=ODD)
@pytest.mark.parametrize("call", ["facts", "kept"])
def test_status_200_without_a_completion_is_a_loss_like_any_other(
    write: Write, body: Any, call: str, heard: list[events.WriteEvent]
) -> None:
    with ScriptedEndpoint(Fail(200, body=body)) as endpoint:
        if call == "kept":
            assert json.loads(write(writer_at(endpoint), ask(call)).value) == {"facts": ["kept"]}
        else:
            told = r"demo\.facts: .*(is no chat completion|answer cannot be read)"
            with pytest.raises(EndpointError, match=told) as lost:
                write(writer_at(endpoint), ask(call))
            assert SAID not in str(lost.value)
        assert len(endpoint.chats) == 1
    assert [event.outcome for event in heard] == ["salvaged" if call == "kept" else "lost"]


@pytest.mark.parametrize(
    "message",
    [{}, {"content": None}, {"content": 5}, {"content": [{"type": "text"}]}, {"content": None, "tool_calls": ["x"]}],
    ids=["nothing", "null", "a number", "parts", "broken tool calls"],
)
def test_a_message_without_text_is_an_empty_reply(write: Write, message: dict[str, Any]) -> None:
    with ScriptedEndpoint(Fail(200, body={"choices": [{"message": message}]}), GOOD) as endpoint:
        written = write(writer_at(endpoint), ask())
        assert written.event.outcome == "retried"
        assert written.event.attempts[0].problems[0].rule == "empty"


def test_a_request_that_cannot_be_sent_is_a_loss_too(write: Write, heard: list[events.WriteEvent]) -> None:
    with ScriptedEndpoint(GOOD) as endpoint, pytest.raises(EndpointError):
        write(writer_at(endpoint), ask(text="half a pair: \ud83d"))
    assert [event.outcome for event in heard] == ["lost"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (TypeError("tea"), ["demo: a request could not be sent: TypeError"]),
        (HyMemoryError("no images here", call="demo.facts"), []),
    ],
    ids=["a fault of ours", "one that is told by itself"],
)
def test_a_request_that_no_row_can_read_fails_loudly(
    write: Write, error: Exception, told: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Any) -> Any:
        raise error

    with ScriptedEndpoint(GOOD) as endpoint, pytest.raises(type(error)):
        write(Writer("demo", [replace(CALLS[0], recognise=broken)], writer_at(endpoint).settings), ask())
    assert endpoint.requests == []
    assert [record.message for record in caplog.records if record.levelno == logging.ERROR] == told
