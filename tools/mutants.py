"""Change the core on purpose, one small change at a time, and see that a test fails: mutation testing with mutmut.

Usage: ``python tools/mutants.py [all | FILE...]``, with files of ``core/`` by their stem; ``reply armour writer lost``
where none is named. Everything happens in scratch copies of the tree.

``tests/mutants.toml`` says which tests hold which file, and explains every mutant that may live. The run fails when
one lives that is not explained there, and when an explanation fits no survivor any more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from difflib import ndiff
from pathlib import Path
from typing import Any

import libcst
import tomllib
from mutmut.mutation import file_mutation
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.stats import status_by_exit_code
from pattern_mutants import pattern_mutants

ROOT = Path(__file__).resolve().parent.parent
CORE = Path("src/hymemory_adapters/core")
DEFAULT = ("armour", "reply", "lost", "writer")
WORKERS = 2
MEMORY = 4 * 2**30  # bytes a process; a mutant that never ends may also collect without end
ENVIRON = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}

# The same few examples for every mutant, and no time spent on making a failing one small.
CONFTEST = """
from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "mutants", derandomize=True, database=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),  # a busy machine kills no mutant
)
settings.load_profile("mutants")


def pytest_collection_modifyitems(items):
    for test in (item.function for item in items if hasattr(item, "function")):
        if known := getattr(test, "_hypothesis_internal_use_settings", None):
            test._hypothesis_internal_use_settings = settings(known, max_examples=min(30, known.max_examples))
"""


@dataclass(frozen=True)
class Mutant:
    """One change: the lines before and after, without their indentation."""

    was: str
    becomes: str
    where: str
    status: str = ""

    @property
    def is_wording(self) -> bool:
        """Whether only sentences differ: string literals with a space in them, told to people or to the model."""
        before, after = (re.findall(r'(r?)"((?:[^"\\]|\\.)*)"', lines) for lines in (self.was, self.becomes))
        if len(before) != len(after) or self.becomes.replace("XX", "").lower() != self.was.lower():
            return False
        changed = [old for old, new in zip(before, after, strict=True) if old != new]
        return bool(changed) and all(" " in words and not is_pattern for is_pattern, words in changed)

    def shown(self, title: str) -> str:
        """The change, like a diff."""
        before, after = (lines.splitlines() or ["(a file's wording)"] for lines in (self.was, self.becomes))
        return "\n".join([title, *(f"  - {line}" for line in before), *(f"  + {line}" for line in after)])


class Reasons:
    """Why mutants of one file may live, and which of the reasons were needed."""

    def __init__(self, file: str, explained: dict[str, Any]) -> None:
        self._changes = {
            (entry["was"].strip(), becomes.strip()): False
            for entry in explained.get("survivor", ())
            if entry["file"] == file
            for becomes in entry["becomes"]
        }
        self._wording: bool | None = False if file in explained.get("wording", {}) else None

    def know(self, mutant: Mutant) -> bool:
        """Whether this one may live."""
        return (mutant.was, mutant.becomes) in self._changes or (self._wording is not None and mutant.is_wording)

    def explain(self, mutant: Mutant) -> bool:
        """Whether this one, which does live, may; remembers that the reason was needed."""
        if (mutant.was, mutant.becomes) in self._changes:
            self._changes[mutant.was, mutant.becomes] = True
        elif self.know(mutant):
            self._wording = True
        return self.know(mutant)

    def unused(self) -> list[Mutant]:
        """What is explained without need."""
        stale = [Mutant(was, becomes, "") for (was, becomes), used in self._changes.items() if not used]
        return stale + ([Mutant("", "", "")] if self._wording is False else [])


@dataclass
class Result:
    """What became of one file's mutants."""

    file: str
    counts: Counter[str] = field(default_factory=Counter)
    survivors: list[Mutant] = field(default_factory=list)
    timeouts: list[Mutant] = field(default_factory=list)


