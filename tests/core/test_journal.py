"""The journal of lost writes: nothing in it is lost, mixed up or open to others, and it never hides an error."""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import hymemory_adapters
from hymemory_adapters import EndpointError, MalformedWriteError, WriterSettings, on_write, write_context
from hymemory_adapters.core import lost
from hymemory_adapters.core.events import Attempt, WriteEvent
from hymemory_adapters.core.lost import Journal
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, WriteCall
from hymemory_adapters.core.writer import Writer
from tests.support.scripted import Fail, ScriptedEndpoint

MESSAGES = [{"role": "user", "content": "swordfish, said \u8bb0\u5fc6"}]
EVENT = WriteEvent(
    "host", "host.call", "hy-memory", "m", "lost",
    attempts=(Attempt(1, "stop", (Problem("not_json", "there is no JSON"),)),),
    error="host.call: nothing could be taken", context={"user": "u1"}, at=1.0,
)  # fmt: skip
KEY = "sk-secret-key"


@pytest.fixture
def loose_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "lost.jsonl"


def _lines(journal: Path) -> list[dict[str, Any]]:
    text = journal.read_text("ascii")
    assert text.endswith("\n")
    return [json.loads(line) for line in text.splitlines()]


def _writer(url: str, journal: Path, **settings: Any) -> Writer:
    contract = Contract(schema=Schema({"type": "object", "required": ["facts"]}))
    known = WriterSettings(base_url=url, api_key=KEY, journal=str(journal), retry_seconds=0, **settings)
    return Writer("host", (WriteCall("host.call", lambda _: contract),), known)


def test_a_line_holds_the_event_the_request_and_every_reply(journal: Path) -> None:
    assert Journal(journal).write(EVENT, MESSAGES, ["{", None])
    assert _lines(journal) == [
        {**json.loads(json.dumps(EVENT.as_dict())), "messages": MESSAGES, "replies": ["{", None]}
    ]


def test_content_off_keeps_digests_and_problems_only(journal: Path) -> None:
    assert Journal(journal, "off").write(EVENT, MESSAGES, ["swordfish {", None])
    (line,) = _lines(journal)
    assert "swordfish" not in journal.read_text()
    assert not {"messages", "replies"} & set(line)
    assert line["attempts"][0]["problems"][0]["rule"] == "not_json"
    digest = hashlib.sha256(json.dumps("swordfish {").encode()).hexdigest()
    assert line["replies_sha256"][0] == digest
    assert len({line["messages_sha256"], *line["replies_sha256"]}) == 3


@pytest.mark.usefixtures("loose_umask")
@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_nobody_else_may_read_it(journal: Path) -> None:
    Journal(journal).write(EVENT, MESSAGES, [])
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600


def test_what_no_encoding_has_is_kept(journal: Path) -> None:
    messages = [{"role": "user", "content": "half \ud83d a pair, a NUL \x00 and a line\u2028break\n"}]
    assert Journal(journal).write(EVENT, messages, ["\udfff", "\U0001f680"])
    (line,) = _lines(journal)
    assert line["messages"] == messages
    assert line["replies"] == ["\udfff", "\U0001f680"]


@pytest.mark.parametrize("content", ["full", "off"])
def test_what_is_no_json_is_written_all_the_same(journal: Path, content: str) -> None:
    assert Journal(journal, content).write(EVENT, [{"role": "user", "content": {"image", "bytes"}}], [])
    assert len(_lines(journal)) == 1


def test_a_digest_does_not_depend_on_the_order_of_keys(journal: Path) -> None:
    for message in MESSAGES[0], dict(reversed(MESSAGES[0].items())):
        assert Journal(journal, "off").write(EVENT, [message], [])
    assert len({line["messages_sha256"] for line in _lines(journal)}) == 1


