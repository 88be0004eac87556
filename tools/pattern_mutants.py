"""Small changes of regular expressions, which mutmut leaves alone: what ``mutants.py`` tries besides."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst
from libcst import matchers

_PIECE = re.compile(
    r"(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<escape>\\.)|(?P<open>\((?:\?(?::|<?[=!]|P<\w+>))?)|(?P<close>\))"
    r"|(?P<or>\|)|(?P<times>(?:[*+?]|\{\d*,?\d*\})[?+]?)|(?P<other>.)",
    re.DOTALL,
)
_MEMBER = re.compile(r"(?:\\x..|\\u....|\\.|[^\\])(?:-(?:\\.|[^\\\]]))?", re.DOTALL)


def pattern_mutants(module: libcst.Module) -> Iterator[tuple[libcst.CSTNode, libcst.CSTNode]]:
    """Every string of every ``re.compile`` with what it may be replaced by."""
    for call in matchers.findall(module, matchers.Call(func=matchers.Attribute(attr=matchers.Name("compile")))):
        assert isinstance(call, libcst.Call)
        for literal in matchers.findall(call.args[0], matchers.SimpleString()):
            assert isinstance(literal, libcst.SimpleString)
            text = literal.raw_value
            for changed in dict.fromkeys(_changed(text)):
                try:
                    re.compile(changed)
                except re.error:
                    continue
                if changed != text:
                    yield (
                        literal,
                        literal.with_changes(value=f"{literal.prefix}{literal.quote}{changed}{literal.quote}"),
                    )


def _changed(pattern: str) -> Iterator[str]:
    pieces = [(match.lastgroup or "", match.group()) for match in _PIECE.finditer(pattern)]
    texts = [text for _, text in pieces]

    def without(first: int, end: int, instead: str = "") -> str:
        return "".join([*texts[:first], instead, *texts[end:]])

    for i, (kind, text) in enumerate(pieces):
        for other in _others(kind, text):
            yield without(i, i + 1, other)
    yield from _fewer_branches(pieces, without)


def _others(kind: str, text: str) -> Iterator[str]:
    match kind:
        case "times" if text[0] in "*+?":
            yield {"*": "+", "+": "*", "?": ""}[text[0]] + text[1:]
            if text[1:]:
                yield text[0]  # greedy
        case "times" if number := re.search(r"\d+", text):
            yield text.replace(number.group(), str(int(number.group()) + 1), 1)
        case "escape" if text[1] in "sSdDwWbB":
            yield text.swapcase()
        case "open" if text[-1] in "=!":
            yield text[:-1] + ("=" if text[-1] == "!" else "!")
        case "set":
            start = 2 if text[1] == "^" else 1
            yield "[" + text[2:] if start == 2 else "[^" + text[1:]
            members = _MEMBER.findall(text[start:-1])
            for i in range(len(members)):
                yield text[:start] + "".join(members[:i] + members[i + 1 :]) + "]"


def _fewer_branches(pieces: list[tuple[str, str]], without: object) -> Iterator[str]:
    """Leave out each branch of an alternation, and each look-around as a whole."""
    assert callable(without)
    stack: list[list[int]] = [[0]]  # where the branches of each open group begin
    for i, (kind, _) in enumerate([*pieces, ("end", "")]):
        if kind == "open":
            stack.append([i + 1])
        elif kind == "or":
            stack[-1].append(i + 1)
        elif kind in ("close", "end"):
            starts = stack.pop()
            if kind == "close" and pieces[starts[0] - 1][1][-1] in "=!":
                yield without(starts[0] - 1, i + 1)
            for n, start in enumerate(starts if len(starts) > 1 else ()):
                end = starts[n + 1] if n + 1 < len(starts) else i
                yield without(start - 1, end) if n + 1 == len(starts) else without(start, end)
