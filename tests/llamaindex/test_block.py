"""``HyMemoryFactExtractionBlock``: no turn that was given to it is lost, whatever the endpoint does."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.llms import ChatMessage, MockLLM
from llama_index.core.memory import FactExtractionMemoryBlock
from pydantic import ValidationError

from hymemory_adapters import ConfigurationError, EndpointError, MalformedWriteError, WriteEvent
from hymemory_adapters.llamaindex import HyMemory, HyMemoryFactExtractionBlock
from tests.llamaindex.host import CAT, CONDENSE, OSLO, TEA, facts, memory_with, prompts, put, put_until_flushed, turns
from tests.support import cases
from tests.support.scripted import Drop, Fail, Say, ScriptedEndpoint

Make = Callable[..., HyMemoryFactExtractionBlock]
GOOD = {"facts": [TEA, CAT]}


@pytest.fixture
def make_block(make_llm: Callable[..., Any]) -> Make:
    def make(*, settings: dict[str, Any] | None = None, **more: Any) -> HyMemoryFactExtractionBlock:
        return HyMemoryFactExtractionBlock(llm=make_llm(**(settings or {})), **more)

    return make


def _said(block: HyMemoryFactExtractionBlock) -> list[list[str]]:
    """The first two words of each pending message."""
    return [[" ".join(str(message.content).split()[:2]) for message in batch] for batch in block.pending]


def _aput(block: HyMemoryFactExtractionBlock, *said: str) -> None:
    asyncio.run(block.aput(turns(*said)))


def test_turns_of_a_failed_put_are_offered_again(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block()
    memory = memory_with(block)
    endpoint.play(Fail(500))
    put_until_flushed(memory)  # the app's chat goes on
    assert block.facts == []
    first = _said(block)
    assert first[0][0] == "I like"

    endpoint.play(facts(TEA), facts(CAT))
    put(memory, turns("Now then", "Fine.", "And more"))
    assert block.facts == [TEA, CAT]
    assert block.pending == []
    assert endpoint.chats[0].messages[0]["content"].startswith("I like green tea")


LOSSES = {
    "http_500": Fail(500),
    "http_429": Fail(429),
    "http_401": Fail(401),
    "http_404": Fail(404),
    "http_400": Fail(400),
    "no_answer": Drop(),
    **{reply.name: reply.say() for reply in cases.malformed(GOOD)},
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_whatever_is_lost_stays_pending(loss: Any, make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block(facts=[OSLO])
    endpoint.play(loss)
    _aput(block, "I like green tea", "Fine.")
    assert (block.facts, _said(block)) == ([OSLO], [["I like", "Fine. and"]])

    endpoint.play(json.dumps(GOOD))
    assert asyncio.run(block.aflush()) == 0
    assert (block.facts, block.pending) == ([OSLO, TEA, CAT], [])


def test_a_dead_endpoint_is_asked_once_a_put(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block()
    endpoint.play(Fail(503))
    for number in range(4):
        _aput(block, f"message {number}", "Fine.")
    assert len(endpoint.chats) == 4
    assert [batch[0] for batch in _said(block)] == [f"message {number}" for number in range(4)]


@pytest.mark.parametrize("loss", [Say("no JSON"), Fail(400)], ids=["malformed", "refused"])
def test_a_batch_that_is_always_lost_keeps_no_other_waiting(
    loss: Any, make_block: Make, endpoint: ScriptedEndpoint
) -> None:
    block = make_block(settings={"attempts": 1})

    def answer(body: dict[str, Any]) -> Any:
        return loss if body["messages"][0]["content"].startswith("cursed") else facts(TEA)

    endpoint.play(answer)
    _aput(block, "cursed words", "Fine.")
    _aput(block, "I like tea", "Fine.")
    assert block.facts == [TEA]
    assert _said(block) == [["cursed words", "Fine. and"]]


def test_no_requests_where_nothing_is_pending(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block()
    asyncio.run(block.aput([]))
    assert asyncio.run(block.aflush()) == 0
    assert endpoint.requests == []


def test_it_tells_what_is_pending(
    make_block: Make, endpoint: ScriptedEndpoint, heard: list[WriteEvent], caplog: pytest.LogCaptureFixture
) -> None:
    endpoint.play(Fail(500))
    _aput(make_block(), "I like green tea", "Fine.")
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "2 messages are pending and will be offered again" in errors[-1]
    assert "green tea" not in caplog.text
    assert [event.outcome for event in heard] == ["lost"]


@pytest.mark.parametrize(("script", "error"), [(Fail(500), EndpointError), ("no JSON", MalformedWriteError)])
def test_it_raises_where_the_app_asks_for_it(
    script: Any, error: type[Exception], make_block: Make, endpoint: ScriptedEndpoint
) -> None:
    block = make_block(raise_on_error=True)
    endpoint.play(script)
    with pytest.raises(error):
        _aput(block, "I like green tea", "Fine.")
    assert len(block.pending) == 1


def test_a_put_that_is_given_up_stays_pending(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block()
    endpoint.play(Say(facts(TEA), delay=0.3))

    async def give_up() -> None:
        await asyncio.wait_for(block.aput(turns("I like green tea", "Fine.")), 0.05)

    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(give_up())
    assert len(block.pending) == 1
    endpoint.play(facts(TEA))
    assert asyncio.run(block.aflush()) == 0
    assert block.facts == [TEA]


def test_two_puts_at_once_offer_no_batch_twice(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block()
    endpoint.play(lambda body: Say(facts(f"Fact of {body['messages'][0]['content'][:9]}"), delay=0.1))

    async def both() -> None:
        await asyncio.gather(*(block.aput(turns(f"message {number}", "Fine.")) for number in range(3)))

    asyncio.run(both())
    assert sorted(block.facts) == [f"Fact of message {number}" for number in range(3)]
    assert len(endpoint.chats) == 3


# -- over a restart --------------------------------------------------------------------------------


def test_facts_and_pending_turns_outlive_the_process(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block()
    endpoint.play(facts(OSLO), Fail(500))
    _aput(block, "I live in Oslo", "Fine.")
    asyncio.run(
        block.aput([ChatMessage(role="user", content="I like green tea"), ChatMessage(role="tool", content="42")])
    )
    kept = json.dumps(block.dump())

    after = make_block(facts=["Something else"])
    after.load(json.loads(kept))
    assert (after.facts, after.pending) == (block.facts, block.pending)
    endpoint.play(facts(TEA))
    assert asyncio.run(after.aflush()) == 0
    assert after.facts == [OSLO, TEA]
    assert endpoint.chats[0].messages[0]["content"] == "I like green tea"


@pytest.mark.parametrize(
    "data",
    [{}, {"facts": []}, {"facts": None, "pending": []}, {"facts": [1], "pending": []}, {"facts": [], "pending": [[7]]}],
)
def test_anything_else_is_not_taken(data: dict[str, Any], make_block: Make) -> None:
    block = make_block(facts=[TEA])
    with pytest.raises(ConfigurationError, match=r"dump\(\)"):
        block.load(data)
    assert block.facts == [TEA]


# -- facts -----------------------------------------------------------------------------------------


def test_what_is_known_already_is_not_added_again(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block(facts=[TEA])
    endpoint.play(facts("user likes  GREEN tea", f" {CAT}\n", CAT.upper()))
    _aput(block, "I like green tea", "Fine.")
    assert block.facts == [TEA, CAT]


def test_a_fact_of_any_text_is_kept_as_it_is(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    said = ["Writes <fact> and </fact> tags", "R&D {x} `y` json", "Zwei\nZeilen 🐈"]
    block = make_block()
    endpoint.play(facts(*said))
    _aput(block, "I like green tea", "Fine.")
    assert block.facts == said


def test_a_long_list_is_condensed(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block(facts=[OSLO, CAT], max_facts=2)
    merged = [CAT, "User lives in Oslo and likes green tea"]
    endpoint.play(facts(TEA), facts(*merged))
    _aput(block, "I like green tea", "Fine.")
    assert block.facts == merged
    assert all(f"<fact>{fact}</fact>" in prompts(endpoint)[1] for fact in (OSLO, CAT, TEA))


@pytest.mark.parametrize("script", [Fail(500), facts(), "no JSON", Say(facts(CAT), "length")])
def test_a_list_that_cannot_be_condensed_stays(
    script: Any, make_block: Make, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    block = make_block(facts=[OSLO, CAT], max_facts=2)
    endpoint.play(facts(TEA), script)
    _aput(block, "I like green tea", "Fine.")
    assert (block.facts, block.pending) == ([OSLO, CAT, TEA], [])
    assert (heard[-1].call, heard[-1].outcome) == (CONDENSE, "salvaged")


def test_a_very_long_list_has_room(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    """The grammar may not close it early: a list of 200 is where others are taken for cut."""
    known = [f"User has been to town number{number}" for number in range(250)]
    block = make_block(facts=known, max_facts=250)
    endpoint.play(facts(TEA), facts(*known))
    _aput(block, "I like green tea", "Fine.")
    bounds = endpoint.chats[1].body["response_format"]["json_schema"]["schema"]["properties"]["facts"]
    assert bounds["maxItems"] == 400
    assert len(block.facts) == 250


def test_what_comes_while_it_condenses_is_kept(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block(facts=[OSLO, CAT], max_facts=2)

    def answer(body: dict[str, Any]) -> Say:
        if body["response_format"]["json_schema"]["name"] == "llamaindex_condense":
            block.facts.append("User is new here")  # another put
            return Say(facts(CAT, "User lives in Oslo, likes green tea"))
        return Say(facts(TEA))

    endpoint.play(answer)
    _aput(block, "I like green tea", "Fine.")
    assert block.facts == [CAT, "User lives in Oslo, likes green tea", "User is new here"]


@pytest.mark.parametrize("known", ["{existing_facts}", "{{ existing_facts }}"])
def test_any_template_is_asked_for_json(known: str, make_block: Make, endpoint: ScriptedEndpoint) -> None:
    block = make_block(facts=[OSLO], fact_extraction_prompt_template=f"Known: {known}. Note facts.")
    endpoint.play("no JSON", facts(TEA))
    _aput(block, "I like green tea", "Fine.")
    assert block.facts == [OSLO, TEA]
    first = prompts(endpoint)[0]
    assert first.startswith(f"Known: <fact>{OSLO}</fact>. Note facts.\n\nReturn ONLY the facts, as one JSON object")


def test_turns_with_tools_and_images_are_read_as_words(make_block: Make, endpoint: ScriptedEndpoint) -> None:
    from llama_index.core.llms import ImageBlock, TextBlock
    from openai.types.chat import ChatCompletionMessageToolCall  # what LlamaIndex keeps in a message

    function = {"name": "weather", "arguments": '{"place": "Oslo"}'}
    call = ChatCompletionMessageToolCall.model_validate({"id": "c1", "type": "function", "function": function})
    said = [
        ChatMessage(role="user", blocks=[TextBlock(text="My cat"), ImageBlock(url="http://127.0.0.1/cat.png")]),
        ChatMessage(role="assistant", content="I look.", additional_kwargs={"tool_calls": [call]}),
        ChatMessage(role="tool", content="Rain", additional_kwargs={"tool_call_id": "c1"}),
    ]
    block = make_block()
    endpoint.play(facts(CAT))
    asyncio.run(block.aput(said))
    *sent, _ = endpoint.chats[0].messages
    assert sent[0] == {"role": "user", "content": "My cat\n[image_url]"}
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert "weather" in sent[1]["content"]
    assert "Rain" in sent[2]["content"]
    assert block.facts == [CAT]


def test_it_asks_as_llamaindex_s_own_block_does(llm: Any, endpoint: ScriptedEndpoint) -> None:
    def sent(kind: Any) -> list[dict[str, Any]]:
        endpoint.play(facts(TEA), facts(CAT, f"{OSLO}, {TEA}"))
        block = kind(llm=llm, facts=[OSLO, CAT], max_facts=2)
        asyncio.run(block.aput(turns("I like green tea", "Fine.")))
        return [chat.body for chat in endpoint.chats]

    ours, theirs = sent(HyMemoryFactExtractionBlock), sent(FactExtractionMemoryBlock)
    assert len(ours) == 2
    assert ours == theirs


# -- whose LLM -------------------------------------------------------------------------------------


def test_it_writes_with_the_apps_llm_if_that_is_ours(llm: Any) -> None:
    Settings.llm = llm
    assert HyMemoryFactExtractionBlock().llm is llm


@pytest.mark.parametrize("apps", [None, MockLLM()], ids=["none", "another"])
def test_it_brings_its_own_otherwise(apps: Any, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Settings, "_llm", apps)
    monkeypatch.setenv("HYMEMORY_BASE_URL", endpoint.url)
    block = HyMemoryFactExtractionBlock()
    assert isinstance(block.llm, HyMemory)
    endpoint.play(facts(TEA))
    _aput(block, "I like green tea", "Fine.")
    assert block.facts == [TEA]


def test_another_llm_is_refused() -> None:
    with pytest.raises(ValidationError, match="writes with HyMemory, not with MockLLM"):
        HyMemoryFactExtractionBlock(llm=MockLLM())
