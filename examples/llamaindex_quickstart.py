"""LlamaIndex, its memory written by Hy-Memory: two conversations, a restart between them, one malformed reply.

From the root of the clone:

    python3 -m venv .venv
    .venv/bin/pip install -q ".[llamaindex]"
    .venv/bin/python examples/llamaindex_quickstart.py

Without a model it plays replies that were written by hand (below). With one it uses that:

    vllm serve tencent/Hy-Memory-30B-A3B --served-model-name hy-memory
    HYMEMORY_BASE_URL=http://127.0.0.1:8000/v1 .venv/bin/python examples/llamaindex_quickstart.py

What an app needs is in ``open_memory`` and ``close_memory``; the rest of this file prints. Nothing leaves this machine
but the calls to the model that HYMEMORY_BASE_URL names.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import textwrap
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import played_endpoint
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory

import hymemory_adapters
from hymemory_adapters.llamaindex import HyMemoryFactExtractionBlock


def open_memory(conversation: str, kept: Path) -> tuple[Memory, HyMemoryFactExtractionBlock]:
    """Open a memory with a block of facts that Hy-Memory writes, with what an earlier run has kept.

    The limits are small, so that turns leave the short-term memory in a conversation this short.
    """
    facts = HyMemoryFactExtractionBlock()  # Settings.llm = HyMemory() does it for LlamaIndex's own block too
    if kept.exists():
        facts.load(json.loads(kept.read_text(encoding="utf-8")))
    memory = Memory.from_defaults(
        session_id=conversation,
        token_limit=100,
        chat_history_token_ratio=0.5,
        token_flush_size=1,
        memory_blocks=[facts],
    )
    return memory, facts


def close_memory(facts: HyMemoryFactExtractionBlock, kept: Path) -> None:
    """Keep the facts over a restart, and with them the turns that no reply could be had for yet."""
    kept.write_text(json.dumps(facts.dump()), encoding="utf-8")


async def remember(kept: Path) -> list[ChatMessage]:
    """Hold two conversations; return what the agent is told at the end."""
    told: list[ChatMessage] = []
    for number, (title, turns) in enumerate(CONVERSATIONS, start=1):
        memory, facts = open_memory(f"conversation-{number}", kept)
        heading(f"Conversation {number}: {title}")
        for role, said in turns:
            entry("Ana" if role == "user" else "assistant", said)
            await memory.aput(ChatMessage(role=role, content=said))
        print()
        for fact in facts.facts:
            entry("fact", fact)
        close_memory(facts, kept)
        if facts.pending:
            sys.exit(
                f"\n{sum(map(len, facts.pending))} messages wait for a reply that can be used; the reason is above."
            )
        told = await memory.aget()
    return told


CONVERSATIONS: list[tuple[str, list[tuple[str, str]]]] = [
    (
        "Ana introduces herself",
        [
            ("user", "Hi, I'm Ana! I live in Lisbon and teach the cello there, and in my free time I love to bake."),
            ("assistant", "Nice to meet you, Ana. What are you going to bake next?"),
            ("user", "A cake for my daughter Inês. She is allergic to peanuts, and I am vegetarian myself."),
            ("assistant", "No peanuts and no gelatine, then. How about a lemon cake?"),
            ("user", "Sounds good. How long does it take, and what do I have to buy for it before Sunday?"),
        ],
    ),
    (
        "weeks later",
        [
            ("user", "We have moved: goodbye Lisbon, home is Porto now. And the oven here in the flat is gas!"),
            ("assistant", "Welcome to Porto! Gas ovens run hotter at the back."),
            ("user", "Good to know. By the way, what could I bake for Inês this time? She has five guests."),
            ("assistant", "Little lemon cakes, one for each of them: without peanuts."),
            ("user", "Lovely, we shall try those on Sunday, and I will tell you how it was after that."),
        ],
    ),
]

# -- instead of a model ------------------------------------------------------------------------------

# What the turns say -> the replies to them: the first, and the one to being asked again.
REPLIES: dict[str, tuple[str, ...]] = {
    "I live in Lisbon": ('{"facts": ["Ana lives in Lisbon and teaches the cello", "Ana loves to bake"]}',),
    "allergic to peanuts, and I am": (
        '{"facts": ["Ana has a daughter named Inês who is allergic to peanuts", "Ana is vegetarian"]}',
    ),
    "home is Porto now": (
        # Malformed on purpose: XML, as the prompt of LlamaIndex asks for it, but with a tag that it does not know.
        "<facts><fact id='1'>Ana has moved from Lisbon to Porto</fact></facts>",
        '{"facts": ["Ana has moved from Lisbon to Porto", "Ana has a gas oven in Porto"]}',
    ),
    "She has five guests": ('{"facts": []}',),
}


def reply_to(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Find the reply by what the turns in front of the prompt say."""
    prompt = max(i for i, message in enumerate(messages) if "<existing_facts>" in str(message["content"]))
    turns = "".join(message["content"] for message in messages[:prompt])
    refused = (len(messages) - 1 - prompt) // 2
    for said, replies in REPLIES.items():
        if said in turns:
            return replies[min(refused, len(replies) - 1)]
    return None


# -- only printing from here on ----------------------------------------------------------------------

SERVE = "vllm serve tencent/Hy-Memory-30B-A3B --served-model-name hy-memory"
PLAYED = not (os.environ.get("HYMEMORY_BASE_URL") or os.environ.get("HYMEMORY_WRITER"))


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{text}\n{'-' * len(text)}")


def entry(label: str, text: str) -> None:
    """Print a label and a text beside it, wrapped."""
    first, *more = textwrap.wrap(text, 78, break_on_hyphens=False) or [""]
    print(f"  {label:<10} {first}")
    for line in more:
        print(f"  {'':<10} {line}")


def show_write(event: hymemory_adapters.WriteEvent) -> None:
    """Print what became of each reply; a subscriber of ``on_write``."""
    for attempt in event.attempts:
        problems = "; ".join(map(str, attempt.problems))
        entry(f"reply {attempt.number}", f"refused: {problems}" if problems else "taken")


def main() -> None:
    """Find out who writes, say so, and do it."""
    installed = version("llama-index-core")
    if tuple(map(int, installed.split(".")[:2])) < (0, 14):
        sys.exit(
            f"This example is written for LlamaIndex 0.14, and here is {installed}: pip install -U llama-index-core"
        )
    if PLAYED:
        os.environ["HYMEMORY_BASE_URL"] = played_endpoint.start(reply_to)
        print(f"No model here: replies written by hand for this conversation are played. For the model: {SERVE}")
        print("and then this again, with HYMEMORY_BASE_URL=http://127.0.0.1:8000/v1 in front.")
    else:
        print(f"The model at {HyMemoryFactExtractionBlock().llm.settings.shown_url} writes.")
    hymemory_adapters.on_write(show_write)  # optional: an event for every write, with what was wrong on the way
    with tempfile.TemporaryDirectory() as folder:
        told = asyncio.run(remember(Path(folder, "facts.json")))
    heading("What the agent is told before it answers")
    for line in str(told[0].content).splitlines():
        entry("", line)
    print("\nYour own app: memory_blocks=[HyMemoryFactExtractionBlock()], or Settings.llm = HyMemory().")


if __name__ == "__main__":
    main()
