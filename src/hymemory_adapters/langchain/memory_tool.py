"""LangMem's two tools (``langmem/knowledge/tools.py`` 0.0.30).

``manage_memory`` is in the hands of an agent, whose own LLM is the writer then. The tool itself raises where action
and id do not go together, which ends the agent's run or costs a turn, and puts a memory under whatever id it is given.

``search_memory`` writes nothing. But what a store manager's ``query_model`` and ``create_memory_searcher`` do not
find with it is written once more, or not known: an answer in words finds nothing, and an argument of another name
ends in a ``TypeError`` of the store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.structured import misfits
from hymemory_adapters.core.tools import Answer, Tools, tool_contract
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.langchain.answer_tool import agent_contract

_DEFAULT_NAME = "manage_memory"
_SEARCH, _SEARCH_ARGUMENTS = "search_memory", ("query", "limit", "offset", "filter")
_SAYS = "a memory to persist across conversations.\nInclude the MEMORY ID"

_ARGUMENTS = {
    "type": "object",
    "properties": {
        "content": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "action": {"type": "string", "enum": ["create", "update", "delete"]},
        "id": {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]},
    },
}


def memory_tool_call() -> WriteCall:
    """Build the row."""
    return WriteCall(
        "langmem.manage_memory",
        _recognise,
        OnLost.RAISE,
        summary="an agent answers, and creates, updates or deletes memories with LangMem's tool",
        typical=Tools(({"name": _DEFAULT_NAME, "parameters": _ARGUMENTS},), text=True).schema,
    )


def _recognise(request: Request) -> Contract | None:
    names = {function["name"] for function in map(_function, request.tools) if _manages_memory(function)}
    tools = Tools.of(request, text=True) if names else None
    defaults = {function.get("name"): _default_action(function) for function in map(_function, request.tools)}
    if tools is None or not names & {function["name"] for function in tools.functions}:
        return None
    shown = json.dumps(list(request.messages), ensure_ascii=False, default=str)
    answer = None if request.wants_json else getattr(request, "answer", None)

    def check(reply: Answer) -> list[Problem]:
        return [
            problem
            for index, call in enumerate(reply.calls)
            for problem in (
                _wrong_arguments({"action": defaults[call.name], **call.arguments}, shown, index)
                if call.name in names
                else misfits(answer, call.arguments, ("tool_calls", index, "arguments"), python=True)
            )
        ]

    return agent_contract(request, tools, check)


def search_call() -> WriteCall:
    """Build the row of a search that must be made; an agent's, which may be, is another tool among its tools."""
    return WriteCall(
        "langmem.search",
        _search,
        OnLost.RAISE,
        summary="says what to search the memories for (query_model, create_memory_searcher)",
        writes=False,
    )


def _search(request: Request) -> Contract | None:
    tools = Tools.of(request) if {_function(tool).get("name") for tool in request.tools} == {_SEARCH} else None
    if tools is None or not tools.at_least:
        return None

    def check(reply: Answer) -> list[Problem]:
        return [
            problem
            for index, call in enumerate(reply.calls)
            for problem in _wrong_search(call.arguments, ("tool_calls", index, "arguments"))
        ]

    return tool_contract(request, tools, check=check)


def _wrong_search(arguments: Mapping[str, Any], path: tuple[str | int, ...]) -> list[Problem]:
    if not arguments.keys() <= set(_SEARCH_ARGUMENTS):
        return [Problem("schema", f"may have {', '.join(_SEARCH_ARGUMENTS)} and nothing else", json_path(path))]
    if not str(arguments.get("query") or "").strip():
        return [Problem("blank", "must not be blank", json_path((*path, "query")))]
    return []


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function")
    return function if isinstance(function, Mapping) else {}


def _manages_memory(function: Mapping[str, Any]) -> bool:
    arguments = (function.get("parameters") or {}).get("properties") or {}
    named = function.get("name") == _DEFAULT_NAME or _SAYS in str(function.get("description"))
    return named and {"content", "action", "id"} >= arguments.keys() >= {"content"}


def _default_action(function: Mapping[str, Any]) -> str:
    properties = (function.get("parameters") or {}).get("properties") or {}
    return str((properties.get("action") or {}).get("default") or "create")


def _wrong_arguments(arguments: Mapping[str, Any], shown: str, index: int) -> list[Problem]:
    def problem(rule: str, message: str, key: str) -> list[Problem]:
        return [Problem(rule, message, json_path(("tool_calls", index, "arguments", key)))]

    action, memory_id = arguments["action"], arguments.get("id")
    if action == "create" and memory_id is not None:
        return problem("memory_id", 'must be left out where action is "create"', "id")
    if action in ("update", "delete"):
        if not memory_id:
            return problem("memory_id", f'is needed where action is "{action}"', "id")
        if str(memory_id) not in shown:
            return problem("unknown_id", "is the id of no memory that was shown", "id")
    if action != "delete" and not _says_something(arguments.get("content")):
        return problem("blank", "must not be blank", "content")
    return []


def _says_something(content: Any) -> bool:
    return bool(content.strip()) if isinstance(content, str) else content is not None
