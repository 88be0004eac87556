"""Summaries that take a conversation's place: what is no summary never does, and what is lost is told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langmem", reason="the lanes that test the registry alone have none")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langmem.short_term import RunningSummary, SummarizationNode, asummarize_messages, summarize_messages

from hymemory_adapters import HyMemoryError
from hymemory_adapters.core.events import WriteEvent
from tests.langchain.free_text import SUMMARY, every_bad, every_good, lines, talk, told
from tests.langchain.host import LANGCHAIN, Run, both_ways, in_a_loop, in_a_thread
from tests.support.scripted import Fail, Say, ScriptedEndpoint

RAISES = LANGCHAIN >= (1, 5)
"""Whether the middleware raises where it gets no summary (measured: 1.5.2), and does not make one of the error."""

# -- LangMem's short-term memory -------------------------------------------------------------------


LIMITS: dict[str, Any] = {
    "max_tokens": 4,
    "max_tokens_before_summary": 2,
    "max_summary_tokens": 1,
    "token_counter": len,  # a message is one token
}


def sum_up(model: Any, run: Run, running: RunningSummary | None = None) -> Any:
    """Sum the first two messages up."""
    if run is in_a_loop:
        return asyncio.run(asummarize_messages(talk(), running_summary=running, model=model, **LIMITS))
    return summarize_messages(talk(), running_summary=running, model=model, **LIMITS)


@every_good
def test_langmem_has_the_summary_without_thinking(good: str, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(good)
    assert sum_up(model, in_a_thread).running_summary.summary == SUMMARY


@both_ways
def test_langmem_costs_one_request_of_its_own_words(
    run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(SUMMARY)
    result = sum_up(model, run)
    assert result.running_summary.summarized_message_ids == {"m0", "m1"}
    assert [message.content for message in result.messages][1:] == ["I moved to Oslo.", "Good."]
    (chat,) = endpoint.chats
    assert [m["content"] for m in chat.messages[:-1]] == ["My dog is called Rex.", "Nice."]
    assert chat.messages[-1]["content"].startswith("Create a summary")
    assert not {"response_format", "tools"} & set(chat.body)
    assert chat.body["max_tokens"] == 4096
    assert chat.body["chat_template_kwargs"] == {"reasoning_effort": "no_think"}
    assert told(heard) == [("langmem.summary", "ok")]


@every_bad
@both_ways
def test_langmem_asks_again(
    run: Run, bad: Say, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(bad, SUMMARY)
    assert sum_up(model, run).running_summary.summary == SUMMARY
    assert len(endpoint.chats) == 2
    assert endpoint.chats[1].messages[:3] == endpoint.chats[0].messages
    assert told(heard) == [("langmem.summary", "retried")]


@every_bad
@both_ways
def test_langmem_keeps_its_summary_when_the_next_is_lost(
    run: Run,
    bad: Say,
    make_model: Callable[..., Any],
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
    tmp_path: Path,
) -> None:
    running = RunningSummary("The user is Ann.", {"old"}, "old")
    journal = tmp_path / "lost.jsonl"
    endpoint.play(bad)
    with pytest.raises(HyMemoryError, match=r"langmem\.summary"):
        sum_up(make_model(journal=str(journal)), run, running)
    assert running == RunningSummary("The user is Ann.", {"old"}, "old")
    assert "The user is Ann." in endpoint.chats[0].messages[-1]["content"]
    assert len(endpoint.chats) == 3
    assert told(heard) == [("langmem.summary", "lost")]
    assert lines(journal) == ["langmem.summary"]


@both_ways
@pytest.mark.parametrize("output", ["messages", "summarized_messages"])
def test_a_node_that_gets_no_summary_leaves_the_thread_as_it_was(
    output: str, run: Run, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    class State(MessagesState):
        summarized_messages: list[Any]
        context: dict[str, Any]

    node = SummarizationNode(
        model=model,
        **LIMITS,
        output_messages_key=output,
    )
    builder = StateGraph(State)
    builder.add_node("any_name", node)
    builder.add_edge(START, "any_name")
    graph = builder.compile(checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    endpoint.play("")
    with pytest.raises(HyMemoryError):
        run(graph, {"messages": talk(), "context": {}}, **thread)
    assert [m.content for m in graph.get_state(thread).values["messages"]] == [m.content for m in talk()]
    endpoint.play(SUMMARY)
    kept = run(graph, {"messages": []}, **thread)
    assert kept["context"]["running_summary"].summary == SUMMARY
    assert [m.content for m in kept[output]][1:] == ["I moved to Oslo.", "Good."]
    assert told(heard) == [("langmem.summary", "lost"), ("langmem.summary", "ok")]


@both_ways
def test_what_is_bound_to_a_chat_does_not_cut_a_summary(
    run: Run, make_model: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(SUMMARY)
    sum_up(make_model(stop=["."], n=2, streaming=True), run)
    assert not {"stop", "n", "stream", "stream_options"} & set(endpoint.chats[0].body)


def test_an_own_prompt_of_langmem_is_passed_on(model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    """As the documentation says: nothing tells it from a chat."""
    from langchain_core.prompts import ChatPromptTemplate

    endpoint.play("Short.")
    own = ChatPromptTemplate.from_messages([("placeholder", "{messages}"), ("user", "Now sum up.")])
    summarize_messages(
        talk(),
        running_summary=None,
        model=model,
        **LIMITS,
        initial_summary_prompt=own,
    )
    assert heard == []


# -- the middleware of langchain 1.x ---------------------------------------------------------------

needs_middleware = pytest.mark.skipif(LANGCHAIN < (1, 0), reason="langchain 0.3 has no middleware")
OWN_PROMPT = {"summary_prompt": "Sum this up, briefly: {messages}"}
prompts = pytest.mark.parametrize("more", [{}, OWN_PROMPT], ids=["its_prompt", "own_prompt"])


def an_agent(model: Any, **more: Any) -> Any:
    """An agent that has the first two of three messages summed up; its own answers come from the same server."""
    from langchain.agents import create_agent
    from langchain.agents.middleware import SummarizationMiddleware

    when: dict[str, Any] = {"trigger": ("messages", 3), "keep": ("messages", 1)}
    if LANGCHAIN < (1, 1):
        when = {"max_tokens_before_summary": 3, "messages_to_keep": 1}
    middleware = SummarizationMiddleware(model, **when, **more)
    if retrying := getattr(middleware, "_summary_model", None):
        retrying.wait_exponential_jitter = False  # the host's own pauses between its three attempts: seconds
    return create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())


def answering(*summaries: Say | Fail | str) -> Callable[[dict[str, Any]], Any]:
    """Answer requests for a summary with these, one after the other, and the agent's own in words."""
    left = list(summaries)

    def answer(body: dict[str, Any]) -> Any:
        if not any("Nice." in str(message["content"]) for message in body["messages"]):
            return "Fine."
        if "Here is a summary" in str(body["messages"][0]["content"]):
            return "Fine."
        return left.pop(0) if len(left) > 1 else left[0]

    return answer


