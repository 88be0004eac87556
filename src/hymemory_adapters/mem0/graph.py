"""Mem0's graph memory (0.1 and 1.x): three requests with one tool each.

Sources: ``memory/graph_memory.py``, ``kuzu_memory.py``, ``memgraph_memory.py``, ``apache_age_memory.py`` and
``graphs/neptune/base.py`` of the wheels 0.1.118, 1.0.0 and 1.0.11, which share one protocol; the tools stand in
``graphs/tools.py``. ``search`` sends the first of them too; ``delete`` of 1.0.11 the first two, and
drops what they raise.

Mem0 reads the first tool call of the first two requests alone, so exactly one is asked for. What it does with a
reply that is not as the tool says: it raises, or it drops it without a word.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.reply import strings_in
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.tools import Answer, Tools, tool_contract
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.mem0.installed import mentions

# Mem0 fills the two stores side by side, in two threads (``memory/main.py`` ``add``), and undoes neither.
LEFT_BY_ADD = (
    "In an add, Mem0 fills the vector store beside the graph: the memories that it took are stored, the graph has "
    "nothing of this add, and adding it again may store them twice"
)
LEFT_BY_SEARCH = "In a search, nothing is changed"
LEFT_BY_DELETE = "In a delete, the memory is deleted, and its relations stay in the graph"
LEFT_BY_VECTORS = "Mem0 fills the graph beside the vector store: what it took from this add stays in the graph"


def graph_calls() -> tuple[WriteCall, ...]:
    """Build the three rows; none where the installed Mem0 has no graph memory (2.x)."""
    try:
        from mem0.graphs import tools
    except ImportError:
        return ()
    by_delete = (LEFT_BY_DELETE,) if _delete_asks() else ()
    return (
        _graph_call(
            "mem0.graph_entities",
            (tools.EXTRACT_ENTITIES_TOOL, tools.EXTRACT_ENTITIES_STRUCT_TOOL),
            summary="lists the entities of a text and their types",
            left_behind=(LEFT_BY_ADD, LEFT_BY_SEARCH, *by_delete),
        ),
        _graph_call(
            "mem0.graph_relations",
            (tools.RELATIONS_TOOL, tools.RELATIONS_STRUCT_TOOL),
            summary="lists how the entities are related",
            left_behind=(LEFT_BY_ADD, *by_delete),
        ),
        _graph_call(
            "mem0.graph_deletions",
            (tools.DELETE_MEMORY_TOOL_GRAPH, tools.DELETE_MEMORY_STRUCT_TOOL_GRAPH),
            summary="names the old relations that a text contradicts",
            left_behind=(LEFT_BY_ADD,),
            any_number=True,
        ),
    )


def graph_in_use() -> bool:
    """Whether any of Mem0's graph stores has been imported, which it is when a config names one."""
    stores = getattr(sys.modules.get("mem0.utils.factory"), "GraphStoreFactory", None)
    return any(path.rpartition(".")[0] in sys.modules for path in getattr(stores, "provider_to_class", {}).values())


def _delete_asks() -> bool:
    """Whether the installed Mem0 takes a deleted memory's relations out of the graph, with the LLM's help."""
    from mem0.memory.main import Memory

    return mentions(Memory.delete, "graph")


def _graph_call(
    name: str,
    tools: Sequence[Any],
    *,
    summary: str,
    left_behind: Sequence[str],
    any_number: bool = False,
) -> WriteCall:
    names = {tool["function"]["name"] for tool in tools}  # for the *_structured providers it may be another

    def callable_now(tool: Any) -> Tools:
        return Tools((tool["function"],)) if any_number else Tools((tool["function"],), at_least=1, at_most=1)

    def recognise(request: Request) -> Contract | None:
        if len(request.tools) != 1 or request.tools[0].get("function", {}).get("name") not in names:
            return None
        return tool_contract(
            request,
            callable_now(request.tools[0]),
            check=_blank_arguments,
            render=as_mem0_has_it,
            left_behind=". ".join(left_behind),
        )

    typical = callable_now(tools[0]).schema
    swallowed = ""
    if LEFT_BY_DELETE in left_behind:
        swallowed = f"In a delete, Mem0 hides errors of {name} from the app: the memory's relations stay in the graph."
    return WriteCall(name, recognise, OnLost.RAISE, summary=summary, typical=typical, swallowed=swallowed)


def _blank_arguments(answer: Answer) -> list[Problem]:
    """A name of nothing, which Mem0 would make a node or a relation of."""
    return [
        Problem("blank", "must not be blank", json_path(("tool_calls", index, "arguments", *path)))
        for index, call in enumerate(answer.calls)
        for path, text in strings_in(call.arguments)
        if not text.strip()
    ]


def as_mem0_has_it(answer: Answer) -> dict[str, Any]:
    """What Mem0's own providers return for a request with tools (``llms/base.py``)."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in answer.calls]
    return {"content": answer.content or None, "tool_calls": calls}
