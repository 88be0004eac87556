"""Let Hy-Memory-30B-A3B write the memory of your agent, in the framework that you have.

>>> from mem0 import Memory
>>> Memory.from_config({"llm": {"provider": "hymemory"}})        # doctest: +SKIP

Importing this package imports no framework and no openai: its names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from hymemory_adapters._version import __version__

if TYPE_CHECKING:
    from hymemory_adapters.core.events import Attempt, WriteEvent, on_write, write_context
    from hymemory_adapters.core.lost import (
        ConfigurationError,
        EndpointError,
        HyMemoryError,
        MalformedWriteError,
    )
    from hymemory_adapters.core.problem import Problem
    from hymemory_adapters.registry import register
    from hymemory_adapters.settings import WriterSettings

_HOMES = {
    "register": "registry",
    "WriterSettings": "settings",
    "HyMemoryError": "core.lost",
    "MalformedWriteError": "core.lost",
    "EndpointError": "core.lost",
    "ConfigurationError": "core.lost",
    "on_write": "core.events",
    "write_context": "core.events",
    "WriteEvent": "core.events",
    "Attempt": "core.events",
    "Problem": "core.problem",
}

__all__ = [
    "Attempt",
    "ConfigurationError",
    "EndpointError",
    "HyMemoryError",
    "MalformedWriteError",
    "Problem",
    "WriteEvent",
    "WriterSettings",
    "__version__",
    "on_write",
    "register",
    "write_context",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
