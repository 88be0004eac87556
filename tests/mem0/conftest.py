"""Mem0 for the tests: a memory with its own store behind a scripted endpoint. Mem0 itself is in ``host.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.scripted import ScriptedEndpoint


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
        memory.db.close()
        memory.vector_store.client.close()


@pytest.fixture
def memory(make_memory: Callable[..., Any]) -> Any:
    return make_memory()
