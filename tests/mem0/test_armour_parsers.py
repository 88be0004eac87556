"""What Mem0's own reply parsers make of armoured JSON, in the Mem0 that is installed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from hymemory_adapters.core.armour import armoured
from tests.support.strategies import answers

utils = pytest.importorskip("mem0.memory.utils")

# Not every version has every parser: 0.1 and 1.x read facts and updates, 2.x memories.
PARSERS = {name: getattr(utils, name) for name in ("remove_code_blocks", "extract_json") if hasattr(utils, name)}
HARD = {"memory": [{"text": 'Uses ```json\n{}``` and <think>x</think> json </think> {a: [1]}\x7f \\ " \u8bb0\u5fc6'}]}


def test_there_is_a_parser_to_try() -> None:
    assert "remove_code_blocks" in PARSERS


def _read(name: str, text: str) -> Any:
    try:
        return json.loads(PARSERS[name](text))
    except ValueError:
        return None


def test_plain_json_is_lost_where_armoured_is_not() -> None:
    """The reason for the armour: without it, one parser or the other does not give this value back."""
    assert [name for name in PARSERS if _read(name, json.dumps(HARD)) != HARD]
    assert [_read(name, armoured(HARD)) for name in PARSERS] == [HARD] * len(PARSERS)


@pytest.mark.parametrize("name", PARSERS)
@settings(max_examples=60, deadline=None)
@given(value=answers().filter(lambda value: isinstance(value, dict)))
def test_value_comes_back(name: str, value: dict[str, Any]) -> None:
    text = armoured(value)
    assert repr(json.loads(PARSERS[name](text))) == repr(value)
    assert repr(json.loads(PARSERS[name](text), strict=False)) == repr(value)


@settings(max_examples=60, deadline=None)
@given(value=answers().filter(lambda value: isinstance(value, dict)))
def test_value_comes_back_through_both(value: dict[str, Any]) -> None:
    if "extract_json" in PARSERS:
        text = PARSERS["extract_json"](PARSERS["remove_code_blocks"](armoured(value)))
        assert repr(json.loads(text)) == repr(value)
