"""Mem0's write calls: what it asks, and what its reply must be.

Mem0 names no call, and every system prompt can be replaced by the user. What no prompt replaces is how Mem0
builds the messages around it, so requests are recognised by that, with the anchors taken from the builders of
the *installed* Mem0.

===================  ==================  ============================================================
call                 Mem0                source (wheels 0.1.118, 1.0.11, 2.2.1)
===================  ==================  ============================================================
``mem0.additive``    2.0.0 to 2.2.x      ``memory/main.py`` ``_add_to_vector_store``, phase 2
``mem0.facts``       0.1.116 to 1.0.x    the same, first call
``mem0.update``      0.1.116 to 1.0.x    the same, second call; swallows every exception (``update.py``)
``mem0.procedural``  all                 ``memory/main.py`` ``_create_procedural_memory`` (``text.py``)
``mem0.graph_*``     0.1.116 to 1.0.x    ``memory/*graph*.py``, three requests with a tool (``graph.py``)
===================  ==================  ============================================================

No write calls: image descriptions (``text.py``), and the reranker's scores, which pass through.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import LIST_BOUND, Schema
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.mem0.graph import LEFT_BY_VECTORS, graph_calls, graph_in_use
from hymemory_adapters.mem0.text import procedural_call
from hymemory_adapters.mem0.update import update_call

_TEXT = {"type": "string", "minLength": 1}


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items, "maxItems": LIST_BOUND}


# The wire asks for what Mem0's prompt describes. Mem0 reads only text and attributed_to, so that is all that
# validation insists on: ids of any form, which Mem0 ignores, are no reason to ask again.
_SPEAKER = {"type": "string", "enum": ["user", "assistant"]}
_WIRE_MEMORY = {"id": {"type": "string"}, "text": _TEXT, "attributed_to": _SPEAKER}
_WIRE_LINKS = {"linked_memory_ids": {"type": "array", "items": {"type": "string"}, "maxItems": 20}}
_ANY_ID = {"type": ["string", "integer"]}

ADDITIVE = Schema(
    _object(
        {
            "memory": _list(
                _object(
                    {
                        "id": _ANY_ID,
                        "text": _TEXT,
                        "attributed_to": {"enum": ["user", "assistant", None]},
                        "linked_memory_ids": {"type": ["array", "null"], "items": _ANY_ID},
                        "event": {"const": "ADD"},
                    },
                    ["text"],
                )
            )
        },
        ["memory"],
    ),
    wire=_object(
        {"memory": _list(_object({**_WIRE_MEMORY, **_WIRE_LINKS}, list(_WIRE_MEMORY)))},
        ["memory"],
    ),
    name="mem0_additive",
)
FACTS = Schema(_object({"facts": _list(_TEXT)}, ["facts"]), name="mem0_facts")


def calls() -> tuple[WriteCall, ...]:
    """Return the table for the installed Mem0."""
    return _calls()


@lru_cache(maxsize=1)
def _calls() -> tuple[WriteCall, ...]:
    from mem0.configs import prompts
    from mem0.memory import utils

    if hasattr(prompts, "generate_additive_extraction_prompt"):
        return (_additive_call(prompts), procedural_call())
    return (_facts_call(utils), update_call(prompts), procedural_call(), *graph_calls())


def _asks_json(request: Request, *roles: str) -> bool:
    return request.roles == roles and (request.response_format or {}).get("type") == "json_object"


def _additive_call(prompts: Any) -> WriteCall:
    lines = prompts.generate_additive_extraction_prompt().splitlines(keepends=True)
    first, last = lines[0], lines[-1]
    contract = Contract(schema=ADDITIVE, check=_blank_memories, normalise=(("lifted_text", _lift_texts),))

    def recognise(request: Request) -> Contract | None:
        if not _asks_json(request, "system", "user"):
            return None
        prompt = request.text(1)
        return contract if prompt.startswith(first) and prompt.endswith(last) else None

    return WriteCall(
        "mem0.additive",
        recognise,
        OnLost.RAISE,
        summary="reads new messages beside old memories and adds what is worth remembering",
        typical=ADDITIVE,
        swallowed=_swallowed_before_2_0_11(),
    )


def _swallowed_before_2_0_11() -> str:
    from importlib.metadata import PackageNotFoundError, version

    from packaging.version import Version

    try:
        installed = Version(version("mem0ai"))
    except PackageNotFoundError:
        return ""
    if installed >= Version("2.0.11"):
        return ""
    return f"Mem0 {installed} hides errors of this call from the app (2.0.11 and later raise them)."


def _facts_call(utils: Any) -> WriteCall:
    prefix = utils.get_fact_retrieval_messages("\x00")[1].partition("\x00")[0]
    contract = Contract(schema=FACTS, check=_blank_facts, normalise=(("fact_objects", _fact_objects),))

    def recognise(request: Request) -> Contract | None:
        if not (_asks_json(request, "system", "user") and request.text(1).startswith(prefix)):
            return None
        return replace(contract, left_behind=LEFT_BY_VECTORS) if graph_in_use() else contract

    return WriteCall(
        "mem0.facts",
        recognise,
        OnLost.RAISE,
        summary="lists the facts of a conversation that are worth remembering",
        typical=FACTS,
    )


def _blank(text: str, *path: str | int) -> list[Problem]:
    return [] if text.strip() else [Problem("blank", "must not be blank", json_path(path))]


def _blank_memories(value: Any) -> list[Problem]:
    found = (_blank(item["text"], "memory", i, "text") for i, item in enumerate(value["memory"]))
    return [problem for problems in found for problem in problems]


def _blank_facts(value: Any) -> list[Problem]:
    found = (_blank(fact, "facts", i) for i, fact in enumerate(value["facts"]))
    return [problem for problems in found for problem in problems]


def _lift_texts(value: Any) -> Any:
    """A memory that is a bare string can only be its text."""
    return _with_items(value, "memory", lambda item: {"text": item} if isinstance(item, str) else item)


def _fact_objects(value: Any) -> Any:
    """A fact that is ``{"fact": "..."}`` or ``{"text": "..."}`` can only be that string."""

    def lifted(item: Any) -> Any:
        if isinstance(item, dict) and len(item) == 1:
            ((key, text),) = item.items()
            if key in ("fact", "text") and isinstance(text, str):
                return text
        return item

    return _with_items(value, "facts", lifted)


def _with_items(value: Any, key: str, change: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(value.get(key), list):
        return value
    items = [change(item) for item in value[key]]
    same = all(new is old for new, old in zip(items, value[key], strict=True))
    return value if same else {**value, key: items}
