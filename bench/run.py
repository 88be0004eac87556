"""Measure what the adapters cost, print tables, keep every figure in a JSON file.

    python bench/run.py [--quick] [--only writes,hosts,reading,process,memory] [--json build/bench.json]

Needs the package and Mem0 2.x in its environment; ``nox -s bench`` makes one with the built wheel. It is no test: a
budget that is missed is marked, and the exit code is 0 all the same.
"""

# ruff: noqa: T201 (a script: it prints)

from __future__ import annotations

import argparse
import atexit
import importlib
import json
import os
import platform
import shutil
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from endpoint import Endpoint
from figures import Row, as_json, as_markdown

import hymemory_adapters

PACKAGES = ("mem0ai", "openai", "httpx", "httpx2", "jsonschema", "pydantic", "tenacity", "qdrant-client")
SECTIONS = ("writes", "hosts", "reading", "process", "memory")
"""Each is a module beside this one."""


def context() -> dict[str, Any]:
    """What the figures depend on."""
    return {
        "hymemory-adapters": hymemory_adapters.__version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        **{name: found for name in PACKAGES if (found := _version(name))},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def quiet_environment() -> None:
    """Let no setting of the user's in, and Mem0 neither out to the internet nor into the home folder.

    To be called before Mem0 is imported, which reads its variables then: the sections are imported after it.
    """
    for variable in [name for name in os.environ if name.startswith(("HYMEMORY_", "OPENAI_"))]:
        del os.environ[variable]
    os.environ["MEM0_TELEMETRY"] = "False"
    os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-bench-")
    atexit.register(shutil.rmtree, os.environ["MEM0_DIR"], ignore_errors=True)


def main() -> None:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="every row in a few seconds; figures that mean nothing")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, with commas between them")
    parser.add_argument("--json", type=Path, default=Path("build/bench.json"), help="where the figures go")
    given = parser.parse_args()
    quiet_environment()
    told = context()
    rows: list[Row] = []
    names = given.only.split(",")
    if unknown := [name for name in names if name not in SECTIONS]:
        parser.error(f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}")
    with Endpoint() as endpoint:
        for name in names:
            before = time.perf_counter()
            rows += importlib.import_module(name).measure(endpoint, quick=given.quick)
            print(f"{name}: {time.perf_counter() - before:.0f} s", file=sys.stderr, flush=True)
    print("\n" + as_markdown(rows) + "\n")
    print(", ".join(f"{name} {value}" for name, value in told.items()))
    _say_verdicts(rows)
    given.json.parent.mkdir(parents=True, exist_ok=True)
    given.json.write_text(json.dumps({"context": told, "quick": given.quick, "rows": as_json(rows)}, indent=1))
    print(f"every figure: {given.json}")


def _say_verdicts(rows: list[Row]) -> None:
    verdicts = [(row, verdict) for row in rows for verdict in row.verdicts]
    missed = [(row, verdict) for row, verdict in verdicts if not verdict["kept"]]
    print(f"\n{len(verdicts) - len(missed)} of {len(verdicts)} budgets are kept.")
    for row, verdict in missed:
        told = f"{verdict['kind']} {verdict['figure']:.3f}, at most {verdict['limit']:g}"
        print(f"- missed: {row.section}: {row.name}: {told}")


if __name__ == "__main__":
    main()
