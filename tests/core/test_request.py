"""A host's request, as the tables of write calls look at it."""

from __future__ import annotations

from typing import Any

import pytest

from hymemory_adapters.core.request import Request

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief"},
    {"content": None},
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"role": 7, "content": "half a pair: \ud83d"},
]


def test_what_a_host_does_not_ask_for_is_not_there() -> None:
    request = Request(MESSAGES)
    assert (request.tools, request.sampling, request.extra_body) == ((), {}, {})
    rest = (request.response_format, request.tool_choice, request.max_tokens, request.stage)
    assert rest == (None, None, None, None)


def test_roles() -> None:
    assert Request(MESSAGES).roles == ("system", "", "user", "7")


def test_the_text_of_a_message_is_its_content_if_that_is_text() -> None:
    request = Request(MESSAGES)
    assert [request.text(index) for index in range(4)] == ["Be brief", "", "", "half a pair: \ud83d"]
    assert request.text(-1) == request.text(3)
    assert Request([{"role": "user"}]).text(0) == ""


@pytest.mark.parametrize(
    ("response_format", "wants"),
    [
        (None, False),
        ({}, False),
        ({"type": "text"}, False),
        ({"type": "json_object"}, True),
        ({"type": "json_schema", "json_schema": {}}, True),
    ],
)
def test_whether_json_is_wanted(response_format: dict[str, Any] | None, wants: bool) -> None:
    assert Request(MESSAGES, response_format=response_format).wants_json is wants


TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "f"}}]
ASKED: dict[str, Any] = {"response_format": {"type": "json_object"}, "tools": TOOLS, "tool_choice": "auto"}


class Odd:
    """What no JSON can hold, and who can tell: hosts put objects of their own into messages."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


@pytest.mark.parametrize(
    "repeat",
    [
        Request(tuple(dict(reversed(message.items())) for message in MESSAGES), **{**ASKED, "tools": tuple(TOOLS)}),
        Request(MESSAGES, **ASKED, sampling={"temperature": 1}, max_tokens=9, extra_body={"a": 1}, stage="later"),
    ],
    ids=["keys-in-another-order", "another-sampling"],
)
def test_a_repeat_is_known(repeat: Request) -> None:
    assert repeat.digest == Request(MESSAGES, **ASKED).digest


@pytest.mark.parametrize(
    "other",
    [
        Request(MESSAGES[:-1], **ASKED),
        Request(MESSAGES[::-1], **ASKED),
        Request(MESSAGES, **{**ASKED, "response_format": {"type": "text"}}),
        Request(MESSAGES, **{**ASKED, "tools": TOOLS * 2}),
        Request(MESSAGES, **{**ASKED, "tool_choice": "required"}),
    ],
    ids=["one-message-less", "in-another-order", "another-format", "another-tool", "another-choice"],
)
def test_another_question_is_no_repeat(other: Request) -> None:
    assert other.digest != Request(MESSAGES, **ASKED).digest


def test_a_digest_takes_what_is_no_json() -> None:
    one, same, other = (Request([{"role": "user", "content": Odd(name)}]).digest for name in "aab")
    assert one == same
    assert one != other
    assert len(one) == 64, "it goes into the journal as SHA-256"
