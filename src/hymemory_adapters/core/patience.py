"""How long transport failures are retried: connections, timeouts, and answers that say "later"."""

from __future__ import annotations

import random
import time

from hymemory_adapters.core.failure import Failure

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0


class Patience:
    """The transport failures of one write call. They are no attempts: the model never answered.

    Args:
        seconds: for how long after the first failure the request is sent again.
    """

    def __init__(self, seconds: float) -> None:
        self.server_errors = 0
        self._seconds = seconds
        self._since: float | None = None
        self._retries = 0
        self._read_timeouts = 0

    def answered(self) -> None:
        """The server answers again: the next failure starts a new count of seconds."""
        self._since = None

    def take_retries(self) -> int:
        """How often the request of this attempt was sent again; counts from 0 after that."""
        retries, self._retries = self._retries, 0
        return retries

    def pause(self, failure: Failure, remaining: float) -> float | None:
        """Seconds to wait before the request is sent again; ``None`` to give up.

        Args:
            failure: what happened.
            remaining: seconds left of the whole write call.
        """
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        if failure.status == 500:
            self.server_errors += 1
        if failure.kind == "read_timeout":
            # The server may be at work on it: once more, and no crowd of abandoned requests.
            self._read_timeouts += 1
            if self._read_timeouts > 1:
                return None
            self._retries += 1
            return 0.0
        pause: float = min(_LONGEST_PAUSE, _SHORTEST_PAUSE * 2.0 ** min(self._retries, 10))
        pause *= random.uniform(0.5, 1.0)  # noqa: S311 (spreads retries, guards nothing)
        pause = max(pause, failure.retry_after or 0.0)
        if now + pause > min(self._since + self._seconds, now + remaining):
            return None
        self._retries += 1
        return pause
