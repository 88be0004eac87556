"""Every write call against every kind of reply: what is good is stored once, what is malformed never is.

The replies come from ``tests/support/cases.py``, and here are those that are particular to Mem0: how its
requests were answered wrongly in public bug reports, and how its own parser reads them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from hymemory_adapters import MalformedWriteError, WriteEvent
from tests.mem0.graph import GRAPH_CALLS
from tests.mem0.host import CALLS, MAJOR, USER, add_all, done, events_of, facts_reply, seed, stored
from tests.support import cases
from tests.support.scripted import Say, ScriptedEndpoint

TEA, CAT = "Likes green tea", "Has a cat named Miro"
OSLO, BERGEN = "Lives in Oslo", "Lives in Bergen now"


@dataclass(frozen=True)
class Row:
    """One write call of Mem0.

    Attributes:
        good: its good reply.
        memories: what is stored before.
        before: what is played before the call, for Mem0's second call.
        after: what is played after it, for Mem0's first call.
        expected: what ``Memory.add`` reports when the reply is taken.
        salvaged: what it reports when the call is lost; ``None`` where it raises.
        malformed: more malformed replies, by name.
        harmless: more replies that are as good as ``good``.
    """

    good: dict[str, Any]
    expected: list[tuple[str, str]]
    memories: tuple[str, ...] = ()
    before: tuple[Any, ...] = ()
    after: tuple[Any, ...] = ()
    salvaged: list[tuple[str, str]] | None = None
    malformed: dict[str, Any] = field(default_factory=dict)
    harmless: dict[str, Any] = field(default_factory=dict)

    @property
    def after_it(self) -> list[str]:
        """What the store holds when ``expected`` was done."""
        return sorted({text for event, text in self.expected if event != "DELETE"})


def _item(text: Any, **more: Any) -> dict[str, Any]:
    return {"id": "0", "text": text, "attributed_to": "user", **more}


def _memory(*items: Any) -> str:
    return json.dumps({"memory": list(items)})


ADDITIVE = Row(
    good={"memory": [_item(TEA), {**_item(CAT), "id": "1", "attributed_to": "assistant", "linked_memory_ids": ["0"]}]},
    expected=[("ADD", CAT), ("ADD", TEA)],
    malformed={
        "one_string_is_a_pair": _memory(_item(TEA), {"Alice moved to Oslo": "2024"}),
        "text_missing": _memory(_item(TEA), {"id": "1", "attributed_to": "user"}),
        "text_under_memory": _memory({"id": "0", "memory": TEA}, {"id": "1", "memory": CAT}),
        "text_under_content": _memory({"id": "0", "content": TEA}, {"id": "1", "content": CAT}),
        "text_under_fact": _memory({"id": "0", "fact": TEA}, {"id": "1", "fact": CAT}),
        "text_empty": _memory(_item(TEA), _item("")),
        "text_blank": _memory(_item(TEA), _item(" \n ")),
        "text_number": _memory(_item(TEA), _item(7)),
        "text_null": _memory(_item(TEA), _item(None)),
        "text_list": _memory(_item(TEA), _item([CAT])),
        "text_object": _memory(_item(TEA), _item({"text": CAT})),
        "item_null": _memory(_item(TEA), None),
        "item_list": _memory(_item(TEA), [CAT]),
        "memory_string": '{"memory": "Likes green tea"}',
        "memory_object": '{"memory": {"0": "Likes green tea"}}',
        "key_memories": json.dumps({"memories": [_item(TEA), _item(CAT)]}),
        "key_facts": json.dumps({"facts": [TEA, CAT]}),
        "key_capital": json.dumps({"Memory": [_item(TEA), _item(CAT)]}),
        "same_key_twice": f'{{"memory": [{json.dumps(_item(TEA))}], "memory": []}}',
        "speaker_unknown": _memory(_item(TEA, attributed_to="system"), _item(CAT)),
        "event_update": _memory(_item(TEA, event="UPDATE"), _item(CAT)),
        "five_hundred": _memory(*(_item(f"Fact {number}") for number in range(500))),
        "at_the_bound": _memory(*(_item(f"Fact {number}") for number in range(200))),
    },
    harmless={
        "strings": _memory(TEA, CAT),
        "one_string": _memory(TEA, _item(CAT)),
        "id_number": _memory(_item(TEA, id=0), _item(CAT, id=1)),
        "id_missing": _memory({"text": TEA}, {"text": CAT}),
        "id_twice": _memory(_item(TEA), _item(CAT)),
        "id_of_an_old_memory": _memory(_item(TEA, id="c0ffee00-0000-4000-8000-000000000000"), _item(CAT)),
        "links_unknown": _memory(_item(TEA, linked_memory_ids=["99", "x", 7]), _item(CAT)),
        "links_empty": _memory(_item(TEA, linked_memory_ids=[]), _item(CAT)),
        "event_add": _memory(_item(TEA, event="ADD"), _item(CAT, event="ADD")),
        "speaker_missing": _memory({"id": "0", "text": TEA}, _item(CAT)),
        "the_same_memory_twice": _memory(_item(TEA), _item(CAT), _item(TEA)),
    },
)

FACTS = Row(
    good={"facts": [TEA, CAT]},
    after=(add_all,),
    expected=[("ADD", CAT), ("ADD", TEA)],
    malformed={
        "facts_string": '{"facts": "Likes green tea"}',
        "facts_object": '{"facts": {"name": "Bob"}}',
        "fact_number": json.dumps({"facts": [TEA, 7]}),
        "fact_null": json.dumps({"facts": [TEA, None]}),
        "fact_list": json.dumps({"facts": [TEA, [CAT]]}),
        "fact_empty": json.dumps({"facts": [TEA, ""]}),
        "fact_blank": json.dumps({"facts": [TEA, "  "]}),
        "fact_under_content": json.dumps({"facts": [{"content": TEA}, {"content": CAT}]}),
        "fact_object_of_two": json.dumps({"facts": [TEA, {"fact": CAT, "topic": "pets"}]}),
        "fact_in_a_fact": json.dumps({"facts": [TEA, {"fact": {"text": CAT}}]}),
        "fact_as_key": json.dumps({"facts": [TEA, {CAT: True}]}),
        "key_memory": json.dumps({"memory": [TEA, CAT]}),
        "reasoning_leak": '{\nth\n"facts": ["Allergic to peanuts"]}',
        "cut_but_stop": '{"facts": ["Prefers direct trains", "Lives in Utre',
        "five_hundred": json.dumps({"facts": [f"Fact {number}" for number in range(500)]}),
    },
    harmless={
        "fact_objects": json.dumps({"facts": [{"fact": TEA}, {"text": CAT}]}),
        "one_fact_object": json.dumps({"facts": [TEA, {"fact": CAT}]}),
    },
)

_ADD = {"id": "1", "text": TEA, "event": "ADD"}
_UPDATE = {"id": "0", "text": BERGEN, "event": "UPDATE", "old_memory": OSLO}


UPDATE = Row(
    good={"memory": [_ADD, _UPDATE]},
    memories=(OSLO,),
    before=(facts_reply(TEA, BERGEN),),
    expected=[("ADD", TEA), ("UPDATE", BERGEN)],
    salvaged=[("ADD", TEA), ("ADD", BERGEN)],
    malformed={
        "no_event": _memory(_ADD, {"id": "0", "text": BERGEN}),
        "event_lower_case": _memory(_ADD, {**_UPDATE, "event": "update"}),
        "event_added": _memory({**_ADD, "event": "ADDED"}, _UPDATE),
        "event_create": _memory({**_ADD, "event": "CREATE"}, _UPDATE),
        "event_noop": _memory({**_ADD, "event": "NOOP"}, _UPDATE),
        "event_list": _memory({**_ADD, "event": ["ADD"]}, _UPDATE),
        "event_null": _memory({**_ADD, "event": None}, _UPDATE),
        "text_missing": _memory({"id": "1", "event": "ADD"}, _UPDATE),
        "text_empty": _memory({**_ADD, "text": ""}, _UPDATE),
        "text_blank": _memory({**_ADD, "text": " "}, _UPDATE),
        "text_number": _memory({**_ADD, "text": 5}, _UPDATE),
        "text_list": _memory({**_ADD, "text": [TEA]}, _UPDATE),
        "text_under_memory": _memory({"id": "1", "memory": TEA, "event": "ADD"}, _UPDATE),
        "delete_without_text": _memory(_ADD, {"id": "0", "event": "DELETE"}),
        "delete_with_empty_text": _memory(_ADD, {"id": "0", "text": "", "event": "DELETE"}),
        "id_unknown": _memory(_ADD, {**_UPDATE, "id": "12"}),
        "id_negative": _memory(_ADD, {**_UPDATE, "id": "-1"}),
        "id_number_unknown": _memory(_ADD, {**_UPDATE, "id": 12}),
        "id_padded": _memory(_ADD, {**_UPDATE, "id": "00"}),
        "id_uuid": _memory(_ADD, {**_UPDATE, "id": "c0ffee00-0000-4000-8000-000000000000"}),
        "id_missing": _memory(_ADD, {"text": BERGEN, "event": "UPDATE", "old_memory": OSLO}),
        "id_null": _memory(_ADD, {**_UPDATE, "id": None}),
        "id_true": _memory(_ADD, {**_UPDATE, "id": True}),
        "two_operations_on_one_id": _memory(_ADD, _UPDATE, {"id": "0", "text": OSLO, "event": "DELETE"}),
        "strings": _memory(TEA, BERGEN),
        "fenced_bare_list": "```json\n[]\n```",
        "item_null": _memory(_ADD, _UPDATE, None),
        "memory_object": json.dumps({"memory": {"0": _ADD}}),
        "key_facts": json.dumps({"facts": [TEA]}),
    },
    harmless={
        "id_number": _memory(_ADD, {**_UPDATE, "id": 0}),
        "id_integral_float_of_an_add": _memory({**_ADD, "id": 1.0}, _UPDATE),
        "add_without_id": _memory({"text": TEA, "event": "ADD"}, _UPDATE),
        "add_with_null_id": _memory({**_ADD, "id": None}, _UPDATE),
        "add_with_old_memory": _memory({**_ADD, "old_memory": ""}, {**_UPDATE}),
        "old_memory_missing": _memory(_ADD, {"id": "0", "text": BERGEN, "event": "UPDATE"}),
        "old_memory_null": _memory(_ADD, {**_UPDATE, "old_memory": None}),
    },
)

TABLE = {"mem0.additive": ADDITIVE, "mem0.facts": FACTS, "mem0.update": UPDATE}


def _replies(kind: str) -> list[Any]:
    """``(call, reply)`` for every call of the installed version and every reply of a kind."""
    found: dict[str, Any] = {}
    for call in CALLS:
        row = TABLE[call]
        for reply in getattr(cases, kind)(row.good):
            if kind == "malformed" or reply.value == row.good:  # what damages the text is in test_values.py
                found[f"{call}-{reply.name}"] = (call, reply.say())
        for name, text in getattr(row, kind).items():
            found[f"{call}-mem0_{name}"] = (call, Say(text))
    return [pytest.param(*values, id=name) for name, values in found.items()]


@pytest.mark.parametrize(("call", "reply"), _replies("malformed"))
def test_a_malformed_reply_is_asked_for_again(
    call: str, reply: Say, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    row = TABLE[call]
    seed(memory, *row.memories)
    endpoint.play(*row.before, reply, json.dumps(row.good), *row.after, "one reply too many")

    result = memory.add("I like green tea, and so on", user_id=USER)

    assert done(result) == row.expected
    assert stored(memory) == row.after_it
    assert len(endpoint.chats) == len(row.before) + 2 + len(row.after)
    (event,) = [event for event in heard if event.call == call]
    assert (event.outcome, len(event.attempts)) == ("retried", 2)
    assert event.attempts[0].problems


@pytest.mark.parametrize(("call", "reply"), _replies("malformed"))
def test_replies_that_stay_malformed_are_a_lost_write(
    call: str, reply: Say, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    row = TABLE[call]
    before = seed(memory, *row.memories)
    endpoint.play(*row.before, reply)

    if row.salvaged is None:
        with pytest.raises(Exception, match=f"{call}: ") as caught:
            memory.add("I like green tea, and so on", user_id=USER)
        assert _is_lost(caught.value, call)
        assert stored(memory) == []
    else:
        result = memory.add("I like green tea, and so on", user_id=USER)
        assert done(result) == row.salvaged
        assert stored(memory) == sorted([*row.memories, *(text for _, text in row.salvaged)])
        assert [events_of(memory, identity) for identity in before.values()] == [["ADD"]] * len(before)

    assert len(endpoint.chats) == len(row.before) + 3
    (event,) = [event for event in heard if event.call == call]
    assert (event.outcome, len(event.attempts)) == ("lost" if row.salvaged is None else "salvaged", 3)
    assert all(attempt.problems for attempt in event.attempts)


def _is_lost(error: BaseException, call: str) -> bool:
    """Mem0 2.x wraps the error in its own LLMError and keeps it as the cause."""
    ours = error.__cause__ if MAJOR >= 2 else error
    return isinstance(ours, MalformedWriteError) and ours.call == call and len(ours.attempts) == 3


@pytest.mark.parametrize(("call", "reply"), _replies("harmless"))
def test_a_harmless_oddity_is_stored_with_one_request(
    call: str, reply: Say, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    row = TABLE[call]
    seed(memory, *row.memories)
    endpoint.play(*row.before, reply, *row.after, "one reply too many")

    result = memory.add("I like green tea, and so on", user_id=USER)

    assert done(result) == row.expected
    assert stored(memory) == row.after_it
    assert len(endpoint.chats) == len(row.before) + 1 + len(row.after)
    assert [event.outcome for event in heard] == ["ok"] * len(heard)


def test_the_table_has_every_call_of_the_installed_mem0(memory: Any) -> None:
    """Procedural memory and the graph have files of their own: ``test_text_calls.py`` and ``test_graph.py``."""
    others = ("mem0.procedural", *(() if MAJOR >= 2 else GRAPH_CALLS))
    assert tuple(row.name for row in memory.llm.writer.calls) == (*CALLS, *others)
    assert {*CALLS} <= {*TABLE}


@pytest.mark.parametrize("call", CALLS)
def test_every_request_carries_the_schema_of_its_call(call: str, memory: Any, endpoint: ScriptedEndpoint) -> None:
    row = TABLE[call]
    seed(memory, *row.memories)
    endpoint.play(*row.before, "nonsense", json.dumps(row.good), *row.after)
    memory.add("I like green tea, and so on", user_id=USER)

    requests = [chat.body for chat in endpoint.chats][len(row.before) :][:2]
    formats = [body["response_format"] for body in requests]
    assert [f["type"] for f in formats] == ["json_schema"] * 2
    assert formats[0] == formats[1]
    assert formats[0]["json_schema"]["strict"] is True
    assert formats[0]["json_schema"]["name"] == call.replace(".", "_")
    assert [body["chat_template_kwargs"] for body in requests] == [{"reasoning_effort": "no_think"}] * 2
