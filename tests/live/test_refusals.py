"""What a real server refuses, cuts or leaves unanswered: the right words and event, and no write lost silently."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters import EndpointError, HyMemoryError, MalformedWriteError, WriteEvent
from tests.live.losing import lost, tells
from tests.live.rows import TALK, Row, each_row
from tests.live.server import LIVE, answers, needs_server
from tests.live.tap import Tap

pytestmark = [needs_server, answers]

LONGEST = 65536
"""Tokens of context up to which the tests fill it."""


def _closed_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/v1"


REFUSED: dict[str, tuple[Callable[[], dict[str, Any]], type[HyMemoryError], str, int]] = {
    # what the settings are, the error's class, its words, the attempts
    "truncated": (
        lambda: {"max_tokens": 4, "max_tokens_ceiling": 5, "attempts": 2},
        MalformedWriteError,
        "the reply was cut after 5 tokens.*Raise HYMEMORY_MAX_TOKENS_CEILING",
        2,
    ),
    "unknown model": (
        lambda: {"model": "gpt-4o-mini"},
        EndpointError,
        f"does not serve 'gpt-4o-mini'.*it serves .*{LIVE.model}.*drop or change",
        1,
    ),
    "wrong key": (
        lambda: {"api_key": "not-the-key"},
        EndpointError,
        r"refused the key \(HTTP 401\), which is from api_key in the config block: change it there",
        1,
    ),
    "no key": (
        lambda: {"api_key": None},
        EndpointError,
        r"wants a key \(HTTP 401\), and none is set: set HYMEMORY_API_KEY",
        1,
    ),
    "server not up": (
        lambda: {"base_url": _closed_port(), "retry_seconds": 0.3},
        EndpointError,
        "nothing answers at http://127.0.0.1:.*connection refused.*Start the server",
        1,
    ),
}


@each_row
@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_is_told_and_the_write_is_kept(case: str, row: Row, heard: list[WriteEvent], tmp_path: Path) -> None:
    settings, kind, words, attempts = REFUSED[case]
    if "key" in case and not LIVE.api_key:
        pytest.skip("the server wants no key")

    error, reason = lost(row, settings(), TALK, tmp_path / "lost.jsonl")

    tells(heard, error, reason, kind, words)
    assert len(heard[0].attempts) == attempts


def _filler(row: Row, tokens: int) -> str:
    """A text with which the call's prompt is that many tokens long, or a few less."""

    def length(count: int) -> int:
        template = {"chat_template_kwargs": {"reasoning_effort": "no_think"}}
        return int(LIVE.tokens(messages=row.sent(TALK + " tea" * count), **template)["count"])

    base, per_thousand = length(0), length(1000) - length(0)
    count = (tokens - base) * 1000 // per_thousand
    if base > tokens:
        pytest.skip(f"the shortest prompt of this call ({base} tokens) is longer than {tokens}")
    while length(count) > tokens:
        count -= 1
    return TALK + " tea" * count


@each_row
def test_a_prompt_that_does_not_fit_the_context(row: Row, heard: list[WriteEvent], tmp_path: Path) -> None:
    if LIVE.context > LONGEST:
        pytest.skip(f"a context of {LIVE.context} tokens is too long to fill in a test")
    text = _filler(row, LIVE.context) + " tea" * 200

    error, reason = lost(row, {}, text, tmp_path / "lost.jsonl")

    words = f"do not fit the context of {LIVE.context} tokens.*Start it with a larger --max-model-len"
    tells(heard, error, reason, EndpointError, words)


@each_row
def test_a_context_that_ends_before_the_reply_does(row: Row, heard: list[WriteEvent], tmp_path: Path, tap: Tap) -> None:
    if LIVE.context > LONGEST:
        pytest.skip(f"a context of {LIVE.context} tokens is too long to fill in a test")
    text = _filler(row, LIVE.context - 3)

    error, reason = lost(row, {"base_url": tap.url}, text, tmp_path / "lost.jsonl")

    tells(heard, error, reason, MalformedWriteError, "prompt of .* tokens fills the context.*--max-model-len")
    assert len(tap.chats) == 1, "no second attempt finds more room"


@each_row
def test_a_budget_beyond_the_context_is_lowered(row: Row, tap: Tap, heard: list[WriteEvent]) -> None:
    budget = LIVE.context + 1
    provider = row.provider(
        {**LIVE.settings, "base_url": tap.url, "max_tokens": budget, "max_tokens_ceiling": budget, "attempts": 1}
    )
    row.ask(provider, row.messages(TALK))

    assert [passed.status for passed in tap.chats] == [400, 200]
    assert tap.chats[0].sent["max_tokens"] == budget
    assert tap.chats[1].sent["max_tokens"] < LIVE.context
    assert [len(event.attempts) for event in heard] == [1]
