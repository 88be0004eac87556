"""Mem0 0.1 and 1.x write from threads of their own: here they inherit the context of ``Memory.add``'s caller.

Without it nobody could tell whose write was lost: ``write_context`` is a context variable, and new threads start
without any.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from types import ModuleType
from typing import Any


class _ContextExecutor(ThreadPoolExecutor):
    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return super().submit(copy_context().run, function, *args, **kwargs)


class _Futures:
    """``concurrent.futures`` with the executor above in it."""

    ThreadPoolExecutor = _ContextExecutor

    def __getattr__(self, name: str) -> Any:
        return getattr(concurrent.futures, name)


class _Concurrent:
    futures = _Futures()


def inherit_context(module: ModuleType) -> None:
    """Exchange the name ``concurrent`` in ``mem0.memory.main``, which is all that module knows threads by.

    Mem0 2.x writes in the caller's thread and imports ``concurrent.futures`` for deletions alone: they inherit
    the context too, which harms nothing.
    """
    if hasattr(module, "concurrent"):
        module.concurrent = _Concurrent  # type: ignore[attr-defined]
