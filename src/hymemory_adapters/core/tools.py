"""Tool calls without a server that knows tools: told in the messages, constrained by a schema, read back.

vLLM answers a request with ``tools`` only if it was started with a tool-call parser (HTTP 400 otherwise), and
constrains few of them. So a host's tools become part of the messages, and the reply is one JSON object::

    {"tool_calls": [{"name": "remember", "arguments": {"text": "..."}}]}

A host's row builds its contract with :func:`tool_contract`; what comes back is a list of :class:`ToolCall`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import LIST_BOUND, Schema
from hymemory_adapters.core.tool_messages import told
from hymemory_adapters.core.write_call import Contract

_DEFINITIONS = ("$defs", "definitions")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool: its name, and its arguments as a JSON object."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply to a request with tools: calls, and beside them text where the host may have text.

    Attributes:
        calls: in the order of the reply.
        content: the text; ``""`` where there is none.
    """

    calls: tuple[ToolCall, ...]
    content: str = ""


@dataclass(frozen=True)
class Tools:
    """What one request may call, and how often.

    Attributes:
        functions: the tools as OpenAI has them: ``{"name": ..., "description": ..., "parameters": {...}}``.
        at_least: how many calls a reply must have.
        at_most: how many it may have; ``None`` for as many as it likes.
        text: whether the reply may be, or hold, text beside the calls.
    """

    functions: tuple[Mapping[str, Any], ...]
    at_least: int = 0
    at_most: int | None = None
    text: bool = False

    @classmethod
    def of(cls, request: Request, *, text: bool = False) -> Tools | None:
        """Read a request's ``tools``, ``tool_choice`` and ``parallel_tool_calls``.

        Args:
            request: the host's.
            text: whether an answer in text is one too, where the request does not ask for a call.

        Returns:
            ``None`` if it has no tools, or may not call them.

        Raises:
            ConfigurationError: ``tool_choice`` names a tool that is not there.
        """
        functions = tuple(tool["function"] for tool in request.tools if isinstance(tool.get("function"), Mapping))
        choice = request.tool_choice
        if not functions or choice == "none":
            return None
        one = 1 if request.sampling.get("parallel_tool_calls") is False else None
        if isinstance(choice, Mapping):
            name = (choice.get("function") or choice).get("name")
            named = tuple(function for function in functions if function.get("name") == name)
            if not named:
                raise ConfigurationError(f"tool_choice names {name!r}, which is none of the request's tools")
            return cls(named, 1, 1)
        if choice in (None, "auto"):
            return cls(functions, 0, one, text)
        if choice in ("required", "any"):
            return cls(functions, 1, one)
        return Tools.of(replace(request, tool_choice={"function": {"name": choice}}))

    @property
    def schema(self) -> Schema:
        """The schema of a reply; the same object for the same tools."""
        return _schema(json.dumps(list(self.functions), default=str), self.at_least, self.at_most, self.text)


def tool_contract(
    request: Request,
    tools: Tools,
    *,
    check: Callable[[Answer], Sequence[Problem]] = lambda _: (),
    undecided: Callable[[Answer], Sequence[Problem]] = lambda _: (),
    fallback: Callable[[Any], Answer] | None = None,
    render: Callable[[Answer], Any] = lambda answer: answer,
    schema: Schema | None = None,
    left_behind: str = "",
) -> Contract:
    """Build the contract of a request with tools.

    Args:
        request: the host's.
        tools: what it may call.
        check: what the tools' schemas cannot say.
        undecided: see :class:`Contract`.
        fallback: see :class:`Contract`; makes the answer that goes back when the call is lost.
        render: how the answer goes back to the host.
        schema: in place of ``tools.schema``.
        left_behind: see :class:`Contract`.
    """

    def checked(value: Any) -> Sequence[Problem]:
        answer = read_answer(value)
        if tools.text and not answer.calls and not answer.content.strip():
            return (Problem("empty", "there is neither a tool call nor text: answer with one of them", "$"),)
        return check(answer)

    return Contract(
        schema=schema or tools.schema,
        check=checked,
        undecided=lambda value: undecided(read_answer(value)),
        render=lambda value: render(value if isinstance(value, Answer) else read_answer(value)),
        fallback=fallback,
        messages=told(request.messages, tools),
        left_behind=left_behind,
    )


