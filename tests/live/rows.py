"""What the live tests write, a row a write call and a row a store: a new host adds rows here, and no tests.

Everything is built by the *installed* host's own code. A host that is not installed has no rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from operator import itemgetter
from typing import Any, Protocol

import pytest

from hymemory_adapters.core.tool_messages import told
from hymemory_adapters.core.tools import Tools

Messages = list[dict[str, Any]]

TALK = "I moved to Pune, and I drink black coffee every morning."
FACTS = ("Moved to Pune", "Drinks black coffee every morning")
KNOWN = tuple(f"Note {number}: {text}" for number in range(4) for text in ("Lives in Oslo", "Likes tea", "Has a dog"))

OF_FORM_NO_SCHEMA_CAN_SAY = frozenset({"left_out", "same_id", "wrong_id", "blank", "too_many"})
"""Problems that a model which writes noise may have with a reply that obeys its schema."""


@dataclass(frozen=True)
class Row:
    """One write call, and how to make the host's request for it.

    Attributes:
        call: its name, as events carry it.
        provider: builds the host's LLM from settings; it has the package's ``Writer`` as ``writer``.
        messages: the host's messages about a text.
        ask: has the host's LLM do the request; returns what the host gets.
        items: the list in a reply's value that the host reads; ``None`` where the reply is free text.
        item_keys: what the host reads in each item of it; none where an item is a string.
        keeps: texts that the host gets although the call is lost; none where it gets an exception.
        value: the reply's value, from what the host gets.
        tools: the tools of the call, which are told behind the host's system message; ``None`` where it has none.
    """

    call: str
    provider: Callable[[Mapping[str, Any]], Any]
    messages: Callable[[str], Messages]
    ask: Callable[[Any, Messages], Any]
    items: Callable[[Any], list[Any]] | None = None
    item_keys: frozenset[str] = frozenset()
    keeps: Callable[[str], Sequence[str]] = lambda text: ()
    value: Callable[[Any], Any] = json.loads
    tools: Tools | None = None

    def sent(self, text: str) -> Messages:
        """The messages that go out for a text: the host's own, and behind its system message what tools there are."""
        own = self.messages(text)
        if self.tools is None:
            return own
        sent = [dict(message) for message in told(own, self.tools)]
        assert sent[0]["content"].startswith(own[0]["content"])
        assert sent[1:] == own[1:]
        return sent


class Store(Protocol):
    """One memory of a host, with a store of its own."""

    def write(self, text: str) -> list[str]:
        """Have the host write about a text; return what it says it stored."""

    def stored(self) -> list[str]:
        """Every text in the store."""

    def found(self, text: str) -> list[str]:
        """What the host's search finds."""


# -- Mem0 ------------------------------------------------------------------------------------------


def _mem0_rows() -> dict[str, Row]:
    import_module("tests.mem0.host")  # first: it tells Mem0 where its folder is, and to be quiet

    from mem0.configs import prompts
    from mem0.memory.utils import get_fact_retrieval_messages, parse_messages

    from hymemory_adapters.mem0.provider import HyMemoryLLM

    def ask(llm: Any, messages: Messages) -> Any:
        return llm.generate_response(messages, response_format={"type": "json_object"})

    def row(call: str, contents: Callable[[str], Sequence[str]], **more: Any) -> Row:
        def messages(text: str) -> Messages:
            made = contents(text)
            roles = ("system", "user")[-len(made) :]
            return [{"role": role, "content": content} for role, content in zip(roles, made, strict=True)]

        return Row(call, lambda settings: HyMemoryLLM(dict(settings)), messages, ask, **more)

    def talk(text: str) -> str:
        return str(parse_messages([{"role": "user", "content": text}]))

    def shown(count: int) -> list[dict[str, str]]:
        return [{"id": str(index), "text": text} for index, text in enumerate(KNOWN[:count])]

    if additive := getattr(prompts, "generate_additive_extraction_prompt", None):
        item = frozenset({"id", "text", "attributed_to"})
        return {
            f"mem0.additive-{count}": row(
                "mem0.additive",
                lambda text, count=count: (
                    prompts.ADDITIVE_EXTRACTION_PROMPT,
                    # A fixed day: what is recorded today is played tomorrow.
                    additive(existing_memories=shown(count), new_messages=talk(text), current_date="2026-11-30"),
                ),
                items=itemgetter("memory"),
                item_keys=item,
            )
            for count in (0, 3)
        }
    facts = row("mem0.facts", lambda text: get_fact_retrieval_messages(talk(text)), items=itemgetter("facts"))
    updates = {
        f"mem0.update-{count}": row(
            "mem0.update",
            lambda text, count=count: (prompts.get_update_memory_messages(shown(count), [*FACTS, text]),),
            items=itemgetter("memory"),
            item_keys=frozenset({"id", "text", "event"}),
            keeps=lambda text: (*FACTS, text),
        )
        for count in (0, 3, 10)
    }
    return {"mem0.facts": facts, **updates, **_mem0_graph_rows()}


