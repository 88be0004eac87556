"""``ChatSummaryMemoryBuffer``: a summary takes the place of what it sums up, so there is none of an empty reply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hymemory_adapters import WriteEvent
from tests.llamaindex.host import SUMMARY, summary_buffer, turns
from tests.support.scripted import Drop, Fail, Say, ScriptedEndpoint

SAID = ("I like green tea", "Fine.", "I live in Oslo", "Nice.", "What now?")
UNUSABLE = {
    "empty": Say(""),
    "white_space": Say(" \n"),
    "null": Say(None),
    "cut": Say("The user likes", "length"),
    "filtered": Say(None, "content_filter"),
    "only_reasoning": Say(None, reasoning="They like tea."),
    "unclosed_think": Say("<think>They like tea."),
    "only_thinking": Say("<think>They like tea.</think>"),
}


@pytest.mark.parametrize("reply", UNUSABLE.values(), ids=UNUSABLE.keys())
def test_an_unusable_summary_is_asked_for_again(
    reply: Say, llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    buffer = summary_buffer(llm, turns(*SAID))
    endpoint.play(reply, "A summary.", "one too many")
    history = buffer.get()
    assert (history[0].role.value, history[0].content) == ("system", "A summary.")
    assert history[-1].content.startswith("What now?")
    assert [(event.call, event.outcome) for event in heard] == [(SUMMARY, "retried")]


LOST = {**UNUSABLE, "http_500": Fail(500), "http_400": Fail(400), "http_401": Fail(401), "no_answer": Drop()}


@pytest.mark.parametrize("loss", LOST.values(), ids=LOST.keys())
def test_without_a_summary_the_history_stays(
    loss: Any, llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    buffer = summary_buffer(llm, turns(*SAID))
    endpoint.play(loss)
    history = buffer.get()
    assert [(event.call, event.outcome) for event in heard] == [(SUMMARY, "salvaged")]

    told = "\n".join(str(message.content) for message in history)
    assert all(said in told for said in SAID)
    assert history[0].content.startswith("Transcript so far:\n\nuser: I like green tea")
    assert buffer.get_all() == history  # what the store holds
    assert history[-1].content.startswith("What now?")


def test_a_later_summary_takes_it_all_in(llm: Any, endpoint: ScriptedEndpoint) -> None:
    buffer = summary_buffer(llm, turns(*SAID))
    endpoint.play(Fail(500))
    buffer.get()
    for message in turns("And now", "So."):
        buffer.put(message)
    endpoint.play("A summary.")
    assert buffer.get()[0].content == "A summary."
    assert all(said in endpoint.chats[0].messages[1]["content"] for said in SAID)


@pytest.mark.parametrize("more", [{}, {"summarize_prompt": "Note down what matters."}], ids=["default", "custom"])
def test_the_request_is_llamaindex_s_own(more: dict[str, Any], llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("A summary.")
    summary_buffer(llm, turns(*SAID), **more).get()
    system, user = endpoint.chats[0].messages
    assert (system["role"], user["role"]) == ("system", "user")
    assert system["content"] == more.get("summarize_prompt", system["content"])
    assert user["content"].startswith('"Transcript so far: user: I like green tea')
    assert "response_format" not in endpoint.chats[0].body


def test_a_cut_summary_gets_more_room(make_llm: Callable[..., Any], endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Say("The user", "length"), "A summary.")
    summary_buffer(make_llm(max_tokens=100), turns(*SAID)).get()
    assert [chat.body["max_tokens"] for chat in endpoint.chats] == [100, 400]
