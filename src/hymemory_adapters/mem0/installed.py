"""What the installed Mem0 does, where its versions differ and no name says so."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def mentions(function: Callable[..., Any], name: str) -> bool:
    """Whether a function of Mem0's uses an attribute or a function of this name; decorators are looked through."""
    return name in inspect.unwrap(function).__code__.co_names
