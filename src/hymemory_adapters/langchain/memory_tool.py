"""LangMem's ``manage_memory`` in the hands of an agent (``langmem/knowledge/tools.py`` 0.0.30).

The agent's own LLM is the writer then. The tool itself raises where action and id do not go together, which ends
the agent's run or costs a turn, and puts a memory under whatever id it is given.
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

_DEFAULT_NAME = "manage_memory"
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
    answer = getattr(request, "answer", None)

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

    return tool_contract(request, tools, check=check)


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
