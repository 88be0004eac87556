"""What LangChain asks, as the core has it: a :class:`ChatRequest`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.utils.function_calling import convert_to_json_schema

from hymemory_adapters.core.request import Request
from hymemory_adapters.core.structured import AnswerFormat, is_pydantic
from hymemory_adapters.core.wire import merged
from hymemory_adapters.settings import BUDGETS

_NOT_SAMPLING = ("model", "messages", "stream", "tools", "tool_choice", "response_format", "extra_body")
# They would cut a JSON reply in two, or ask for replies that nobody reads.
_NOT_FOR_JSON = ("stop", "n", "stream_options")


@dataclass(frozen=True)
class ChatRequest(Request):
    """A request of LangChain's.

    Attributes:
        answer: what a structured answer must be: a pydantic class or a schema; ``None`` where none is asked for.
    """

    answer: Any = None


def chat_request(payload: Mapping[str, Any], *, answer: Any = None, stage: str | None = None) -> ChatRequest:
    """Build the request.

    Args:
        payload: what langchain-openai would send.
        answer: see :class:`ChatRequest`.
        stage: the node of the LangGraph graph that asks.
    """
    tools = payload.get("tools") or ()
    if payload.get("tool_choice") == "none":  # then servers need not hear of them
        tools = ()
    response_format = payload.get("response_format")
    if is_pydantic(response_format):
        answer = response_format
    if response_format is not None and (is_pydantic(answer) or (answer and response_format["type"] == "json_object")):
        response_format = schema_format(answer)
    sampling = {key: value for key, value in payload.items() if key not in (*_NOT_SAMPLING, *BUDGETS)}
    if tools or (response_format or {}).get("type") in ("json_schema", "json_object"):
        sampling = {key: value for key, value in sampling.items() if key not in _NOT_FOR_JSON}
    return ChatRequest(
        messages=payload["messages"],
        response_format=response_format,
        tools=tuple(tools),
        tool_choice=payload.get("tool_choice") if tools else None,
        sampling=sampling,
        max_tokens=next((payload[name] for name in BUDGETS if payload.get(name) is not None), None),
        extra_body=payload.get("extra_body") or {},
        stage=stage,
        answer=answer,
    )


def schema_format(answer: Any) -> dict[str, Any]:
    """Write what an answer must be as OpenAI's ``response_format``."""
    if is_pydantic(answer):
        return AnswerFormat(answer)
    schema = convert_to_json_schema(answer)
    name = str(schema.get("title") or "answer")
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema}}


def with_extra_body(kwargs: Mapping[str, Any], own: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge a call's ``extra_body`` into the model's own; langchain-openai would replace it."""
    return {**kwargs, "extra_body": merged(own or {}, kwargs["extra_body"])} if kwargs.get("extra_body") else {**kwargs}