_ENTITIES = (  # it stands in no constant of Mem0's
    "You are a smart assistant who understands entities and their types in a given text. If user message contains "
    "self reference such as 'I', 'me', 'my' etc. then use alice as the source entity. Extract all the entities from "
    "the text. ***DO NOT*** answer the question itself if the given text is a question."
)


def _mem0_graph_rows() -> dict[str, Row]:
    from mem0.graphs import tools
    from mem0.graphs.utils import EXTRACT_RELATIONS_PROMPT, get_delete_messages

    from hymemory_adapters.mem0.provider import HyMemoryLLM

    def row(
        tool: Any, contents: Callable[[str], Sequence[str]], items: Any, *, any_number: bool = False, **more: Any
    ) -> Row:
        def messages(text: str) -> Messages:
            system, user = contents(text)
            return [{"role": "system", "content": system}, {"role": "user", "content": user}]

        return Row(
            call=more.pop("call"),
            provider=lambda settings: HyMemoryLLM(dict(settings)),
            messages=messages,
            ask=lambda llm, asked: llm.generate_response(asked, tools=[tool]),
            items=items,
            value=lambda got: {"tool_calls": got["tool_calls"]},
            tools=Tools((tool["function"],), at_least=0 if any_number else 1, at_most=None if any_number else 1),
            **more,
        )

    def arguments(value: Any) -> list[Any]:
        return list(value["tool_calls"][0]["arguments"]["entities"])

    triple = frozenset({"source", "relationship", "destination"})
    rules = EXTRACT_RELATIONS_PROMPT.replace("USER_ID", "user_id: alice")
    return {
        "mem0.graph_entities": row(
            tools.EXTRACT_ENTITIES_TOOL,
            lambda text: (_ENTITIES, f"{text}\nNoted."),  # Mem0 joins what was said; the noise finds nothing in less
            arguments,
            call="mem0.graph_entities",
            item_keys=frozenset({"entity", "entity_type"}),
        ),
        "mem0.graph_relations": row(
            tools.RELATIONS_TOOL,
            lambda text: (rules, f"List of entities: ['alice', 'pune']. \n\nText: {text}"),
            arguments,
            call="mem0.graph_relations",
            item_keys=triple,
        ),
        "mem0.graph_deletions": row(
            tools.DELETE_MEMORY_TOOL_GRAPH,
            lambda text: get_delete_messages("alice -- lives_in -- oslo", text, "user_id: alice"),
            lambda value: [call["arguments"] for call in value["tool_calls"]],
            call="mem0.graph_deletions",
            item_keys=triple,
            any_number=True,
        ),
    }


def _mem0_text_rows() -> dict[str, Row]:
    import_module("tests.mem0.host")
    from mem0.configs.prompts import PROCEDURAL_MEMORY_SYSTEM_PROMPT

    from hymemory_adapters.mem0.provider import HyMemoryLLM
    from hymemory_adapters.mem0.text import PROCEDURAL

    procedural = Row(
        "mem0.procedural",
        lambda settings: HyMemoryLLM(dict(settings)),
        lambda text: [
            {"role": "system", "content": PROCEDURAL_MEMORY_SYSTEM_PROMPT},
            {"role": "user", "content": text},
            {"role": "user", "content": PROCEDURAL},
        ],
        lambda llm, asked: llm.generate_response(asked),
    )
    return {"mem0.procedural": procedural}


class _Mem0Store:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        from tests.mem0 import host

        self._host = host
        llm = {"provider": "hymemory", "config": dict(settings)}
        self._memory = host.mem0.Memory.from_config(host.config(llm, own_client=True))

    def write(self, text: str) -> list[str]:
        return [memory for _, memory in self._host.done(self._memory.add(text, user_id=self._host.USER))]

    def stored(self) -> list[str]:
        return self._host.stored(self._memory)

    def found(self, text: str) -> list[str]:
        who = {"user_id": self._host.USER}
        found = self._memory.search(text, **({"filters": who} if self._host.MAJOR >= 2 else who))
        return [item["memory"] for item in found["results"]]


# -- all of them -----------------------------------------------------------------------------------


def _table(rows: Mapping[str, Callable[[], Mapping[str, Any]]]) -> dict[str, Any]:
    return {name: row for module, build in rows.items() if find_spec(module) for name, row in build().items()}


def _llamaindex(name: str) -> Any:
    return getattr(import_module("tests.live.llamaindex_rows"), name)


ROWS: dict[str, Row] = _table({"mem0": _mem0_rows, "llama_index": lambda: _llamaindex("rows")()})
TEXT_ROWS: dict[str, Row] = _table({"mem0": _mem0_text_rows, "llama_index": lambda: _llamaindex("text_rows")()})
STORES: dict[str, Callable[[Mapping[str, Any]], Store]] = _table(
    {"mem0": lambda: {"mem0": _Mem0Store}, "llama_index": lambda: {"llamaindex": _llamaindex("BlockStore")}}
)

each_row = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
each_text_row = pytest.mark.parametrize("row", TEXT_ROWS.values(), ids=TEXT_ROWS)
each_store = pytest.mark.parametrize("store", STORES.values(), ids=STORES)
