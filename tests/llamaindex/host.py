"""LlamaIndex's own memories, small enough that a few turns leave the short-term memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatSummaryMemoryBuffer, FactExtractionMemoryBlock, Memory
from packaging.version import Version

VERSION = Version(version("llama-index-core"))
TEA, CAT, OSLO = "User likes green tea", "User has a cat named Miro", "User lives in Oslo"
EXTRACT, CONDENSE, SUMMARY = "llamaindex.facts", "llamaindex.condense", "llamaindex.summary"
_FILLER = " and so on" * 20


def facts(*said: str) -> str:
    """The good reply of both fact calls."""
    return json.dumps({"facts": list(said)}, ensure_ascii=False)


def turns(*said: str) -> list[ChatMessage]:
    """User and assistant by turns, each message long enough that two of them are flushed at once."""
    return [
        ChatMessage(role="assistant" if index % 2 else "user", content=text + _FILLER)
        for index, text in enumerate(said)
    ]


def memory_with(*blocks: Any) -> Memory:
    """A memory that flushes two of the messages that :func:`turns` makes when a third and fourth come."""
    return Memory.from_defaults(
        session_id="s-1", token_limit=200, chat_history_token_ratio=0.5, token_flush_size=60, memory_blocks=list(blocks)
    )


def put(memory: Memory, messages: Sequence[ChatMessage]) -> None:
    """Add messages one by one, as an agent does."""

    async def all_of_them() -> None:
        for message in messages:
            await memory.aput(message)

    asyncio.run(all_of_them())


def stock(llm: Any, **more: Any) -> FactExtractionMemoryBlock:
    return FactExtractionMemoryBlock(llm=llm, **more)


def summary_buffer(llm: Any, messages: Sequence[ChatMessage], **more: Any) -> ChatSummaryMemoryBuffer:
    """A buffer that keeps about two of the messages that :func:`turns` makes, and sums up the others."""
    return ChatSummaryMemoryBuffer.from_defaults(llm=llm, token_limit=150, chat_history=list(messages), **more)


def prompts(endpoint: Any) -> list[str]:
    """The last message of each chat request, which is LlamaIndex's prompt."""
    return [chat.messages[-1]["content"] for chat in endpoint.chats]


# Before 0.14 each message beyond the limit was flushed alone, without its answer.
_FLUSHED_AT = 3 if Version("0.14") <= VERSION else 2


def put_until_flushed(memory: Memory) -> None:
    """Add messages until the first of them leave the short-term memory, once."""
    put(memory, turns("I like green tea", "Fine.", "And cats")[:_FLUSHED_AT])
