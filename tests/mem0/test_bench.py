"""The benchmark runs: every row is there, and the figures are well-formed. What they say is no test's business."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.mem0.host import MAJOR

BENCH = Path(__file__).parents[2] / "bench" / "run.py"

if MAJOR < 2 or not BENCH.exists():
    pytest.skip("needs Mem0 2, and the repository's bench/", allow_module_level=True)

WRITERS = (
    *("bare", "stock", "ours", "bare, async", "ours, async"),
    *("bare, to_thread", "stock, to_thread", "ours, to_thread"),
)
REPLIES = ("3 items", "100 items", "1,000 items", "100 items, the last one wrong")
ROWS = {
    "1 at once, the endpoint answers at once": WRITERS,
    "1 at once, the endpoint answers after 100 ms": WRITERS,
    "32 at once, the endpoint answers at once": WRITERS,
    "32 at once, the endpoint answers after 100 ms": WRITERS,
    "Memory.add, the endpoint answers at once": ("stock", "ours"),
    "Memory.add, the endpoint answers after 100 ms": ("stock", "ours"),
    "Reading and validating a reply, CPU time": tuple(
        f"{contract}, {reply}"
        for contract in ("additive", "update", "nested")
        for reply in REPLIES
        if (contract, reply) != ("update", "1,000 items")
    ),
    "Starting Python {}.{}, CPU time".format(*sys.version_info): (
        *("no .pth file", "a .pth file that says nothing", "the hook", "the hook, no byte code"),
        *("from within: the hook's import and start", "the same, no byte code", "-X importtime: the hook's import"),
    ),
    "Importing, CPU time": (
        *("python -c pass", "import hymemory_adapters", "import hymemory_adapters.core.writer"),
        *("import hymemory_adapters.mem0.provider", "import openai", "import mem0"),
    ),
    "Memory kept by 20 writes": ("resident, bare", "alive, bare", "resident, ours", "alive, ours"),
}


def test_quick_run_fills_every_row(tmp_path: Path) -> None:
    figures = tmp_path / "figures" / "bench.json"
    command = [sys.executable, str(BENCH), "--quick", "--json", str(figures)]
    # A setting of the user's must not reach the contenders: this one would fail every write.
    environment = {**os.environ, "HYMEMORY_BASE_URL": "http://127.0.0.1:9/v1"}
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert run.returncode == 0, run.stderr

    told = json.loads(figures.read_text())
    assert told["quick"] is True
    assert {"python", "cores", "load", "mem0ai", "openai", "hymemory-adapters"} <= set(told["context"])
    found: dict[str, list[str]] = {}
    for row in told["rows"]:
        found.setdefault(row["section"], []).append(row["name"])
        _well_formed(row)
    assert {section: tuple(names) for section, names in found.items()} == ROWS
    for section, names in ROWS.items():
        assert f"\n| {section} |" in run.stdout
        assert all(f"\n| {name} |" in run.stdout for name in names)
    budgets = [budget for row in told["rows"] for budget in row["budgets"]]
    assert f"of {len(budgets)} budgets are kept." in run.stdout


def _well_formed(row: dict[str, Any]) -> None:
    assert row["n"] == len(row["values"]) >= 1
    assert row["min"] <= row["median"] <= row["p95"]
    if row["name"].startswith("ours"):  # each of our writes is compared
        assert len(row["base"]) == row["ratio"]["n"] == row["extra"]["n"] >= 1
    for budget in row["budgets"]:
        assert budget["kept"] is (budget["figure"] <= budget["limit"])
