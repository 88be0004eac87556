"""What the writer brought, as LangChain has it."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from hymemory_adapters.core.armour import armoured
from hymemory_adapters.core.exchange import Written
from hymemory_adapters.core.tools import Answer

PROVIDER = "hymemory"


def completion_of(written: Written, model: str) -> Any:
    """Return a chat completion, as OpenAI would have sent it, with the answer in it.

    Args:
        written: what the request came to.
        model: the model's name, where no answer says it.
    """
    sent = written.reply.completion if written.reply else None
    if written.event is None:
        return sent
    told: dict[str, Any] = {} if sent is None else sent.model_dump(warnings=False)
    message: dict[str, Any] = {"role": "assistant", "content": _content(written.value)}
    if isinstance(written.value, Answer) and written.value.calls:
        message["tool_calls"] = [_tool_call(call.name, call.arguments) for call in written.value.calls]
    finish_reason = "tool_calls" if message.get("tool_calls") else "stop"
    return {"model": model, **told, "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}


def _content(value: Any) -> str:
    return value.content if isinstance(value, Answer) else armoured(value)


def _tool_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
    return {"id": f"call_{uuid4().hex}", "type": "function", "function": function}


def named(result: ChatResult, written: Written) -> ChatResult:
    """Say on each message who made it, and what it took."""
    for generation in result.generations:
        generation.message.response_metadata["model_provider"] = PROVIDER
        if written.event is not None:
            generation.message.response_metadata["hymemory"] = {
                "call": written.event.call,
                "outcome": written.event.outcome,
                "attempts": len(written.event.attempts),
            }
    result.llm_output = {**(result.llm_output or {}), "model_provider": PROVIDER}
    return result


def one_chunk(result: ChatResult) -> ChatGenerationChunk:
    """Write a whole answer as the one chunk of a stream."""
    (generation,) = result.generations
    message = generation.message
    assert isinstance(message, AIMessage)
    calls = [
        tool_call_chunk(
            name=call["name"], args=json.dumps(call["args"], ensure_ascii=False), id=call["id"], index=index
        )
        for index, call in enumerate(message.tool_calls)
    ]
    said = {key: value for key, value in (result.llm_output or {}).items() if key in ("model_name", "model_provider")}
    chunk = AIMessageChunk(
        content=message.content,
        additional_kwargs={key: value for key, value in message.additional_kwargs.items() if key != "tool_calls"},
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        tool_call_chunks=calls,
    )
    return ChatGenerationChunk(message=chunk, generation_info={**(generation.generation_info or {}), **said})
