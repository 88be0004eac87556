"""The README's claims that a test can hold it to."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hymemory_adapters.settings import VARIABLES, WriterSettings

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_ci_runs_the_command_that_tests_are_run_with() -> None:
    (command,) = re.findall(r"^.*&& \.nox-venv/bin/nox$", README, re.MULTILINE)
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_the_demo_command_names_files_that_exist() -> None:
    (command,) = re.findall(r"^.*mem0_quickstart\.py$", README, re.MULTILINE)
    assert all((ROOT / name).exists() for name in re.findall(r"examples/\S+", command))


def test_every_variable_is_told_and_no_other() -> None:
    told = set(re.findall(r"HYMEMORY_[A-Z_]+", README))
    assert told == {*VARIABLES.values(), "HYMEMORY_WRITERS_FILE", "HYMEMORY_AUTOLOAD", "HYMEMORY_ENABLE"}


@pytest.mark.parametrize(
    "field", ["attempts", "max_tokens", "max_tokens_ceiling", "timeout", "deadline", "retry_seconds", "concurrency"]
)
def test_the_defaults_are_those_of_the_code(field: str) -> None:
    (row,) = re.findall(rf"^\|[^|]*`{VARIABLES[field]}`[^|]*\|[^|]*\|", README, re.MULTILINE)
    variables, defaults = row.strip("|").split("|")
    place = re.findall(r"HYMEMORY_[A-Z_]+", variables).index(VARIABLES[field])
    assert re.findall(r"\d+", defaults)[place] == str(getattr(WriterSettings(), field)).removesuffix(".0")


def table_of_hosts(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "readme_table.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_table_of_hosts_is_that_of_the_registry() -> None:
    done = table_of_hosts("--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("| here |", "| there |", "run python tools/readme_table.py"),
        ("<!-- end of hosts -->\n", "", "does not hold the two lines"),
    ],
    ids=["changed by hand", "no place for it"],
)
def test_another_table_of_hosts_is_found_out(tmp_path: Path, old: str, new: str, told: str) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README.replace(old, new, 1), encoding="utf-8")
    checked = table_of_hosts("--check", readme)
    assert checked.returncode == 1
    assert told in checked.stderr
    assert readme.read_text(encoding="utf-8") == README.replace(old, new, 1), "checking changes nothing"


def test_the_table_of_hosts_is_written_anew(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(README.replace("| here |", "| there |"), encoding="utf-8")
    assert table_of_hosts(readme).returncode == 0
    assert readme.read_text(encoding="utf-8") == README
