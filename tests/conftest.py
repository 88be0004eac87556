"""What every test starts from: no settings but its own, and a process that remembers nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from hymemory_adapters.core import endpoint, events

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
