"""Where a host uses its LLM: a newer version of it may ask for something that its table does not know."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

Site = tuple[str, str, str]
"""File, function and what it uses: ``("memory/main.py", "Memory.add", "llm.generate_response")``."""


@dataclass(frozen=True)
class Watched:
    """What gives away, in a host's sources, that an LLM is at work.

    Attributes:
        names: what the host calls its LLM, and what makes one: each attribute of it counts (``llm.invoke``), and
            each place where it is handed on (``ask = self.llm`` is a use of ``llm``).
        methods: those of its LLMs, whoever holds them.
        settings: what holds the LLM's settings under the same name (``self.config.llm``): they ask nothing.
        clients: packages that talk to models: each import counts.
        folders: those of the host that are made of such clients, so that an import there says nothing.
    """

    names: Collection[str]
    methods: Collection[str] = ()
    settings: Collection[str] = ()
    clients: Collection[str] = ()
    folders: Collection[str] = ()


def uses_of(package: str, watched: Watched) -> Counter[Site]:
    """Find where an installed package uses its LLM: ``self.llm.generate_response``, ``llm.invoke``.

    The sources are read, nothing is imported or run. What is only mentioned counts too: a method is often handed to
    ``asyncio.to_thread`` instead of being called.

    Args:
        package: a package; where it is not installed, nothing is found.
        watched: what to look for.

    Returns:
        how often each site uses it.
    """
    spec = find_spec(package)
    words = {*watched.names, *watched.methods, *watched.clients}
    found: Counter[Site] = Counter()
    for folder in map(Path, (spec.submodule_search_locations or ()) if spec else ()):
        for path in sorted(folder.rglob("*.py")):
            source = path.read_text(encoding="utf-8")
            if any(word in source for word in words):
                file = path.relative_to(folder).as_posix()
                here = replace(watched, clients=()) if file.startswith(tuple(watched.folders)) else watched
                found.update((file, function, used) for function, used in _uses(ast.parse(source), "", here))
    return found


def new_sites(found: Mapping[Site, int], known: Mapping[Site, int]) -> tuple[str, ...]:
    """Say which sites are not known, or have more uses than are known."""
    return tuple(
        f"{file}: {function or 'module'} uses {used}" + (f" {count} times" if count > 1 else "")
        for (file, function, used), count in sorted(found.items())
        if count > known.get((file, function, used), 0)
    )


def _uses(node: ast.AST, function: str, watched: Watched) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from _uses(child, f"{function}.{child.name}".removeprefix("."), watched)
            continue
        holder, name = _read(child)
        if name in watched.methods or _is_llm(holder, watched):
            yield function, f"{_read(holder)[1]}.{name}".removeprefix(".")
        elif _is_llm(child, watched) and _read(node)[0] is not child:
            yield function, name
        yield from ((function, f"import {module}") for module in _imported(child, watched))
        yield from _uses(child, function, watched)


def _is_llm(node: ast.AST | None, watched: Watched) -> bool:
    holder, name = _read(node)
    return name in watched.names and _read(holder)[1] not in watched.settings


def _read(node: ast.AST | None) -> tuple[ast.AST | None, str]:
    """Take a variable or an attribute that is read apart: what it is an attribute of, and its name."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return None, name
        case ast.Attribute(value=holder, attr=name, ctx=ast.Load()):
            return holder, name
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value=str(name)), *_]):
            return holder, name
    return None, ""


def _imported(node: ast.AST, watched: Watched) -> Iterator[str]:
    """Name the clients that are imported, and what makes an LLM where it gets another name."""
    match node:
        case ast.ImportFrom(module=str(module), level=0) | ast.alias(name=module) if (
            module.partition(".")[0] in watched.clients
        ):
            yield module
        case ast.alias(name=name, asname=str()) if name in watched.names:
            yield name
