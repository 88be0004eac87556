"""A whole ``Memory.add``: what an app waits for, with Mem0's stock provider for vLLM and with ours.

Real Mem0, offline: embedded Qdrant in memory, an embedder that hashes words. Each round starts with an empty store, so
that its growth is nobody's ratio. One add at a time: embedded Qdrant is not made for threads.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from contenders import timed
from endpoint import Endpoint
from figures import Budget, Row
from mem0.utils.factory import EmbedderFactory
from qdrant_client import QdrantClient
from rounds import Contender, freeze, in_turn
from writes import EXTRA_MS, RATIO

from mem0 import Memory

DIMENSIONS = 64
SAID = "I moved to Pune, and I drink black coffee every morning."


class HashEmbedder:
    """Bag of words, each hashed to a dimension: nothing is downloaded, nothing takes time."""

    def __init__(self, config: Any = None) -> None:
        self.config = config

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """A unit vector."""
        vector = [0.1] * DIMENSIONS
        for word in text.lower().split():
            vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1.0
        length = math.sqrt(sum(x * x for x in vector))
        return [x / length for x in vector]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[list[float]]:
        """One for each text."""
        return [self.embed(text) for text in texts]


def _memory(llm: dict[str, Any], name: str) -> Memory:
    EmbedderFactory.provider_to_class["huggingface"] = f"{__name__}.HashEmbedder"
    store = {"client": QdrantClient(":memory:"), "collection_name": name, "embedding_model_dims": DIMENSIONS}
    return Memory.from_config(
        {
            "llm": llm,
            "embedder": {"provider": "huggingface", "config": {"embedding_dims": DIMENSIONS}},
            "vector_store": {"provider": "qdrant", "config": store},
            "history_db_path": ":memory:",
        }
    )


def measure(endpoint: Endpoint, *, quick: bool) -> list[Row]:
    """Both providers, with an endpoint that answers at once and one that takes 100 ms."""
    rounds, rows = (1 if quick else 20), []
    for delay, times in ((0, 1 if quick else 5), (100, 1 if quick else 3)):
        url = endpoint.url(delay)
        ours = {"provider": "hymemory", "config": {"base_url": url}}
        stock = {"provider": "vllm", "config": {"vllm_base_url": url, "model": "hy-memory", "api_key": "EMPTY"}}
        everyone = [
            Contender("stock", "", _adding(_memory(stock, "stock"))),
            Contender("ours", "stock", _adding(_memory(ours, "ours"))),
        ]
        freeze()
        section = "Memory.add, the endpoint answers " + (f"after {delay} ms" if delay else "at once")
        found = in_turn(section, everyone, endpoint, writers=1, times=times, rounds=rounds)
        found[1].budgets = (Budget("ratio", RATIO) if delay else Budget("extra", EXTRA_MS),)
        rows += found
    return rows


def _adding(memory: Memory) -> Callable[[int, int], list[float]]:
    def run(_: int, times: int) -> list[float]:
        latencies = timed(partial(memory.add, SAID, user_id="ann"), times)
        kept = len(memory.get_all(filters={"user_id": "ann"}, top_k=1000)["results"])
        if kept != 3 * times:
            raise SystemExit(f"Memory.add kept {kept} memories, not {3 * times}")
        memory.reset()
        return latencies

    return run
