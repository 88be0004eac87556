"""A manager inside an app's own LangGraph graph, also where the app streams its messages: it is known as ever.

LangChain then streams on its own account, and hands the model no run manager, which tells the node otherwise.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langmem import create_memory_manager

from hymemory_adapters import WriteEvent, on_write
from hymemory_adapters.langchain import ChatHyMemory
from tests.langchain.host import SAID, memory, reply
from tests.support.scripted import ScriptedEndpoint


def _graph(node: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("remember", node)
    builder.add_edge(START, "remember")
    return builder.compile()


def _run(manager: Any, mode: str) -> None:
    def node(state: Any) -> dict[str, Any]:
        manager.invoke({"messages": state["messages"]})
        return {}

    list(_graph(node).stream({"messages": SAID}, stream_mode=mode))


def _arun(manager: Any, mode: str) -> None:
    async def node(state: Any) -> dict[str, Any]:
        await manager.ainvoke({"messages": state["messages"]})
        return {}

    async def all_of_it() -> None:
        async for _ in _graph(node).astream({"messages": SAID}, stream_mode=mode):
            pass

    asyncio.run(all_of_it())


@pytest.mark.parametrize("mode", ["values", "messages"])
@pytest.mark.parametrize("run", [_run, _arun], ids=["stream", "astream"])
def test_its_writes_are_seen(run: Any, mode: str) -> None:
    heard: list[WriteEvent] = []
    unsubscribe = on_write(heard.append)
    with ScriptedEndpoint("no tool call", reply(memory("Drinks tea"))) as endpoint:
        run(create_memory_manager(ChatHyMemory(base_url=endpoint.url)), mode)
        sent = [chat.body for chat in endpoint.chats]
    unsubscribe()
    assert [(event.call, event.outcome) for event in heard] == [("langmem.extract", "retried")]
    assert len(sent) == 2
    assert not any({"tools", "stream", "stream_options"} & {*body} for body in sent)
