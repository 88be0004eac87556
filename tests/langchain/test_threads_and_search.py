"""LangMem's thread extractor, and the searches that a store manager makes before it writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langmem import create_memory_searcher, create_memory_store_manager, create_thread_extractor
from pydantic import BaseModel

from hymemory_adapters import MalformedWriteError
from hymemory_adapters.core.events import WriteEvent
from tests.langchain.host import (
    NAMESPACE,
    SAID,
    Run,
    a_store,
    assert_on_the_wire,
    both_ways,
    in_a_loop,
    memory,
    patch,
    replace,
    reply,
    stored,
)
from tests.support.scripted import ScriptedEndpoint

THREAD = reply(("SummarizeThread", {"title": "Tea", "summary": "Drinks tea; dog Rex."}))


class Ticket(BaseModel):
    """A ticket."""

    problem: str
    solved: bool = False


TICKET = reply(("Ticket", {"problem": "no tea"}))
THREAD_MISTAKES = {
    "text": ("Drinks tea", "not_json"),
    "nothing": (reply(), "schema"),
    "two": (reply(*(("SummarizeThread", {"title": x, "summary": x}) for x in "ab")), "schema"),
    "blank summary": (reply(("SummarizeThread", {"title": "Tea", "summary": " "})), "blank"),
    "blank title": (reply(("SummarizeThread", {"title": "", "summary": "Tea"})), "blank"),
}


@pytest.mark.parametrize(("mistake", "rule"), THREAD_MISTAKES.values(), ids=THREAD_MISTAKES)
@both_ways
def test_a_thread_is_summed_up(
    mistake: str, rule: str, run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(mistake, THREAD)
    assert run(create_thread_extractor(model), {"messages": SAID}).summary == "Drinks tea; dog Rex."
    assert len(endpoint.chats) == 2
    assert_on_the_wire(endpoint.chats[0].body)
    (event,) = heard
    assert event.call == "langmem.thread"
    assert {problem.rule for problem in event.attempts[0].problems} == {rule}


def test_a_thread_of_the_apps_own_schema(model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    endpoint.play(reply(("Ticket", {"problem": " "})), TICKET)
    extractor = create_thread_extractor(model, schema=Ticket, instructions="Write a ticket.")
    assert extractor.invoke({"messages": SAID}) == Ticket(problem="no tea")
    assert [(event.call, event.outcome) for event in heard] == [("langmem.thread", "retried")]


@both_ways
def test_a_lost_thread_raises(run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    endpoint.play("Drinks tea")
    with pytest.raises(MalformedWriteError, match=r"langmem\.thread"):
        run(create_thread_extractor(model), {"messages": SAID})
    assert len(endpoint.chats) == 3
    assert [event.outcome for event in heard] == ["lost"]


SEARCH = reply(("search_memory", {"query": "drinks", "limit": 3}))
SEARCH_MISTAKES = {
    "text": "drinks",
    "nothing": reply(),
    "another argument": reply(("search_memory", {"query": "drinks", "text": "coffee"})),
    "another name": reply(("search_memory", {"q": "drinks"})),
    "blank": reply(("search_memory", {"query": " "})),
    "another tool": reply(("manage_memory", {"content": "Drinks tea"})),
}
each_search = pytest.mark.parametrize("mistake", SEARCH_MISTAKES.values(), ids=SEARCH_MISTAKES)


def a_known_store() -> Any:
    store = a_store()
    store.put(NAMESPACE, "old", {"kind": "Memory", "content": {"content": "Drinks coffee"}})
    return store


@each_search
@both_ways
def test_a_store_manager_finds_what_is_known(
    mistake: str, run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    """LangMem alone found nothing in such replies, and wrote everything anew."""
    store = a_known_store()
    manager = create_memory_store_manager(model, query_model=model, namespace=NAMESPACE, store=store)

    def update(body: dict[str, Any]) -> str:
        shown = body["messages"][0]["content"]
        return reply(patch(shown.partition("<instance id=")[2].split()[0], replace("/content", "Drinks tea")))

    endpoint.play(mistake, SEARCH, update)
    run(manager, {"messages": SAID})
    assert stored(store) == ["Drinks tea"]
    assert len(endpoint.chats) == 3
    assert [event.call for event in heard] == ["langmem.update"], "a search writes nothing"
    for chat in endpoint.chats:
        assert_on_the_wire(chat.body)


@both_ways
def test_a_lost_search_raises_before_anything_is_written(run: Run, model: Any, endpoint: ScriptedEndpoint) -> None:
    store = a_known_store()
    manager = create_memory_store_manager(model, query_model=model, namespace=NAMESPACE, store=store)
    endpoint.play("drinks")
    with pytest.raises(MalformedWriteError, match=r"langmem\.search"):
        run(manager, {"messages": SAID})
    assert len(endpoint.chats) == 3
    assert stored(store) == ["Drinks coffee"]


def test_a_store_manager_searches_more_than_once(model: Any, endpoint: ScriptedEndpoint) -> None:
    store = a_store()
    manager = create_memory_store_manager(model, query_model=model, namespace=NAMESPACE, store=store)
    endpoint.play(reply(*(("search_memory", {"query": x}) for x in ("drinks", "dog"))), reply(memory("Drinks tea")))
    manager.invoke({"messages": SAID})
    assert stored(store) == ["Drinks tea"]
    assert len(endpoint.chats) == 2


@each_search
@both_ways
def test_a_searcher_asks_again(
    mistake: str, run: Run, make_model: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    from langgraph.func import entrypoint

    searcher = create_memory_searcher(make_model(), namespace=NAMESPACE)

    def contents(items: Any) -> list[str]:
        return [item.value["content"]["content"] for item in items]

    async def afound(said: Any) -> Any:
        return contents(await searcher.ainvoke(said))

    def found(said: Any) -> Any:
        return contents(searcher.invoke(said))

    app = entrypoint(store=a_known_store())(afound if run is in_a_loop else found)
    endpoint.play(mistake, SEARCH)
    assert run(app, {"messages": SAID}) == ["Drinks coffee"]
    assert len(endpoint.chats) == 2
