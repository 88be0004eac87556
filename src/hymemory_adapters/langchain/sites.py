"""Where LangMem, trustcall and LangChain's memories ask an LLM, as far as the table knows: anything else is drift.

Agents and their other middleware ask an LLM in many places, none of which writes memory: they are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from hymemory_adapters.core.drift import Site, new_sites, uses_of
from hymemory_adapters.langchain.installed import spec_of

_TRUSTCALL, _EXTRACTION, _STATELESS = "_base.py", "knowledge/extraction.py", "prompts/stateless.py"
_SHORT_TERM, _SUMMARY_OF_AGENT = "short_term/summarization.py", "summarization.py"
_OPTIMIZERS = ("PromptMemory", "PromptMemoryMultiple")

_CLASSIC: dict[Site, int] = {
    ("entity.py", "ConversationEntityMemory.load_memory_variables", "chain.predict"): 1,
    ("entity.py", "ConversationEntityMemory.save_context", "chain.predict"): 1,
    ("summary.py", "SummarizerMixin.predict_new_summary", "chain.predict"): 1,
    ("summary.py", "SummarizerMixin.apredict_new_summary", "chain.apredict"): 1,
}
# By package and what it calls its LLM there.
_KNOWN: dict[tuple[str, str], dict[Site, int]] = {
    ("trustcall", "llm"): {
        (_TRUSTCALL, f"{node}.__init__", "llm.bind_tools"): 1 for node in ("_Extract", "_ExtractUpdates", "_Patch")
    },
    ("trustcall", "bound_llm"): {
        (_TRUSTCALL, "_Extract.invoke", "bound_llm.invoke"): 1,
        (_TRUSTCALL, "_Extract.ainvoke", "bound_llm.ainvoke"): 1,
    },
    ("trustcall", "bound"): {
        (_TRUSTCALL, "_ExtractUpdates._setup", "bound.bind_tools"): 1,
        (_TRUSTCALL, "_ExtractUpdates._setup", "bound.bound"): 1,
        (_TRUSTCALL, "_Patch.invoke", "bound.invoke"): 1,
        (_TRUSTCALL, "_Patch.ainvoke", "bound.ainvoke"): 1,
    },
    ("trustcall", "bound_model"): {
        (_TRUSTCALL, "_ExtractUpdates.invoke", "bound_model.invoke"): 1,
        (_TRUSTCALL, "_ExtractUpdates.ainvoke", "bound_model.ainvoke"): 1,
    },
    ("langmem", "model"): {
        (_SHORT_TERM, "summarize_messages", "model.invoke"): 1,
        (_SHORT_TERM, "asummarize_messages", "model.ainvoke"): 1,
        **{(_STATELESS, f"{each}.__init__", "model.with_structured_output"): 1 for each in _OPTIMIZERS},
        **{(_STATELESS, f"{each}.invoke", "model.invoke"): 1 for each in _OPTIMIZERS},
        **{(_STATELESS, f"{each}.ainvoke", "model.ainvoke"): 1 for each in _OPTIMIZERS},
    },
    ("langmem", "query_model"): {(_EXTRACTION, "MemoryStoreManager.__init__", "query_model.bind_tools"): 1},
    ("langmem", "query_gen"): {
        (_EXTRACTION, "MemoryStoreManager.invoke", "query_gen.invoke"): 1,
        (_EXTRACTION, "MemoryStoreManager.ainvoke", "query_gen.ainvoke"): 1,
    },
    ("langmem", "model_instance"): {(_EXTRACTION, "create_memory_searcher", "model_instance.bind_tools"): 1},
    # A graph that is deployed as it is: its model is written into it.
    ("langmem", "reflection_model"): {
        ("prompts/stateful.py", "update_general.get_output", "reflection_model.with_structured_output"): 1
    },
    ("langchain.agents.middleware", "_summary_model"): {
        (_SUMMARY_OF_AGENT, "SummarizationMiddleware._create_summary", "_summary_model.invoke"): 2,
        (_SUMMARY_OF_AGENT, "SummarizationMiddleware._acreate_summary", "_summary_model.ainvoke"): 2,
    },
    ("langchain_classic.memory", "chain"): _CLASSIC,
    ("langchain.memory", "chain"): _CLASSIC,
}


def unknown_sites() -> tuple[str, ...]:
    """Say where what is installed asks an LLM for something that this package does not know."""
    return tuple(_unknown())


def _unknown() -> Iterator[str]:
    for (package, name), known in _KNOWN.items():
        if spec_of(package):
            yield from (f"{package}/{site}" for site in new_sites(uses_of(package, name), known))
