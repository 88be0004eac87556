"""``hymemory doctor`` and ``hymemory calls`` where the real LangChain and LangMem are installed."""

from __future__ import annotations

import json

import pytest

from tests.cli.support import PretendVllm, run

pytest.importorskip("langchain_openai", reason="LangChain is not installed")
pytest.importorskip("langmem", reason="LangMem is not installed")

HOOKED = "import _hymemory_autoload; _hymemory_autoload.start(); from hymemory_adapters.cli import main; main()"


def test_doctor() -> None:
    with PretendVllm() as server:
        done = run("doctor", "--json", code=HOOKED, HYMEMORY_BASE_URL=server.url)
    said = json.loads(done.stdout)
    assert done.returncode == said["exit_code"] == 0, done.stdout
    steps = {step["step"]: step["findings"] for step in said["steps"]}
    (host,) = steps["hosts"]
    assert host["verdict"] == "ok"
    assert "import hook" in host["text"]
    longest = steps["context"][0]["data"]
    assert longest["call"] == "langmem.update"
    assert longest["prompt"] > 1000
    assert {"langmem.extract", "langmem.update", "langmem.prompt"} <= set(steps["grammars"][0]["data"]["seconds"])


def test_calls() -> None:
    done = run("calls", "langchain", "--json", code=HOOKED)
    rows = {row["call"]: row for row in json.loads(done.stdout)}
    assert rows["langmem.extract"]["lost"] == "raises"
    assert rows["langmem.update"]["lost"] == "returns empty"
    assert rows["langmem.extract"]["schema"]["properties"].keys() == {"tool_calls"}
