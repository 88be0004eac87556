"""Agents that manage their memory with LangMem's tools, on a server that knows no tools."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessageChunk
from langmem import create_manage_memory_tool, create_search_memory_tool

from hymemory_adapters import MalformedWriteError
from hymemory_adapters.core.events import WriteEvent
from tests.langchain.host import LANGCHAIN, NAMESPACE, Run, a_store, assert_on_the_wire, both_ways, reply, stored
from tests.support.scripted import ScriptedEndpoint

SAID = {"messages": [{"role": "user", "content": "I drink tea now"}]}
REMEMBERED = reply(("manage_memory", {"content": "Drinks tea"}), content="")
DONE = reply(content="I will remember it.")


def an_agent(model: Any, store: Any) -> Any:
    tools = [create_manage_memory_tool(NAMESPACE), create_search_memory_tool(NAMESPACE)]
    if LANGCHAIN < (1, 0):
        from langgraph.prebuilt import create_react_agent

        return create_react_agent(model, tools=tools, store=store)
    from langchain.agents import create_agent

    return create_agent(model, tools=tools, store=store)


@both_ways
def test_a_memory_is_stored(run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    store = a_store()
    endpoint.play(REMEMBERED, DONE)
    done = run(an_agent(model, store), SAID)
    assert done["messages"][-1].content == "I will remember it."
    assert done["messages"][-1].usage_metadata["total_tokens"] == 120
    assert stored(store) == ["Drinks tea"]
    assert [(event.call, event.outcome) for event in heard] == [("langmem.manage_memory", "ok")] * 2
    for chat in endpoint.chats:
        assert_on_the_wire(chat.body)
    assert "Result of manage_memory" in endpoint.chats[1].messages[-1]["content"]


def test_the_ids_of_calls_are_fresh(model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(REMEMBERED, REMEMBERED, DONE)
    messages = an_agent(model, a_store()).invoke(SAID)["messages"]
    ids = [call["id"] for message in messages for call in getattr(message, "tool_calls", [])]
    assert len(set(ids)) == 2
    assert [message.tool_call_id for message in messages if message.type == "tool"] == ids


MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "id of a new memory": ({"content": "x", "action": "create", "id": str(uuid.uuid4())}, "memory_id"),
    "update without id": ({"content": "x", "action": "update"}, "memory_id"),
    "delete without id": ({"action": "delete"}, "memory_id"),
    "update of an unknown memory": ({"content": "x", "action": "update", "id": str(uuid.uuid4())}, "unknown_id"),
    "delete of an unknown memory": ({"action": "delete", "id": str(uuid.uuid4())}, "unknown_id"),
    "no content": ({"action": "create"}, "blank"),
    "blank content": ({"content": " "}, "blank"),
    "unknown action": ({"content": "x", "action": "merge"}, "schema"),
}


@pytest.mark.parametrize(("arguments", "rule"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_asked_again(
    arguments: dict[str, Any], rule: str, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    store = a_store()
    endpoint.play(reply(("manage_memory", arguments), content=""), REMEMBERED, DONE)
    an_agent(model, store).invoke(SAID)
    assert stored(store) == ["Drinks tea"]
    assert [problem.rule for problem in heard[0].attempts[0].problems] == [rule]


def test_a_memory_that_was_found_can_be_updated(model: Any, endpoint: ScriptedEndpoint) -> None:
    store = a_store()
    key = str(uuid.uuid4())
    store.put(NAMESPACE, key, {"content": "Drinks coffee"})
    change = reply(("manage_memory", {"content": "Drinks tea", "action": "update", "id": key}), content="")
    endpoint.play(reply(("search_memory", {"query": "drinks"}), content="Let me see."), change, DONE)
    done = an_agent(model, store).invoke(SAID)
    assert stored(store) == ["Drinks tea"]
    assert done["messages"][1].content == "Let me see."
    assert len(endpoint.chats) == 3


@both_ways
def test_a_lost_turn_raises(run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    store = a_store()
    endpoint.play("words that are no JSON")
    with pytest.raises(MalformedWriteError, match=r"langmem\.manage_memory"):
        run(an_agent(model, store), SAID)
    assert stored(store) == []
    assert [event.outcome for event in heard] == ["lost"]


def streamed(agent: Any, mode: str) -> list[Any]:
    return list(agent.stream(SAID, stream_mode=mode))


def streamed_in_a_loop(agent: Any, mode: str) -> list[Any]:
    async def collect() -> list[Any]:
        return [part async for part in agent.astream(SAID, stream_mode=mode)]

    return asyncio.run(collect())


both_streams = pytest.mark.parametrize("stream", [streamed, streamed_in_a_loop], ids=["stream", "astream"])


@both_streams
@pytest.mark.parametrize("mode", ["messages", "updates", "values"])
def test_agents_stream(stream: Callable[..., list[Any]], mode: str, model: Any, endpoint: ScriptedEndpoint) -> None:
    store = a_store()
    endpoint.play("malformed", REMEMBERED, DONE)
    parts = stream(an_agent(model, store), mode)
    assert stored(store) == ["Drinks tea"]
    for chat in endpoint.chats:
        assert_on_the_wire(chat.body)
    if mode == "messages":
        chunks = [message for message, _ in parts if isinstance(message, AIMessageChunk)]
        assert "I will remember it." in [chunk.content for chunk in chunks]
        calls = [call for chunk in chunks for call in chunk.tool_call_chunks]
        assert [(call["name"], call["args"]) for call in calls] == [("manage_memory", '{"content": "Drinks tea"}')]
        assert "malformed" not in "".join(str(chunk.content) for chunk in chunks)
