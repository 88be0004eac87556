"""Mem0's rows: its requests, as the installed Mem0's own builders make them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from operator import itemgetter
from typing import Any

from hymemory_adapters.core.tools import Tools
from tests.live.row import DAY, FACTS, KNOWN, Messages, Row


def rows() -> dict[str, Row]:
    """Each write call that is answered in JSON."""
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
                    additive(existing_memories=shown(count), new_messages=talk(text), current_date=DAY),
                ),
                items=itemgetter("memory"),
                item_keys=item,
            )
            for count in (0, 3)
        }

    def on_the_day(text: str) -> list[str]:  # the prompt takes no day: it holds the one on which it was imported
        return [re.sub(r"(?<=Today's date is )[\d-]+", DAY, content) for content in get_fact_retrieval_messages(text)]

    facts = row("mem0.facts", lambda text: on_the_day(talk(text)), items=itemgetter("facts"))
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
    return {"mem0.facts": facts, **updates, **_graph_rows()}


_ENTITIES = (  # it stands in no constant of Mem0's
    "You are a smart assistant who understands entities and their types in a given text. If user message contains "
    "self reference such as 'I', 'me', 'my' etc. then use alice as the source entity. Extract all the entities from "
    "the text. ***DO NOT*** answer the question itself if the given text is a question."
)


def _graph_rows() -> dict[str, Row]:
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


def text_rows() -> dict[str, Row]:
    """Each that is answered in text."""
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


class Mem0Store:
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


def stores() -> dict[str, Any]:
    """Mem0 end to end."""
    return {"mem0": Mem0Store}