def read_answer(value: Any) -> Answer:
    """Read a value that fits :attr:`Tools.schema`."""
    calls = tuple(ToolCall(call["name"], call["arguments"]) for call in value.get("tool_calls", ()))
    return Answer(calls, value.get("content") or "")


# -- the schema ------------------------------------------------------------------------------------


@lru_cache(maxsize=128)
def _schema(functions: str, at_least: int, at_most: int | None, text: bool) -> Schema:
    definitions: dict[str, Any] = {}
    branches = []
    for index, function in enumerate(json.loads(functions)):
        name, parameters = function["name"], function.get("parameters") or {"type": "object", "properties": {}}
        arguments = _hoisted(name, parameters, index, definitions)
        branches.append(_object({"name": {"const": name}, "arguments": arguments}))
    calls: dict[str, Any] = {"type": "array", "items": branches[0] if len(branches) == 1 else {"anyOf": branches}}
    if at_least:
        calls["minItems"] = at_least
    calls["maxItems"] = LIST_BOUND if at_most is None else at_most
    whole = _object({**({"content": {"type": "string"}} if text else {}), "tool_calls": calls})
    if definitions:
        whole["$defs"] = definitions
    # Asked for are both, in this order; either alone says as much.
    full = {**whole, "required": []} if text else whole
    return Schema(full, wire=closed(whole), name="tool_calls")


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _hoisted(name: str, parameters: Mapping[str, Any], index: int, into: dict[str, Any]) -> dict[str, Any]:
    """Move a tool's definitions to the root, under names of its own; return the rest of its schema.

    A reference that starts at the tool's own root (``#``, ``#/properties/...``) makes the whole of it a definition.
    """
    prefix = f"t{index}"
    definitions = [(key, part) for key in _DEFINITIONS for part in parameters.get(key) or {}]
    moves = {f"#/{key}/{_escaped(part)}": f"#/$defs/{prefix}_{i}" for i, (key, part) in enumerate(definitions)}
    whole = False

    def moved(reference: str) -> str:
        nonlocal whole
        for old, new in moves.items():
            if reference == old or reference.startswith(f"{old}/"):
                return new + reference.removeprefix(old)
        if reference != "#" and not reference.startswith("#/properties/"):
            raise ConfigurationError(f"the schema of the tool {name!r} refers to {reference!r}, which is not in it")
        whole = True
        return f"#/$defs/{prefix}{reference[1:]}"

    def rewritten(part: Any) -> Any:
        if isinstance(part, list):
            return [rewritten(item) for item in part]
        if not isinstance(part, dict):
            return part
        return {
            key: moved(value) if key == "$ref" and isinstance(value, str) else rewritten(value)
            for key, value in part.items()
        }

    body: dict[str, Any] = rewritten({key: value for key, value in parameters.items() if key not in _DEFINITIONS})
    for i, (key, part) in enumerate(definitions):
        into[f"{prefix}_{i}"] = rewritten(parameters[key][part])
    if whole:
        into[prefix] = body
        return {"$ref": f"#/$defs/{prefix}"}
    return body


def _escaped(name: str) -> str:
    """Write a key as it stands in a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def closed(schema: Any) -> Any:
    """Allow only declared keys where a schema is silent: some servers would let a model invent keys forever.

    For the wire alone. What validates is the schema as it is.
    """
    if isinstance(schema, Mapping):
        made = {key: value if key in ("enum", "const") else closed(value) for key, value in schema.items()}
        if isinstance(made.get("properties"), dict) and made.get("type") == "object":
            made.setdefault("additionalProperties", False)
        return made
    return [closed(item) for item in schema] if isinstance(schema, (list, tuple)) else schema
