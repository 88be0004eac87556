"""A fresh process in which the wheel is installed, and nothing of this package set."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SITE = Path(sysconfig.get_paths()["purelib"])
needs_wheel = pytest.mark.skipif(
    not (SITE / "hymemory_adapters.pth").exists(), reason="the wheel is not installed: run nox -s hook"
)


def run(code: str, tmp_path: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run code as an app would."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HYMEMORY_", "PYTHONPATH"))}
    clean |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(tmp_path / "mem0"), "LANGSMITH_TRACING": "false", **env}
    return subprocess.run(
        [sys.executable, "-c", code], env=clean, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
