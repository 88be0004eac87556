"""One thing wrong with a reply."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a reply.

    Attributes:
        rule: the kind, a short name that never changes: ``truncated``, ``not_json``, ``schema``, ...
        message: one sentence for the model and for people. It holds no text of the reply or of the
            conversation, so that it may stand in a log.
        path: where in the reply's JSON value, as a JSON path (``$.memory[0].event``); ``""`` when the
            problem is the whole reply.
    """

    rule: str
    message: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def json_path(parts: Iterable[str | int]) -> str:
    """Write ``("memory", 0, "event")`` as ``$.memory[0].event``.

    A key that is no plain name is the model's own text, which has no place in a log: it is shown as
    ``["..."]``.
    """
    path = "$"
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            path += f".{part}"
        else:
            path += '["..."]'
    return path
