"""trustcall's three requests: how LangMem's managers write (``trustcall/_base.py`` 0.0.39).

What trustcall does when a request brings nothing, measured:

``extract``
    raises the exception, and so does LangMem's manager: the app still has the conversation.
``update``
    catches any exception and asks again, without a limit of its own: LangGraph stops it after 25 requests. An
    empty reply ends it, and the documents stay as they were.
``repair``
    catches any exception and goes on with the tool calls that did validate. An empty reply crashes it.

Beside that, it drops an update without a word to the app where the id is not known, where a patch does not apply,
and where one document is patched by two calls (the last one has it).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.tools import Answer, ToolCall, Tools, tool_contract
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.langchain.documents import Document, documents_in, last_tool_call, patched

_PATCH, _REMOVE = "PatchDoc", "RemoveDoc"
_FIX, _RENAME = "PatchFunctionErrors", "PatchFunctionName"
_ONE_OF = re.compile(r"Must be one of (.+)$", re.DOTALL)

_ID = {"json_doc_id": {"type": "string"}}
_PATCHES: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"op": {"enum": ["add", "remove", "replace"]}, "path": {"type": "string"}, "value": {}},
        "required": ["op", "path"],
    },
}

Path = tuple[str | int, ...]


def like(**tools: Mapping[str, Any]) -> Schema:
    """The schema of a typical reply, for people: the tools of a request say it exactly."""
    made = (
        {"name": name, "parameters": {"type": "object", "properties": properties, "required": list(properties)}}
        for name, properties in tools.items()
    )
    return Tools(tuple(made)).schema


_MEMORY = {"content": {"type": "string"}}
_CHANGES = {**_ID, "planned_edits": {"type": "string"}, "patches": _PATCHES}


def trustcall_calls() -> tuple[WriteCall, ...]:
    """Build the three rows."""
    return (
        WriteCall(
            "langmem.repair",
            _repair,
            OnLost.RAISE,
            summary="patches a tool call of the reply before, which did not validate",
            typical=like(PatchFunctionErrors=_CHANGES),
            swallowed="trustcall hides errors of this call from the app, and drops the tool call that it is about.",
        ),
        WriteCall(
            "langmem.update",
            _update,
            OnLost.EMPTY,
            summary="patches, removes and adds documents in the light of a conversation",
            typical=like(
                PatchDoc={**_ID, "planned_edits": {"type": "string"}, "patches": _PATCHES},
                Memory=_MEMORY,
                RemoveDoc=_ID,
            ),
            swallowed="An exception would send trustcall into a loop, so it gets an empty reply when this call is "
            "lost, and LangMem takes that for nothing to change.",
        ),
        WriteCall(
            "langmem.extract",
            _extract,
            OnLost.RAISE,
            summary="makes documents of what is worth remembering in a conversation",
            typical=like(Memory=_MEMORY),
        ),
    )


def tool_names(request: Request) -> set[str]:
    """The names of a request's tools."""
    return {str((tool.get("function") or {}).get("name")) for tool in request.tools}


# -- the first request -----------------------------------------------------------------------------


def _extract(request: Request) -> Contract | None:
    tools = Tools.of(request) if request.stage == "extract" else None
    if tools is None or not all(_as_pydantic_has_it(function) for function in tools.functions):
        return None
    return tool_contract(request, tools, check=lambda answer: each_call(answer, blank))


def _as_pydantic_has_it(function: Mapping[str, Any]) -> bool:
    """trustcall's schemas are pydantic's own; langchain-core takes titles and definitions out of any tool's."""
    parameters = function.get("parameters") or {}
    return "title" in parameters or "$defs" in parameters


def each_call(answer: Answer, check: Callable[[ToolCall, Path], Sequence[Problem]]) -> list[Problem]:
    """What is wrong with each of an answer's calls."""
    checked = (check(call, ("tool_calls", index, "arguments")) for index, call in enumerate(answer.calls))
    return [problem for problems in checked for problem in problems]


def blank(call: ToolCall, path: Path) -> list[Problem]:
    """A document of nothing but blank strings."""
    texts = list(_texts(call.arguments))
    if not texts or any(text.strip() for text in texts):
        return []
    return [Problem("blank", "must not be blank", json_path(path))]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


# -- with existing documents -----------------------------------------------------------------------


def _update(request: Request) -> Contract | None:
    if not (request.stage == "extract_updates" or tool_names(request) & {_PATCH, _REMOVE}):
        return None
    tools = Tools.of(request)
    if tools is None:
        return None
    one = request.sampling.get("parallel_tool_calls") is False
    # A named tool is called once elsewhere; here it is called for each document.
    tools = Tools(tuple(map(_any_value, tools.functions)), tools.at_least, 1 if one else None)
    documents = documents_in(request)
    schemas = {str(function.get("name")): function.get("parameters") for function in tools.functions}

    def check(answer: Answer) -> list[Problem]:
        def one_call(call: ToolCall, path: Path) -> Sequence[Problem]:
            if call.name not in (_PATCH, _REMOVE):
                return blank(call, path)
            return _change(call, path, documents, schemas)

        return each_call(answer, one_call) or _twice(answer)

    return tool_contract(request, tools, check=check, fallback=lambda _: Answer(()))


