"""Two tools of a made-up host, requests that offer them, and replies that call them."""

from __future__ import annotations

import json
from typing import Any

from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.tools import Tools, tool_contract
from hymemory_adapters.core.write_call import judge

REMEMBER: dict[str, Any] = {
    "name": "remember",
    "description": "Keep a fact.",
    "parameters": {
        "type": "object",
        "properties": {"text": {"type": "string", "minLength": 1}, "topic": {"type": "string"}},
        "required": ["text"],
    },
}
FORGET: dict[str, Any] = {
    "name": "forget",
    "description": None,
    "parameters": {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
}
PING: dict[str, Any] = {"name": "ping"}
TEA = ("remember", {"text": "Likes tea"})
SAID = [{"role": "system", "content": "You keep notes.\n"}, {"role": "user", "content": "I like tea"}]


def asking(*functions: dict[str, Any], messages: Any = SAID, **more: Any) -> Request:
    return Request(messages, tools=[{"type": "function", "function": f} for f in functions], **more)


def tools_of(*functions: dict[str, Any], text: bool = False, **more: Any) -> Tools:
    tools = Tools.of(asking(*functions, **more), text=text)
    assert tools is not None
    return tools


def reply(*calls: tuple[str, Any], **more: Any) -> str:
    return json.dumps({**more, "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls]})


def judged(text: str, tools: Tools, **more: Any) -> Any:
    """What a reply is worth, and what the host gets of it."""
    contract = tool_contract(asking(*tools.functions), tools, **more)
    verdict = judge(Reply(text, finish_reason="stop"), contract)
    return sorted({problem.rule for problem in verdict.problems}) or contract.render(verdict.value)
