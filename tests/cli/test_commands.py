"""``hymemory calls``, ``hymemory lost``, ``--version``, and the command without its extra."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters import __version__
from hymemory_adapters.core.events import Attempt, WriteEvent
from hymemory_adapters.core.lost import Journal
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.registry import Host
from tests.cli.support import calls, invoke, run

# -- calls -----------------------------------------------------------------------------------------


def test_calls(notes_host: Callable[..., Host]) -> None:
    host = notes_host()
    done = invoke("calls")
    assert done.exit_code == 0
    about, _, row = done.stdout.splitlines()
    assert about == f"notes: typer, {host.installed_version()} installed; supported >=0; tested 1.0"
    assert row.split() == ["notes.write", "raises", "writes", "notes"]


def test_calls_as_json(notes_host: Callable[..., Host]) -> None:
    host = notes_host()
    (row,) = json.loads(invoke("calls", "notes", "--json").stdout)
    assert row == {
        "call": "notes.write",
        "host": "notes",
        "installed": host.installed_version(),
        "supported": ">=0",
        "tested": ["1.0"],
        "lost": "raises",
        "summary": "writes notes",
        "schema": calls()[0].typical.wire,
    }


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"distribution": "no-such-thing"}, "pip install no-such-thing"),
        ({"calls": "tests.cli.nowhere:calls"}, "cannot be read: ModuleNotFoundError"),
    ],
    ids=["not installed", "broken"],
)
def test_calls_of_a_host_that_is_not_there(notes_host: Callable[..., Host], changes: dict[str, str], text: str) -> None:
    notes_host(**changes)
    done = invoke("calls", "--json")
    assert done.exit_code == 0
    assert text in json.loads(done.stdout)[0]["summary"]


def test_calls_of_an_unknown_host(notes_host: Callable[..., Host]) -> None:
    notes_host()
    done = invoke("calls", "nots")
    assert done.exit_code == 2
    assert "there is no host 'nots'; known are: notes" in " ".join(done.stderr.split())


# -- lost ------------------------------------------------------------------------------------------


def entry(**changes: Any) -> WriteEvent:
    attempt = Attempt(1, "length", (Problem("schema", "must not be empty", "$.facts[0]"),), 100, 20)
    given: dict[str, Any] = {
        "attempts": (attempt,), "error": "none of 1 reply could be taken", "context": {"user": "ann"}, "at": 1.8e9,
    }  # fmt: skip
    return WriteEvent("mem0", "mem0.facts", "hy-memory", "hy-memory", "lost", **(given | changes))


def journal(
    folder: Path, said: str = "I moved to Pune", reply: str | None = "{", content: str = "full", **changes: Any
) -> str:
    path = folder / "lost.jsonl"
    assert Journal(path, content).write(entry(**changes), [{"role": "user", "content": said}], [reply])
    return str(path)


def shown(*args: str, code: int = 0) -> str:
    done = invoke("lost", *args)
    assert done.exit_code == code, done.output
    return str(done.stdout)


def test_lost(tmp_path: Path) -> None:
    journal(tmp_path)
    text = shown(journal(tmp_path, said="I drink tea", context={}))
    parts = (
        "2027-01-1", "mem0.facts", "user ann", "none of 1 reply", "attempt 1: $.facts[0]: must not be empty",
        "I moved to Pune", "I drink tea", "reply 1 {", "2 lost writes",
    )  # fmt: skip
    assert [part for part in parts if part not in text] == []


def test_lost_without_content(tmp_path: Path) -> None:
    text = shown(journal(tmp_path, content="off"))
    assert "Pune" not in text
    assert "messages are not kept (HYMEMORY_JOURNAL_CONTENT=off)" in text


def test_lost_shows_the_end_of_long_messages(tmp_path: Path) -> None:
    path = journal(tmp_path, said="beginning " + "x" * 3000 + " ending")
    clipped, full = shown(path), shown(path, "--full")
    assert "beginning" not in clipped
    assert "1,017 characters" in clipped
    assert "ending" in clipped
    assert "beginning" in full
    assert "ending" in full


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        pytest.param("[bold]loud[/bold] [/] :smile:", "[bold]loud[/bold] [/] :smile:", id="markup"),
        pytest.param("half \ud83d pair", "half \ufffd pair", id="half a surrogate pair"),
        pytest.param("\x1b[2J\x1b]0;title\x07gone", "\ufffd[2J\ufffd]0;title\ufffdgone", id="escape sequences"),
        pytest.param("住在上海", "住在上海", id="Chinese"),
    ],
)
def test_lost_prints_any_text(tmp_path: Path, said: str, wanted: str) -> None:
    text = shown(journal(tmp_path, said=said, reply=said, error=said, context={"user": said}))
    assert text.count(wanted) == 4
    assert "\x1b" not in text


NO_TIME = b'{"at": 1e300, "call": "", "outcome": "", "error": "", "attempts": []}'


@pytest.mark.parametrize(
    "line",
    [b"no JSON", b'{"at": 1}', b"[]", NO_TIME, b'"\xff\xfe"', b"[" * 100_000],
    ids=["text", "keys missing", "list", "no time", "no UTF-8", "deep"],
)
def test_lost_points_out_a_line_that_it_cannot_read(tmp_path: Path, line: bytes) -> None:
    path = Path(journal(tmp_path))
    path.write_bytes(line + b"\n\n" + path.read_bytes())
    text = shown(str(path), code=1)
    assert "line 1 is no journal line" in text
    assert "line 2" not in text
    assert "I moved to Pune" in text
    assert "1 lost write\n" in text


def test_lost_of_no_file(tmp_path: Path) -> None:
    assert invoke("lost", str(tmp_path / "nowhere")).exit_code == 2


# -- the command itself ----------------------------------------------------------------------------


def test_version() -> None:
    assert invoke("--version").stdout == f"hymemory-adapters {__version__}\n"


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_without_the_extra(missing: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from hymemory_adapters.cli import main; main()"
    done = run(code=code)
    assert done.returncode == 1
    assert done.stderr == 'hymemory needs its extra: pip install "hymemory-adapters[cli]"\n'
    assert done.stdout == ""


def test_a_terminal_of_another_encoding(tmp_path: Path) -> None:
    done = run("lost", journal(tmp_path, said="住在上海"), PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "\\u4f4f" in done.stdout
