"""Many writes at once through one LLM, and the LLM copied, pickled and used in a forked child."""

from __future__ import annotations

import asyncio
import copy
import json
import multiprocessing
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hymemory_adapters import WriteEvent
from tests.mem0.host import (
    CALLS,
    MAJOR,
    USER,
    add_all,
    additive_reply,
    astored,
    async_memory,
    config,
    facts_reply,
    hymemory,
    mem0,
    stored,
    writes,
)
from tests.support.scripted import Fail, Say, ScriptedEndpoint

WRITERS = 16
WORDS = [f"word{number:02}" for number in range(WRITERS)]


def answer(body: dict[str, Any]) -> Say | str | Fail:
    """Answer each writer with its own word, slowly, and some of them wrongly at first."""
    if len(body["messages"]) == 1:
        return add_all(body)
    word = next(word for word in WORDS if f"user: {word}" in body["messages"][1]["content"])
    number = WORDS.index(word)
    if number % 4 == 0 and len(body["messages"]) == 2:
        return Say("nonsense", delay=0.05)
    text = f"Likes {word}"
    return Say(additive_reply(text) if MAJOR >= 2 else facts_reply(text), delay=0.05)


def assert_all_told(heard: list[WriteEvent], endpoint: ScriptedEndpoint) -> None:
    assert len(heard) == WRITERS * len(CALLS)
    first = [event.outcome for event in heard if event.call == CALLS[0]]
    assert (first.count("retried"), first.count("ok")) == (WRITERS // 4, WRITERS - WRITERS // 4)
    assert len(endpoint.chats) == WRITERS * len(CALLS) + WRITERS // 4
    assert endpoint.most_at_once > 1


def memories(endpoint: ScriptedEndpoint, **block: Any) -> list[Any]:
    """Memories with stores of their own, which embedded Qdrant needs, and one LLM."""
    llm = hymemory(endpoint.url, **block)
    made = [mem0.Memory.from_config(config(llm, own_client=True)) for _ in range(WRITERS)]
    for memory in made:
        memory.llm = made[0].llm
    return made


def test_threads_that_share_one_llm_lose_nothing(endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    made = memories(endpoint)
    endpoint.play(answer)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda memory, word: memory.add(word, user_id=USER), made, WORDS))
    assert [stored(memory) for memory in made] == [[f"Likes {word}"] for word in WORDS]
    assert_all_told(heard, endpoint)


def test_threads_keep_to_the_limit(endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    made = memories(endpoint, concurrency=2)
    endpoint.play(answer)
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda memory, word: memory.add(word, user_id=USER), made, WORDS))
    assert [stored(memory) for memory in made] == [[f"Likes {word}"] for word in WORDS]
    assert endpoint.most_at_once == 2
    assert_all_told(heard, endpoint)


def test_coroutines_that_share_one_llm_lose_nothing(endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    async def whole() -> list[list[str]]:
        made = [await async_memory(hymemory(endpoint.url), own_client=True) for _ in range(WRITERS)]
        for memory in made:
            memory.llm = made[0].llm
        await asyncio.gather(*(memory.add(word, user_id=USER) for memory, word in zip(made, WORDS, strict=True)))
        return [await astored(memory) for memory in made]

    endpoint.play(answer)
    assert asyncio.run(whole()) == [[f"Likes {word}"] for word in WORDS]
    assert_all_told(heard, endpoint)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda llm: pickle.loads(pickle.dumps(llm)),
    "pickle_twice": lambda llm: pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(llm)))),
}


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
@pytest.mark.parametrize("make", COPIES.values(), ids=COPIES)
def test_the_llm_may_be_copied(
    make: Callable[[Any], Any], used: bool, make_memory: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    memory = make_memory(api_key="my-key", attempts=2)
    if used:
        endpoint.play(*writes("Likes green tea"))
        memory.add("I like green tea", user_id="bob")
    memory.llm = make(memory.llm)
    endpoint.play("nonsense", *writes("Likes black tea"))
    memory.add("I like black tea", user_id=USER)
    assert stored(memory) == ["Likes black tea"]
    assert endpoint.chats[0].headers["authorization"] == "Bearer my-key"
    assert memory.llm.writer.settings.attempts == 2
    assert "my-key" not in repr(memory.llm.writer.settings)


def _in_child(llm: Any, pipe: Any) -> None:
    try:
        messages = [{"role": "user", "content": "Hi"}]
        pipe.send((llm.generate_response(messages=messages), os.getpid()))
    except BaseException as error:
        pipe.send((repr(error), 0))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_child_has_a_client_of_its_own(memory: Any, endpoint: ScriptedEndpoint) -> None:
    """A web server with workers builds Mem0, writes once, and forks."""
    endpoint.play("Hello.")
    messages = [{"role": "user", "content": "Hi"}]
    assert memory.llm.generate_response(messages=messages) == "Hello."
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=_in_child, args=(memory.llm, theirs))
    child.start()
    assert ours.poll(30)
    told, pid = ours.recv()
    child.join(30)
    assert (told, pid) == ("Hello.", child.pid)
    assert memory.llm.generate_response(messages=messages) == "Hello."
    assert len(endpoint.chats) == 3


def test_two_memories_with_other_settings_do_not_mix(
    make_memory: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    one, two = make_memory(model="one", api_key="k1"), make_memory(model="two", api_key="k2")
    for memory in (one, two, one):
        endpoint.play(*writes(f"Likes {len(stored(memory))} teas"))
        memory.add("I like tea", user_id=USER)
        name = memory.llm.config.model
        sent = {(json.loads(chat.raw)["model"], chat.headers["authorization"]) for chat in endpoint.chats}
        assert sent == {(name, f"Bearer {'k1' if name == 'one' else 'k2'}")}
    assert (len(stored(one)), len(stored(two))) == (2, 1)