def main() -> int:
    """Run; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="*", default=DEFAULT)
    parser.add_argument("--explained", type=Path, default=ROOT / "tests" / "mutants.toml")
    arguments = parser.parse_args()
    explained = tomllib.loads(arguments.explained.read_text("utf-8"))
    files = list(explained["tests"]) if arguments.files == ["all"] else arguments.files
    os.nice(10)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    print("| file | mutants | killed | timeout | explained | left |\n|---|---|---|---|---|---|", flush=True)
    complaints: list[str] = []
    for file in files:
        with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
            reasons = Reasons(file, explained)
            result = _tested(file, explained["tests"][file], reasons, Path(scratch))
        complaints += _judged(result, reasons)
    print("\n".join(["", *complaints]) if complaints else "\nEvery survivor is explained.")
    return 1 if complaints else 0


def _judged(result: Result, reasons: Reasons) -> list[str]:
    """Print a file's line; return what is wrong with it."""
    unknown = [mutant for mutant in result.survivors if not reasons.explain(mutant)]
    complaints = [mutant.shown(f"{result.file}: not explained ({mutant.where}, {mutant.status})") for mutant in unknown]
    complaints += [stale.shown(f"{result.file}: explained, but no such mutant lives") for stale in reasons.unused()]
    for mutant in result.timeouts:
        print(mutant.shown(f"{result.file}: never ends ({mutant.where})"), file=sys.stderr)
    counts, total = result.counts, sum(result.counts.values())
    cells = [total, counts["killed"], counts["timeout"], len(result.survivors) - len(unknown), len(unknown)]
    print(f"| {result.file}.py | " + " | ".join(map(str, cells)) + " |", flush=True)
    return complaints


# -- one file --------------------------------------------------------------------------------------


def _tested(file: str, tests: list[str], reasons: Reasons, scratch: Path) -> Result:
    paths = ["tests/core/test_{}.py{}{}".format(*name.partition("::")) for name in tests]
    result = Result(file)
    copies = [_copy(scratch / str(i)) for i in range(WORKERS)]
    places: queue.Queue[Path] = queue.Queue()
    for copy in copies:
        places.put(copy)
    took = _clean_run(copies[0], paths)

    def fresh(work: tuple[Mutant, str, dict[str, str]]) -> Mutant:
        mutant, source, environ = work
        place = places.get()
        try:
            (place / CORE / f"{file}.py").write_text(source, "utf-8")
            status = _pytest(place, paths, 30 + 5 * took, environ)
        finally:
            places.put(place)
        return Mutant(mutant.was, mutant.becomes, mutant.where, status)

    forked = _mutmut(file, paths, _copy(scratch / "mutmut"))
    mutated = (scratch / "mutmut" / "mutants" / CORE / f"{file}.py").read_text("utf-8")
    # mutmut forks after the import: what a function does while its module is imported needs a process of its own.
    # What is explained and died all the same is tried again as well: perhaps only the machine was busy.
    again = [m for m in forked if m.status != "timeout" and reasons.know(m) == (m.status == "killed")]
    with ThreadPoolExecutor(WORKERS) as pool:
        done = [mutant for mutant in forked if mutant not in again]
        done += pool.map(fresh, ((mutant, mutated, {"MUTANT_UNDER_TEST": mutant.where}) for mutant in again))
        done += pool.map(fresh, ((mutant, source, {}) for mutant, source in _at_import(file)))
    for mutant in done:
        result.counts[mutant.status] += 1
        if mutant.status == "timeout":
            result.timeouts.append(mutant)
        elif mutant.status != "killed":
            result.survivors.append(mutant)
    return result


def _copy(to: Path) -> Path:
    unwanted = shutil.ignore_patterns("__pycache__", ".hypothesis")
    for folder in ("src", "tests"):
        shutil.copytree(ROOT / folder, to / folder, ignore=unwanted)
    shutil.copy(ROOT / "pyproject.toml", to)
    (to / "conftest.py").write_text(CONFTEST, "utf-8")
    return to


def _clean_run(place: Path, tests: list[str]) -> float:
    start = time.monotonic()
    if _pytest(place, tests, 600, {}) != "survived":
        raise SystemExit("the tests fail without any mutant")
    return time.monotonic() - start


