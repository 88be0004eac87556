"""The README's claims that a test can hold it to."""

from __future__ import annotations

import re
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
