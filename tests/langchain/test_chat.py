"""Plain chat: no write call, no warning, streamed as it comes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from hymemory_adapters import ConfigurationError, EndpointError
from hymemory_adapters.core.events import WriteEvent
from tests.support.scripted import Fail, Say, ScriptedEndpoint

WORDS = "One two three four five six."


def invoked(model: Any, given: Any, /, **more: Any) -> list[Any]:
    return [model.invoke(given, **more)]


def ainvoked(model: Any, given: Any, /, **more: Any) -> list[Any]:
    return [asyncio.run(model.ainvoke(given, **more))]


def streamed(model: Any, given: Any, /, **more: Any) -> list[Any]:
    return list(model.stream(given, **more))


def astreamed(model: Any, given: Any, /, **more: Any) -> list[Any]:
    async def collect() -> list[Any]:
        return [chunk async for chunk in model.astream(given, **more)]

    return asyncio.run(collect())


WAYS = {"invoke": invoked, "ainvoke": ainvoked, "stream": streamed, "astream": astreamed}
every_way = pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)
both_streams = pytest.mark.parametrize("ask", [streamed, astreamed], ids=["stream", "astream"])
Ask = Callable[..., list[Any]]


def together(parts: list[Any]) -> Any:
    whole = parts[0]
    for part in parts[1:]:
        whole += part
    return whole


@every_way
def test_it_passes_through(
    ask: Ask,
    model: Any,
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
    caplog: pytest.LogCaptureFixture,
) -> None:
    endpoint.play(WORDS)
    with caplog.at_level(logging.WARNING):
        message = together(ask(model, "Count"))
    assert message.content == WORDS
    assert message.usage_metadata["total_tokens"] == 120
    assert message.response_metadata["model_provider"] == "hymemory"
    assert message.response_metadata["model_name"] == "hy-memory"
    assert message.response_metadata["finish_reason"] == "stop"
    (chat,) = endpoint.chats
    assert chat.messages == [{"role": "user", "content": "Count"}]
    assert chat.body["chat_template_kwargs"] == {"reasoning_effort": "no_think"}
    assert not {"response_format", "tools", "max_tokens"} & set(chat.body)
    assert heard == []
    assert caplog.text == ""


@both_streams
def test_it_streams(ask: Ask, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(WORDS)
    parts = ask(model, "Count")
    assert [part.content for part in parts if part.content] == ["One ", "two ", "three ", "four ", "five ", "six."]
    assert endpoint.chats[0].body["stream"] is True


@both_streams
def test_usage_may_be_left_out(ask: Ask, make_model: Callable[..., Any], endpoint: ScriptedEndpoint) -> None:
    endpoint.play(WORDS)
    assert together(ask(make_model(stream_usage=False), "Count")).usage_metadata is None
    assert "stream_options" not in endpoint.chats[0].body


@both_streams
def test_a_stream_that_breaks_off_raises_and_is_not_begun_anew(
    ask: Ask, model: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(Say(WORDS, breaks_off=True))
    with pytest.raises(EndpointError, match="broke off"):
        ask(model, "Count")
    assert len(endpoint.chats) == 1


@every_way
def test_a_refusal_says_what_to_do(ask: Ask, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Fail(401, "no"))
    with pytest.raises(EndpointError, match="set HYMEMORY_API_KEY"):
        ask(model, "Count")


@every_way
def test_a_busy_server_is_asked_again(ask: Ask, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Fail(503, "later"), WORDS)
    assert together(ask(model, "Count")).content == WORDS
    assert len(endpoint.chats) == 2


@every_way
def test_parameters_reach_the_wire(ask: Ask, make_model: Callable[..., Any], endpoint: ScriptedEndpoint) -> None:
    endpoint.play(WORDS)
    model = make_model(temperature=0.5, top_p=0.9, max_tokens=50, stop=["x"], extra_body={"a": {"b": 1}, "top_k": 3})
    ask(model, "Count", extra_body={"a": {"c": 2}, "chat_template_kwargs": {"d": 1}}, seed=7, model="other")
    body = endpoint.chats[0].body
    assert {key: body[key] for key in ("temperature", "top_p", "max_tokens", "stop", "seed", "model", "top_k")} == {
        "temperature": 0.5, "top_p": 0.9, "max_tokens": 50, "stop": ["x"], "seed": 7, "model": "other", "top_k": 3,
    }  # fmt: skip
    assert body["a"] == {"b": 1, "c": 2}, "merged, not replaced"
    assert body["chat_template_kwargs"] == {"reasoning_effort": "no_think", "d": 1}


@every_way
def test_a_budget_may_be_a_string(ask: Ask, model: Any, endpoint: ScriptedEndpoint) -> None:
    """As it is when it comes from the environment or a YAML file."""
    endpoint.play(WORDS)
    ask(model, "Count", max_tokens="50")
    assert endpoint.chats[0].body["max_tokens"] == 50
    with pytest.raises(ConfigurationError, match="max_tokens in the call is 'many'; it must be a whole number"):
        ask(model, "Count", max_tokens="many")


@every_way
def test_tools_that_may_not_be_called_are_left_out(ask: Ask, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(WORDS)
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    assert together(ask(model, "Count", tools=[tool], tool_choice="none")).content == WORDS


def test_a_history_with_tool_calls(model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(WORDS)
    call = {"name": "f", "args": {}, "id": "1"}
    model.invoke([HumanMessage("a"), AIMessage("", tool_calls=[call]), ToolMessage("b", tool_call_id="1")])
    assert [message["role"] for message in endpoint.chats[0].messages] == ["user", "assistant", "tool"]


def test_tools_of_openais_servers_are_refused(model: Any, endpoint: ScriptedEndpoint) -> None:
    with pytest.raises(ConfigurationError, match="'web_search' are run by OpenAI's servers"):
        model.invoke("hi", tools=[{"type": "web_search"}])
    assert endpoint.chats == []