def _change(
    call: ToolCall, path: Path, documents: Mapping[str, Document], schemas: Mapping[str, Any]
) -> Sequence[Problem]:
    if not documents:  # nothing that could be read: trustcall judges alone
        return _incomplete(call, path)
    document = documents.get(str(call.arguments["json_doc_id"]))
    if document is None:
        shown = ", ".join(list(documents)[:20])
        return [Problem("unknown_id", f"must be one of {shown}", json_path((*path, "json_doc_id")))]
    if call.name == _REMOVE:
        return ()
    return _incomplete(call, path) or _result_of(call, path, document.value, schemas.get(document.kind))


def _incomplete(call: ToolCall, path: Path) -> list[Problem]:
    """Operations without the value that they need: the schema lets it be left out, for ``remove`` has none."""
    return [
        Problem("patch", f'"value" is missing, which "{patch["op"]}" needs', json_path((*path, "patches", index)))
        for index, patch in enumerate(call.arguments.get("patches") or ())
        if patch["op"] != "remove" and "value" not in patch
    ]


def _result_of(call: ToolCall, path: Path, value: Any, schema: Any) -> list[Problem]:
    if value is None:
        return []
    where = json_path((*path, "patches"))
    try:
        result = patched(value, call.arguments["patches"])
    except Exception:  # of several libraries
        return [Problem("patch", "the patches do not apply to the document: is each path in it?", where)]
    if not isinstance(schema, Mapping) or Schema(schema).problems(value):  # it did not fit before either
        return []
    return [
        Problem("patch", f"the patched document would not fit its schema: {problem}", where)
        for problem in Schema(schema).problems(result)
    ]


def _twice(answer: Answer) -> list[Problem]:
    counted = Counter(str(call.arguments["json_doc_id"]) for call in answer.calls if call.name in (_PATCH, _REMOVE))
    if all(count == 1 for count in counted.values()):
        return []
    return [Problem("twice", "one document has two calls: put all its patches into one", "$.tool_calls")]


def _any_value(function: Mapping[str, Any]) -> Mapping[str, Any]:
    """Allow any JSON as the value of a patch, and none at all: trustcall's own schema ends at two levels."""
    return {**function, "parameters": _loosened(function.get("parameters"))} if _patches(function) else function


def _patches(function: Mapping[str, Any]) -> bool:
    return function.get("name") in (_PATCH, _FIX)


def _loosened(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_loosened(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    made = {key: _loosened(part) for key, part in schema.items()}
    properties = made.get("properties")
    if isinstance(properties, Mapping) and properties.keys() >= {"op", "path", "value"}:
        value = {key: part for key, part in properties["value"].items() if key == "description"}
        made |= {"properties": {**properties, "value": value}, "required": ["op", "path"]}
    return made


# -- a tool call that did not validate -------------------------------------------------------------


def _repair(request: Request) -> Contract | None:
    if tool_names(request) != {_FIX, _RENAME}:
        return None
    read = Tools.of(request)
    if read is None:
        return None
    # One call of each at most: of two patches of the same tool call, trustcall takes the last.
    tools = Tools(tuple(map(_any_value, read.functions)), at_least=1, at_most=2)
    arguments = last_tool_call(request)
    allowed = _names_allowed(tools)

    def check(answer: Answer) -> list[Problem]:
        def one_call(call: ToolCall, path: Path) -> Sequence[Problem]:
            if call.name == _RENAME:
                return _no_name(call, path, allowed)
            if not call.arguments["patches"]:
                return [Problem("patch", "must not be empty", json_path((*path, "patches")))]
            return _incomplete(call, path) or _result_of(call, path, arguments, None)

        if len({call.name for call in answer.calls}) != len(answer.calls):
            return [Problem("twice", "put all patches into one call", "$.tool_calls")]
        return each_call(answer, one_call)

    return tool_contract(request, tools, check=check)


def _names_allowed(tools: Tools) -> tuple[str, ...]:
    """The names of tools that trustcall lists in a description."""
    for function in tools.functions:
        fixed = ((function.get("parameters") or {}).get("properties") or {}).get("fixed_name") or {}
        if found := _ONE_OF.search(str(fixed.get("description") or "")):
            return tuple(name.strip() for name in found[1].split(","))
    return ()


def _no_name(call: ToolCall, path: Path, allowed: tuple[str, ...]) -> list[Problem]:
    name = call.arguments.get("fixed_name")
    if name and (not allowed or name in allowed):
        return []
    wanted = f"must be one of {', '.join(allowed)}" if allowed else "must not be empty"
    return [Problem("tool_name", wanted, json_path((*path, "fixed_name")))]
