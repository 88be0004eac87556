"""What the live tests write, a row a write call and a row a store: a new host adds a file of rows, and no tests.

Everything is built by the *installed* host's own code. A host that is not installed has no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import pytest

from tests.live.row import OF_FORM_NO_SCHEMA_CAN_SAY, TALK, Row, Store

__all__ = ["OF_FORM_NO_SCHEMA_CAN_SAY", "ROWS", "STORES", "TALK", "TEXT_ROWS", "Row", "Store", "each_row"]

HOSTS = {"mem0": "mem0ai", "langchain": "langmem", "llamaindex": "llama-index-core"}
"""What has to be installed for a host's file of rows."""


def _installed(distribution: str) -> bool:
    try:
        return bool(version(distribution))
    except PackageNotFoundError:
        return False


def _table(function: str) -> dict[str, Any]:
    hosts = [host for host, distribution in HOSTS.items() if _installed(distribution)]
    modules = [import_module(f"tests.live.{host}_rows") for host in hosts if find_spec(f"tests.live.{host}_rows")]
    found = [getattr(module, function)() for module in modules if hasattr(module, function)]
    return {name: row for rows in found for name, row in rows.items()}


ROWS: dict[str, Row] = _table("rows")
TEXT_ROWS: dict[str, Row] = _table("text_rows")
STORES: dict[str, Callable[[Mapping[str, Any]], Store]] = _table("stores")

each_row = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
each_text_row = pytest.mark.parametrize("row", TEXT_ROWS.values(), ids=TEXT_ROWS)
each_store = pytest.mark.parametrize("store", STORES.values(), ids=STORES)
