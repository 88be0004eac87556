"""What the writer brought, as a chat completion."""

from __future__ import annotations

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletion

from hymemory_adapters.core.completion import completion_of
from hymemory_adapters.core.exchange import Written
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.tools import Answer, ToolCall

SENT = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "hy-memory-served",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "{}"}, "finish_reason": "length"}],
    "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7},
}
NOBODY_SENT = {"id": "hymemory", "created": 0, "model": "hy-memory", "object": "chat.completion"}


def told(value: Any, sent: dict[str, Any] | None = SENT) -> dict[str, Any]:
    reply = Reply("{}", completion=ChatCompletion.model_validate(sent)) if sent else None
    return completion_of(Written(value, reply, None), "hy-memory")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        pytest.param("Likes tea", "Likes tea", id="text-as-it-is"),
        pytest.param({"a": "{b} \u8336"}, '{"a": "\\u007bb\\u007d \u8336"}', id="json-in-armour"),
        pytest.param(Answer((), "Hello"), "Hello", id="answer"),
    ],
)
def test_the_answer_is_its_message(value: Any, content: str) -> None:
    message = {"role": "assistant", "content": content}
    assert told(value)["choices"] == [{"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}]


def test_tool_calls() -> None:
    calls = (ToolCall("store", {"text": "\u8336"}), ToolCall("drop", {}))
    (choice,) = told(Answer(calls))["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    first, second = choice["message"]["tool_calls"]
    assert first["id"].startswith("call_")
    assert first["id"] != second["id"]
    assert first["type"] == second["type"] == "function"
    assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in (first, second)] == [
        ("store", {"text": "\u8336"}),
        ("drop", {}),
    ]
    assert "\u8336" in first["function"]["arguments"]


def test_beside_it_stands_what_the_server_says() -> None:
    said = told("text")
    assert {key: said[key] for key in ("id", "created", "model", "object")} == {
        key: SENT[key] for key in ("id", "created", "model", "object")
    }
    assert {key: said["usage"][key] for key in SENT["usage"]} == SENT["usage"]  # type: ignore[union-attr,index]
    assert None not in said.values()
    ChatCompletion.model_validate(said)


def test_where_no_answer_came() -> None:
    said = told("text", None)
    assert {key: said[key] for key in NOBODY_SENT} == NOBODY_SENT
    ChatCompletion.model_validate(said)


def test_what_the_server_leaves_out_is_filled_in() -> None:
    sent = ChatCompletion.construct(**{"choices": SENT["choices"], "usage": SENT["usage"], "id": None})
    said = completion_of(Written("text", Reply("{}", completion=sent), None), "hy-memory")
    assert {key: said[key] for key in NOBODY_SENT} == NOBODY_SENT
    ChatCompletion.model_validate(said)


@pytest.mark.filterwarnings("error")
def test_a_server_that_sends_other_kinds_than_the_sdk_expects_is_no_warning() -> None:
    sent = ChatCompletion.construct(**{**SENT, "usage": {"prompt_tokens": "many"}})
    said = completion_of(Written("text", Reply("{}", completion=sent), None), "hy-memory")
    assert said["usage"]["prompt_tokens"] == "many"
