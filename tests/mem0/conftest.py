"""Mem0 for the tests: a memory with its own store behind a scripted endpoint. Mem0 itself is in ``host.py``."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support.scripted import ScriptedEndpoint

# Mem0 reads both when it is imported: telemetry would go to the internet, and the folder to the user's home.
os.environ["MEM0_TELEMETRY"] = "False"
os.environ["MEM0_DIR"] = tempfile.mkdtemp(prefix="mem0-tests-")
atexit.register(shutil.rmtree, os.environ["MEM0_DIR"], ignore_errors=True)

if find_spec("mem0") is None:  # the lane without hosts
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def _no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def _loopback_only(_no_certificates: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare every test the 50 ms that a client takes to load the world's CA certificates."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", _no_certificates)


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint("nothing was scripted") as scripted:
        yield scripted


@pytest.fixture
def make_memory(endpoint: ScriptedEndpoint) -> Iterator[Callable[..., Any]]:
    """Build a ``Memory``: with keys of our provider's block, or with another ``llm``, or more of Mem0's config."""
    from tests.mem0 import host

    made: list[Any] = []

    def build(*, llm: dict[str, Any] | None = None, more: dict[str, Any] | None = None, **block: Any) -> Any:
        llm = host.hymemory(endpoint.url, **block) if llm is None else llm
        made.append(host.mem0.Memory.from_config(host.config(llm, **(more or {}))))
        return made[-1]

    yield build
    for memory in made:
        host.drop(memory)


@pytest.fixture
def memory(make_memory: Callable[..., Any]) -> Any:
    return make_memory()
