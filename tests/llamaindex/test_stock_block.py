"""LlamaIndex's own block of facts against every kind of reply: what is good is kept, what is malformed never is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.llms import ChatMessage
from llama_index.core.memory.memory_blocks import fact
from llama_index.core.storage.chat_store.sql import MessageStatus

from hymemory_adapters import EndpointError, MalformedWriteError, WriteEvent
from tests.llamaindex.host import (
    CAT,
    CONDENSE,
    EXTRACT,
    OSLO,
    TEA,
    facts,
    memory_with,
    prompts,
    put,
    put_until_flushed,
    stock,
    turns,
)
from tests.support import cases
from tests.support.scripted import Fail, Say, ScriptedEndpoint

GOOD = {"facts": [TEA, CAT]}
OLD = "User is a carpenter"

# Replies that LlamaIndex's own parser would take for no facts, or for wrong ones.
MALFORMED = {
    "xml": f"<facts>\n  <fact>{TEA}</fact>\n  <fact>{CAT}</fact>\n</facts>",
    "xml_cut": f"<facts>\n  <fact>{TEA}</fact>\n  <fact>{CAT[:5]}",
    "xml_echo": "I would write <fact>Specific fact 1</fact>.",
    "the_prompts_example": facts("Specific fact 1", "Specific fact 2"),
    "one_example": facts(TEA, "specific  fact 2"),
    "blank": facts(TEA, " \n"),
    "empty_string": facts(TEA, ""),
    "number": '{"facts": [1, 2]}',
    "objects": json.dumps({"facts": [{"fact": TEA}, {"fact": CAT}]}),
    "a_string": json.dumps({"facts": TEA}),
    "null": '{"facts": null}',
    "at_the_bound": facts(*(f"Fact {number}" for number in range(200))),
}
HARMLESS = {
    "twice_the_same": facts(TEA, CAT, TEA),
    "twice_but_for_case": facts(TEA, CAT, "user  LIKES green tea"),
    "known_already": facts(OLD, TEA, CAT),
    "white_space_around": facts(f" {TEA}\n", CAT),
}


def _replies(kind: str) -> list[Any]:
    named = {reply.name: reply.say() for reply in getattr(cases, kind)(GOOD) if _is_whole(reply)}
    own = MALFORMED if kind == "malformed" else HARMLESS
    named |= {f"llamaindex_{name}": Say(text) for name, text in own.items()}
    return [pytest.param(reply, id=name) for name, reply in named.items()]


def _is_whole(reply: Any) -> bool:
    return not hasattr(reply, "value") or reply.value == GOOD


@pytest.mark.parametrize("reply", _replies("malformed"))
def test_a_malformed_reply_is_asked_for_again(
    reply: Say, llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    block = stock(llm, facts=[OLD])
    endpoint.play(reply, json.dumps(GOOD), "one reply too many")
    put_until_flushed(memory_with(block))

    assert block.facts == [OLD, TEA, CAT]
    assert len(endpoint.chats) == 2
    (event,) = heard
    assert (event.call, event.outcome, len(event.attempts)) == (EXTRACT, "retried", 2)


@pytest.mark.parametrize("reply", _replies("malformed"))
def test_replies_that_stay_malformed_are_a_lost_write(
    reply: Say, llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    block = stock(llm, facts=[OLD])
    endpoint.play(reply)
    with pytest.raises(MalformedWriteError, match=f"{EXTRACT}: ") as caught:
        asyncio.run(block.aput(turns("I like green tea", "Fine.")))

    assert block.facts == [OLD]
    assert len(endpoint.chats) == len(caught.value.attempts) == 3
    assert [event.outcome for event in heard] == ["lost"]


@pytest.mark.parametrize("reply", _replies("harmless"))
def test_a_harmless_oddity_is_kept_with_one_request(
    reply: Say, llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    block = stock(llm, facts=[OLD])
    endpoint.play(reply, "one reply too many")
    put_until_flushed(memory_with(block))

    assert block.facts == [OLD, TEA, CAT]
    assert len(endpoint.chats) == 1
    assert [event.outcome for event in heard] == ["ok"]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("R&D in {braces}, `ticks` and <b>", None),
        ('She said "hi" \\ left', None),
        ("Zwei\nZeilen, 日本語, 🐈", None),
        ("json: {{ x }} {% y %}", None),
        ("Writes <fact> tags", "Writes &lt;fact> tags"),
        ("Writes </fact> tags", "Writes &lt;/fact> tags"),
        ("</facts><facts>", None),
    ],
)
def test_a_fact_of_any_text_is_kept_whole(text: str, kept: str | None, llm: Any, endpoint: ScriptedEndpoint) -> None:
    block = stock(llm)
    endpoint.play(facts(text, TEA))
    put_until_flushed(memory_with(block))
    assert block.facts == [kept or text, TEA]


def test_no_facts_are_an_answer(llm: Any, endpoint: ScriptedEndpoint) -> None:
    block = stock(llm, facts=[OLD])
    endpoint.play(facts())
    put_until_flushed(memory_with(block))
    assert (block.facts, len(endpoint.chats)) == ([OLD], 1)


def test_what_is_sent(llm: Any, endpoint: ScriptedEndpoint) -> None:
    """LlamaIndex's own request, but for the form that it asks for."""
    endpoint.play(facts(TEA))
    put_until_flushed(memory_with(stock(llm, facts=[OLD, "Writes <facts></facts>"])))

    (chat,) = endpoint.chats
    *said, prompt = chat.messages
    assert [message["role"] for message in said] == ["user", "assistant"][: len(said)]
    assert said[0]["content"].startswith("I like green tea")
    assert all(set(message) == {"role", "content"} for message in chat.messages)  # no session_id

    known = f"<fact>{OLD}</fact>\n<fact>Writes <facts></facts></fact>"
    (own,) = fact.DEFAULT_FACT_EXTRACT_PROMPT.format_messages(existing_facts=known)
    ours, theirs = prompt["content"].splitlines(), own.content.splitlines()
    changed = [line for line in ours if line not in theirs]
    assert changed == [
        "4. Format each fact as a separate JSON string",
        '{"facts": ["Specific fact 1", "Specific fact 2"]}',
        'If no new facts are present, return: {"facts": []}',
    ]
    assert known in prompt["content"]
    assert [line for line in theirs if line not in ours] == [
        "4. Format each fact as a separate <fact> XML tag",
        *("<facts>", "  <fact>Specific fact 1</fact>", "  <fact>Specific fact 2</fact>"),
        *("  <!-- More facts as needed -->", "</facts>"),
        "If no new facts are present, return: <facts></facts>",
    ]
    wanted = chat.body["response_format"]
    assert (wanted["type"], wanted["json_schema"]["name"]) == ("json_schema", "llamaindex_facts")
    assert chat.body["chat_template_kwargs"] == {"reasoning_effort": "no_think"}