# Lines far longer than any buffer: one that is not written at once comes out in pieces.
_APPEND = """
import sys
from hymemory_adapters.core.events import WriteEvent
from hymemory_adapters.core.lost import Journal
event = WriteEvent("host", "host.call", "hy-memory", "m", "lost")
for number in range(50):
    said = [{"role": "user", "content": f"{sys.argv[2]}-{number} " + "x" * 20_000}]
    assert Journal(sys.argv[1]).write(event, said, [])
"""


def test_lines_of_many_processes_stay_whole(journal: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(Path(hymemory_adapters.__file__).parents[1])}
    command = [sys.executable, "-c", _APPEND, str(journal)]
    workers = [subprocess.Popen([*command, str(worker)], env=environ) for worker in range(8)]
    assert [worker.wait(300) for worker in workers] == [0] * 8
    written = [line["messages"][0]["content"].split()[0] for line in _lines(journal)]
    assert sorted(written) == sorted(f"{worker}-{number}" for worker in range(8) for number in range(50))


@pytest.mark.skipif(os.name != "posix", reason="locks are POSIX")
def test_a_line_waits_for_its_turn(journal: Path) -> None:
    import fcntl

    with journal.open("a") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        waiting = threading.Thread(target=Journal(journal).write, args=(EVENT, MESSAGES, []))
        waiting.start()
        waiting.join(0.1)
        assert waiting.is_alive()
        assert journal.read_text() == ""
    waiting.join()
    assert len(_lines(journal)) == 1


def _folder(path: Path) -> None:
    path.mkdir()


def _gone(path: Path) -> None:
    path.parent.rmdir()


def _full(path: Path) -> None:
    path.symlink_to("/dev/full")


