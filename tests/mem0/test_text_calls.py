"""What Mem0 asks in free text: procedural memory, stored as it is, and image descriptions, which are no writing."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from hymemory_adapters import ConfigurationError, MalformedWriteError, WriteEvent, on_write
from tests.mem0.host import MAJOR, USER, async_memory, hymemory, seed, stored, writes
from tests.support.cases import LOOP
from tests.support.scripted import Fail, Say, ScriptedEndpoint

BuildMemory = Callable[..., Any]
AGENT = "agent-7"
TALK = [
    {"role": "user", "content": "Find the cheapest train to Utrecht"},
    {"role": "assistant", "content": "Opened the timetable; the 7:05 costs 12 euros"},
]
SUMMARY = "## Summary\n1. **Action**: opened the `timetable`\n   **Result**: {7:05, 12 euros}\n\n2. Told the user."
TWO_BLOCKS = "```sh\nls\n```\nthen\n```sh\npwd\n```"
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}


def add(memory: Any, **more: Any) -> Any:
    return memory.add(TALK, agent_id=AGENT, memory_type="procedural_memory", **more)


def held(memory: Any) -> list[str]:
    """What the store holds for the agent."""
    scope = {"filters": {"agent_id": AGENT}} if MAJOR >= 2 else {"agent_id": AGENT}
    return [row["memory"] for row in memory.get_all(**scope)["results"]]


# -- procedural memory -----------------------------------------------------------------------------

GOOD = {
    "markdown": (SUMMARY, SUMMARY),
    "thinking": (f"<think>Let me see {{x}}.</think>\n{SUMMARY}", SUMMARY),
    "thinking_unopened": (f"Let me see.\n</think>\n{SUMMARY}", SUMMARY),
    "fence": (f"```markdown\n{SUMMARY}\n```", SUMMARY),
    "a_fence_inside": (f"{SUMMARY}\n```sh\nls\n```", f"{SUMMARY}\n```sh\nls\n```"),
    "fences_first_and_last": (TWO_BLOCKS, TWO_BLOCKS),
    "fences_first_and_last_thinking": (f"<think>Let me see.</think>\n{TWO_BLOCKS}\n", TWO_BLOCKS),
    "a_fence_that_mem0_knows_not": ("```c++\nmain()\n```\n```sh\nls\n```", "```c++\nmain()\n```\n```sh\nls\n```"),
    "white_space": (f"\n\n {SUMMARY} \n", SUMMARY),
    "one_word": ("Done.", "Done."),
}


@pytest.mark.parametrize(("reply", "kept"), GOOD.values(), ids=GOOD)
def test_a_procedural_memory_is_stored_as_it_is(reply: str, kept: str, memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(reply)
    assert add(memory)["results"][0]["memory"] == kept
    assert held(memory) == [kept]
    (chat,) = endpoint.chats
    assert "response_format" not in chat.body
    assert chat.messages[1:-1] == TALK
    assert chat.body["max_tokens"] >= 4096


def test_an_own_prompt_is_sent_unchanged(memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(SUMMARY)
    add(memory, prompt="Sum it up, as JSON.")
    assert endpoint.chats[0].messages[0] == {"role": "system", "content": "Sum it up, as JSON."}
    assert held(memory) == [SUMMARY]


BAD: dict[str, Say] = {
    "null": Say(None),
    "empty": Say(""),
    "blank": Say(" \n"),
    "thinking_only": Say("<think>hm</think>"),
    "thinking_unclosed": Say("<think>I should sum up the steps."),
    "reasoning_only": Say(None, reasoning="I should sum up."),
    "cut": Say(SUMMARY[:40], "length"),
    "whole_but_cut": Say(SUMMARY, "length"),
    "looping": Say(f"Steps:{LOOP}", "length"),
    "content_filter": Say(SUMMARY, "content_filter"),
    "nul": Say("Step\x00 1"),
    "think_inside": Say(f"{SUMMARY} <think>what next</think> done"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_what_is_no_summary_is_asked_again(bad: Say, memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(bad, SUMMARY)
    add(memory)
    assert held(memory) == [SUMMARY]
    assert len(endpoint.chats) == 2
    assert endpoint.chats[1].messages[: len(TALK) + 2] == endpoint.chats[0].messages


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_lost_procedural_memory_raises(bad: Say, memory: Any, endpoint: ScriptedEndpoint) -> None:
    events: list[WriteEvent] = []
    unsubscribe = on_write(events.append)
    endpoint.play(bad)
    with pytest.raises(MalformedWriteError, match=r"mem0\.procedural: none of 3 replies") as caught:
        add(memory)
    assert "disable_any_whitespace" not in str(caught.value)  # that flag is about JSON
    unsubscribe()
    assert held(memory) == []
    assert [(event.call, event.outcome) for event in events] == [("mem0.procedural", "lost")]


@pytest.mark.parametrize("text", [SUMMARY, TWO_BLOCKS], ids=["markdown", "fences"])
def test_async_memory_writes_procedures_too(text: str, endpoint: ScriptedEndpoint) -> None:
    async def run() -> Any:
        memory = await async_memory(hymemory(endpoint.url))
        return await memory.add(TALK, agent_id=AGENT, memory_type="procedural_memory")

    endpoint.play("", text)
    assert asyncio.run(run())["results"][0]["memory"] == text


# -- images ------------------------------------------------------------------------------------------

IMAGES = {
    "list": [{"role": "user", "content": [{"type": "text", "text": "My cat"}, IMAGE]}],
    "part": [{"role": "user", "content": IMAGE}],
}


@pytest.mark.parametrize("messages", IMAGES.values(), ids=IMAGES)
def test_an_image_is_an_error_that_names_the_way_out(
    messages: Any, make_memory: BuildMemory, endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    memory = make_memory(enable_vision=True)
    caplog.set_level(logging.ERROR, "hymemory_adapters")
    with pytest.raises(Exception, match=r"image|downloading") as caught:
        memory.add(messages, user_id=USER)
    ours = caught.value if isinstance(caught.value, ConfigurationError) else caught.value.__context__
    assert isinstance(ours, ConfigurationError)
    # Mem0 says "Error while downloading" in place of it where the image is a part by itself.
    for told in (str(ours), caplog.text):
        assert "Hy-Memory reads text only" in told
        assert "vision model" in told
        assert "HYMEMORY_ENABLE=mem0" in told
    assert endpoint.chats == []
    assert stored(memory) == []


PARTS = {"an image": IMAGE, "a sound": {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}}}


@pytest.mark.parametrize("vision", [False, True])
@pytest.mark.parametrize(("name", "part"), PARTS.items(), ids=[name.split()[1] for name in PARTS])
def test_in_a_procedural_memory_there_is_another_way_out(
    vision: bool, name: str, part: Any, make_memory: BuildMemory, endpoint: ScriptedEndpoint
) -> None:
    """No setting helps: Mem0 has nothing described there."""
    memory = make_memory(enable_vision=vision)
    talk = [{"role": "user", "content": [{"type": "text", "text": "Look"}, part]}, *TALK]
    with pytest.raises(ConfigurationError, match=f"there is {name} in the messages, and Hy-Memory reads") as caught:
        memory.add(talk, agent_id=AGENT, memory_type="procedural_memory")
    assert ("have a vision model describe it" in str(caught.value)) == (part is IMAGE)
    assert not re.search("enable_vision|HYMEMORY_ENABLE", str(caught.value))
    assert endpoint.chats == []


def test_a_sound_is_called_a_sound(make_memory: BuildMemory) -> None:
    memory = make_memory(enable_vision=True)
    with pytest.raises(ConfigurationError, match=r"there is a sound in the messages.* a model that takes it"):
        memory.add([{"role": "user", "content": [PARTS["a sound"]]}], user_id=USER)


def test_text_parts_need_no_description(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    """With enable_vision, Mem0 has every list of parts described; the words themselves are what it should keep."""
    memory = make_memory(enable_vision=True)
    endpoint.play(*writes("Likes tea"))
    parts = [{"type": "text", "text": "I like tea"}, {"type": "text", "text": "and rain"}]
    memory.add([{"role": "user", "content": parts}], user_id=USER)
    assert stored(memory) == ["Likes tea"]
    assert "I like tea\nand rain" in endpoint.chats[0].messages[-1]["content"]
    assert len(endpoint.chats) == len(writes("Likes tea"))


# -- no LLM ------------------------------------------------------------------------------------------


def test_infer_false_asks_nobody(memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Fail(500))
    seed(memory, "Likes tea")
    assert stored(memory) == ["Likes tea"]
    assert endpoint.requests == []


RERANKERS: dict[str, tuple[dict[str, Any], str]] = {
    "model": ({"model": "my-model"}, "my-model"),
    "no_model": ({}, "hy-memory"),
    "temperature": ({"temperature": 0.2}, "hy-memory"),
    "nested": ({"llm": {"provider": "hymemory", "config": {"attempts": 1}}}, "hy-memory"),
    "nested_model": ({"llm": {"provider": "hymemory", "config": {"model": "my-model"}}}, "my-model"),
}


@pytest.mark.skipif(MAJOR < 1, reason="Mem0 0.1 has no reranker")
@pytest.mark.parametrize(("config", "model"), RERANKERS.values(), ids=RERANKERS)
def test_the_rerankers_scores_pass_through(
    config: dict[str, Any],
    model: str,
    make_memory: BuildMemory,
    endpoint: ScriptedEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mem0 writes a model of OpenAI's where the reranker's config names none."""
    from mem0.configs.rerankers.llm import LLMRerankerConfig

    if not set(config) <= set(LLMRerankerConfig.model_fields):
        pytest.skip("this Mem0's reranker takes no LLM of its own")
    monkeypatch.setenv("HYMEMORY_BASE_URL", endpoint.url)
    reranker = {"provider": "llm_reranker", "config": {"provider": "hymemory", **config}}
    memory = make_memory(more={"reranker": reranker})
    seed(memory, "Likes tea", "Has a cat")
    thinking = "<think>Step 0.2 of 1</think>\n"
    endpoint.play(lambda body: f"{thinking}0.9" if "Has a cat" in str(body["messages"]) else f"{thinking}0.1")
    scope = {"filters": {"user_id": USER}} if MAJOR >= 2 else {"user_id": USER}
    found = memory.search("a cat that likes tea has", rerank=True, **scope)["results"]
    assert [(row["memory"], row["rerank_score"]) for row in found] == [("Has a cat", 0.9), ("Likes tea", 0.1)]
    assert all("response_format" not in chat.body for chat in endpoint.chats)
    assert {(chat.body["model"], chat.body["max_tokens"]) for chat in endpoint.chats} == {(model, 100)}


PASSED = {
    "plain": ("Hi there. ", "Hi there. "),
    "thinking": ("<think>hm</think>\n\nHi there.", "Hi there."),
    "thinking_of_both_kinds": ("<think>hm</think>Say </think> to end it.",) * 2,
    "a_closer_alone": ("Say </think> to end it.",) * 2,
    "thinking_inside": ("Hi <think>hm</think> there.",) * 2,
    "thinking_unclosed": ("<think>hm",) * 2,
    "null": (None, None),
}


@pytest.mark.parametrize(("reply", "passed"), PASSED.values(), ids=PASSED)
def test_what_is_no_write_passes_without_the_thinking_before_it(
    reply: str | None, passed: str | None, memory: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(Say(reply))
    assert memory.llm.generate_response(messages=[{"role": "user", "content": "Hi"}]) == passed
