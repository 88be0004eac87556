"""Armoured JSON: what a host reads from it is the value, and nothing a host looks for stands in it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings

from hymemory_adapters.core.armour import armoured
from tests.support.strategies import ARMOUR_ATOMS, json_values, texts

_HARMLESS = texts(
    atoms=("JSON", "js", "on", '"', "\\", "\\u007b", "\n", "[", "]", ">", "~~~", "\u8bb0\u5fc6", "\U0001f680")
)


def _strings(text: str) -> list[str]:
    return re.findall(r'"(?:[^"\\]|\\.)*"', text, re.DOTALL)


@settings(max_examples=100, deadline=None)
@given(json_values())
def test_value_comes_back_and_no_atom_is_left_in_a_string(value: Any) -> None:
    text = armoured(value)
    assert repr(json.loads(text)) == repr(value)
    assert repr(json.loads(text, strict=False)) == repr(value)
    assert not [token for token in _strings(text) if any(atom in token for atom in ARMOUR_ATOMS)]
    # What is not inside a string is what json.dumps writes.
    plain = json.dumps(value, ensure_ascii=False)
    assert re.sub(r'"(?:[^"\\]|\\.)*"', "S", text, flags=re.DOTALL) == re.sub(
        r'"(?:[^"\\]|\\.)*"', "S", plain, flags=re.DOTALL
    )
    # Nothing but the atoms is escaped.
    assert re.sub(r"\\u00(7b|7d|60|3c|7f|6a)", lambda m: chr(int(m.group(1), 16)), text) == re.sub(
        r"\\u00(7b|7d|60|3c|7f|6a)", lambda m: chr(int(m.group(1), 16)), plain
    )


@settings(max_examples=100, deadline=None)
@given(json_values(_HARMLESS.filter(lambda text: not any(atom in text for atom in ARMOUR_ATOMS))))
def test_text_without_atoms_is_left_as_json_dumps_writes_it(value: Any) -> None:
    assert armoured(value) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": "{b}"}, r'{"a": "\u007bb\u007d"}'),
        (["`<\x7f"], r'["\u0060\u003c\u007f"]'),
        (["json jsonjson JSON Json ison"], r'["\u006ason \u006ason\u006ason JSON Json ison"]'),
        ({"{json}": 1}, r'{"\u007b\u006ason\u007d": 1}'),
        (["\\{"], r'["\\\u007b"]'),
        (["\\u007b"], r'["\\u007b"]'),
        (['"{'], r'["\"\u007b"]'),
        (["", "{", ""], r'["", "\u007b", ""]'),
        (["joy js { j"], r'["joy js \u007b j"]'),
        (["\u8bb0\u5fc6 \U0001f680 e\u0301"], '["\u8bb0\u5fc6 \U0001f680 e\u0301"]'),
        (["\n\t\u2028"], '["\\n\\t\u2028"]'),
        ({"memory": []}, '{"memory": []}'),
        ("json", r'"\u006ason"'),
        ([1, 1.5, True, None], "[1, 1.5, true, null]"),
    ],
)
def test_armoured(value: Any, text: str) -> None:
    assert armoured(value) == text
    assert json.loads(text) == value


@pytest.mark.parametrize("atom", ARMOUR_ATOMS)
@pytest.mark.parametrize("around", ["{}", "j{}", "{}j", "\n{}", "{}\n", "a\n{}", 'say "{}"', "\\{}", "js{}son"])
def test_a_single_atom_is_seen_wherever_it_stands(atom: str, around: str) -> None:
    text = around.replace("{}", atom)
    for value in (
        text,
        [text],
        ["tame", text],
        [text, "tame"],
        {"k": text},
        {text: 1},
        {"k": [1, {"l": text}], "m": 2},
    ):
        written = armoured(value)
        assert json.loads(written) == value
        assert not [token for token in _strings(written) if atom in token]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_json_is_refused(number: float) -> None:
    with pytest.raises(ValueError):
        armoured({"a": number})


def test_a_big_value_with_many_escapes() -> None:
    value = {"memory": ['\\"{json}`<' * 100_000]}
    assert json.loads(armoured(value)) == value
