"""A writer whose no-think switch is wrong: what a real server makes of it, and that somebody is told."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from hymemory_adapters import HyMemoryError, WriteEvent
from tests.live.rows import TALK, Row, each_row
from tests.live.server import LIVE, needs_server, own_server
from tests.live.tap import Tap

pytestmark = [needs_server, own_server]

BUDGET = {"max_tokens": 400, "max_tokens_ceiling": 400}  # enough for what this model thinks, if it ends at all


def _writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, effort: str) -> None:
    """Put another writer in force, from a writers file."""
    file = tmp_path / "writers.toml"
    switch = f'no_think = {{ chat_template_kwargs = {{ reasoning_effort = "{effort}" }} }}'
    file.write_text(f'[writers.mistaken]\nmodel = "{LIVE.model}"\n{switch}\n')
    monkeypatch.setenv("HYMEMORY_WRITERS_FILE", str(file))
    monkeypatch.setenv("HYMEMORY_WRITER", "mistaken")


@each_row
def test_thinking_is_detected_and_told(
    row: Row, tap: Tap, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _writer(tmp_path, monkeypatch, "high")
    provider = row.provider({**LIVE.settings, "base_url": tap.url, "attempts": 10, **BUDGET})
    told = ""
    try:
        row.ask(provider, row.messages(TALK))
    except HyMemoryError as error:
        told = str(error)
    told += caplog.text

    assert tap.chats[0].choice["message"]["reasoning"]
    # The second where no reply came after the thinking: then the write is lost, and its error says so.
    assert "'mistaken' says no_think = {" in told or "check the writer's no_think switch" in told


@each_row
def test_an_answer_that_the_server_files_under_reasoning_is_taken(
    row: Row,
    tap: Tap,
    heard: list[WriteEvent],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    # The template knows no such effort and leaves thinking off; the server's parser expects thinking.
    _writer(tmp_path, monkeypatch, "none_at_all")
    caplog.set_level(logging.WARNING)
    provider = row.provider({**LIVE.settings, "base_url": tap.url, "attempts": 1})

    row.ask(provider, row.messages(TALK))

    (passed,), (event,) = tap.chats, heard
    assert passed.content is None
    assert passed.choice["message"]["reasoning"].startswith("{")
    if event.outcome not in ("salvaged", "lost"):
        assert event.normalisations == ("json_in_reasoning",)
        assert "files whole answers under reasoning" in caplog.text
