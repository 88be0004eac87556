"""Prompts of packages that an app may not use: read where the app has imported them, and never imported here."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec
from string import Formatter
from typing import Any


def spec_of(name: str) -> ModuleSpec | None:
    """Find a module without importing its parents; ``None`` where it is not installed."""
    package, *parts = name.split(".")
    spec = find_spec(package)
    for part in parts:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = PathFinder.find_spec(f"{spec.name}.{part}", list(spec.submodule_search_locations))
    return spec


def source_of(spec: ModuleSpec) -> str:
    """Return the source of a module; ``""`` where there is none to be read."""
    get_source = getattr(spec.loader, "get_source", None)
    return (get_source(spec.name) if get_source else None) or ""


def constant(module: str, name: str) -> Any:
    """Return what an imported module has under a name; ``None`` where the module is not imported."""
    return getattr(sys.modules.get(module), name, None)


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt's text around its fields.

    Attributes:
        fields: the names of the fields, in order.
        literals: what stands before, between and after them: one more than there are fields.
    """

    fields: tuple[str, ...]
    literals: tuple[str, ...]

    def frames(self, text: str) -> bool:
        """Whether a text is this prompt with something in its fields."""
        first, *between, last = self.literals
        if not (text.startswith(first) and text.endswith(last)):
            return False
        position, end = len(first), len(text) - len(last)
        for literal in between:
            found = text.find(literal, position, end)
            if found < 0:
                return False
            position = found + len(literal)
        return position <= end

    def body(self, text: str) -> str:
        """Return what stands between the first and the last literal of a framed text."""
        return text[len(self.literals[0]) : len(text) - len(self.literals[-1])]


@lru_cache(maxsize=32)
def template(text: str) -> Template:
    """Read a format string."""
    fields: list[str] = []
    literals = [""]
    for literal, field, _, _ in Formatter().parse(text):
        literals[-1] += literal
        if field is not None:
            fields.append(field)
            literals.append("")
    return Template(tuple(fields), tuple(literals))
