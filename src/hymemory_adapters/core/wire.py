"""What goes over the wire and what comes back: the body of a request, the fields of a completion."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Message, Request
from hymemory_adapters.core.schema import Schema

FORMS = ("json_schema", "json_object", "prompt")
"""How a schema is told to a server, the strictest first."""

# Switches that would turn thinking on. At the top level of the body they win over chat_template_kwargs
# (measured: vLLM 0.32.0), so the writer's own no-think switch is the only one that goes out.
_STRIPPED = frozenset({"reasoning_effort", "reasoning", "include_reasoning", "thinking", "enable_thinking"})

# What the openai client takes as an argument, where tracers that wrap it look; whatever else a host names (top_k) goes
# into the body beside it.
_SAMPLING = frozenset(
    {
        *("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "stop", "n", "user"),
        *("logit_bias", "logprobs", "top_logprobs", "parallel_tool_calls", "metadata", "service_tier", "store"),
    }
)


def chat_body(
    request: Request,
    messages: Sequence[Message],
    *,
    model: str,
    schema: Schema | None,
    form: str | None,
    max_tokens: int | None,
) -> dict[str, Any]:
    """Build what the openai client takes as arguments of a chat request; see ``Endpoint.chat``."""
    body: dict[str, Any] = {"model": model, "messages": list(messages)}
    body |= {k: v for k, v in request.sampling.items() if v is not None and k in _SAMPLING}
    if max_tokens is not None:
        body["max_tokens"] = max_tokens
    if schema is None:
        host = {
            "response_format": request.response_format,
            "tools": list(request.tools),
            "tool_choice": request.tool_choice,
        }
        return body | {key: value for key, value in host.items() if value}
    if form != "json_schema":
        body["messages"] = _with_schema(messages, schema)
    if (response_format := _response_format(schema, form)) is not None:
        body["response_format"] = response_format
    return body


def extra_body(request: Request, no_think: Mapping[str, Any]) -> dict[str, Any]:
    """Build the rest of the body: the host's own fields, and the writer's no-think switch over them."""
    beyond = {k: v for k, v in request.sampling.items() if v is not None and k not in _SAMPLING}
    host = {**beyond, **request.extra_body}
    return merged({k: v for k, v in host.items() if k not in _STRIPPED}, no_think)


def parse_completion(completion: Any) -> Reply | None:
    """Read an openai ``ChatCompletion``; ``None`` if the server sent something else with status 200."""
    choices = getattr(completion, "choices", None)
    choice: Any = choices[0] if isinstance(choices, list) and choices else None
    message: Any = getattr(choice, "message", None)
    if not hasattr(message, "content"):
        return None
    usage, content = completion.usage, message.content
    reasoning = getattr(message, "reasoning", None) or getattr(message, "reasoning_content", None)
    return Reply(
        text=content if isinstance(content, str) else None,
        reasoning=reasoning if isinstance(reasoning, str) else None,
        finish_reason=choice.finish_reason,
        tokens_in=getattr(usage, "prompt_tokens", None),
        tokens_out=getattr(usage, "completion_tokens", None),
        tool_calls=tuple(call.model_dump() for call in message.tool_calls or () if hasattr(call, "model_dump")),
        completion=completion,
    )


def _response_format(schema: Schema, form: str | None) -> dict[str, Any] | None:
    if form == "json_schema":
        return {
            "type": "json_schema",
            "json_schema": {"name": schema.name, "schema": schema.wire, "strict": True},
        }
    return {"type": "json_object"} if form == "json_object" else None


def _with_schema(messages: Sequence[Message], schema: Schema) -> list[Message]:
    """Tell the schema at the end of the last user message, so that roles still alternate."""
    note = f"Answer with one JSON value that fits this JSON Schema, and nothing else:\n{json.dumps(schema.wire)}"
    *before, last = messages
    if last.get("role") == "user" and isinstance(last.get("content"), str):
        return [*before, {**last, "content": f"{last['content']}\n\n{note}"}]
    return [*messages, {"role": "user", "content": note}]


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables; where both hold a table under one key, merge those too."""
    both = dict(under)
    for key, value in over.items():
        mine = both.get(key)
        tables = isinstance(value, Mapping) and isinstance(mine, Mapping)
        both[key] = merged(mine, value) if tables else value  # type: ignore[arg-type]
    return both
