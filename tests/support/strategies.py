"""Hypothesis strategies: JSON values that are full of what readers of JSON trip over."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

ARMOUR_ATOMS = ("{", "}", "`", "<", "\x7f", "json")
"""What is written as an escape on the way to a host."""

ATOMS = (
    *ARMOUR_ATOMS,
    *(
        "</think>",
        "<think>",
        "```json",
        "```",
        "~~~",
        "{}",
        "[]",
        '{"facts": []}',
        ",]",
        ",}",
        "//",
        "JSON",
        "jsonjson",
    ),
    *('"', "'", "\\", "\\n", "\\u0041", "\\ud83d", "\n", "\r\n", "\t", "\x1f", "\u2028", "\ufeff", "NaN", "None"),
    *("\u8bb0\u5fc6", "\u201c\u5f15\u53f7\u201d", "\U0001f680", "e\u0301", "\u05d0", " ", "is 30"),
)

_characters = st.characters(exclude_categories=("Cs",), exclude_characters="\x00")


def texts(*, atoms: tuple[str, ...] = ATOMS) -> st.SearchStrategy[str]:
    """Strings built from the atoms and from other characters (no NUL, no lone surrogate)."""
    return st.lists(st.sampled_from(atoms) | st.text(_characters, max_size=3), max_size=4).map("".join)


def json_values(strings: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Any]:
    """Any JSON value whose strings, keys too, are built from the atoms."""
    strings = texts() if strings is None else strings
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | strings
    return st.recursive(leaves, lambda inner: _containers(strings, inner), max_leaves=5)


def answers(strings: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Any]:
    """A JSON object or array: what a write call is answered with."""
    strings = texts() if strings is None else strings
    return _containers(strings, json_values(strings))


def _containers(strings: st.SearchStrategy[str], inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(strings, inner, max_size=3)


@st.composite
def written(draw: st.DrawFn, values: st.SearchStrategy[Any] | None = None) -> tuple[Any, str]:
    """An answer, and one of the ways in which ``json.dumps`` writes it."""
    value = draw(answers() if values is None else values)
    indent = draw(st.sampled_from([None, 1]))
    separators = draw(st.sampled_from([None, (",", ":")]))
    return value, json.dumps(value, ensure_ascii=draw(st.booleans()), indent=indent, separators=separators)


@st.composite
def replies(draw: st.DrawFn) -> str:
    """A good reply that ends with its JSON, perhaps fenced, after prose or after thinking."""
    _, text = draw(written())
    prose = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="{}[]<>\x00"), max_size=8)
    thought = texts().filter(lambda inside: "</think" not in inside.lower())
    before = draw(
        st.sampled_from(["", "```json\n", "```json", "~~~\n", "\ufeff", "\n"])
        | prose
        | thought.map(lambda inside: f"<think>{inside}</think>\n")
        | st.tuples(thought, prose).map(lambda parts: f"<think>{parts[0]}</think>{parts[1]}\n```json\n")
        | prose.map(lambda words: f"{words}</think>")
    )
    return before + text
