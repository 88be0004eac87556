"""``hosts.toml``, the one place for supported versions, and those who read it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import _hymemory_autoload as autoload
import hymemory_adapters
from hymemory_adapters import packaged
from hymemory_adapters.registry import HOSTS

ROOT = Path(__file__).resolve().parent.parent
FILE = packaged.read("hosts.toml")
HERE = {name: row for name, row in FILE.items() if "tested" in row}
PYTHONS = ("3.10", "3.11", "3.12", "3.13")

each_host = pytest.mark.parametrize(("name", "row"), FILE.items(), ids=FILE)
each_host_here = pytest.mark.parametrize(("name", "row"), HERE.items(), ids=HERE)


def test_hook_registry_and_file_know_the_same_hosts() -> None:
    assert set(HERE) == set(HOSTS)
    assert set(autoload.HOOKS.values()) == {host.name for host in HOSTS.values() if host.installer}


@each_host
def test_a_row_is_sound(name: str, row: dict[str, Any]) -> None:
    needed, more = {"title", "switch", "distribution", "supported"}, {"python", "also", "tested"}
    assert needed <= set(row) <= needed | more
    assert not re.search(r"[|\n]", row["title"] + row["switch"]), "they are cells of a table"
    assert SpecifierSet(row["supported"])
    assert row.get("python", "3.12") in PYTHONS
    assert all(Requirement(text) for text in row.get("also", ()))


@each_host_here
def test_the_tested_versions_are_sound(name: str, row: dict[str, Any]) -> None:
    tested = {entry["version"]: entry for entry in row["tested"]}
    assert len(tested) == len(row["tested"]) > 0
    assert list(tested) == sorted(tested, key=Version)
    oldest_python = row.get("python", PYTHONS[0])
    for version, entry in tested.items():
        assert {"version", "python"} <= set(entry) <= {"version", "python", "pins", "cassettes"}
        assert SpecifierSet(row["supported"]).contains(version)
        assert entry["python"] in PYTHONS[PYTHONS.index(oldest_python) :]
        assert all(Requirement(text) for text in entry.get("pins", ()))
        assert "cassettes" not in tested[entry.get("cassettes", version)] or "cassettes" not in entry


@each_host_here
def test_the_registry_says_what_the_file_says(name: str, row: dict[str, Any]) -> None:
    host = HOSTS[name]
    assert (host.distribution, host.supported) == (row["distribution"], row["supported"])
    assert list(host.tested) == [entry["version"] for entry in row["tested"]]
    assert list(host.pins) == row["tested"][-1].get("pins", [])


@each_host
def test_the_extra_installs_what_the_file_says(name: str, row: dict[str, Any]) -> None:
    try:
        installed = [Requirement(text) for text in requires("hymemory-adapters") or ()]
    except PackageNotFoundError:
        pytest.skip("the package is not installed: it runs from its source tree")
    old, new = {"python_version": "3.9", "extra": name}, {"python_version": "3.99", "extra": name}
    extra = [each for each in installed if each.marker and each.marker.evaluate(new) and "extra" in str(each.marker)]
    wanted = [Requirement(row["distribution"] + row["supported"]), *map(Requirement, row.get("also", ()))]
    assert {(each.name.lower(), each.specifier) for each in extra} == {(w.name.lower(), w.specifier) for w in wanted}
    too_old = [each for each in extra if each.marker and not each.marker.evaluate(old)]
    assert len(too_old) == ("python" in row)


@pytest.mark.parametrize("file", ["pyproject.toml", "examples/requirements.txt"])
def test_the_examples_run_on_the_newest_that_is_tested(file: str) -> None:
    (asked,) = re.findall(r"\bmem0ai[^\"\s]*", (ROOT / file).read_text(encoding="utf-8"))
    newest, limit = FILE["mem0"]["tested"][-1]["version"], FILE["mem0"]["supported"].rpartition(",")[2]
    assert asked == f"mem0ai>={newest},{limit}"


def copy_of_the_package(folder: Path) -> str:
    package = Path(hymemory_adapters.__path__[0])
    shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(str(autoload.__file__), folder)
    return str(folder)


def test_from_a_zip_file(tmp_path: Path) -> None:
    """A zipapp: hosts and writers are known there too."""
    archive = shutil.make_archive(str(tmp_path / "app"), "zip", copy_of_the_package(tmp_path / "unpacked"))
    code = (
        "import hymemory_adapters; from hymemory_adapters.settings import resolve; hymemory_adapters.register(); "
        "from hymemory_adapters.registry import HOSTS; print(hymemory_adapters.__file__, *HOSTS, resolve({}).model)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": archive}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(archive)
    assert done.stdout.split()[1:] == [*HOSTS, "hy-memory"]


def test_the_tests_notice_when_they_do_not_test_the_wheel(tmp_path: Path) -> None:
    """A package that stands in front of the installed one, as a source tree on the path would."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/test_readme.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": copy_of_the_package(tmp_path / "source"), "TESTS_WANT_THE_WHEEL": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4, done.stdout
    assert f"what would be tested is {tmp_path}" in done.stdout + done.stderr
