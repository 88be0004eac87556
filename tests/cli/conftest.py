"""What the command's tests share."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from importlib.util import find_spec

import pytest

from hymemory_adapters import registry
from hymemory_adapters.registry import Host

collect_ignore_glob = [] if find_spec("typer") and find_spec("rich") else ["test_*.py"]  # the extra is not installed


@pytest.fixture
def notes_host(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Host]:
    """Make a row of the tests' own the only host, whatever is installed."""

    from tests.cli.support import NOTES

    def install(**changes: str) -> Host:
        host = dataclasses.replace(NOTES, **changes)
        for name in list(registry.HOSTS):
            monkeypatch.delitem(registry.HOSTS, name)
        monkeypatch.setitem(registry.HOSTS, "notes", host)
        return host

    return install
