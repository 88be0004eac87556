"""``hymemory doctor`` where the real Mem0 is installed."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import PretendVllm, run
from tests.support.scripted import Recorded

pytest.importorskip("mem0", reason="Mem0 is not installed")

HOOKED = "import _hymemory_autoload; _hymemory_autoload.start(); from hymemory_adapters.cli import main; main()"
BY_HAND = "from hymemory_adapters.cli import main; main()"


def doctor(tmp_path: Path, code: str, **env: str) -> tuple[dict[str, Any], list[Recorded]]:
    with PretendVllm() as server:
        done = run("doctor", "--json", code=code, HYMEMORY_BASE_URL=server.url, MEM0_DIR=str(tmp_path / "mem0"), **env)
    said = json.loads(done.stdout)
    assert done.returncode == said["exit_code"]
    return said, server.requests


def findings(said: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return next(step["findings"] for step in said["steps"] if step["step"] == name)


def test_all_fine(tmp_path: Path) -> None:
    said, requests = doctor(tmp_path, HOOKED)
    assert said["exit_code"] == 0
    (mem0,) = findings(said, "hosts")
    assert mem0["verdict"] == "ok"
    assert "import hook" in mem0["text"]
    longest = findings(said, "context")[0]["data"]
    assert longest["call"] in ("mem0.additive", "mem0.update")
    assert longest["prompt"] > 1000
    assert longest["counted"] is True
    warmed = set(findings(said, "grammars")[0]["data"]["seconds"])
    text = {call for call in warmed if not call.startswith("mem0.graph_")}
    assert text in ({"mem0.additive"}, {"mem0.facts", "mem0.update"})
    names = [request.body.get("response_format") for request in requests if request.path == "/v1/chat/completions"]
    assert {form["json_schema"]["name"].replace("_", ".") for form in names if form} >= text


from_source = pytest.mark.skipif(
    Path(sysconfig.get_paths()["purelib"], "hymemory_adapters.pth").exists(),
    reason="the wheel is installed, and its hook with it; from a source tree there is none",
)


@pytest.mark.parametrize(
    ("code", "env", "verdict", "text"),
    [
        pytest.param(BY_HAND, {}, "warning", 'register("mem0")', id="no hook", marks=from_source),
        pytest.param(HOOKED, {"HYMEMORY_AUTOLOAD": "0"}, "warning", "HYMEMORY_AUTOLOAD switches", id="switched off"),
    ],
)
def test_how_mem0_finds_the_writer(tmp_path: Path, code: str, env: dict[str, str], verdict: str, text: str) -> None:
    said, _ = doctor(tmp_path, code, **env)
    (mem0,) = findings(said, "hosts")
    assert mem0["verdict"] == verdict
    assert text in mem0["text"] + mem0["do"]


def test_the_prompts_are_those_that_are_recognised() -> None:
    from hymemory_adapters.core.request import Request
    from hymemory_adapters.registry import HOSTS

    calls = {call.name: call for call in HOSTS["mem0"].write_calls()}
    prompts = HOSTS["mem0"].typical_prompts()
    assert set(prompts) in ({"mem0.additive"}, {"mem0.facts", "mem0.update"})  # the other calls' are shorter
    for name, messages in prompts.items():
        assert calls[name].recognise(Request(messages, response_format={"type": "json_object"})) is not None