def _big(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(256 * 2**20)  # a hole: it takes no room on the disk


@pytest.mark.parametrize(
    ("spoil", "name", "reason"),
    [
        (_folder, "lost.jsonl", os.strerror(errno.EISDIR)),
        (_gone, "lost.jsonl", os.strerror(errno.ENOENT)),
        (_big, "lost.jsonl", "the file has reached 256 MiB: move it away"),
        (str, "a NUL \0", "ValueError"),
        pytest.param(
            _full,
            "lost.jsonl",
            os.strerror(errno.ENOSPC),
            marks=pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full"),
        ),
    ],
)
def test_a_journal_that_cannot_be_written_says_why_and_nothing_more(
    spoil: Any, name: str, reason: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "folder").mkdir()
    path = tmp_path / "folder" / name
    spoil(path)
    assert Journal(path).write(EVENT, MESSAGES, ["swordfish"]) is False
    ((_, level, message),) = caplog.record_tuples
    assert level == 40
    assert "HYMEMORY_JOURNAL" in message
    assert str(path) in message
    assert message.endswith(f": {reason}")
    assert "swordfish" not in caplog.text


def test_a_journal_that_is_full_takes_no_more_and_keeps_what_it_has(
    journal: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    Journal(journal).write(EVENT, MESSAGES, [])
    monkeypatch.setattr(lost, "JOURNAL_LIMIT", journal.stat().st_size * 2)
    assert Journal(journal).write(EVENT, MESSAGES, [])
    assert Journal(journal).write(EVENT, MESSAGES, []) is False
    assert len(_lines(journal)) == 2
    assert [record.levelname for record in caplog.records] == ["ERROR"]


# -- from a lost write to its line -----------------------------------------------------------------


def test_a_lost_write_is_one_line_and_a_good_one_none(journal: Path) -> None:
    with ScriptedEndpoint("{", "no", '["swordfish"]', '{"facts": []}') as endpoint:
        writer = _writer(endpoint.url, journal)
        with pytest.raises(MalformedWriteError), write_context(user="u1", request="r1"):
            writer.write(Request(MESSAGES))
        writer.write(Request([{"role": "user", "content": "other"}]))
    (line,) = _lines(journal)
    assert (line["outcome"], line["call"], line["context"]) == ("lost", "host.call", {"user": "u1", "request": "r1"})
    assert line["messages"] == MESSAGES
    assert line["replies"] == ["{", "no", '["swordfish"]']
    assert [attempt["problems"][0]["rule"] for attempt in line["attempts"]] == ["truncated", "not_json", "schema"]
    assert KEY not in journal.read_text()


def test_the_hosts_own_repeat_of_a_lost_write_is_no_second_line(journal: Path) -> None:
    with ScriptedEndpoint("no") as endpoint:
        writer = _writer(endpoint.url, journal)
        for _ in range(3):
            with pytest.raises(MalformedWriteError):
                writer.write(Request(MESSAGES))
        assert len(endpoint.chats) == 3 + 1 + 1
    assert len(_lines(journal)) == 1


@pytest.mark.parametrize(
    ("swallowed", "heard_by"),
    [("It hides errors.", ""), ("It hides errors.", "journal"), ("It hides errors.", "subscriber"), ("", "")],
)
def test_a_host_that_hides_losses_is_told_of_once_where_nobody_hears_of_them(
    swallowed: str, heard_by: str, journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if heard_by == "subscriber":
        on_write(lambda _: None)
    with ScriptedEndpoint('{"facts": []}') as endpoint:
        known = _writer(endpoint.url, journal)
        rows = [
            replace(known.calls[0], name=f"host.{name}", recognise=partial(_only, name), swallowed=swallowed)
            for name in ("one", "two")
        ]
        settings = known.settings.model_copy(update={} if heard_by == "journal" else {"journal": None})
        for name in ("one", "one", "two"):
            Writer("host", rows, settings).write(Request([{"role": "user", "content": name}]))
    told = [message for _, level, message in caplog.record_tuples if level >= logging.WARNING]
    assert len(told) == (2 if swallowed and not heard_by else 0)
    for name, message in zip(("one", "two"), told, strict=False):
        assert message.startswith(f"host.{name}: {swallowed}")
        assert "HYMEMORY_JOURNAL" in message


def _only(content: str, request: Request) -> Contract | None:
    return Contract(schema=Schema({"type": "object"})) if request.text(0) == content else None


def test_a_write_that_the_endpoint_refused_is_kept_too(journal: Path) -> None:
    with ScriptedEndpoint(Fail(401, f"the key {KEY} is wrong")) as endpoint, pytest.raises(EndpointError):
        _writer(endpoint.url, journal).write(Request(MESSAGES))
    (line,) = _lines(journal)
    assert line["messages"] == MESSAGES
    assert "HTTP 401" in line["error"]
    assert KEY not in journal.read_text()


def test_a_failing_journal_never_hides_the_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    journal = tmp_path / "lost.jsonl"
    journal.mkdir()
    with ScriptedEndpoint("no") as endpoint, pytest.raises(MalformedWriteError):
        _writer(endpoint.url, journal).write(Request(MESSAGES))
    assert "swordfish" not in caplog.text
    assert len([record for record in caplog.records if "HYMEMORY_JOURNAL" in record.message]) == 1


def test_a_line_that_was_cut_takes_no_other_with_it(journal: Path) -> None:
    journal.write_text('{"call": "host.ca')
    assert Journal(journal).write(EVENT, MESSAGES, [])
    cut, whole = journal.read_text("ascii").splitlines()
    assert cut == '{"call": "host.ca'
    assert json.loads(whole)["call"] == "host.call"


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX")
def test_a_line_that_goes_in_by_half_is_told(journal: Path, caplog: pytest.LogCaptureFixture) -> None:
    import resource

    Journal(journal).write(EVENT, MESSAGES, [])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal.stat().st_size + 10, limits[1]))
    try:
        kept = Journal(journal).write(EVENT, MESSAGES, [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert kept is False
    assert "in part only" in caplog.text
    assert Journal(journal).write(EVENT, MESSAGES, [])
    first, half, last = journal.read_text("ascii").splitlines()
    assert (json.loads(first), len(half)) == (json.loads(last), 10)
