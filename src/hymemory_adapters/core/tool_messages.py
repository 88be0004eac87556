"""What the model is told of tools: their names and schemas, and what became of earlier calls, all as text.

Chat templates differ in what they make of tool messages, and some take only one system message.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hymemory_adapters.core.request import Message

if TYPE_CHECKING:
    from hymemory_adapters.core.tools import Tools


def told(messages: Sequence[Message], tools: Tools) -> list[Message]:
    """Tell the tools at the end of the system message, and earlier tool calls and results as text."""
    head, *rest = noted(messages, _note(tools))
    return [head, *flattened(rest, text=tools.text)]


def noted(messages: Sequence[Message], note: str) -> list[Message]:
    """Put a note at the end of the system message, or into a new one in front."""
    if not messages or messages[0].get("role") != "system":
        return [{"role": "system", "content": note}, *messages]
    first, *rest = messages
    content = first.get("content")
    if isinstance(content, list):
        return [{**first, "content": [*content, {"type": "text", "text": note}]}, *rest]
    return [{**first, "content": f"{content}\n\n{note}" if content else note}, *rest]


def flattened(messages: Sequence[Message], *, text: bool = False) -> list[Message]:
    """Write earlier tool calls as the replies that are asked for now, and their results as user messages.

    Results that follow one another become one message, so that roles still alternate.
    """
    names: dict[str, str] = {}
    flat: list[Message] = []
    results: list[str] = []

    def flush() -> None:
        if results:
            flat.append({"role": "user", "content": "\n\n".join(results)})
            results.clear()

    for message in messages:
        if message.get("role") == "tool":
            identity = str(message.get("tool_call_id") or "")
            name = names.get(identity) or message.get("name") or "a tool"
            results.append(f"Result of {name}{f' ({identity})' if identity else ''}:\n{_text(message)}")
            continue
        flush()
        calls = message.get("tool_calls")
        if not calls:
            flat.append(message)
            continue
        names.update({str(call.get("id")): str(call["function"]["name"]) for call in calls})
        said = {"tool_calls": [_said(call) for call in calls]}
        content = {"content": _text(message), **said} if text else said
        flat.append({"role": "assistant", "content": json.dumps(content, ensure_ascii=False)})
    flush()
    return flat


def _said(call: Mapping[str, Any]) -> dict[str, Any]:
    arguments = call["function"].get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError):  # as it was, then: the host shows the model its own mistake
            arguments = json.loads(arguments)
    return {"id": call.get("id"), "name": call["function"]["name"], "arguments": arguments}


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        parts = (part.get("text", "") if isinstance(part, Mapping) else str(part) for part in content)
        return "\n".join(parts)
    return "" if content is None else str(content)


def _note(tools: Tools) -> str:
    lines = [_described(function) for function in tools.functions]
    form = '{"tool_calls": [{"name": "...", "arguments": {...}}]}'
    if tools.text:
        form = '{"content": "...", "tool_calls": [{"name": "...", "arguments": {...}}]}'
    return "\n".join(
        ("# Tools", "", *lines, "", f"Answer with one JSON object and nothing else: {form}", _how_many(tools))
    )


def _described(function: Mapping[str, Any]) -> str:
    description = str(function.get("description") or "").strip()
    parameters = json.dumps(function.get("parameters") or {}, ensure_ascii=False, default=str)
    return f"- {function['name']}: {description}\n  JSON Schema of its arguments: {parameters}"


def _how_many(tools: Tools) -> str:
    one = len(tools.functions) == 1
    name = tools.functions[0]["name"] if one else "one of the tools"
    if tools.at_least:
        return f"Call {name} exactly once." if tools.at_most == 1 else f"Call {name} at least once."
    if tools.text:
        return (
            'To call a tool, put the call into "tool_calls". To answer in words, put them into "content" and leave '
            '"tool_calls" empty: [].'
        )
    return 'Call what needs to be called, one entry a call; if nothing does, answer {"tool_calls": []}.'
