"""The quickstart, run as a user runs it: in a process of its own, which may not leave the machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters.llamaindex.facts import EXTRACT
from tests.llamaindex.host import VERSION
from tests.support.scripted import Fail, ScriptedEndpoint

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
# Ends the process the moment that it looks up or connects to anything but the loopback.
RUN = """
import os, runpy, sys
def only_loopback(event, args):
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host not in ("127.0.0.1", "::1", "localhost", None):
        os.write(2, f"left the machine: {event} {host}".encode())
        os._exit(97)
sys.addaudithook(only_loopback)
sys.path.insert(0, sys.argv.pop(1))
runpy.run_path(sys.path[0] + "/llamaindex_quickstart.py", run_name="__main__")
"""

pytestmark = pytest.mark.skipif(VERSION.release < (0, 14), reason="the example is written for LlamaIndex 0.14")


def run(tmp_path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    more = {"TMPDIR": str(tmp_path), "PYTHONIOENCODING": "utf-8", **environ}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RUN, str(EXAMPLES)],
        env={**os.environ, **more},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )


def test_it_plays_without_a_model(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "written by hand" in done.stdout.splitlines()[0]
    first, second = done.stdout.split("\n\nConversation ")[1:]
    told = done.stdout.partition("is told before")[2]
    assert "refused" not in first
    assert second.index("reply 1    refused: there is no JSON") < second.index("reply 2    taken")
    for fact in ("lives in Lisbon", "allergic to peanuts", "moved from Lisbon to Porto"):
        assert fact in told
    assert list(tmp_path.iterdir()) == []  # it cleans up


def test_it_uses_the_users_model(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        return json.dumps({"facts": [f"Fact {len(body['messages'])} of {body['messages'][0]['content'][:14]}"]})

    with ScriptedEndpoint(answer, models=["mine"]) as endpoint:
        done = run(tmp_path, HYMEMORY_BASE_URL=endpoint.url, HYMEMORY_MODEL="mine", HYMEMORY_API_KEY="k-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"The model at {endpoint.url} writes."
    assert {chat.body["model"] for chat in endpoint.chats} == {"mine"}
    assert {chat.headers["authorization"] for chat in endpoint.chats} == {"Bearer k-1"}
    assert "of We have moved" in done.stdout.partition("is told before")[2]
    assert "by hand" not in done.stdout


def test_a_lost_write_ends_it(tmp_path: Path) -> None:
    with ScriptedEndpoint(Fail(400)) as endpoint:
        done = run(tmp_path, HYMEMORY_BASE_URL=endpoint.url)
    assert done.returncode == 1
    assert "reply 1    refused" in done.stdout
    assert "is told before" not in done.stdout
    assert "messages wait for a reply that can be used; the reason is above." in done.stderr
    assert f"{EXTRACT}: " in done.stderr
    assert "Traceback" not in done.stderr
