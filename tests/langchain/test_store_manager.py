"""LangMem's store manager: what reaches the store."""

from __future__ import annotations

from typing import Any

import pytest
from langmem import ReflectionExecutor, create_memory_store_manager

from hymemory_adapters import MalformedWriteError
from hymemory_adapters.core.events import WriteEvent
from tests.langchain.host import (
    NAMESPACE,
    SAID,
    Run,
    a_store,
    assert_on_the_wire,
    both_ways,
    memory,
    patch,
    replace,
    reply,
    stored,
)
from tests.support.scripted import ScriptedEndpoint


def first_id(body: dict[str, Any]) -> str:
    """The id that the request shows first."""
    return str(body["messages"][0]["content"]).partition("<instance id=")[2].partition(" ")[0]


@both_ways
def test_two_conversations(run: Run, model: Any, endpoint: ScriptedEndpoint) -> None:
    store = a_store()
    manager = create_memory_store_manager(model, namespace=NAMESPACE, store=store)
    endpoint.play(reply(memory("Drinks coffee")))
    run(manager, {"messages": SAID})
    assert stored(store) == ["Drinks coffee"]
    endpoint.play(lambda body: reply(patch(first_id(body), replace("/content", "Drinks tea")), memory("Dog Rex")))
    run(manager, {"messages": SAID})
    assert stored(store) == ["Dog Rex", "Drinks tea"]
    assert_on_the_wire(endpoint.chats[0].body)


@both_ways
def test_a_lost_update_leaves_the_store_as_it_was(
    run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    store = a_store()
    store.put(NAMESPACE, "1", {"kind": "Memory", "content": {"content": "Drinks coffee"}})
    manager = create_memory_store_manager(model, namespace=NAMESPACE, store=store)
    endpoint.play("I cannot do that")
    run(manager, {"messages": SAID})
    assert stored(store) == ["Drinks coffee"]
    assert [(event.call, event.outcome) for event in heard] == [("langmem.update", "lost")]
    assert len(endpoint.chats) == 3


@both_ways
def test_a_document_is_deleted(run: Run, model: Any, endpoint: ScriptedEndpoint) -> None:
    store = a_store()
    store.put(NAMESPACE, "1", {"kind": "Memory", "content": {"content": "Drinks coffee"}})
    manager = create_memory_store_manager(model, namespace=NAMESPACE, store=store, enable_deletes=True)
    endpoint.play(lambda body: reply(("RemoveDoc", {"json_doc_id": first_id(body)}), memory("Drinks tea")))
    run(manager, {"messages": SAID})
    assert stored(store) == ["Drinks tea"]


@both_ways
def test_a_query_model_searches(run: Run, model: Any, endpoint: ScriptedEndpoint) -> None:
    """Its tool call is no write, but a malformed one is asked again too: the manager would find nothing, or raise."""
    store = a_store()
    store.put(NAMESPACE, "1", {"kind": "Memory", "content": {"content": "Drinks coffee"}})
    manager = create_memory_store_manager(model, query_model=model, namespace=NAMESPACE, store=store)
    endpoint.play(
        "words",
        reply(("search_memory", {"question": "coffee"})),
        reply(("search_memory", {"query": "coffee"})),
        lambda body: reply(patch(first_id(body), replace("/content", "Drinks tea"))),
    )
    run(manager, {"messages": SAID})
    assert stored(store) == ["Drinks tea"]
    assert len(endpoint.chats) == 4


@both_ways
def test_a_second_phase(run: Run, model: Any, endpoint: ScriptedEndpoint) -> None:
    store = a_store()
    manager = create_memory_store_manager(model, namespace=NAMESPACE, store=store, phases=[{"instructions": "Merge."}])
    endpoint.play(
        reply(memory("Drinks coffee")), lambda body: reply(patch(first_id(body), replace("/content", "Drinks tea")))
    )
    run(manager, {"messages": SAID})
    assert stored(store) == ["Drinks tea"]


def test_a_reflection_that_is_lost_fails_its_future(model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("words")
    store = a_store()
    manager = create_memory_store_manager(model, namespace=NAMESPACE, store=store)
    with ReflectionExecutor(manager, store=store) as executor:
        future = executor.submit({"messages": SAID}, config={"configurable": {}})
        with pytest.raises(MalformedWriteError):
            future.result(timeout=30)
