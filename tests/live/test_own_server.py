"""What only a server of our own can be put through: a model that loops, a server that stands still, an engine killed.

The kill comes last: the server does not survive it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hymemory_adapters import EndpointError, MalformedWriteError, WriteEvent, write_context
from tests.live.losing import lost, tells
from tests.live.rows import ROWS, TALK, Row, each_row
from tests.live.server import LIVE, needs_server, only
from tests.live.tap import Tap

pytestmark = [needs_server, only(("loop",), "only against the looping model, which nox -s live serves")]
last_of_all = pytest.mark.skipif(not LIVE.last, reason="other clients need the server yet")


@each_row
def test_a_loop_of_white_space_ends_with_the_servers_flag(
    row: Row, tap: Tap, heard: list[WriteEvent], tmp_path: Path
) -> None:
    budget = 300
    settings = {"base_url": tap.url, "max_tokens": budget, "max_tokens_ceiling": 10 * budget}

    error, reason = lost(row, settings, TALK, tmp_path / "lost.jsonl")

    tells(heard, error, reason, MalformedWriteError, "loop of white space.*disable_any_whitespace")
    assert [problem.rule for attempt in heard[0].attempts for problem in attempt.problems] == ["looping"] * 3
    assert [passed.sent["max_tokens"] for passed in tap.chats] == [budget] * 3, "a loop is given no more room"


@each_row
def test_a_server_that_stands_still(row: Row, heard: list[WriteEvent], tmp_path: Path) -> None:
    os.kill(LIVE.pid, signal.SIGSTOP)  # the kernel goes on taking connections, and nobody answers
    try:
        settings = {"timeout": 0.2, "max_tokens": 8, "max_tokens_ceiling": 8}
        error, reason = lost(row, settings, TALK, tmp_path / "lost.jsonl")
    finally:
        os.kill(LIVE.pid, signal.SIGCONT)

    tells(heard, error, reason, EndpointError, "took the request twice and did not answer within the timeout")
    _until(lambda: LIVE.running() == 0)  # and it drops what nobody waits for


@last_of_all
def test_the_engine_is_killed_while_it_answers(heard: list[WriteEvent], tmp_path: Path) -> None:
    settings = {"max_tokens": 20000, "max_tokens_ceiling": 20000, "retry_seconds": 1}

    def write(name: str) -> None:
        with write_context(request=name):
            error, reason = lost(ROWS[name], settings, f"{TALK} {name}", tmp_path / f"{name}.jsonl")
        mine = [event for event in heard if event.context == {"request": name}]
        tells(mine, error, reason, EndpointError, "nothing answers|HTTP 500")

    with ThreadPoolExecutor(len(ROWS)) as pool:
        writes = [pool.submit(write, name) for name in ROWS]
        _until(lambda: LIVE.running() == len(ROWS))
        for child in _children(LIVE.pid):
            os.kill(child, signal.SIGKILL)
        for done in writes:
            done.result()
    assert len(heard) == len(ROWS)


def _until(true: Callable[[], bool]) -> None:
    for _ in range(600):
        if true():
            return
        time.sleep(0.1)
    raise AssertionError("it does not come true within a minute")


def _children(pid: int) -> list[int]:
    """The processes that a process started, and those that they started."""
    lists = [(task / "children").read_text().split() for task in Path(f"/proc/{pid}/task").iterdir()]
    own = [int(child) for children in lists for child in children]
    return [process for child in own for process in (child, *_children(child))]
