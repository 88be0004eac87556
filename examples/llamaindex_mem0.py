"""A LlamaIndex app that keeps its memory in Mem0: the key in Mem0's config is all it needs to change.

From the root of the clone, besides what ``mem0_quickstart.py`` needs:

    .venv/bin/pip install -q "llama-index-memory-mem0>=2"
    .venv/bin/python examples/llamaindex_mem0.py

``Mem0Memory`` has no LLM of its own, it hands every message to Mem0. So does a LangChain app that calls
``mem0.Memory`` itself: the same config, and nothing of LangChain or LlamaIndex to change.

Without a model it plays replies that were written by hand; HYMEMORY_BASE_URL names yours.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
import tempfile

os.environ["MEM0_TELEMETRY"] = "False"  # Mem0 reads both when it is imported
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="llamaindex-mem0-")

import played_endpoint
from llama_index.core.llms import ChatMessage
from llama_index.memory.mem0 import Mem0Memory

# What Ana says in mem0_quickstart.py, whose replies are played.
SAID = (
    "Hi, I'm Ana! I live in Lisbon and teach the cello. Could you help me with my baking? "
    "I'm vegetarian, and my daughter Inês is allergic to peanuts.",
    "We have moved: goodbye Lisbon, home is Porto now. The oven here is gas!",
    "I told you something wrong: the allergist tested Inês today, and peanuts are fine. "
    "It's hazelnuts that she must not eat.",
)


def open_memory(folder: str, embeddings: str) -> Mem0Memory:
    """Open LlamaIndex's Mem0 memory: the first line of the config is all that it takes."""
    return Mem0Memory.from_config(
        context={"user_id": "ana"},
        config={
            "llm": {"provider": "hymemory"},
            "embedder": {
                "provider": "openai",
                "config": {"openai_base_url": embeddings, "api_key": "none", "model": "e5", "embedding_dims": 384},
            },
            "vector_store": {
                "provider": "qdrant",
                "config": {"path": folder, "collection_name": "llamaindex", "embedding_model_dims": 384},
            },
        },
    )


def main() -> None:
    """Say three things, ask for what is remembered."""
    logging.getLogger("mem0").setLevel(logging.ERROR)  # it warns of optional packages
    loopback = played_endpoint.start()
    if not (os.environ.get("HYMEMORY_BASE_URL") or os.environ.get("HYMEMORY_WRITER")):
        print("No model here: replies written by hand are played.")
        os.environ["HYMEMORY_BASE_URL"] = loopback
    memory = open_memory(os.environ["MEM0_DIR"], loopback)
    for said in SAID:
        print(f"Ana: {said}")
        memory.put(ChatMessage(role="user", content=said))
    for message in memory.get(input="Which nuts must Inês avoid?"):
        if message.role == "system":
            print(f"\nWhat the agent is told:\n{message.content}")


if __name__ == "__main__":
    try:
        main()
    except Exception as error:  # a lost write: what it was is in the log
        sys.exit(f"{type(error).__name__}: {error}")
    finally:
        shutil.rmtree(os.environ["MEM0_DIR"])
