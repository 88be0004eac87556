"""Mem0, its memory written by Hy-Memory: three sessions, an update, a contradiction, one malformed reply.

From the root of the clone:

    python3 -m venv .venv
    .venv/bin/pip install -q -r examples/requirements.txt
    .venv/bin/python examples/mem0_quickstart.py

Without a model it plays replies that were written by hand (``played_endpoint.py``). With one it uses that:

    vllm serve tencent/Hy-Memory-30B-A3B --served-model-name hy-memory
    HYMEMORY_BASE_URL=http://127.0.0.1:8000/v1 .venv/bin/python examples/mem0_quickstart.py

What an app needs is in ``open_memory`` and ``remember``; the rest of this file prints. Everything else is real:
Mem0, Qdrant in a temporary folder, an embedding model on the CPU. Nothing leaves this machine but the calls to
the model that HYMEMORY_BASE_URL names.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile
import textwrap
from contextlib import closing
from importlib.metadata import version
from typing import Any

os.environ["MEM0_TELEMETRY"] = "False"  # Mem0 reads both when it is imported
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-quickstart-")

import played_endpoint

import hymemory_adapters
from mem0 import Memory


def open_memory(folder: str, embeddings: str) -> Memory:
    """Open Mem0 with Hy-Memory: the first line of the config is all that it takes.

    No import either, where the package is installed as a wheel; from an editable install or a zip, call
    ``hymemory_adapters.register()`` before.
    """
    return Memory.from_config(
        {
            "llm": {"provider": "hymemory"},
            "embedder": {
                # Any embedder that Mem0 knows will do. This is its usual way to a model of your own: a server that
                # speaks OpenAI's protocol, here one on the loopback in this process.
                "provider": "openai",
                "config": {"openai_base_url": embeddings, "api_key": "none", "model": "e5", "embedding_dims": 384},
            },
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": folder, "collection_name": "quickstart", "embedding_model_dims": 384},
            },
        }
    )


def remember(memory: Memory) -> None:
    """Write three sessions, list what is stored, search it: plain Mem0."""
    hymemory_adapters.on_write(show_write)  # optional: an event for every write, with what was wrong on the way

    for number, (title, messages) in enumerate(SESSIONS, start=1):
        show_session(number, title, messages)
        added = memory.add(messages, user_id="ana", metadata={"session": number})
        show_added(added["results"])

    show_store(memory.get_all(filters={"user_id": "ana"})["results"])

    for question in QUESTIONS:
        found = memory.search(question, filters={"user_id": "ana"}, top_k=2)
        show_found(question, found["results"])


SESSIONS: list[tuple[str, list[dict[str, str]]]] = [
    (
        "Ana introduces herself",
        [
            {
                "role": "user",
                "content": "Hi, I'm Ana! I live in Lisbon and teach the cello. Could you help me with my baking? "
                "I'm vegetarian, and my daughter Inês is allergic to peanuts.",
            },
            {"role": "assistant", "content": "With pleasure, Ana. No gelatine, then, and no peanuts."},
        ],
    ),
    (
        "an update",
        [
            {"role": "user", "content": "We have moved: goodbye Lisbon, home is Porto now. The oven here is gas!"},
            {"role": "assistant", "content": "Welcome to Porto! Gas ovens run hotter at the back."},
        ],
    ),
    (
        "a contradiction",
        [
            {
                "role": "user",
                "content": "I told you something wrong: the allergist tested Inês today, and peanuts are fine. "
                "It's hazelnuts that she must not eat.",
            },
            {"role": "assistant", "content": "Good to know before Sunday's cake."},
        ],
    ),
]
QUESTIONS = ("Where does Ana live now?", "Which nuts must Inês avoid?", "Does Ana eat meat?")


# -- only printing from here on ----------------------------------------------------------------------

SERVE = "vllm serve tencent/Hy-Memory-30B-A3B --served-model-name hy-memory"
PLAYED = not (os.environ.get("HYMEMORY_BASE_URL") or os.environ.get("HYMEMORY_WRITER"))
FANCY = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
BOLD, DIM, RED, GREEN = ("1", "2", "31", "32")


def paint(text: str, *codes: str) -> str:
    """Colour a text, on a terminal that wants it."""
    return f"\033[{';'.join(codes)}m{text}\033[0m" if FANCY else text


def heading(text: str) -> None:
    """Print a heading."""
    print(f"\n{paint(text, BOLD)}\n{paint(('─' if FANCY else '-') * len(text), DIM)}")


def entry(label: str, text: str, *codes: str) -> None:
    """Print a label and a text beside it, wrapped."""
    first, *more = textwrap.wrap(text, 78, break_on_hyphens=False)
    print(f"  {paint(f'{label:<10}', *codes)} {first}")
    for line in more:
        print(f"  {'':<10} {line}")


def show_session(number: int, title: str, messages: list[dict[str, str]]) -> None:
    """Print what is said."""
    heading(f"Session {number}: {title}")
    for message in messages:
        entry("Ana" if message["role"] == "user" else "assistant", message["content"], DIM)
    print()


def show_write(event: hymemory_adapters.WriteEvent) -> None:
    """Print what became of each reply; a subscriber of ``on_write``."""
    for attempt in event.attempts:
        label = f"reply {attempt.number}"
        if not attempt.problems:
            entry(label, "taken", GREEN)
            continue
        entry(label, f"refused: {'; '.join(map(str, attempt.problems))}", RED)
        if PLAYED and event.outcome == "retried":
            entry("", "(malformed on purpose; Mem0 alone would have stored nothing of it, and not said so)", DIM)


def show_added(memories: list[dict[str, Any]]) -> None:
    """Print what Mem0 stored."""
    for memory in memories:
        entry("stored", memory["memory"], BOLD)
    if not memories:
        entry("stored", "nothing", BOLD)


def show_store(memories: list[dict[str, Any]]) -> None:
    """Print all that the store holds, oldest first."""
    heading("The store now")
    for memory in sorted(memories, key=lambda memory: memory["created_at"]):
        entry(f"session {memory['metadata']['session']}", memory["memory"], DIM)
    print()
    entry("", "(Mem0 2 adds and never overwrites: the old memory stays, the new one says what changed.)", DIM)


def show_found(question: str, memories: list[dict[str, Any]]) -> None:
    """Print what a search returns, best first."""
    heading(question)
    for memory in memories:
        entry(f"{memory['score']:.3f}", f"{memory['memory']} (session {memory['metadata']['session']})", GREEN)


def main() -> None:
    """Find out who writes, say so, and do it."""
    installed = version("mem0ai")
    if int(installed.partition(".")[0]) < 2:
        sys.exit(f"This example is written for Mem0 2, and here is {installed}: pip install -U mem0ai")
    from mem0.exceptions import LLMError  # what add() raises when a write is lost

    logging.getLogger("mem0").setLevel(logging.ERROR)  # it warns that spaCy and fastembed, both optional, are missing
    loopback = played_endpoint.start()
    if PLAYED:
        os.environ["HYMEMORY_BASE_URL"] = loopback
    with closing(open_memory(os.environ["MEM0_DIR"], loopback)) as memory:
        settings = memory.llm.writer.settings
        if PLAYED:
            print(f"No model here: replies written by hand for this conversation are played. For the model: {SERVE}")
            print("and then this again, with HYMEMORY_BASE_URL=http://127.0.0.1:8000/v1 in front.")
        else:
            print(f"The model {settings.model} at {settings.shown_url} writes.")
        print(f"Real in any case: Mem0 {installed}, Qdrant, an embedding model on the CPU.")
        try:
            remember(memory)
        except LLMError:
            sys.exit("\nThis session is not stored; the reason is above.")
    print('\nYour own app: {"llm": {"provider": "hymemory"}} in Mem0\'s config, and HYMEMORY_BASE_URL.')


if __name__ == "__main__":
    try:
        main()
    finally:
        shutil.rmtree(os.environ["MEM0_DIR"])
