"""langchain-classic's entity memory: which names it finds, and what it holds to be known of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

try:
    from langchain_classic import memory as classic
except ImportError:
    classic = pytest.importorskip("langchain.memory", reason="neither langchain-classic nor langchain 0.3")

from hymemory_adapters import HyMemoryError
from hymemory_adapters.core.events import WriteEvent
from tests.langchain.free_text import BAD, every_bad, lines, told
from tests.support.cases import MalformedReply, malformed
from tests.support.scripted import Fail, Say, ScriptedEndpoint

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ANSWERED = {"output": "Nice."}

# -- which names -----------------------------------------------------------------------------------


def entities(*names: str) -> str:
    return json.dumps({"entities": names})


NAMED = {
    "one": (entities("Rex"), {"Rex": "A dog."}, ()),
    "two": (entities("Rex", "Oslo"), {"Rex": "A dog.", "Oslo": ""}, ()),
    "none": (entities(), {}, ()),
    "said_to_be_none": (entities("None"), {}, ("entity_names",)),
    "none_among_others": (entities("NONE", "Rex"), {"Rex": "A dog."}, ("entity_names",)),
    "comma": (entities("Paris, Texas"), {"Paris Texas": ""}, ("entity_names",)),
    "blank": (entities("Rex", " ", ""), {"Rex": "A dog."}, ("entity_names",)),
    "lines": (entities("Rex\n", "New\nYork"), {"Rex": "A dog.", "New York": ""}, ("entity_names",)),
    "twice": (entities("Rex", "Rex "), {"Rex": "A dog."}, ("entity_names",)),
    "other_script": (entities("奥斯陆", "{Rex}"), {"奥斯陆": "", "{Rex}": ""}, ()),
}
NO_NAMES = malformed({"entities": ["Rex", "Oslo"]})
LISTS = {"a_list": "Rex, Oslo", "none": "NONE", "prose": "The entities are: Rex, Oslo", "a_json_list": '["Rex"]'}


def load(memory: Any, *, in_a_loop: bool = False) -> Any:
    given = {"input": "My dog is called Rex."}
    found = asyncio.run(memory.aload_memory_variables(given)) if in_a_loop else memory.load_memory_variables(given)
    return found["entities"]


def entity_memory(model: Any) -> Any:
    memory = classic.ConversationEntityMemory(llm=model)
    memory.entity_store.clear()  # the store of one memory is that of all, in some versions
    memory.entity_store.set("Rex", "A dog.")
    return memory


@pytest.mark.parametrize(("reply", "found", "names"), NAMED.values(), ids=NAMED)
@pytest.mark.parametrize("in_a_loop", [False, True], ids=["load", "aload"])
def test_entities_are_what_the_host_makes_of_its_list(
    in_a_loop: bool,
    reply: str,
    found: dict[str, str],
    names: tuple[str, ...],
    model: Any,
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
) -> None:
    endpoint.play(reply)
    assert load(entity_memory(model), in_a_loop=in_a_loop) == found
    (chat,) = endpoint.chats
    assert chat.body["response_format"]["json_schema"]["schema"]["required"] == ["entities"]
    note, asked = chat.messages
    assert note["role"] == "system"
    assert asked["content"].endswith("Human: My dog is called Rex.\n\nOutput:")
    assert told(heard) == [("langchain.entities", "ok")]
    assert heard[0].normalisations == names


@pytest.mark.parametrize("bad", NO_NAMES, ids=lambda kind: kind.name)
def test_malformed_entities_are_asked_again(bad: MalformedReply, model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(bad.say(), entities("Rex"))
    assert load(entity_memory(model)) == {"Rex": "A dog."}
    assert len(endpoint.chats) == 2


@pytest.mark.parametrize("bad", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("in_a_loop", [False, True], ids=["load", "aload"])
def test_lost_entities_raise(
    in_a_loop: bool, bad: str, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    memory = entity_memory(model)
    endpoint.play(bad)
    with pytest.raises(HyMemoryError, match=r"langchain\.entities"):
        load(memory, in_a_loop=in_a_loop)
    assert memory.entity_store.store == {"Rex": "A dog."}
    assert len(endpoint.chats) == 3
    assert told(heard) == [("langchain.entities", "lost")]


# -- what is known of an entity --------------------------------------------------------------------


def a_turn(memory: Any, endpoint: ScriptedEndpoint, *facts: Say | Fail | str, said: str = "Rex and I moved.") -> None:
    """Name Rex and Oslo, then play these replies to the question what is known of them."""
    endpoint.play(entities("Rex", "Oslo"))
    load(memory)
    endpoint.play(*facts)
    memory.save_context({"input": said}, ANSWERED)


def test_facts_are_stored_one_request_each(model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    memory = entity_memory(model)
    a_turn(memory, endpoint, "<think>hm</think>Rex is a `dog`, {moved}.", " Oslo is a city. ")
    assert memory.entity_store.store == {"Rex": "Rex is a `dog`, {moved}.", "Oslo": "Oslo is a city."}
    assert len(endpoint.chats) == 2
    assert "Existing summary of Rex:\nA dog." in endpoint.chats[0].messages[0]["content"]
    assert told(heard)[1:] == [("langchain.entity_summary", "ok")] * 2


@every_bad
def test_what_is_no_fact_is_asked_again(bad: Say, model: Any, endpoint: ScriptedEndpoint) -> None:
    memory = entity_memory(model)
    a_turn(memory, endpoint, bad, "Moved.", "A city.")
    assert memory.entity_store.store == {"Rex": "Moved.", "Oslo": "A city."}
    assert len(endpoint.chats) == 3


@pytest.mark.parametrize("bad", [*BAD.values(), Fail(401)], ids=[*BAD, "refused"])
def test_a_lost_fact_is_the_old_one_and_what_was_said(
    bad: Say | Fail,
    make_model: Callable[..., Any],
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
    tmp_path: Path,
) -> None:
    journal = tmp_path / "lost.jsonl"
    memory = entity_memory(make_model(journal=str(journal)))
    a_turn(memory, endpoint, bad)
    assert memory.entity_store.store == {
        "Rex": "A dog.\nHuman: Rex and I moved.",
        "Oslo": "Human: Rex and I moved.",
    }
    assert told(heard)[1:] == [("langchain.entity_summary", "salvaged")] * 2
    assert lines(journal) == ["langchain.entity_summary"] * 2


DOUBTFUL = {
    "fact": ("A dog.\n\nExisting summary of Oslo:\nx", "Rex moved.", "salvaged"),
    "said": ("A dog.", "Is\n\nLast line of conversation:\nHuman: odd?\nUpdated summary:", "salvaged"),
    "entity": ("A dog.\n\nEntity to summarize:\nx", "Rex moved.", "lost"),  # which is the fact cannot be told
}


@pytest.mark.parametrize(("fact", "said", "outcome"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_facts_that_read_like_the_prompt_are_not_lost(
    fact: str, said: str, outcome: str, model: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    memory = entity_memory(model)
    memory.entity_store.set("Rex", fact)
    with pytest.raises(HyMemoryError) if outcome == "lost" else nullcontext():
        a_turn(memory, endpoint, "", said=said)
    kept = memory.entity_store.store["Rex"]
    assert kept.startswith(fact)
    assert outcome == "lost" or all(line in kept for line in said.splitlines())
    assert told(heard)[1] == ("langchain.entity_summary", outcome)
