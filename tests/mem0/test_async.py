"""``AsyncMemory``: Mem0 calls the same LLM from worker threads, and its code is another one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from hymemory_adapters import MalformedWriteError, WriteEvent, write_context
from tests.mem0.host import CALLS, MAJOR, USER, astored, async_memory, done, hymemory
from tests.mem0.test_write_table import TABLE, Row
from tests.support.scripted import Say, ScriptedEndpoint

# A few of each sort: how replies are judged does not depend on who asks, what Mem0 makes of the outcome does.
MALFORMED: dict[str, Callable[[Row], Say]] = {
    "empty": lambda row: Say(""),
    "null": lambda row: Say(None),
    "prose": lambda row: Say("The user likes tea."),
    "cut": lambda row: Say(json.dumps(row.good)[:-9]),
    "cut_by_length": lambda row: Say(json.dumps(row.good)[:20], "length"),
    "unclosed_think": lambda row: Say(f"<think>{{}} {json.dumps(row.good)}"),
    "two_values": lambda row: Say(f'{json.dumps(row.good)} {{"memory": []}}'),
    "bare_list": lambda row: Say("[]"),
    "strings_in_lists": lambda row: Say('{"memory": [["x"]], "facts": [["x"]]}'),
}
HARMLESS: dict[str, Callable[[Row], Say]] = {
    "plain": lambda row: Say(json.dumps(row.good)),
    "fence": lambda row: Say(f"```json\n{json.dumps(row.good)}\n```"),
    "think": lambda row: Say(f"<think>{{x}}</think>{json.dumps(row.good)}"),
    "prose": lambda row: Say(f"Here it is: {json.dumps(row.good)} Bye."),
    "trailing_comma": lambda row: Say(json.dumps(row.good)[:-1] + ",}"),
}

Scenario = Callable[[Any], Awaitable[None]]


def run(url: str, scenario: Scenario, *texts: str, **block: Any) -> None:
    """Run a scenario with an ``AsyncMemory`` that holds these memories already."""

    async def whole() -> None:
        memory = await async_memory(hymemory(url, **block))
        for text in texts:
            await memory.add(text, user_id=USER, infer=False)
        await scenario(memory)
        memory.db.close()
        memory.vector_store.client.delete_collection(memory.collection_name)

    asyncio.run(whole())


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("call", CALLS)
def test_a_malformed_reply_is_asked_for_again(
    call: str, reply: Callable[[Row], Say], endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    row = TABLE[call]

    async def scenario(memory: Any) -> None:
        endpoint.play(*row.before, reply(row), json.dumps(row.good), *row.after, "one reply too many")
        assert done(await memory.add("I like green tea", user_id=USER)) == row.expected
        assert await astored(memory) == row.after_it

    run(endpoint.url, scenario, *row.memories)
    assert len(endpoint.chats) == len(row.before) + 2 + len(row.after)
    assert [event.outcome for event in heard if event.call == call] == ["retried"]


@pytest.mark.parametrize("reply", MALFORMED.values(), ids=MALFORMED)
@pytest.mark.parametrize("call", CALLS)
def test_replies_that_stay_malformed_are_a_lost_write(
    call: str, reply: Callable[[Row], Say], endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    row = TABLE[call]

    async def scenario(memory: Any) -> None:
        endpoint.play(*row.before, reply(row))
        if row.salvaged is not None:
            assert done(await memory.add("I like green tea", user_id=USER)) == row.salvaged
            assert await astored(memory) == sorted([*row.memories, *(text for _, text in row.salvaged)])
            return
        with pytest.raises(Exception, match=call) as caught:
            await memory.add("I like green tea", user_id=USER)
        assert isinstance(caught.value.__cause__ if MAJOR >= 2 else caught.value, MalformedWriteError)
        assert await astored(memory) == []

    run(endpoint.url, scenario, *row.memories)
    assert len(endpoint.chats) == len(row.before) + 3
    outcome = "lost" if row.salvaged is None else "salvaged"
    assert [event.outcome for event in heard if event.call == call] == [outcome]


@pytest.mark.parametrize("reply", HARMLESS.values(), ids=HARMLESS)
@pytest.mark.parametrize("call", CALLS)
def test_a_harmless_oddity_is_stored_with_one_request(
    call: str, reply: Callable[[Row], Say], endpoint: ScriptedEndpoint
) -> None:
    row = TABLE[call]

    async def scenario(memory: Any) -> None:
        endpoint.play(*row.before, reply(row), *row.after, "one reply too many")
        assert done(await memory.add("I like green tea", user_id=USER)) == row.expected
        assert await astored(memory) == row.after_it

    run(endpoint.url, scenario, *row.memories)
    assert len(endpoint.chats) == len(row.before) + 1 + len(row.after)


def test_the_event_loop_goes_on_while_the_model_writes(endpoint: ScriptedEndpoint) -> None:
    """The server answers only after the loop has turned meanwhile: it would wait in vain for a blocked one."""
    row = TABLE[CALLS[0]]
    turned: list[int] = []

    def answer(_: dict[str, Any]) -> Say:
        before = len(turned)
        for _ in range(200):
            if len(turned) > before + 3:
                return Say(json.dumps(row.good))
            time.sleep(0.01)
        return Say("the loop stood still")

    async def turn() -> None:
        while True:
            turned.append(1)
            await asyncio.sleep(0.005)

    async def scenario(memory: Any) -> None:
        endpoint.play(answer, *row.after, "one reply too many")
        turning = asyncio.create_task(turn())
        assert done(await memory.add("I like green tea", user_id=USER)) == row.expected
        turning.cancel()

    run(endpoint.url, scenario)
    assert len(endpoint.chats) == 1 + len(row.after)


def test_the_context_of_the_caller_is_in_the_events(endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    row = TABLE[CALLS[0]]

    async def scenario(memory: Any) -> None:
        endpoint.play(json.dumps(row.good), *row.after)
        with write_context(user="u1", request="r1"):
            await memory.add("I like green tea", user_id=USER)

    run(endpoint.url, scenario)
    assert [dict(event.context) for event in heard] == [{"user": "u1", "request": "r1"}] * len(CALLS)
