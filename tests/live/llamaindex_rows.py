"""LlamaIndex's rows of the live tests and the cassettes: what its block of facts asks, and its summary.

Our own block asks; LlamaIndex's asks the same, byte for byte (``tests/llamaindex/test_block.py``).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Any
from uuid import uuid4

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.memory.memory_blocks import fact

from hymemory_adapters.llamaindex import HyMemory, HyMemoryFactExtractionBlock
from hymemory_adapters.llamaindex.facts import CONDENSE, EXTRACT, FactsFormat, in_json
from hymemory_adapters.llamaindex.prompts import typical
from tests.live.row import KNOWN, Messages, Row

_KNOWN = KNOWN[:4]
_SAID = re.compile(r"(?<=user: ).*(?=\n\nassistant: )")


def rows() -> dict[str, Row]:
    """The calls that are answered in JSON."""
    return {
        "llamaindex.facts-0": _facts(EXTRACT, fact.DEFAULT_FACT_EXTRACT_PROMPT, ()),
        "llamaindex.facts-4": _facts(EXTRACT, fact.DEFAULT_FACT_EXTRACT_PROMPT, _KNOWN),
        "llamaindex.condense": _facts(CONDENSE, fact.DEFAULT_FACT_CONDENSE_PROMPT, _KNOWN),
    }


def _facts(kind: str, template: Any, known: tuple[str, ...]) -> Row:
    existing = "\n".join(f"<fact>{each}</fact>" for each in known)
    (prompt,) = template.format_messages(existing_facts=existing, max_facts=3)

    def messages(text: str) -> Messages:
        return [{"role": "user", "content": text}, {"role": "user", "content": in_json(prompt.content, kind)}]

    def ask(llm: Any, asked: Messages) -> Any:
        wanted = FactsFormat(kind, known, 3 if kind == CONDENSE else None)
        return llm.chat([ChatMessage(**message) for message in asked], response_format=wanted).message.content

    return Row(
        kind,
        _provider,
        messages,
        ask,
        items=itemgetter("facts"),
        keeps=lambda text: known if kind == CONDENSE else (),
    )


def text_rows() -> dict[str, Row]:
    """The call that is answered in free text."""

    def messages(text: str) -> Messages:
        system, user = typical()["llamaindex.summary"]
        return [dict(system), {**user, "content": _SAID.sub(lambda _: text, user["content"])}]

    def ask(llm: Any, asked: Messages) -> Any:
        return llm.chat([ChatMessage(**message) for message in asked]).message.content

    summary = Row("llamaindex.summary", _provider, messages, ask, keeps=lambda text: (text,))
    return {"llamaindex.summary": summary}


def _provider(settings: Mapping[str, Any]) -> HyMemory:
    return HyMemory(**settings)


class BlockStore:
    """A memory with a block of facts, which is LlamaIndex's store of them."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._block = HyMemoryFactExtractionBlock(llm=HyMemory(**settings), max_facts=10_000)
        self._memory = Memory.from_defaults(session_id=str(uuid4()), memory_blocks=[self._block])

    def write(self, text: str) -> list[str]:
        """Have the block extract facts of a text; return the new ones."""
        before = len(self._block.facts)
        asyncio.run(self._block.aput([ChatMessage(role="user", content=text)]))
        assert not self._block.pending
        return list(self._block.facts[before:])

    def stored(self) -> list[str]:
        """Every fact."""
        return list(self._block.facts)

    def found(self, text: str) -> list[str]:
        """The facts that the agent is told."""
        told = "\n".join(str(message.content) for message in asyncio.run(self._memory.aget()))
        return [each for each in self._block.facts if each in told]
