"""A host end to end: what the model wrote is in the store, once, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hymemory_adapters import WriteEvent
from tests.live.rows import TALK, Store, each_store
from tests.live.server import LIVE, answers, needs_server

pytestmark = [needs_server, answers]

AT_ONCE = 8
_TALKS = (TALK, "My sister Nina plays the cello.", "I stopped eating meat in March.")


@each_store
def test_what_was_written_is_stored_and_found(
    store: Callable[[Mapping[str, Any]], Store], heard: list[WriteEvent]
) -> None:
    memory = store(LIVE.settings)
    written = [text for talk in _TALKS for text in memory.write(talk)]

    assert heard
    assert {event.outcome for event in heard} <= {"ok", "retried", "declined", "salvaged"}
    assert written, "three writes stored nothing"
    stored = memory.stored()
    assert set(stored) <= set(written), "something is stored that no write reported"
    assert stored
    assert stored[0] in memory.found(stored[0])


@each_store
def test_writes_at_once_do_not_disturb_each_other(
    store: Callable[[Mapping[str, Any]], Store], heard: list[WriteEvent]
) -> None:
    memories = [store(LIVE.settings) for _ in range(AT_ONCE)]  # an embedded store is not thread-safe: one each
    talks = [f"{TALK} My locker has the number {number}." for number in range(AT_ONCE)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        written = list(pool.map(lambda memory, talk: memory.write(talk), memories, talks))

    assert len(heard) >= AT_ONCE
    assert {event.outcome for event in heard} <= {"ok", "retried", "declined", "salvaged"}
    for memory, texts in zip(memories, written, strict=True):
        assert set(memory.stored()) == set(texts)
