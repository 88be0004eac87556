"""Where LlamaIndex's memories ask an LLM, as far as the table knows: anything else in the installed one is drift."""

from __future__ import annotations

from hymemory_adapters.core.drift import Site, Watched, new_sites, uses_of

PACKAGE = "llama_index.core.memory"
WATCHED = Watched(
    names=("llm",),
    methods=tuple(
        f"{way}{method}"
        for method in ("chat", "complete", "predict", "structured_predict", "predict_and_call")
        for way in ("", "a", "stream_", "astream_")
    ),
)
_KNOWN: dict[Site, int] = {
    ("memory_blocks/fact.py", "FactExtractionMemoryBlock._aput", "llm.achat"): 2,
    ("chat_summary_memory_buffer.py", "ChatSummaryMemoryBuffer._summarize_oldest_chat_history", "llm.chat"): 1,
    # Whether there is one, and the app's own is handed to the block that asks it.
    ("chat_summary_memory_buffer.py", "ChatSummaryMemoryBuffer.get", "llm"): 1,
    ("chat_summary_memory_buffer.py", "ChatSummaryMemoryBuffer._summarize_oldest_chat_history", "llm"): 1,
    ("chat_summary_memory_buffer.py", "ChatSummaryMemoryBuffer.from_defaults", "llm"): 2,
    ("chat_memory_buffer.py", "ChatMemoryBuffer.from_defaults", "llm"): 1,
    ("memory_blocks/fact.py", "get_default_llm", "llm"): 1,  # Settings.llm
    # The size of its context.
    ("chat_summary_memory_buffer.py", "ChatSummaryMemoryBuffer.from_defaults", "llm.metadata"): 1,
    ("chat_memory_buffer.py", "ChatMemoryBuffer.from_defaults", "llm.metadata"): 1,
}


def unknown_sites() -> tuple[str, ...]:
    """Say where the installed LlamaIndex's memories ask an LLM for something that this package does not know."""
    return new_sites(uses_of(PACKAGE, WATCHED), _KNOWN)
