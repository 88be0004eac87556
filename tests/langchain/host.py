"""LangMem for the tests: its managers and tools with a store in memory, and replies as the wire has them."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

LANGCHAIN = tuple(int(part) for part in version("langchain").split(".")[:2])
SAID = [{"role": "user", "content": "I drink tea now. My dog is called Rex."}]
NAMESPACE = ("memories",)
OLD = ("old", "Memory", {"content": "Drinks coffee"})


def reply(*calls: tuple[str, dict[str, Any]], content: str | None = None) -> str:
    """A good reply with these tool calls, and ``content`` where the request may be answered in words."""
    said = {} if content is None else {"content": content}
    return json.dumps({**said, "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]})


def memory(content: str) -> tuple[str, dict[str, Any]]:
    return "Memory", {"content": content}


def patch(document: str, *patches: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "PatchDoc", {"json_doc_id": document, "planned_edits": "as told", "patches": list(patches)}


def replace(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def fix(*patches: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "PatchFunctionErrors", {"json_doc_id": "x", "planned_edits": "as told", "patches": list(patches)}


Run = Callable[[Any, Any], Any]


def in_a_thread(runnable: Any, given: Any, **config: Any) -> Any:
    return runnable.invoke(given, config or None)


def in_a_loop(runnable: Any, given: Any, **config: Any) -> Any:
    return asyncio.run(runnable.ainvoke(given, config or None))


both_ways = pytest.mark.parametrize("run", [in_a_thread, in_a_loop], ids=["invoke", "ainvoke"])


def words(texts: Sequence[str]) -> list[list[float]]:
    """Embed texts as bags of words: nothing is downloaded."""
    vectors = []
    for text in texts:
        vector = [0.1] + [0.0] * 31
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % 32] += 1.0
        vectors.append(vector)
    return vectors


def a_store() -> InMemoryStore:
    return InMemoryStore(index={"dims": 32, "embed": words})


def stored(store: InMemoryStore) -> list[Any]:
    """What the store holds, sorted."""
    found = [item.value["content"] for item in store.search(NAMESPACE, limit=100)]
    return sorted((value["content"] if isinstance(value, dict) else value for value in found), key=str)


def texts(memories: Sequence[Any]) -> list[str]:
    """What a manager returns, as sorted texts."""
    contents = [each.content for each in memories]
    return sorted(content["content"] if isinstance(content, dict) else content.content for content in contents)


def assert_on_the_wire(body: dict[str, Any]) -> None:
    """No tools, a schema, thinking off: what any vLLM takes."""
    assert not {"tools", "tool_choice", "parallel_tool_calls", "stream"} & set(body)
    assert body["response_format"]["type"] == "json_schema"
    assert body["chat_template_kwargs"] == {"reasoning_effort": "no_think"}
    assert not [message for message in body["messages"] if message["role"] == "tool" or "tool_calls" in message]
