"""Tokens, context and time of one write call."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

RAISE_FACTOR = 4
SLOWEST_TOKENS_PER_SECOND = 50
"""A server this slow still finishes within the timeout of a request."""
SMALLEST_REPLY = 64
"""Tokens: with less room than this in the context, the prompt is what is too long."""
_MARGIN = 8


def estimated_tokens(text: str) -> int:
    """Estimate, rather too high, how many tokens a text takes (no tokenizer is at hand)."""
    return len(text.encode("utf-8", "surrogatepass")) // 3 + _MARGIN


def estimated_prompt(messages: Sequence[Mapping[str, Any]]) -> int:
    """Estimate, rather too high, how many tokens the messages take."""
    return sum(estimated_tokens(str(message.get("content") or "")) for message in messages)


class Budget:
    """How many tokens the next request may ask for, and how long it may take.

    Args:
        max_tokens: the output budget of the first request.
        ceiling: how far truncation may raise it.
        timeout: seconds for one request.
        deadline: seconds for the whole write call.
    """

    def __init__(self, *, max_tokens: int, ceiling: int, timeout: float, deadline: float) -> None:
        self.max_tokens = max_tokens
        self.deadline = deadline
        self._ceiling = max(ceiling, max_tokens)
        self._timeout = timeout
        self._started = time.monotonic()
        self._raised = False

    @property
    def remaining(self) -> float:
        """Seconds left of the whole write call."""
        return self._started + self.deadline - time.monotonic()

    @property
    def request_timeout(self) -> float:
        """Seconds that the next request may take: more where its tokens need it, never beyond the deadline."""
        needed = max(self._timeout, self.max_tokens / SLOWEST_TOKENS_PER_SECOND)
        return max(0.001, min(needed, self.remaining))

    def fit(self, context: int, prompt_tokens: int) -> bool:
        """Keep within a context of that many tokens; return whether a reply still finds room."""
        room = context - prompt_tokens - _MARGIN
        if room < SMALLEST_REPLY:
            return False
        self.max_tokens = min(self.max_tokens, room)
        return True

    def raise_after_truncation(self) -> None:
        """Ask for more tokens, once, up to the ceiling; :meth:`fit` then keeps it within the context."""
        if self._raised:
            return
        self._raised = True
        self.max_tokens = max(self.max_tokens, min(self.max_tokens * RAISE_FACTOR, self._ceiling))