def _pytest(place: Path, tests: list[str], timeout: float, environ: dict[str, str]) -> str:
    """Run the tests in a process of their own; say what that means for the mutant."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    process = subprocess.Popen(
        command,
        cwd=place,
        env={**ENVIRON, "PYTHONPATH": str(place / "src"), **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return "killed" if process.wait(timeout) else "survived"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "timeout"


# -- what mutmut does ------------------------------------------------------------------------------


def _mutmut(file: str, tests: list[str], place: Path) -> list[Mutant]:
    """Let mutmut try the mutants of every function it takes."""
    options: dict[str, str | list[str]] = {
        "source_paths": "src",
        "only_mutate": str(CORE / f"{file}.py"),
        "also_copy": "conftest.py",
        "pytest_add_cli_args_test_selection": tests,
        "pytest_add_cli_args": ["-p", "no:cacheprovider"],
        "use_git_change_detection": "false",
        "timeout_multiplier": "5",
        "timeout_constant": "3",
    }
    lines = (f"{key} =" + "".join(f"\n  {v}" for v in ([x] if isinstance(x, str) else x)) for key, x in options.items())
    (place / "setup.cfg").write_text("\n".join(["[mutmut]", *lines, ""]), "utf-8")
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", str(WORKERS)]
    run = subprocess.run(command, cwd=place, env=ENVIRON, capture_output=True, text=True)
    meta = place / "mutants" / CORE / f"{file}.py.meta"
    if run.returncode or not meta.exists():
        raise SystemExit(f"mutmut failed for {file}:\n{run.stdout[-3000:]}{run.stderr[-3000:]}")
    codes = json.loads(meta.read_text("utf-8"))["exit_code_by_key"]
    with contextlib.chdir(place):
        return [
            _mutant(get_diff_for_mutant(name, path=CORE / f"{file}.py"), name, status_by_exit_code[code])
            for name, code in codes.items()
        ]


def _mutant(diff: Iterable[str] | str, where: str, status: str = "") -> Mutant:
    lines = diff.splitlines() if isinstance(diff, str) else list(diff)
    lines = [line for line in lines if not line.startswith(("---", "+++", "?"))]
    was, becomes = ("\n".join(line[1:].strip() for line in lines if line[0:1] == sign) for sign in "-+")
    return Mutant(was, becomes, where, status)


# -- what it leaves out ----------------------------------------------------------------------------


class _Everything(file_mutation.MutationVisitor):
    """Goes into decorated functions too."""

    def _skip_node_and_children(self, node: libcst.CSTNode) -> bool:
        decorated = isinstance(node, libcst.FunctionDef) and node.decorators
        return not decorated and super()._skip_node_and_children(node)


def _at_import(file: str) -> Iterator[tuple[Mutant, str]]:
    """Where mutmut makes none, the same changes (module level, class bodies, decorated functions), and of patterns."""
    source = (ROOT / CORE / f"{file}.py").read_text("utf-8")
    usual, file_mutation.MutationVisitor = file_mutation.MutationVisitor, _Everything  # type: ignore[misc]
    try:
        with contextlib.chdir(ROOT):  # where mutmut looks for its settings
            module, mutations, *_ = file_mutation.create_mutations(file, source)
    finally:
        file_mutation.MutationVisitor = usual  # type: ignore[misc]
    pairs = [(m.original_node, m.mutated_node) for m in mutations if not _is_mutmuts(m.contained_by_top_level_function)]
    for old, new in (*pairs, *pattern_mutants(module)):
        changed = file_mutation.deep_replace(module, old, new)
        assert isinstance(changed, libcst.Module)
        yield _mutant(ndiff(source.splitlines(), changed.code.splitlines()), "at import"), changed.code


def _is_mutmuts(function: libcst.CSTNode | None) -> bool:
    if not isinstance(function, libcst.FunctionDef):
        return False
    decorators = [getattr(d.decorator, "value", "") for d in function.decorators]
    return decorators in ([], ["staticmethod"], ["classmethod"])


if __name__ == "__main__":
    raise SystemExit(main())
