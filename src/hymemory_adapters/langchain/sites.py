"""Where LangMem, trustcall and LangChain's memories ask an LLM, as far as the table knows: anything else is drift.

Agents and their other middleware ask an LLM in many places, none of which writes memory: they are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hymemory_adapters.core.drift import Site, Watched, new_sites, uses_of
from hymemory_adapters.langchain.installed import spec_of


def _sites(files: Mapping[str, Mapping[str, Mapping[str, int]]]) -> dict[Site, int]:
    """Flatten a table: file, function, what it uses and how often."""
    return {
        (file, function, used): count
        for file, functions in files.items()
        for function, uses in functions.items()
        for used, count in uses.items()
    }


_OF_A_CHAT_MODEL = ("bind_tools", "with_structured_output")
# What is bare is handed on (`model`), or makes what asks (`init_chat_model`, LangMem's `create_extractor`, `LLMChain`):
# it is asked at the sites of trustcall and of the table.
_TRUSTCALL = {
    "_base.py": {
        "create_extractor": {"llm": 5, "init_chat_model": 1},  # hands it to the three nodes
        "_Extract.__init__": {"llm.bind_tools": 1},
        "_Extract.invoke": {"bound_llm.invoke": 1},
        "_Extract.ainvoke": {"bound_llm.ainvoke": 1},
        "_ExtractUpdates.__init__": {"llm.bind_tools": 1},
        "_ExtractUpdates._setup": {"bound": 1, "bound.bind_tools": 1, "bound.bound": 1, "bound_model": 1},
        "_ExtractUpdates.invoke": {"bound_model.invoke": 1},
        "_ExtractUpdates.ainvoke": {"bound_model.ainvoke": 1},
        "_Patch.__init__": {"llm.bind_tools": 1},
        "_Patch.invoke": {"bound.invoke": 1},
        "_Patch.ainvoke": {"bound.ainvoke": 1},
    }
}
_LANGMEM = {
    "knowledge/extraction.py": {
        "MemoryManager.__init__": {"model": 3, "init_chat_model": 1},
        "MemoryManager.invoke": {"model": 2, "create_extractor": 2},
        "MemoryManager.ainvoke": {"model": 2, "create_extractor": 2},
        "MemoryStoreManager.__init__": {
            "model": 4,
            "query_model": 5,
            "init_chat_model": 2,
            "query_model.bind_tools": 1,
        },
        "MemoryStoreManager._build_phase_manager": {"model": 1},
        "MemoryStoreManager.invoke": {"query_gen": 1, "query_gen.invoke": 1},
        "MemoryStoreManager.ainvoke": {"query_gen": 1, "query_gen.ainvoke": 1},
        "create_memory_manager": {"model": 1},
        "create_memory_searcher": {
            "model": 3,
            "init_chat_model": 1,
            "model_instance.bind_tools": 1,
            "query_gen": 1,
        },
        "create_memory_store_manager": {"model": 1, "query_model": 1},
        "create_thread_extractor": {"model": 1, "create_extractor": 1},
    },
    "short_term/summarization.py": {
        "summarize_messages": {"model.invoke": 1},
        "asummarize_messages": {"model.ainvoke": 1},
        **{f"SummarizationNode.{each}": {"model": 1} for each in ("__init__", "_func", "_afunc")},
    },
    "prompts/stateless.py": {
        f"{optimizer}.{method}": uses
        for optimizer in ("PromptMemory", "PromptMemoryMultiple")
        for method, uses in {
            "__init__": {"model": 3, "init_chat_model": 2, "model.with_structured_output": 1},
            "invoke": {"model.invoke": 1},
            "ainvoke": {"model.ainvoke": 1},
        }.items()
    },
    # A graph that is deployed as it is: its model is written into it.
    "prompts/stateful.py": {
        "update_general": {"init_chat_model": 1},
        "update_general.get_output": {"reflection_model.with_structured_output": 1},
    },
    "prompts/gradient.py": {
        "GradientPromptOptimizer.__init__": {"model": 4, "create_extractor": 3},
        "GradientPromptOptimizer._update_prompt": {"model": 1, "create_extractor": 1},
        "GradientPromptOptimizer._aupdate_prompt": {"model": 1, "create_extractor": 1},
        "create_gradient_prompt_optimizer": {"model": 1},
    },
    "prompts/metaprompt.py": {
        "MetaPromptOptimizer.__init__": {"model": 2, "create_extractor": 1},
        "MetaPromptOptimizer._get_extractors": {"model": 2, "create_extractor": 2},
        "MetaPromptOptimizer._reflect_then_update": {"model": 1},
        "MetaPromptOptimizer._areflect_then_update": {"model": 1},
        "create_metaprompt_optimizer": {"model": 1},
    },
    "prompts/optimization.py": {
        "MultiPromptOptimizer.__init__": {"model": 2},
        "MultiPromptOptimizer.invoke": {"model": 1, "create_extractor": 1},
        "MultiPromptOptimizer.ainvoke": {"model": 1, "create_extractor": 1},
        "create_prompt_optimizer": {"model": 3},
        "create_multi_prompt_optimizer": {"model": 1},
    },
    "graphs/prompts.py": {"optimize": {"model": 2}},
}
_MIDDLEWARE = {
    "summarization.py": {
        "SummarizationMiddleware._create_summary": {"_summary_model.invoke": 2},
        "SummarizationMiddleware._acreate_summary": {"_summary_model.ainvoke": 2},
    }
}
_COUNTS_TOKENS = {"llm.get_num_tokens_from_messages": 2}
_CLASSIC = {
    "entity.py": {
        f"ConversationEntityMemory.{each}": {"LLMChain": 1, "llm": 1, "chain.predict": 1}
        for each in ("load_memory_variables", "save_context")
    },
    "summary.py": {
        "ConversationSummaryMemory.from_messages": {"llm": 1},
        "SummarizerMixin.predict_new_summary": {"LLMChain": 1, "llm": 1, "chain.predict": 1},
        "SummarizerMixin.apredict_new_summary": {"LLMChain": 1, "llm": 1, "chain.apredict": 1},
    },
    "summary_buffer.py": {f"ConversationSummaryBufferMemory.{each}": _COUNTS_TOKENS for each in ("prune", "aprune")},
    "token_buffer.py": {"ConversationTokenBufferMemory.save_context": _COUNTS_TOKENS},
    "vectorstore_token_buffer_memory.py": {"ConversationVectorStoreTokenBufferMemory.save_context": _COUNTS_TOKENS},
}

_OF_LANGMEM = ("model", "query_model", "query_gen", "model_instance", "reflection_model")
_WATCHED = {
    "trustcall": Watched(("llm", "bound_llm", "bound", "bound_model", "init_chat_model"), _OF_A_CHAT_MODEL),
    "langmem": Watched((*_OF_LANGMEM, "init_chat_model", "create_extractor"), _OF_A_CHAT_MODEL),
    "langchain.agents.middleware": Watched(("_summary_model",)),
    "langchain_classic.memory": Watched(("chain", "llm", "LLMChain"), _OF_A_CHAT_MODEL),
    "langchain.memory": Watched(("chain", "llm", "LLMChain"), _OF_A_CHAT_MODEL),
}
_KNOWN: dict[str, dict[Site, int]] = {
    "trustcall": _sites(_TRUSTCALL),
    "langmem": _sites(_LANGMEM),
    "langchain.agents.middleware": _sites(_MIDDLEWARE),
    "langchain_classic.memory": _sites(_CLASSIC),
    "langchain.memory": _sites(_CLASSIC),
}


def unknown_sites() -> tuple[str, ...]:
    """Say where what is installed asks an LLM for something that this package does not know."""
    return tuple(_unknown())


def _unknown() -> Iterator[str]:
    for package, known in _KNOWN.items():
        if spec_of(package):
            yield from (f"{package}/{site}" for site in new_sites(uses_of(package, _WATCHED[package]), known))
