"""A write call that must be lost, and what must then be left of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters import HyMemoryError, WriteEvent
from tests.live.rows import Row
from tests.live.server import LIVE


def lost(row: Row, settings: Mapping[str, Any], text: str, journal: Path) -> tuple[HyMemoryError | None, str]:
    """Do a write call that must be lost, and see that it is kept; return error and reason."""
    messages = row.messages(text)
    provider = row.provider({**LIVE.settings, **settings, "journal": str(journal)})
    error: HyMemoryError | None = None
    if keeps := row.keeps(text):
        returned = json.dumps(json.loads(row.ask(provider, messages)))
        assert all(json.dumps(kept)[1:-1] in returned for kept in keeps)
    elif row.quiet:
        assert row.items is not None
        assert row.items(row.value(row.ask(provider, messages))) == []
    else:
        with pytest.raises(HyMemoryError) as caught:
            row.ask(provider, messages)
        error = caught.value
        assert error.call == row.call
    kept_line = json.loads(journal.read_text().splitlines()[-1])
    assert kept_line["call"] == row.call
    assert kept_line["messages"] == row.sent(text)
    assert kept_line["outcome"] == ("salvaged" if keeps else "lost")
    return error, kept_line["error"]


def tells(
    heard: list[WriteEvent], error: HyMemoryError | None, reason: str, kind: type[HyMemoryError], words: str
) -> None:
    (event,) = heard
    assert event.error == reason
    assert re.search(words, reason), reason
    if error is not None:
        assert type(error) is kind
        assert str(error) == reason
