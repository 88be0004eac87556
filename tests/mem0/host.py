"""Real Mem0, offline: embedded Qdrant in memory, an embedder that hashes words, our provider as the LLM."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import pytest
from mem0.utils.factory import EmbedderFactory
from qdrant_client import QdrantClient

import hymemory_adapters
import mem0

if not hasattr(mem0.memory.telemetry, "_get_oss_telemetry"):
    # 0.1 starts a thread for every telemetry event, also when telemetry is off: thousands in a run of the tests.
    mem0.memory.main.capture_event = lambda *args, **more: None

hymemory_adapters.register("mem0")  # the tests run from the source tree as well as from the wheel

VERSION = version("mem0ai")
MAJOR = int(VERSION.partition(".")[0])
DIMENSIONS = 64
USER = "alice"
CALLS = ("mem0.additive",) if MAJOR >= 2 else ("mem0.facts", "mem0.update")

only_v2 = pytest.mark.skipif(MAJOR < 2, reason=f"Mem0 {VERSION} has no additive call (2.x has)")
only_two_calls = pytest.mark.skipif(
    MAJOR >= 2, reason=f"Mem0 {VERSION} has no facts and update calls (0.1 and 1.x have)"
)


class HashEmbedder:
    """Bag of words, each word hashed to a dimension: alike texts are near, and nothing is downloaded."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        vector = [0.0] * DIMENSIONS
        vector[0] = 0.1  # never all zero
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
        length = math.sqrt(sum(x * x for x in vector))
        return [x / length for x in vector]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        return [self.embed(text) for text in texts]


EmbedderFactory.provider_to_class["huggingface"] = f"{__name__}.HashEmbedder"


_numbers = itertools.count()


@lru_cache(maxsize=1)
def _client() -> QdrantClient:
    return QdrantClient(":memory:")  # takes 40 ms to make, so one for all: each memory has its own collection


def config(llm: dict[str, Any] | None, *, own_client: bool = False, **more: Any) -> dict[str, Any]:
    """A whole Mem0 config with this ``llm`` in it, and a store of its own.

    Embedded Qdrant is not thread-safe: whoever writes from several threads takes clients of their own.
    """
    store = {
        "client": QdrantClient(":memory:") if own_client else _client(),
        "collection_name": f"memories_{next(_numbers)}",
        "embedding_model_dims": DIMENSIONS,
    }
    return {
        **({} if llm is None else {"llm": llm}),
        "embedder": {"provider": "huggingface", "config": {"embedding_dims": DIMENSIONS}},
        "vector_store": {"provider": "qdrant", "config": store},
        "history_db_path": ":memory:",
        **more,
    }


def drop(memory: Any) -> None:
    """Delete a memory's store."""
    memory.db.close()
    memory.vector_store.client.delete_collection(memory.collection_name)


def hymemory(url: str, **block: Any) -> dict[str, Any]:
    """The ``llm`` part of a config that names our provider."""
    return {"provider": "hymemory", "config": {"base_url": url, **block}}


async def async_memory(llm: dict[str, Any], **more: Any) -> Any:
    """An ``AsyncMemory``, whose ``from_config`` is a coroutine before 1.0.10."""
    made = mem0.AsyncMemory.from_config(config(llm, **more))
    return await made if inspect.isawaitable(made) else made


# -- what is stored --------------------------------------------------------------------------------


def _all_of(user: str) -> dict[str, Any]:
    return {"filters": {"user_id": user}, "top_k": 1000} if MAJOR >= 2 else {"user_id": user, "limit": 1000}


def rows(memory: Any, user: str = USER) -> list[dict[str, Any]]:
    """What the store holds for a user."""
    return list(memory.get_all(**_all_of(user))["results"])


def stored(memory: Any, user: str = USER) -> list[str]:
    """The texts that the store holds for a user, sorted."""
    return sorted(row["memory"] for row in rows(memory, user))


async def astored(memory: Any, user: str = USER) -> list[str]:
    """The same of an ``AsyncMemory``."""
    found = await memory.get_all(**_all_of(user))
    return sorted(row["memory"] for row in found["results"])


def seed(memory: Any, *texts: str, user: str = USER) -> dict[str, str]:
    """Store memories as they are, without an LLM; return their ids by text."""
    for text in texts:
        memory.add(text, user_id=user, infer=False)
    return {row["memory"]: row["id"] for row in rows(memory, user)}


def done(result: dict[str, Any]) -> list[tuple[str, str]]:
    """What ``Memory.add`` says it did: events and texts, sorted."""
    return sorted((item["event"], item["memory"]) for item in result["results"])


def events_of(memory: Any, identity: str) -> list[str]:
    """What the history says was done to a memory."""
    return [entry["event"] for entry in memory.history(identity)]


# -- what a model answers --------------------------------------------------------------------------

_LITERAL = re.compile(r"^ *(\[.*\])$", re.MULTILINE)


def asked(body: dict[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The facts of an update request, and the ids of the memories it shows, by text."""
    lists = [ast.literal_eval(found) for found in _LITERAL.findall(body["messages"][0]["content"])]
    facts = lists[-1]
    shown = lists[-2] if len(lists) > 1 and lists[-2] and isinstance(lists[-2][0], dict) else []
    return facts, {memory["text"]: memory["id"] for memory in shown}


def facts_reply(*facts: str) -> str:
    return json.dumps({"facts": list(facts)}, ensure_ascii=False)


def update_reply(*operations: dict[str, Any]) -> str:
    return json.dumps({"memory": list(operations)}, ensure_ascii=False)


def additive_reply(*texts: str) -> str:
    items = [{"id": str(i), "text": text, "attributed_to": "user"} for i, text in enumerate(texts)]
    return json.dumps({"memory": items}, ensure_ascii=False)


def add_all(body: dict[str, Any]) -> str:
    """The reply to an update request that adds every fact."""
    return update_reply(*({"id": str(90 + i), "text": fact, "event": "ADD"} for i, fact in enumerate(asked(body)[0])))


Entry = str | Callable[[dict[str, Any]], str]


def writes(*texts: str) -> list[Entry]:
    """The replies of one ``Memory.add`` that stores these texts, for the installed version."""
    return [additive_reply(*texts)] if MAJOR >= 2 else [facts_reply(*texts), add_all]


def contents(messages: Iterable[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages]
