"""The update call of 0.1 and 1.x: whose id, which facts, and what a user would lose."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hymemory_adapters import WriteEvent
from tests.mem0.host import (
    USER,
    add_all,
    asked,
    done,
    events_of,
    facts_reply,
    only_two_calls,
    rows,
    seed,
    stored,
    update_reply,
)
from tests.support.scripted import ScriptedEndpoint

pytestmark = only_two_calls

TEA, OSLO, BERGEN = "Likes green tea", "Lives in Oslo", "Lives in Bergen now"
CAT, DOG = "Has a cat named Miro", "Has a dog named Rex"

Operation = dict[str, Any]
Reply = Callable[[dict[str, Any]], str]


def add(text: str) -> Operation:
    return {"id": "77", "text": text, "event": "ADD"}


def on(memory: str, event: str, text: str | None = None, **more: Any) -> Operation:
    """An operation on the memory with this text; its id is looked up when the request comes in."""
    quoted = {"old_memory": memory} if event == "UPDATE" else {}
    return {"id": ("of", memory), "text": memory if text is None else text, "event": event, **quoted, **more}


def reply(*operations: Operation) -> Reply:
    """A reply whose operations have the ids that the request shows."""

    def answer(body: dict[str, Any]) -> str:
        ids = asked(body)[1]
        named = [
            {**item, "id": ids[item["id"][1]] if isinstance(item.get("id"), tuple) else item.get("id")}
            for item in operations
        ]
        return update_reply(*named)

    return answer


def problems(event: WriteEvent) -> list[list[str]]:
    return [[problem.rule for problem in attempt.problems] for attempt in event.attempts]


def of_update(heard: list[WriteEvent]) -> WriteEvent:
    (event,) = [event for event in heard if event.call == "mem0.update"]
    return event


# -- what reaches the store ------------------------------------------------------------------------


def test_every_kind_of_operation_is_applied(memory: Any, endpoint: ScriptedEndpoint) -> None:
    before = seed(memory, OSLO, CAT, DOG)
    answer = reply(add(TEA), on(OSLO, "UPDATE", BERGEN), on(CAT, "DELETE"), on(DOG, "NONE"))
    endpoint.play(facts_reply(TEA, BERGEN), answer)

    result = memory.add("I moved", user_id=USER)

    assert done(result) == [("ADD", TEA), ("DELETE", CAT), ("UPDATE", BERGEN)]
    assert stored(memory) == sorted([TEA, BERGEN, DOG])
    after = {row["memory"]: row["id"] for row in rows(memory)}
    assert (after[BERGEN], after[DOG]) == (before[OSLO], before[DOG])
    assert events_of(memory, before[DOG]) == ["ADD"]
    assert sorted(events_of(memory, before[OSLO])) == ["ADD", "UPDATE"]
    assert len(endpoint.chats) == 2


WRONG = {
    # An id that is valid, and another memory's: Mem0 would overwrite or delete that one.
    "update_quotes_another": ([on(OSLO, "UPDATE", "Has a cat named Mia", old_memory=CAT)], "wrong_id"),
    "update_quotes_another_in_capitals": ([on(OSLO, "UPDATE", "Has two cats", old_memory=CAT.upper())], "wrong_id"),
    "update_quotes_another_roughly": ([on(OSLO, "UPDATE", "Has two cats", old_memory="a cat named Miro")], "wrong_id"),
    "delete_quotes_another": ([on(OSLO, "DELETE", CAT)], "wrong_id"),
    "update_twice": ([on(OSLO, "UPDATE", BERGEN), on(OSLO, "UPDATE", "Lives in Rome")], "same_id"),
    "update_and_delete": ([on(OSLO, "UPDATE", BERGEN), on(OSLO, "DELETE")], "same_id"),
    "update_and_none": ([on(OSLO, "UPDATE", BERGEN), on(OSLO, "NONE")], "same_id"),
    "int_unknown": ([{"id": 9, "text": BERGEN, "event": "UPDATE"}], "schema"),
    "text_unknown": ([{"id": "9", "text": BERGEN, "event": "UPDATE"}], "schema"),
    "uuid": ([{"id": "5b1b7b1e-6a58-4a8e-9a58-1df1d7a0a8a5", "text": BERGEN, "event": "UPDATE"}], "schema"),
    "missing": ([{"id": None, "text": BERGEN, "event": "DELETE"}], "schema"),
}


@pytest.mark.parametrize(("operations", "rule"), WRONG.values(), ids=WRONG)
def test_an_operation_on_the_wrong_memory_is_asked_for_again(
    operations: list[Operation], rule: str, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    before = seed(memory, OSLO, CAT)
    endpoint.play(facts_reply(BERGEN), reply(*operations), reply(on(OSLO, "UPDATE", BERGEN)))

    memory.add("I moved", user_id=USER)

    assert stored(memory) == sorted([BERGEN, CAT])
    assert events_of(memory, before[CAT]) == ["ADD"]
    assert [rules[:1] for rules in problems(of_update(heard))] == [[rule], []]
    assert len(endpoint.chats) == 3


@pytest.mark.parametrize(("operations", "rule"), WRONG.values(), ids=WRONG)
def test_operations_on_the_wrong_memory_change_and_delete_nothing(
    operations: list[Operation], rule: str, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    before = seed(memory, OSLO, CAT)
    endpoint.play(facts_reply(BERGEN, TEA), reply(add(TEA), *operations))

    result = memory.add("I moved", user_id=USER)

    assert done(result) == [("ADD", TEA), ("ADD", BERGEN)]
    assert stored(memory) == sorted([OSLO, CAT, BERGEN, TEA])
    assert [events_of(memory, identity) for identity in before.values()] == [["ADD"], ["ADD"]]
    assert of_update(heard).outcome == "salvaged"
    assert len(endpoint.chats) == 4


FINE = {
    "update_quotes_its_own": on(OSLO, "UPDATE", BERGEN),
    "update_quotes_its_own_folded": on(OSLO, "UPDATE", BERGEN, old_memory=" lives  in OSLO "),
    "update_quotes_nothing": on(OSLO, "UPDATE", BERGEN, old_memory=""),
    "update_quotes_null": on(OSLO, "UPDATE", BERGEN, old_memory=None),
    "update_quotes_the_new_text": on(OSLO, "UPDATE", BERGEN, old_memory=BERGEN),
    "update_has_no_quote": {"id": ("of", OSLO), "text": BERGEN, "event": "UPDATE"},
}


@pytest.mark.parametrize("operation", FINE.values(), ids=FINE)
def test_an_update_that_means_its_own_memory_is_taken(
    operation: Operation, memory: Any, endpoint: ScriptedEndpoint
) -> None:
    seed(memory, OSLO, CAT)
    endpoint.play(facts_reply(BERGEN), reply(operation), "one reply too many")
    memory.add("I moved", user_id=USER)
    assert stored(memory) == sorted([BERGEN, CAT])
    assert len(endpoint.chats) == 2


# -- facts that are left out -----------------------------------------------------------------------


def test_an_omitted_fact_is_asked_about(memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    endpoint.play(facts_reply(TEA, CAT), reply(add(TEA)), add_all)
    memory.add("Tea, and my cat", user_id=USER)
    assert stored(memory) == sorted([TEA, CAT])
    assert problems(of_update(heard)) == [["left_out"], []]
    # The question must not name the fact: problems go into logs. It says which one by its number.
    assert "new fact 2 of 2" in endpoint.chats[-1].messages[-1]["content"]


OMITTED = {
    "first_of_two": ((CAT, TEA), [add(TEA)]),
    "second_of_two": ((TEA, CAT), [add(TEA)]),
    "half_of_its_words_are_in_another": (("Loves pizza", "Loves sushi"), [add("Loves pizza")]),
    "most_of_its_words_are_in_another": (
        ("Is allergic to peanuts", "Is allergic to penicillin"),
        [add("Is allergic to peanuts")],
    ),
    "chinese": (("喜欢喝绿茶", "喜欢喝咖啡"), [add("喜欢喝绿茶")]),
    "two_of_three": ((TEA, CAT, DOG), [add(TEA)]),
    # An operation in other words: nobody knows which fact it stands for.
    "one_after_a_stranger": (("Mag grünen Tee", CAT), [add("Likes green tea")]),
    "one_before_a_stranger": ((CAT, "Mag grünen Tee"), [add("Likes green tea")]),
}


@pytest.mark.parametrize(("facts", "operations"), OMITTED.values(), ids=OMITTED)
def test_a_fact_that_stays_omitted_is_added_beside_the_valid_operations(
    facts: tuple[str, ...],
    operations: list[Operation],
    memory: Any,
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
) -> None:
    before = seed(memory, OSLO)
    endpoint.play(facts_reply(*facts, BERGEN), reply(*operations, on(OSLO, "UPDATE", BERGEN)))

    memory.add("Several things", user_id=USER)

    assert {*facts, BERGEN} <= {*stored(memory)}
    assert "UPDATE" in events_of(memory, before[OSLO])
    assert OSLO not in stored(memory)
    assert of_update(heard).outcome == "salvaged"
    assert len(endpoint.chats) == 4


@pytest.mark.parametrize("carrier", [CAT, "Has a cat, Miro, and a dog named Rex", "HAS A  CAT NAMED MIRO"])
def test_a_fact_in_other_words_or_merged_is_not_omitted(carrier: str, memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(facts_reply(CAT, TEA), reply(add(carrier), add(TEA)), "one reply too many")
    memory.add("My cat", user_id=USER)
    assert stored(memory) == sorted([carrier, TEA])
    assert len(endpoint.chats) == 2


@pytest.mark.parametrize(
    "said",
    [reply(), reply(on(OSLO, "NONE")), reply(on(OSLO, "NONE"), on(CAT, "NONE"))],
    ids=["empty", "none", "all_none"],
)
def test_a_duplicate_is_skipped_with_one_request(
    said: Reply, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    seed(memory, OSLO, CAT)
    endpoint.play(facts_reply("lives in  OSLO"), said, "one reply too many")
    assert memory.add("I live in Oslo", user_id=USER) == {"results": []}
    assert stored(memory) == sorted([OSLO, CAT])
    assert of_update(heard).outcome == "ok"
    assert len(endpoint.chats) == 2


@pytest.mark.parametrize("said", [reply(), reply(on(OSLO, "NONE"))], ids=["empty", "none"])
def test_deciding_nothing_about_a_new_fact_is_asked_once_and_then_taken(
    said: Reply, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    seed(memory, OSLO)
    endpoint.play(facts_reply(TEA), said)
    assert memory.add("I like tea", user_id=USER) == {"results": []}
    assert stored(memory) == [OSLO]
    assert of_update(heard).outcome == "declined"
    assert len(endpoint.chats) == 3


def test_a_second_thought_about_a_new_fact_is_taken(
    memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    seed(memory, OSLO)
    endpoint.play(facts_reply(TEA), reply(on(OSLO, "NONE")), add_all)
    memory.add("I like tea", user_id=USER)
    assert stored(memory) == sorted([OSLO, TEA])
    assert of_update(heard).outcome == "retried"


def test_deciding_nothing_and_then_nothing_usable_adds_the_fact(
    memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    seed(memory, OSLO)
    endpoint.play(facts_reply(TEA), reply(), "nonsense")
    memory.add("I like tea", user_id=USER)
    assert stored(memory) == sorted([OSLO, TEA])
    assert of_update(heard).outcome == "salvaged"


@pytest.mark.parametrize("facts", [(TEA, TEA), (TEA, "likes  GREEN tea")], ids=["same", "folded"])
def test_a_fact_that_was_found_twice_is_salvaged_once(
    facts: tuple[str, ...], memory: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(facts_reply(*facts), "nonsense")
    memory.add("I like tea, tea", user_id=USER)
    assert stored(memory) == [TEA]
