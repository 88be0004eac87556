"""Where Mem0 asks its LLM, as far as the table of write calls knows: anything else in the installed one is drift."""

from __future__ import annotations

from hymemory_adapters.core.drift import Site, Watched, new_sites, uses_of

WATCHED = Watched(
    names=("llm", "LlmFactory"),
    methods=("generate_response",),
    settings=("config", "graph_store"),
    clients=("anthropic", "groq", "litellm", "ollama", "openai", "together"),
    folders=("llms/", "embeddings/", "proxy/"),  # its providers, and a chat client that has its memory beside it
)
_ASK, _MAKE = "llm.generate_response", "LlmFactory.create"
_GRAPHS = ("graph_memory", "kuzu_memory", "memgraph_memory", "apache_age_memory")
_GRAPH_STEPS = (
    "_retrieve_nodes_from_data",
    "_establish_nodes_relations_from_data",
    "_get_delete_entities_from_search_output",
)


def _known(*, additive: bool) -> dict[Site, int]:
    known: dict[Site, int] = {
        ("memory/utils.py", "get_image_description", _ASK): 1,
        # Handed on to that, and since 2.0 looked whether it is there.
        ("memory/utils.py", "parse_vision_messages", "llm"): 4 if additive else 2,
        ("memory/main.py", "Memory.add", "llm"): 1,
        ("memory/main.py", "AsyncMemory.add", "llm"): 2,  # and the app's own, for:
        ("reranker/llm_reranker.py", "LLMReranker.rerank", _ASK): 1,
        ("reranker/llm_reranker.py", "LLMReranker.__init__", _MAKE): 1,
        # AsyncMemory.add(llm=...) of a procedural memory is the app's own model, handed over by the app.
        ("memory/main.py", "AsyncMemory._create_procedural_memory", "llm"): 1,
        ("memory/main.py", "AsyncMemory._create_procedural_memory", "llm.invoke"): 1,
        ("memory/telemetry.py", "capture_event", "llm.__class__"): 2,  # its name
    }
    for memory in ("Memory", "AsyncMemory"):
        known["memory/main.py", f"{memory}.__init__", _MAKE] = 1
        known["memory/main.py", f"{memory}._create_procedural_memory", _ASK] = 1
        known["memory/main.py", f"{memory}._add_to_vector_store", _ASK] = 1 if additive else 2
    if not additive:
        known["graphs/neptune/base.py", "NeptuneBase._create_llm", _MAKE] = 1
        known |= {(f"memory/{graph}.py", "MemoryGraph.__init__", _MAKE): 1 for graph in _GRAPHS}
        for step in _GRAPH_STEPS:
            known["graphs/neptune/base.py", f"NeptuneBase.{step}", _ASK] = 1
            known |= {(f"memory/{graph}.py", f"MemoryGraph.{step}", _ASK): 1 for graph in _GRAPHS}
    return known


def unknown_sites() -> tuple[str, ...]:
    """Say where the installed Mem0 asks its LLM for something that this package does not know."""
    from mem0.configs import prompts

    return new_sites(uses_of("mem0", WATCHED), _known(additive=hasattr(prompts, "generate_additive_extraction_prompt")))
