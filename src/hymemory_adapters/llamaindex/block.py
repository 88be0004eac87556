"""LlamaIndex's block of facts, which forgets no turn that has been given to it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms.llm import LLM
from llama_index.core.memory import FactExtractionMemoryBlock
from llama_index.core.settings import Settings
from pydantic import Field, PrivateAttr, ValidationError, field_validator

from hymemory_adapters.core.events import log
from hymemory_adapters.core.lost import ConfigurationError, EndpointError, HyMemoryError
from hymemory_adapters.llamaindex.facts import CONDENSE, EXTRACT, NOTE, FactsFormat, in_json, unique
from hymemory_adapters.llamaindex.llm import HyMemory

Batch = list[ChatMessage]


def _writer() -> LLM:
    """The app's LLM if it is ours; otherwise one of our own, and the app chats with its own."""
    llm = Settings._llm  # Settings.llm would build OpenAI's where none is set
    return llm if isinstance(llm, HyMemory) else HyMemory()


class HyMemoryFactExtractionBlock(FactExtractionMemoryBlock):  # type: ignore[misc]
    """``FactExtractionMemoryBlock``, with Hy-Memory behind it, and no turn lost.

    LlamaIndex archives the turns that leave the short-term memory before its blocks see them, and offers them once.
    Here a batch of turns stays ``pending`` until its facts are in the list: every later put offers it again.
    LlamaIndex keeps the facts of a block in the object alone; :meth:`dump` and :meth:`load` carry them, and what is
    pending, over a restart.

    Args:
        llm: a ``HyMemory``; by default ``Settings.llm`` if it is one, else a new one.
        raise_on_error: whether a put that leaves something pending raises. By default it is told in the log, by
            ``on_write`` and in the journal, and the app's chat goes on.

    Attributes:
        pending: the batches whose facts are not in the list yet, oldest first.
    """

    if TYPE_CHECKING:
        facts: list[str]

    llm: LLM = Field(default_factory=_writer)
    raise_on_error: bool = False
    pending: list[Batch] = Field(default_factory=list)

    _under_way: list[Batch] = PrivateAttr(default_factory=list)

    @field_validator("llm")
    @classmethod
    def _is_ours(cls, llm: LLM) -> LLM:
        if not isinstance(llm, HyMemory):
            raise ConfigurationError(
                f"HyMemoryFactExtractionBlock writes with HyMemory, not with {type(llm).__name__}: drop llm=, or give "
                "llm=HyMemory(...); Settings.llm may be any LLM"
            )
        return llm

    async def _aput(self, messages: list[ChatMessage]) -> None:
        if messages:
            self.pending.append(list(messages))
        await self.aflush()

    async def aflush(self) -> int:
        """Offer everything that is pending again; return how many batches still are.

        Raises:
            HyMemoryError: something still is, and ``raise_on_error`` is set.
        """
        failed: HyMemoryError | None = None
        # Not those that another put is at just now.
        batches = [batch for batch in self.pending if not _holds(self._under_way, batch)]
        self._under_way += batches
        try:
            for batch in batches:
                try:
                    await self._extract(batch)
                except HyMemoryError as error:
                    failed = error
                    if isinstance(error, EndpointError) and error.status != 400:
                        break  # it would not answer the next one either
        finally:
            self._under_way = [batch for batch in self._under_way if not _holds(batches, batch)]
        if failed is not None:
            turns = sum(map(len, self.pending))
            log.error("%s: %d messages are pending and will be offered again at the next put", self.name, turns)
            if self.raise_on_error:
                raise failed
        return len(self.pending)

    async def _extract(self, batch: Batch) -> None:
        found = await self._asked(EXTRACT, self.fact_extraction_prompt_template, batch)
        self.facts += unique(found, self.facts)
        self.pending = [other for other in self.pending if other is not batch]
        if len(self.facts) > self.max_facts:
            await self._condense(batch)

    async def _condense(self, batch: Batch) -> None:
        before = list(self.facts)
        condensed = await self._asked(CONDENSE, self.fact_condense_prompt_template, batch)
        # What another put has found in the meantime stands in no condensed list.
        since = [fact for fact in self.facts if fact not in before]
        self.facts = condensed + unique(since, condensed)

    async def _asked(self, kind: str, template: Any, batch: Batch) -> list[str]:
        existing = "\n".join(f"<fact>{fact}</fact>" for fact in self.facts)
        limits = {"max_facts": self.max_facts} if kind == CONDENSE else {}
        prompt = template.format_messages(existing_facts=existing, **limits)
        wanted = FactsFormat(kind, self.facts, self.max_facts)
        response = await self.llm.achat([*batch, *_in_json(prompt, existing, kind)], response_format=wanted)
        return [fact.strip() for fact in json.loads(response.message.content)["facts"]]

    def dump(self) -> dict[str, Any]:
        """Return the facts and what is pending as plain data, ready for ``json.dumps``."""
        pending = [[message.model_dump(mode="json") for message in batch] for batch in self.pending]
        return {"facts": list(self.facts), "pending": pending}

    def load(self, data: Mapping[str, Any]) -> None:
        """Take back what :meth:`dump` returned, in place of what is here.

        Raises:
            ConfigurationError: it is something else.
        """
        try:
            facts, batches = list(data["facts"]), list(data["pending"])
            if not all(isinstance(fact, str) for fact in facts):
                raise TypeError("facts")
            pending = [[ChatMessage.model_validate(message) for message in batch] for batch in batches]
        except (KeyError, TypeError, ValidationError) as error:
            raise ConfigurationError(
                f"this is not what HyMemoryFactExtractionBlock.dump() returns ({type(error).__name__})"
            ) from None
        self.facts, self.pending = facts, pending


def _holds(batches: list[Batch], batch: Batch) -> bool:
    return any(other is batch for other in batches)


def _in_json(prompt: list[ChatMessage], existing: str, kind: str) -> list[ChatMessage]:
    """Let the template, LlamaIndex's or the app's own, ask for JSON."""
    texts = [message.content or "" for message in prompt]
    asked = []
    for text in texts:
        head, facts, tail = text.partition(existing) if existing else (text, "", "")
        asked.append(in_json(head, kind) + facts + in_json(tail, kind))
    if asked == texts:  # nothing in it asks for XML
        asked[-1] = f"{asked[-1]}\n\n{NOTE}"
    return [ChatMessage(role=message.role, content=text) for message, text in zip(prompt, asked, strict=True)]
