"""What LlamaIndex takes for openai's client: its chat requests go to the writer, and the answers look like openai's.

LlamaIndex itself turns its messages into OpenAI's and answers back into its own, in each version as that version
has it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from hymemory_adapters.core.completion import completion_of
from hymemory_adapters.core.exchange import Written
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.structured import AnswerFormat, is_pydantic
from hymemory_adapters.core.writer import Writer
from hymemory_adapters.llamaindex.calls import calls
from hymemory_adapters.settings import BUDGETS, WriterSettings, budgets, changed

_NOT_SAMPLING = ("messages", "stream", "tools", "tool_choice", "response_format", "extra_body", *BUDGETS)
_LLAMAINDEX_ONLY = "session_id"  # Memory marks the messages with it, and versions before 0.14 send the mark


class Client:
    """Takes ``client.chat.completions.create(...)`` from a thread."""

    def __init__(self, settings: WriterSettings) -> None:
        self._settings = settings
        self.chat = self.completions = self

    def create(self, **body: Any) -> Any:
        """Do one chat request: return a completion, or with ``stream`` the chunks of one."""
        writer, request, recognised = _asked(self._settings, body)
        if recognised:
            made = _completion(writer.write(request), writer.settings.model)
            return iter([_as_chunk(made)]) if body.get("stream") else made
        return writer.stream(request) if body.get("stream") else _passed(writer.write(request))


class AsyncClient:
    """Takes ``await client.chat.completions.create(...)`` from a coroutine."""

    def __init__(self, settings: WriterSettings) -> None:
        self._settings = settings
        self.chat = self.completions = self

    async def create(self, **body: Any) -> Any:
        """Do one chat request: like :meth:`Client.create`."""
        writer, request, recognised = _asked(self._settings, body)
        if recognised:
            made = _completion(await writer.awrite(request), writer.settings.model)
            return _one(_as_chunk(made)) if body.get("stream") else made
        return writer.astream(request) if body.get("stream") else _passed(await writer.awrite(request))


async def _one(chunk: Any) -> AsyncIterator[Any]:
    yield chunk


def _passed(written: Written) -> Any:
    assert written.reply is not None  # whatever the server sent
    return written.reply.completion


def _asked(settings: WriterSettings, body: Mapping[str, Any]) -> tuple[Writer, Request, bool]:
    """Say what is asked, of whom, and whether it is a call of the table."""
    body = dict(body)
    changes = {"model": body.pop("model", None), "timeout": body.pop("timeout", None)}
    body |= budgets(settings, body, where="the request")
    # Made anew for each request: it is nothing but these three.
    writer = Writer("llamaindex", calls(), changed(settings, changes, where="the request"))
    request = request_of(body)
    return writer, request, writer.recognise(request) is not None


def request_of(body: Mapping[str, Any]) -> Request:
    """Build the request from what LlamaIndex would send."""
    response_format, tools = body.get("response_format"), body.get("tools") or ()
    if is_pydantic(response_format):
        response_format = AnswerFormat(response_format)
    if body.get("tool_choice") == "none":  # then servers need not hear of them
        tools = ()
    return Request(
        messages=[_plain(message) for message in body["messages"]],
        response_format=response_format,
        tools=tuple(tools),
        tool_choice=body.get("tool_choice") if tools else None,
        sampling={key: value for key, value in body.items() if key not in _NOT_SAMPLING},
        max_tokens=next((body[name] for name in BUDGETS if body.get(name) is not None), None),
        extra_body=body.get("extra_body") or {},
    )


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """Leave what is LlamaIndex's alone out of a message, and write openai's objects in it as dictionaries."""
    plain = {key: value for key, value in message.items() if key != _LLAMAINDEX_ONLY}
    if calls := plain.get("tool_calls"):
        plain["tool_calls"] = [
            call.model_dump(exclude_none=True) if hasattr(call, "model_dump") else call for call in calls
        ]
    return plain


def _completion(written: Written, model: str) -> Any:
    from openai.types.chat import ChatCompletion

    # Not validated: servers leave out what openai's classes require.
    return ChatCompletion.construct(None, **completion_of(written, model))


def _as_chunk(completion: Any) -> Any:
    """Write a whole completion as the one chunk of a stream."""
    from openai.types.chat import ChatCompletionChunk

    told = completion.model_dump(warnings=False)
    (choice,) = told["choices"]
    delta = {**choice["message"]}
    calls: Sequence[dict[str, Any]] = delta.get("tool_calls") or ()
    delta["tool_calls"] = [{"index": index, **call} for index, call in enumerate(calls)] or None
    streamed = {"index": 0, "delta": delta, "finish_reason": choice["finish_reason"], "logprobs": None}
    return ChatCompletionChunk.construct(None, **{**told, "object": "chat.completion.chunk", "choices": [streamed]})
