"""What the writer brought, as LangChain has it."""

from __future__ import annotations

import json
from typing import Any

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from hymemory_adapters.core.completion import completion_of
from hymemory_adapters.core.exchange import Written

PROVIDER = "hymemory"


def completion(written: Written, model: str) -> Any:
    """Return a chat completion: the server's own where the request passed through, else one with the answer in it."""
    if written.event is None:
        return written.reply.completion if written.reply else None
    return completion_of(written, model)


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
