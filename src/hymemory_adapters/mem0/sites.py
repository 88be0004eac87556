"""Where Mem0 asks its LLM, as far as the table of write calls knows: anything else in the installed one is drift."""

from __future__ import annotations

from hymemory_adapters.core.drift import Site, new_sites, uses_of

_ASK = "llm.generate_response"
_GRAPHS = ("graph_memory", "kuzu_memory", "memgraph_memory", "apache_age_memory")
_GRAPH_STEPS = (
    "_retrieve_nodes_from_data",
    "_establish_nodes_relations_from_data",
    "_get_delete_entities_from_search_output",
)


def _known(*, additive: bool) -> dict[Site, int]:
    known: dict[Site, int] = {
        ("memory/utils.py", "get_image_description", _ASK): 1,
        ("reranker/llm_reranker.py", "LLMReranker.rerank", _ASK): 1,
        # AsyncMemory.add(llm=...) of a procedural memory is the app's own model, handed over by the app.
        ("memory/main.py", "AsyncMemory._create_procedural_memory", "llm.invoke"): 1,
        ("memory/telemetry.py", "capture_event", "llm.__class__"): 2,  # its name
    }
    for memory in ("Memory", "AsyncMemory"):
        known["memory/main.py", f"{memory}._create_procedural_memory", _ASK] = 1
        known["memory/main.py", f"{memory}._add_to_vector_store", _ASK] = 1 if additive else 2
    if not additive:
        for step in _GRAPH_STEPS:
            known["graphs/neptune/base.py", f"NeptuneBase.{step}", _ASK] = 1
            known |= {(f"memory/{graph}.py", f"MemoryGraph.{step}", _ASK): 1 for graph in _GRAPHS}
    return known


def unknown_sites() -> tuple[str, ...]:
    """Say where the installed Mem0 asks its LLM for something that this package does not know."""
    from mem0.configs import prompts

    found = uses_of("mem0", "llm", besides=("config", "provider"))
    return new_sites(found, _known(additive=hasattr(prompts, "generate_additive_extraction_prompt")))
