"""What the package costs a process before it writes anything: the hook at every start, and its imports.

The hook runs in *every* start of Python in an environment that has the package, so it has three figures:

- whole processes: the CPU time of ``python -c pass`` in four bare virtual environments in turn. One has nothing in it;
  one has a ``.pth`` file that says nothing, which is what any package with such a file costs (Python 3.13 imports a
  codec for the first one); two have the hook, with and without byte code (a read-only installation, not compiled).
- from within: the import of the hook and its start, by the clock of a process that does nothing else.
- ``-X importtime``'s figure for it.

Imports are measured as whole processes too, in the environment that runs this: what an import costs beyond a start.
CPU time, because starting and importing is nothing else once the files are in the disk's cache, and because it stays
what it is while others use the machine; the wall time stands beside it.
"""

# ruff: noqa: S603 (a script: it starts what it is told to measure)

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from endpoint import Endpoint
from figures import Budget, Row

import _hymemory_autoload

HOOK = Path(_hymemory_autoload.__file__)
OURS = ("hymemory_adapters", "hymemory_adapters.core.writer")
IMPORTS = (*OURS, "hymemory_adapters.mem0.provider", "openai", "mem0")  # the others for scale
HOOK_MS = 1.0
BARE, NOTHING = "no .pth file", "a .pth file that says nothing"
AGAINST = ("", BARE, NOTHING, NOTHING)
FROM_WITHIN = """
import sys, time
sys.path.append(sys.argv[1])
before = time.process_time_ns()
import _hymemory_autoload
_hymemory_autoload.start()
print((time.process_time_ns() - before) / 1e6)
"""


def measure(_: Endpoint, *, quick: bool) -> list[Row]:
    """The hook, then the imports."""
    with tempfile.TemporaryDirectory(prefix="hymemory-bench-") as folder:
        rows = _hook(Path(folder), runs=2 if quick else 150)
    return [*rows, *_imports(runs=1 if quick else 15)]


# -- the hook --------------------------------------------------------------------------------------


def _environment(folder: Path, *, hook: bool = False, byte_code: bool = True, empty_file: bool = False) -> Path:
    """Make a bare virtual environment and return its Python."""
    command = [sys.executable, "-m", "venv", "--without-pip", str(folder)]
    subprocess.run(command, check=True)
    python = folder / "bin" / "python"
    packages = next(folder.glob("lib/python*/site-packages"))
    if empty_file:
        (packages / "nothing.pth").write_text("# nothing\n")
    if hook:
        for name in (HOOK.name, "hymemory_adapters.pth", "hymemory_adapters.start"):
            shutil.copy(HOOK.parent / name, packages)
        if byte_code:
            subprocess.run([str(python), "-m", "compileall", "-q", str(packages)], check=True)
    return python


def _hook(folder: Path, *, runs: int) -> list[Row]:
    pythons = {
        BARE: _environment(folder / "bare"),
        NOTHING: _environment(folder / "empty", empty_file=True),
        "the hook": _environment(folder / "hook", hook=True),
        "the hook, no byte code": _environment(folder / "source", hook=True, byte_code=False),
    }
    bare, _, hooked, source = pythons.values()
    # -B, so that the one without byte code stays so. -I: nothing of this environment reaches them.
    starts = {name: partial(_start_ms, [str(python), "-I", "-B", "-c", "pass"]) for name, python in pythons.items()}
    section = "Starting Python {}.{}, CPU time".format(*sys.version_info)
    taken = _in_turn(starts, runs)
    rows = [_row(section, name, taken, against) for name, against in zip(starts, AGAINST, strict=True)]
    rows[2].budgets = (Budget("extra", HOOK_MS),)
    within = {
        "from within: the hook's import and start": partial(_within_ms, bare, hooked),
        "the same, no byte code": partial(_within_ms, bare, source),
        "-X importtime: the hook's import": partial(_importtime_ms, [str(hooked), "-I", "-B"], HOOK.stem),
    }
    found = _in_turn(within, max(2, runs // 4))
    rows += [Row(section, name, "ms", values) for name, (values, _) in found.items()]
    rows[4].budgets = (Budget("median", HOOK_MS),)
    return rows


def _row(section: str, name: str, taken: Cost, against: str) -> Row:
    cpu, wall = taken[name]
    base = taken[against][0] if against else []
    more = {"wall, ms": f"{statistics.median(wall):.1f}"}
    return Row(section, name, "ms", cpu, against=against, base=base, more=more)


def _within_ms(bare: Path, other: Path) -> tuple[float, float]:
    packages = next(other.parent.parent.glob("lib/python*/site-packages"))
    command = [str(bare), "-I", "-B", "-c", FROM_WITHIN, str(packages)]
    taken = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return taken, taken


# -- imports ---------------------------------------------------------------------------------------


def _imports(*, runs: int) -> list[Row]:
    start = "python -c pass"
    programs = {start: "pass"} | {f"import {name}": f"import {name}" for name in IMPORTS}
    things = {name: partial(_start_ms, [sys.executable, "-c", text]) for name, text in programs.items()}
    taken = _in_turn(things, runs)
    rows = [_row("Importing, CPU time", name, taken, "" if name == start else start) for name in things]
    for row, module in zip(rows[1:], OURS, strict=False):
        own = [_importtime_ms([sys.executable], module)[0] for _ in range(max(1, runs // 5))]
        row.more["-X importtime, ms"] = f"{statistics.median(own):.1f}"
    return rows


# -- clocks ----------------------------------------------------------------------------------------


Cost = dict[str, tuple[list[float], list[float]]]
"""By name: CPU time and wall time of each run."""


def _in_turn(things: Mapping[str, Callable[[], tuple[float, float]]], runs: int) -> Cost:
    """Measure each once a round, forwards and backwards by turns; the round before the first warms up."""
    taken: Cost = {name: ([], []) for name in things}
    for number in range(runs == 1, runs + 1):
        for name in list(things)[:: 1 if number % 2 else -1]:
            cost = things[name]()
            if number:
                for values, value in zip(taken[name], cost, strict=True):
                    values.append(value)
    return taken


def _start_ms(command: list[str]) -> tuple[float, float]:
    """A whole process: CPU time and wall time."""
    before = time.perf_counter()
    process = subprocess.Popen(command, close_fds=False)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - before
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1000, wall * 1000


def _importtime_ms(python: list[str], module: str) -> tuple[float, float]:
    """A module's cumulative import time, by Python's own account."""
    program = "pass" if module == HOOK.stem else f"import {module}"
    command = [*python, "-X", "importtime", "-c", program]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    found = re.search(rf"^import time: +\d+ \| +(\d+) \| +{re.escape(module)}$", told, re.MULTILINE)
    if found is None:
        raise SystemExit(f"-X importtime says nothing of {module}: is it imported?")
    return int(found[1]) / 1000, int(found[1]) / 1000
