"""The body of a request and the fields of a completion, where the servers and hosts that people run differ."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from hymemory_adapters.core.request import Request
from tests.support.calls import FACTS, GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import Fail, Say, ScriptedEndpoint


def completion(**fields: Any) -> Fail:
    """An answer whose one choice has these fields, and beside it ``usage``."""
    beside = {key: fields.pop(key) for key in ("usage",) if key in fields}
    return Fail(200, body={"choices": [{"index": 0, "finish_reason": "stop", **fields}], **beside})


# -- what is sent -----------------------------------------------------------------------------------

SWITCH = {"chat_template_kwargs": {"think": False}}
MERGED: dict[str, tuple[Any, Any]] = {
    "nothing of the host's": ({}, {"think": False}),
    "another key": ({"chat_template_kwargs": {"lang": "en"}}, {"lang": "en", "think": False}),
    "the same key": ({"chat_template_kwargs": {"think": True, "lang": "en"}}, {"think": False, "lang": "en"}),
    "null": ({"chat_template_kwargs": None}, {"think": False}),
    "no table": ({"chat_template_kwargs": "x"}, {"think": False}),
}


@both_ways
@pytest.mark.parametrize(("hosts", "sent"), MERGED.values(), ids=MERGED)
def test_the_no_think_switch_wins_over_the_hosts_field(write: Write, hosts: dict[str, Any], sent: Any) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        write(writer_at(endpoint, no_think=SWITCH), ask(extra_body=hosts))
        assert endpoint.chats[0].body["chat_template_kwargs"] == sent


@both_ways
def test_a_switch_that_is_no_table_replaces_the_hosts_table(write: Write) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        write(writer_at(endpoint, no_think={"think": "no"}), ask(extra_body={"think": {"budget": 100}}))
        assert endpoint.chats[0].body["think"] == "no"


@both_ways
def test_the_hosts_own_field_wins_over_its_sampling(write: Write) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        write(writer_at(endpoint), ask(sampling={"temperature": 0.1, "top_k": 5}, extra_body={"temperature": 0.7}))
        body = endpoint.chats[0].body
    assert (body["temperature"], body["top_k"]) == (0.7, 5)


SAMPLING: dict[str, Any] = {
    "temperature": 0.1,
    "top_p": 0.9,
    "presence_penalty": 0.1,
    "frequency_penalty": 0.2,
    "seed": 7,
    "stop": ["x"],
    "n": 2,
    "user": "u1",
    "logit_bias": {"5": 1},
    "logprobs": True,
    "top_logprobs": 2,
    "parallel_tool_calls": False,
    "metadata": {"a": "b"},
    "service_tier": "auto",
    "store": False,
}


def test_what_the_sdk_knows_is_an_argument_of_its_own_where_tracers_read_it() -> None:
    request = ask("chat", sampling={**SAMPLING, "top_k": 3, "min_p": None})
    operation = writer_at("http://127.0.0.1:9/v1")._begin(request).next_operation()
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **sent: sent)))
    arguments = operation(client)
    assert {key: arguments[key] for key in SAMPLING} == SAMPLING
    assert arguments["extra_body"] == {"top_k": 3}


LAST: dict[str, dict[str, Any]] = {
    "the model's": {"role": "assistant", "content": "What do you like?"},
    "parts": {"role": "user", "content": [{"type": "text", "text": "I like tea"}]},
}


@both_ways
@pytest.mark.parametrize("last", LAST.values(), ids=LAST)
def test_a_schema_in_the_prompt_after_a_message_that_takes_no_more_text(write: Write, last: dict[str, Any]) -> None:
    request = Request([*ask().messages, last])
    with ScriptedEndpoint(GOOD) as endpoint:
        write(writer_at(endpoint, form="prompt"), request)
        *before, note = endpoint.chats[0].messages
    assert before == list(request.messages)
    assert note["role"] == "user"
    assert json.loads(note["content"].partition("\n")[2]) == FACTS.wire


# -- what comes back --------------------------------------------------------------------------------


@both_ways
@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_has_two_names(write: Write, name: str) -> None:
    """vLLM's is the first since 0.11; SGLang, llama.cpp and DeepSeek have the second."""
    answer = completion(message={"role": "assistant", "content": None, name: GOOD})
    with ScriptedEndpoint(answer) as endpoint:
        written = write(writer_at(endpoint), ask())
    assert written.event.normalisations == ("json_in_reasoning",)
    assert written.reply.reasoning == GOOD


@both_ways
@pytest.mark.parametrize("reasoning", [["x"], {"x": 1}, 5], ids=["list", "table", "number"])
def test_reasoning_that_is_no_text_is_none(write: Write, reasoning: Any) -> None:
    answer = completion(message={"role": "assistant", "content": None, "reasoning": reasoning})
    with ScriptedEndpoint(answer, GOOD) as endpoint:
        written = write(writer_at(endpoint), ask())
    assert [problem.rule for problem in written.event.attempts[0].problems] == ["empty"]


USAGES: dict[str, tuple[dict[str, Any], tuple[int | None, int | None]]] = {
    "whole": ({"usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}}, (7, 3)),
    "in part": ({"usage": {"total_tokens": 10}}, (None, None)),
    "null": ({"usage": None}, (None, None)),
    "none": ({}, (None, None)),
}


@both_ways
@pytest.mark.parametrize(("usage", "tokens"), USAGES.values(), ids=USAGES)
def test_tokens_where_the_server_counts_them(write: Write, usage: dict[str, Any], tokens: Any) -> None:
    with ScriptedEndpoint(completion(message={"role": "assistant", "content": GOOD}, **usage)) as endpoint:
        (attempt,) = write(writer_at(endpoint), ask()).event.attempts
    assert (attempt.tokens_in, attempt.tokens_out) == tokens


@both_ways
def test_tool_calls_of_a_request_that_passes_through(write: Write) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    with ScriptedEndpoint(Say(None, "tool_calls", tool_calls=[call])) as endpoint:
        reply = write(writer_at(endpoint), ask("chat")).reply
    assert (reply.text, reply.finish_reason, reply.completion.id) == (None, "tool_calls", "chatcmpl-1")
    assert [{key: found[key] for key in call} for found in reply.tool_calls] == [call]


@both_ways
@pytest.mark.parametrize(
    "choices", [[], [None], [{}], [{"message": None}]], ids=["none", "null", "empty", "no message"]
)
def test_a_completion_without_a_message_is_none(write: Write, choices: list[Any], heard: list[Any]) -> None:
    with ScriptedEndpoint(Fail(200, body={"choices": choices})) as endpoint:
        assert json.loads(write(writer_at(endpoint), ask("kept")).value) == {"facts": ["kept"]}
        assert len(endpoint.chats) == 1
    assert [event.outcome for event in heard] == ["salvaged"]
