"""Mem0's graph memory (0.1 and 1.x), on embedded Kuzu: what reaches the graph, and what is told when it does not."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any

import pytest

from hymemory_adapters import HyMemoryError, MalformedWriteError, WriteEvent, on_write
from tests.mem0.graph import (
    GRAPH_CALLS,
    STORE,
    Model,
    call_of,
    calls_reply,
    deletions,
    entities,
    relations,
    tool_of,
    triples,
)
from tests.mem0.host import MAJOR, USER, async_memory, facts_reply, hymemory, mem0, stored
from tests.support import cases
from tests.support.scripted import Fail, Say, ScriptedEndpoint

pytestmark = pytest.mark.skipif(MAJOR >= 2, reason="Mem0 2.x has no graph memory")

BuildMemory = Callable[..., Any]
SAID = "I live in Oslo, and my cat is called Miro"
OSLO, MIRO = "alice -- lives_in -- oslo", "alice -- has_cat -- miro"
GOOD: dict[str, Any] = {
    "facts": [facts_reply("Lives in Oslo")],
    "graph_entities": [entities(alice="person", Oslo="city", Miro="cat")],
    "graph_relations": [relations("alice -- lives in -- Oslo", "alice -- has_cat -- Miro")],
}


@pytest.fixture
def graph_memory(make_memory: BuildMemory) -> Any:
    return make_memory(more=STORE)


def replies_to(call: str, *replies: Any) -> dict[str, Any]:
    """The good replies, but for one call."""
    return {**GOOD, call.removeprefix("mem0."): [*replies]}


def test_an_add_reaches_both_stores(graph_memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Model(**GOOD))
    graph_memory.add(SAID, user_id=USER)
    assert stored(graph_memory) == ["Lives in Oslo"]
    assert triples(graph_memory, USER) == [MIRO, OSLO]
    assert all("tools" not in chat.body and "tool_choice" not in chat.body for chat in endpoint.chats)


def test_the_tool_is_told_behind_mem0s_own_prompt(
    graph_memory: Any, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, Any]] = []
    ask = graph_memory.graph.llm.generate_response
    monkeypatch.setattr(graph_memory.graph.llm, "generate_response", lambda **asked: seen.append(asked) or ask(**asked))
    endpoint.play(Model(**GOOD))
    graph_memory.add(SAID, user_id=USER)
    sent = {tool_of(c.body): c.messages for c in endpoint.chats if call_of(c.body) in GRAPH_CALLS}
    assert len(sent) == len(seen) == 3
    for asked in seen:
        function = asked["tools"][0]["function"]
        (system, user), (sent_system, sent_user) = asked["messages"], sent[function["name"]]
        assert sent_user == user
        assert sent_system["content"].startswith(system["content"])
        told = sent_system["content"].removeprefix(system["content"])
        assert function["description"] in told
        assert json.dumps(function["parameters"]) in told


def test_a_contradicted_relation_is_deleted(graph_memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Model(**GOOD))
    graph_memory.add(SAID, user_id=USER)
    endpoint.play(
        Model(
            graph_entities=[entities(alice="person", Oslo="city", Bergen="city")],
            graph_relations=[relations("alice -- lives_in -- Bergen")],
            graph_deletions=[deletions("alice -- lives_in -- oslo")],
        )
    )
    graph_memory.add("I moved to Bergen", user_id=USER)
    assert triples(graph_memory, USER) == [MIRO, "alice -- lives_in -- bergen"]


def test_several_relations_are_deleted_at_once(graph_memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Model(**GOOD))
    graph_memory.add(SAID, user_id=USER)
    model = Model(
        graph_entities=GOOD["graph_entities"],
        graph_deletions=[deletions("alice -- lives_in -- oslo", "alice -- has_cat -- miro")],
    )
    endpoint.play(model)
    graph_memory.add("All of that is over", user_id=USER)
    assert triples(graph_memory, USER) == []


def test_nothing_to_note_is_an_answer(graph_memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(model := Model())
    graph_memory.add("Hm", user_id=USER)
    assert [model.count(call) for call in GRAPH_CALLS] == [1, 1, 1]
    assert triples(graph_memory, USER) == []


# -- malformed replies -----------------------------------------------------------------------------

GOOD_VALUES = {
    "mem0.graph_entities": json.loads(GOOD["graph_entities"][0]),
    "mem0.graph_relations": json.loads(GOOD["graph_relations"][0]),
    "mem0.graph_deletions": json.loads(deletions("alice -- lives_in -- oslo")),
}


def _arguments(tool: str, arguments: Any) -> str:
    return json.dumps({"tool_calls": [{"name": tool, "arguments": arguments}]})


def _entity(**item: Any) -> str:
    return _arguments("extract_entities", {"entities": [item]})


def _related(**item: Any) -> str:
    return _arguments("establish_relationships", {"entities": [item]})


PARTICULAR: dict[str, dict[str, str]] = {
    "mem0.graph_entities": {
        "no_call": '{"tool_calls": []}',
        "two_calls": calls_reply(*[("extract_entities", {"entities": []})] * 2),
        "another_tool": _arguments("extract_nodes", {"entities": []}),
        "arguments_text": _arguments("extract_entities", '{"entities": []}'),
        "arguments_null": _arguments("extract_entities", None),
        "no_entities": _arguments("extract_entities", {}),
        "entities_null": _arguments("extract_entities", {"entities": None}),
        "entities_strings": _arguments("extract_entities", {"entities": ["Oslo"]}),
        "no_type": _entity(entity="Oslo"),
        "type_null": _entity(entity="Oslo", entity_type=None),
        "entity_number": _entity(entity=7, entity_type="number"),
        "entity_blank": _entity(entity=" ", entity_type="city"),
        "bare_arguments": '{"entities": []}',
    },
    "mem0.graph_relations": {
        "no_call": '{"tool_calls": []}',
        "two_calls": calls_reply(*[("establish_relationships", {"entities": []})] * 2),
        "no_destination": _related(source="alice", relationship="lives_in"),
        "target": _related(source="alice", relationship="lives_in", target="oslo"),
        "relationship_null": _related(source="alice", relationship=None, destination="oslo"),
        "relationship_blank": _related(source="alice", relationship="", destination="oslo"),
        "key_relationships": _arguments("establish_relationships", {"relationships": []}),
        "entities_null": _arguments("establish_relationships", {"entities": None}),
        "entities_string": _arguments("establish_relationships", {"entities": "none"}),
    },
    "mem0.graph_deletions": {
        "no_destination": _arguments("delete_graph_memory", {"source": "alice", "relationship": "lives_in"}),
        "arguments_list": _arguments("delete_graph_memory", [{"source": "a", "relationship": "b", "destination": "c"}]),
        "source_blank": _arguments("delete_graph_memory", {"source": "", "relationship": "b", "destination": "c"}),
        "tool_noop": _arguments("noop", {}),
    },
}
MALFORMED = {
    f"{call}-{name}": (call, Say(reply.text, reply.finish_reason))
    for call, good in GOOD_VALUES.items()
    for name, reply in {
        **{m.name: m for m in cases.malformed(good)},
        **{name: Say(text) for name, text in PARTICULAR[call].items()},
    }.items()
}


@pytest.fixture(scope="module")
def shared() -> Any:
    """One memory for the whole table: it takes longest to make."""
    from tests.mem0.host import config, drop, mem0

    with ScriptedEndpoint("nothing was scripted") as endpoint:
        memory = mem0.Memory.from_config(config(hymemory(endpoint.url, attempts=2), **STORE))
        yield memory, endpoint
        drop(memory)


@pytest.mark.parametrize(("call", "reply"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_then_good_reaches_the_graph(call: str, reply: Say, shared: Any, request: Any) -> None:
    memory, endpoint = shared
    user = request.node.name
    good = {**GOOD, "graph_deletions": [deletions()]}[call.removeprefix("mem0.")]
    endpoint.play(model := Model(**replies_to(call, reply, *good)))
    memory.add(SAID, user_id=user)
    assert model.count(call) == 2
    assert triples(memory, user) == [MIRO, OSLO]


@pytest.mark.parametrize("call", GRAPH_CALLS)
def test_a_lost_graph_call_is_told_and_changes_nothing(
    call: str, graph_memory: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(Model(**GOOD))
    graph_memory.add(SAID, user_id=USER)
    before = triples(graph_memory, USER)
    events: list[WriteEvent] = []
    unsubscribe = on_write(events.append)
    endpoint.play(model := Model(**{**replies_to(call, "I cannot"), "facts": [facts_reply("Has a dog")]}))
    with pytest.raises(MalformedWriteError, match=f"{call}: none of 3 replies.*the graph has nothing of this add"):
        graph_memory.add("I have a dog", user_id=USER)
    unsubscribe()
    assert model.count(call) == 3
    assert triples(graph_memory, USER) == before
    assert stored(graph_memory) == ["Has a dog", "Lives in Oslo"]
    assert [event.call for event in events if event.outcome == "lost"] == [call]


def test_a_lost_search_says_that_nothing_is_changed(graph_memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Model(**replies_to("mem0.graph_entities", "I cannot")))
    with pytest.raises(MalformedWriteError, match=r"mem0\.graph_entities: .* In a search, nothing is changed"):
        graph_memory.search("Who lives in Oslo?", user_id=USER)


ASKS_IN_A_DELETE = "self.graph" in inspect.getsource(mem0.Memory.delete)
DELETING = GRAPH_CALLS[:2] if ASKS_IN_A_DELETE else ()


@pytest.mark.parametrize("call", GRAPH_CALLS[:2])
def test_a_lost_delete_is_told_although_mem0_hides_it(
    call: str, graph_memory: Any, endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """Mem0 1.0.11 asks in a delete too, and drops what is raised there; 0.1 and 1.0.0 leave the graph alone."""
    endpoint.play(Model(**GOOD))
    graph_memory.add(SAID, user_id=USER)
    (row,) = graph_memory.get_all(user_id=USER)["results"]
    endpoint.play(model := Model(**replies_to(call, "I cannot")))
    assert "deleted" in graph_memory.delete(row["id"])["message"]
    assert (stored(graph_memory), triples(graph_memory, USER)) == ([], [MIRO, OSLO])
    assert model.count(call) == (3 if ASKS_IN_A_DELETE else 0)
    told = [r.getMessage() for r in caplog.records if r.name == "hymemory_adapters"]
    lost = [text for text in told if f"{call}: none of 3 replies" in text]
    assert all("In a delete, the memory is deleted, and its relations stay" in text for text in lost)
    assert len(lost) == int(call in DELETING)
    hidden = [text.partition(":")[0] for text in told if "In a delete, Mem0 hides errors" in text]
    assert sorted(hidden) == sorted(DELETING)


def test_a_lost_facts_call_says_that_the_graph_took_the_add(graph_memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Model(**replies_to("mem0.facts", "I cannot")))
    with pytest.raises(MalformedWriteError, match=r"mem0\.facts: .*what it took from this add stays in the graph"):
        graph_memory.add(SAID, user_id=USER)
    assert stored(graph_memory) == []
    assert triples(graph_memory, USER) == [MIRO, OSLO]


def test_a_server_that_fails_is_told_too(graph_memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Model(**replies_to("mem0.graph_relations", Fail(401, "no"))))
    with pytest.raises(HyMemoryError, match=r"mem0\.graph_relations: .*wants a key.*the graph has nothing of this add"):
        graph_memory.add(SAID, user_id=USER)
    assert triples(graph_memory, USER) == []


# -- Mem0's other ways to its graph ------------------------------------------------------------------


def test_async_memory(endpoint: ScriptedEndpoint) -> None:
    async def run() -> list[str]:
        memory = await async_memory(hymemory(endpoint.url), **STORE)
        await memory.add(SAID, user_id=USER)
        return triples(memory, USER)

    endpoint.play(Model(**GOOD))
    assert asyncio.run(run()) == [MIRO, OSLO]


def test_search_finds_by_the_entities_of_the_query(graph_memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Model(**GOOD))
    graph_memory.add(SAID, user_id=USER)
    endpoint.play(model := Model(graph_entities=[entities(Oslo="city")]))
    found = graph_memory.search("Who lives in Oslo?", user_id=USER)
    assert model.asked == ["mem0.graph_entities"]
    assert [row["destination"] for row in found["relations"]] == ["oslo"]


def test_an_own_llm_for_the_graph(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    """``graph_store.llm`` goes through the validator that knows our name, too."""
    with ScriptedEndpoint(Model(**GOOD)) as other:
        graph = {**STORE["graph_store"], "llm": hymemory(other.url)}
        memory = make_memory(more={"graph_store": graph})
        endpoint.play(Model(**GOOD))
        memory.add(SAID, user_id=USER)
        assert {call_of(chat.body) for chat in other.chats} == {*GRAPH_CALLS}
        assert not {call_of(chat.body) for chat in endpoint.chats} & {*GRAPH_CALLS}
    assert triples(memory, USER) == [MIRO, OSLO]


@pytest.mark.parametrize("constrain", ["retry", "off"])
def test_tools_stay_off_the_wire_when_nothing_is_constrained(
    constrain: str, make_memory: BuildMemory, endpoint: ScriptedEndpoint
) -> None:
    memory = make_memory(constrain=constrain)
    llm = memory.llm
    from mem0.graphs.tools import EXTRACT_ENTITIES_TOOL

    endpoint.play(entities(Oslo="city"))
    got = llm.generate_response(messages=[{"role": "user", "content": SAID}], tools=[EXTRACT_ENTITIES_TOOL])
    assert got["tool_calls"][0]["arguments"] == {"entities": [{"entity": "Oslo", "entity_type": "city"}]}
    (chat,) = endpoint.chats
    assert not {"tools", "tool_choice", "response_format"} & {*chat.body}
