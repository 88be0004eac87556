"""What every test starts from: no settings but its own, and a process that remembers nothing."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

import _hymemory_autoload
import hymemory_adapters
from hymemory_adapters.core import endpoint, events

if os.environ.get("TESTS_WANT_THE_WHEEL"):  # nox says so: what is tested is what users install
    site = Path(sysconfig.get_paths()["purelib"])
    for tested in (hymemory_adapters.__path__[0], _hymemory_autoload.__file__):
        if Path(tested or "").parent != site:
            pytest.exit(f"the wheel is wanted, in {site}; what would be tested is {tested}", returncode=4)

_FOREIGN = ("HYMEMORY_", "OPENAI_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for variable in list(os.environ):
        if variable.startswith(_FOREIGN):
            monkeypatch.delenv(variable)
    endpoint._forget()
    events._said.clear()
    events._subscribers.clear()
    events.passed_through.clear()
    yield
    events._subscribers.clear()


@pytest.fixture
def heard() -> list[events.WriteEvent]:
    """The events of the test's write calls."""
    seen: list[events.WriteEvent] = []
    events.on_write(seen.append)
    return seen