THREAD = {"configurable": {"thread_id": "1"}}


def summaries_asked(endpoint: ScriptedEndpoint) -> int:
    return sum("Here is a summary" not in str(chat.messages[0]["content"]) for chat in endpoint.chats)


@needs_middleware
@prompts
@both_ways
def test_the_middleware_has_its_summary(
    run: Run, more: Any, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(answering(SUMMARY))
    state = run(an_agent(model, **more), {"messages": talk()[:3]}, **THREAD)
    said = [message.content for message in state["messages"]]
    assert said == [f"Here is a summary of the conversation to date:\n\n{SUMMARY}", "I moved to Oslo.", "Fine."]
    assert told(heard) == [("langchain.summary", "ok")]
    assert len(endpoint.chats) == 2
    assert endpoint.chats[0].body["max_tokens"] == 4096
    assert "max_tokens" not in endpoint.chats[1].body


@needs_middleware
@every_bad
@both_ways
def test_the_middleware_waits_for_a_summary(
    run: Run, bad: Say, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(answering(bad, SUMMARY))
    state = run(an_agent(model), {"messages": talk()[:3]}, **THREAD)
    assert state["messages"][0].content.endswith(SUMMARY)
    assert summaries_asked(endpoint) == 2
    assert told(heard) == [("langchain.summary", "retried")]


@needs_middleware
@prompts
@every_bad
@both_ways
def test_a_lost_summary_leaves_the_history(
    run: Run,
    bad: Say,
    more: Any,
    make_model: Callable[..., Any],
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
    tmp_path: Path,
) -> None:
    journal = tmp_path / "lost.jsonl"
    agent = an_agent(make_model(journal=str(journal)), **more)
    endpoint.play(answering(bad))
    _lose(agent, run)
    said = [message.content for message in agent.get_state(THREAD).values["messages"]]
    if RAISES:
        assert said == ["My dog is called Rex.", "Nice.", "I moved to Oslo."]
    else:
        assert said[1:] == ["I moved to Oslo.", "Fine."]
        assert "My dog is called Rex." in said[0]
        assert "Nice." in said[0]
        assert "Error" not in said[0]
        assert "Context Extraction" not in said[0]
    # The host asks three times where it raises: its repeats cost one request each.
    assert summaries_asked(endpoint) == (5 if RAISES else 3)
    assert {*told(heard)} == {("langchain.summary", "lost" if RAISES else "salvaged")}
    assert lines(journal) == ["langchain.summary"]


@needs_middleware
@both_ways
def test_a_server_that_fails_takes_no_history(
    run: Run, make_model: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    agent = an_agent(make_model(retry_seconds=0))
    endpoint.play(answering(Fail(500)))
    _lose(agent, run)
    said = " ".join(message.content for message in agent.get_state(THREAD).values["messages"])
    assert "My dog is called Rex." in said
    assert "500" not in said


def _lose(agent: Any, run: Run) -> None:
    if RAISES:
        with pytest.raises(HyMemoryError, match=r"langchain\.summary"):
            run(agent, {"messages": talk()[:3]}, **THREAD)
    else:
        run(agent, {"messages": talk()[:3]}, **THREAD)


@needs_middleware
def test_in_a_stream_of_messages_a_bad_summary_is_not_shown(model: Any, endpoint: ScriptedEndpoint) -> None:
    """LangGraph has the model streamed then: no half summary goes out, and no field that only streams know."""
    endpoint.play(answering(Say("My d", "length"), SUMMARY))
    agent = an_agent(model)
    shown = [chunk.text for chunk, _ in agent.stream({"messages": talk()[:3]}, THREAD, stream_mode="messages")]
    assert not [text for text in shown if str(text) == "My d"]
    for chat in endpoint.chats[:2]:
        assert not {"stream", "stream_options"} & set(chat.body)
    assert endpoint.chats[2].body["stream"]
