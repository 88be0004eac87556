"""What the writer brought, as OpenAI would have sent it: for hosts that go on with a chat completion."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from hymemory_adapters.core.armour import armoured
from hymemory_adapters.core.exchange import Written
from hymemory_adapters.core.tools import Answer


def completion_of(written: Written, model: str) -> dict[str, Any]:
    """Build a chat completion with the answer in it, and beside it what the server's own says: its id, its tokens.

    Args:
        written: what a call of the host's table came to.
        model: the model's name, where no answer says it.
    """
    sent = written.reply.completion if written.reply else None
    told: dict[str, Any] = {"id": "hymemory", "created": 0, "model": model, "object": "chat.completion"}
    if sent is not None:
        told |= {key: value for key, value in sent.model_dump(warnings=False).items() if value is not None}
    message: dict[str, Any] = {"role": "assistant", "content": _content(written.value)}
    if isinstance(written.value, Answer) and written.value.calls:
        message["tool_calls"] = [_tool_call(call.name, call.arguments) for call in written.value.calls]
    reason = "tool_calls" if "tool_calls" in message else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    return {**told, "choices": [choice]}


def _content(value: Any) -> str | None:
    if isinstance(value, Answer):
        return value.content or None
    return value if isinstance(value, str) else armoured(value)


def _tool_call(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{uuid4().hex}", "type": "function", "function": function}
