"""LlamaIndex: ``Settings.llm = HyMemory()``, and ``HyMemoryFactExtractionBlock`` where no turn may be lost.

``llm.py`` is the LLM, ``config.py`` what its constructor takes, ``client.py`` the way from LlamaIndex's requests to
the writer and back, ``calls.py`` the table of calls (``facts.py`` and ``summary.py`` hold its longer rows),
``block.py`` the memory block. There is no import hook: an app names the LLM itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hymemory_adapters.llamaindex.block import HyMemoryFactExtractionBlock
    from hymemory_adapters.llamaindex.llm import HyMemory

_HOMES = {"HyMemory": "llm", "HyMemoryFactExtractionBlock": "block"}

__all__ = ["HyMemory", "HyMemoryFactExtractionBlock"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