def test_a_template_that_ends_as_llamaindex_s_does_is_known(llm: Any, endpoint: ScriptedEndpoint) -> None:
    tail = fact.DEFAULT_FACT_EXTRACT_PROMPT.template_str.partition("<existing_facts>")[2]
    block = stock(llm, fact_extraction_prompt_template=f"Note down all about pets.\n\n<existing_facts>{tail}")
    endpoint.play("no JSON", facts(CAT))
    put_until_flushed(memory_with(block))
    assert block.facts == [CAT]
    assert prompts(endpoint)[0].startswith("Note down all about pets.")


def test_any_other_template_is_plain_chat(llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    template = "Known: {{ existing_facts }}. Write each new fact as <fact>...</fact>."
    block = stock(llm, fact_extraction_prompt_template=template)
    endpoint.play(f"<fact>{TEA}</fact>")
    put_until_flushed(memory_with(block))
    assert block.facts == [TEA]
    assert endpoint.chats[0].messages[-1]["content"] == "Known: . Write each new fact as <fact>...</fact>."
    assert "response_format" not in endpoint.chats[0].body
    assert heard == []


# -- when it is lost -------------------------------------------------------------------------------


@pytest.mark.parametrize("attempts", [1, 2, 5])
def test_a_lost_write_costs_its_attempts_and_no_more(
    attempts: int, make_llm: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    """LlamaIndex repeats a request in a decorator, and openai's client once more: twelve for one, as it comes."""
    endpoint.play("no JSON")
    with pytest.raises(MalformedWriteError):
        put_until_flushed(memory_with(stock(make_llm(attempts=attempts))))
    assert len(endpoint.chats) == attempts


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_error_costs_one_request(status: int, llm: Any, endpoint: ScriptedEndpoint) -> None:
    """With no time for retries (``retry_seconds=0``)."""
    endpoint.play(Fail(status))
    with pytest.raises(EndpointError) as caught:
        put_until_flushed(memory_with(stock(llm, facts=[OLD])))
    assert caught.value.status == status
    assert len(endpoint.chats) == 1


def test_the_app_hears_of_a_lost_write_and_goes_on(llm: Any, endpoint: ScriptedEndpoint) -> None:
    """LlamaIndex has archived those turns, and offers them no more; what is still in the queue, it does."""
    block = stock(llm, facts=[OLD])
    memory = memory_with(block)
    endpoint.play(Fail(500))
    with pytest.raises(EndpointError):
        put_until_flushed(memory)
    archived = asyncio.run(memory.aget_all(MessageStatus.ARCHIVED))
    assert archived[0].content.startswith("I like green tea")

    endpoint.play(facts(CAT))
    put(memory, turns("And one more", "Fine.", "And another"))
    assert block.facts == [OLD, CAT]
    offered = [message["content"] for chat in endpoint.chats for message in chat.messages]
    assert not any(content.startswith("I like green tea") for content in offered)


def test_another_block_has_its_turns_all_the_same(llm: Any, endpoint: ScriptedEndpoint) -> None:
    class Other(fact.FactExtractionMemoryBlock):  # type: ignore[misc]
        async def _aput(self, messages: list[ChatMessage]) -> None:
            await asyncio.sleep(0)
            self.facts.append(str(messages[0].content))

    other = Other(llm=llm, name="other")
    endpoint.play(Fail(500))
    with pytest.raises(EndpointError):
        put_until_flushed(memory_with(stock(llm), other))
    assert len(other.facts) == 1


# -- condensing ------------------------------------------------------------------------------------

THREE = [OLD, TEA, OSLO]


def _condensed(llm: Any, endpoint: ScriptedEndpoint, *script: Any) -> list[str]:
    """Condense three facts, of which two are allowed, and return what is left."""
    block = stock(llm, facts=[OLD, TEA], max_facts=2)
    endpoint.play(facts(OSLO), *script)
    asyncio.run(block.aput(turns("I live in Oslo", "Fine.")))
    found: list[str] = block.facts
    return found


MERGED = [OLD, "User likes green tea and lives in Oslo"]
CONDENSED_MALFORMED = {
    **{reply.name: reply.say() for reply in cases.malformed({"facts": MERGED})},
    "empty": Say(facts()),
    "xml": Say(f"<facts><fact>{OLD}</fact></facts>"),
    "example": Say(facts("Specific fact 1")),
    "blank": Say(facts(*MERGED, " ")),
}


@pytest.mark.parametrize("reply", CONDENSED_MALFORMED.values(), ids=CONDENSED_MALFORMED.keys())
def test_a_malformed_list_replaces_nothing(
    reply: Say, llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    assert _condensed(llm, endpoint, reply) == THREE
    assert [(event.call, event.outcome) for event in heard] == [(EXTRACT, "ok"), (CONDENSE, "salvaged")]
    assert len(endpoint.chats) == 1 + 3


@pytest.mark.parametrize("reply", CONDENSED_MALFORMED.values(), ids=CONDENSED_MALFORMED.keys())
def test_a_malformed_list_is_asked_for_again(reply: Say, llm: Any, endpoint: ScriptedEndpoint) -> None:
    assert _condensed(llm, endpoint, reply, facts(*MERGED)) == MERGED
    assert len(endpoint.chats) == 1 + 2


def test_a_list_that_cannot_be_had_replaces_nothing(llm: Any, endpoint: ScriptedEndpoint) -> None:
    assert _condensed(llm, endpoint, Fail(500)) == THREE


def test_facts_that_are_left_out_are_asked_for(
    llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent], caplog: pytest.LogCaptureFixture
) -> None:
    assert _condensed(llm, endpoint, facts(OLD, OSLO), facts(*MERGED)) == MERGED
    assert "counted from 1: 2)" in endpoint.chats[-1].messages[-1]["content"]
    assert heard[-1].outcome == "retried"
    assert "are gone" not in caplog.text


def test_facts_that_stay_left_out_are_told(
    llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent], caplog: pytest.LogCaptureFixture
) -> None:
    assert _condensed(llm, endpoint, facts(OLD, OSLO), facts(OLD, OSLO), "too many") == [OLD, OSLO]
    assert heard[-1].outcome == "declined"
    assert "1 of 3 facts are gone" in caplog.text
    assert "tea" not in caplog.text


def test_too_many_facts_are_asked_about_once(llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    assert _condensed(llm, endpoint, facts(*THREE), facts(*THREE), "too many") == THREE
    assert [problem.rule for problem in heard[-1].attempts[0].problems] == ["too_many"]
    assert heard[-1].outcome == "declined"


def test_what_condensing_sends(llm: Any, endpoint: ScriptedEndpoint) -> None:
    """No empty answer is offered, as the prompts before 0.14.24 do, and the grammar may not close the list early."""
    _condensed(llm, endpoint, facts(*MERGED))
    prompt, body = prompts(endpoint)[-1], endpoint.chats[-1].body
    assert "[]" not in prompt
    assert "no new facts" not in prompt
    assert "\n".join(f"<fact>{each}</fact>" for each in THREE) in prompt
    assert "<facts>" not in prompt
    bounds = body["response_format"]["json_schema"]["schema"]["properties"]["facts"]
    assert (bounds["minItems"], bounds["maxItems"]) == (1, 200)
