"""A typical request of each of LlamaIndex's write calls, made by the templates of the *installed* LlamaIndex.

Nothing here is sent for a write: it tells ``hymemory doctor`` how long LlamaIndex's prompts are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hymemory_adapters.core.request import Message

_SAID = (
    ("user", "I moved to Pune, and I drink black coffee every morning."),
    ("assistant", "Noted. How do you like Pune?"),
)
_FACTS = ("Lives in Oslo", "Likes tea", "Has a dog", "Is training for a half marathon")


def typical() -> Mapping[str, Sequence[Message]]:
    """Return the messages of a typical request, by write call."""
    from llama_index.core.llms import ChatMessage
    from llama_index.core.memory import chat_summary_memory_buffer as buffer
    from llama_index.core.memory.memory_blocks import fact

    talk = [ChatMessage(role=role, content=said) for role, said in _SAID]
    facts = "\n".join(f"<fact>{text}</fact>" for text in _FACTS)
    extract = fact.DEFAULT_FACT_EXTRACT_PROMPT.format_messages(existing_facts=facts)
    condense = fact.DEFAULT_FACT_CONDENSE_PROMPT.format_messages(existing_facts=facts, max_facts=3)
    told = buffer.ChatSummaryMemoryBuffer._get_prompt_to_summarize(None, talk)
    summary = [ChatMessage(role="system", content=buffer.SUMMARIZE_PROMPT), ChatMessage(role="user", content=told)]
    return {
        "llamaindex.facts": _plain([*talk, *extract]),
        "llamaindex.condense": _plain([*talk, *condense]),
        "llamaindex.summary": _plain(summary),
    }


def _plain(messages: Sequence[Any]) -> list[Message]:
    return [{"role": message.role.value, "content": message.content} for message in messages]
