"""Where LlamaIndex's memories ask an LLM, as far as the table knows: anything else in the installed one is drift."""

from __future__ import annotations

from hymemory_adapters.core.drift import Site, new_sites, uses_of

PACKAGE = "llama_index.core.memory"
_KNOWN: dict[Site, int] = {
    ("memory_blocks/fact.py", "FactExtractionMemoryBlock._aput", "llm.achat"): 2,
    ("chat_summary_memory_buffer.py", "ChatSummaryMemoryBuffer._summarize_oldest_chat_history", "llm.chat"): 1,
}


def unknown_sites() -> tuple[str, ...]:
    """Say where the installed LlamaIndex's memories ask an LLM for something that this package does not know."""
    return new_sites(uses_of(PACKAGE, "llm", besides=("metadata",)), _KNOWN)
