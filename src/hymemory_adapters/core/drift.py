"""Where a host uses its LLM: a newer version of it may ask for something that its table does not know."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

Site = tuple[str, str, str]
"""File, function and what it uses: ``("memory/main.py", "Memory.add", "llm.generate_response")``."""


def uses_of(package: str, name: str, *, besides: Collection[str] = ()) -> Counter[Site]:
    """Find where an installed package uses what it calls ``name``: ``self.llm.generate_response``, ``llm.invoke``.

    The sources are read, nothing is imported or run. What is only mentioned counts too: a method is often handed to
    ``asyncio.to_thread`` instead of being called.

    Args:
        package: a top-level package; where it is not installed, nothing is found.
        name: the variable or attribute.
        besides: attributes of it that are of no interest.

    Returns:
        how often each site uses it.
    """
    spec = find_spec(package)
    found: Counter[Site] = Counter()
    for folder in map(Path, (spec.submodule_search_locations or ()) if spec else ()):
        for path in sorted(folder.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if f"{name}." in source:
                file = path.relative_to(folder).as_posix()
                uses = _uses(ast.parse(source), "", name)
                found.update((file, function, used) for function, used in uses if used.partition(".")[2] not in besides)
    return found


def new_sites(found: Mapping[Site, int], known: Mapping[Site, int]) -> tuple[str, ...]:
    """Say which sites are not known, or have more uses than are known."""
    return tuple(
        f"{file}: {function or 'module'} uses {used}" + (f" {count} times" if count > 1 else "")
        for (file, function, used), count in sorted(found.items())
        if count > known.get((file, function, used), 0)
    )


def _uses(node: ast.AST, function: str, name: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _uses(child, f"{function}.{child.name}".removeprefix("."), name)
            continue
        if isinstance(child, ast.Attribute) and name in (
            getattr(child.value, "attr", None),  # self.llm.x
            getattr(child.value, "id", None),  # llm.x
        ):
            yield function, f"{name}.{child.attr}"
        yield from _uses(child, function, name)
