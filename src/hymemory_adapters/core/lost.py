"""What happens when attempts are used up: the errors, and the journal of lost writes."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from hymemory_adapters.core.events import Attempt, WriteEvent, has_subscribers, log, say_once

try:
    import fcntl
except ImportError:  # Windows: one append is all there is
    fcntl = None  # type: ignore[assignment]

JOURNAL_LIMIT = 256 * 1024 * 1024
"""Bytes after which a journal takes no more lines (each refused line is an ERROR in the log)."""

REPEAT_SECONDS = 120.0
_REMEMBERED = 512


class HyMemoryError(Exception):
    """Anything this package raises.

    Attributes:
        call: the write call that was lost, ``mem0.update``; ``""`` outside of one.
        attempts: what was tried.
    """

    def __init__(self, message: str, *, call: str = "", attempts: Sequence[Attempt] = ()) -> None:
        super().__init__(message)
        self.call = call
        self.attempts = tuple(attempts)


class ConfigurationError(HyMemoryError, ValueError):
    """A setting is wrong: the message names it, its value and what is allowed."""


class MalformedWriteError(HyMemoryError, ValueError):
    """The model answered, and no answer could be taken. It is a ``ValueError``: some hosts retry only those."""


class EndpointError(HyMemoryError):
    """The endpoint did not answer, or refused the request.

    Attributes:
        status: the HTTP status; ``None`` where no answer came.
    """

    def __init__(
        self, message: str, *, call: str = "", attempts: Sequence[Attempt] = (), status: int | None = None
    ) -> None:
        super().__init__(message, call=call, attempts=attempts)
        self.status = status


class JustLost:
    """Remembers what was lost a moment ago, so that a host's own repeat of it costs one request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at: OrderedDict[str, float] = OrderedDict()

    def add(self, key: str) -> None:
        """Remember a lost call."""
        with self._lock:
            self._at[key] = time.monotonic()
            self._at.move_to_end(key)
            while len(self._at) > _REMEMBERED:
                self._at.popitem(last=False)

    def discard(self, key: str) -> None:
        """Forget a call that went well after all."""
        if self._at:
            with self._lock:
                self._at.pop(key, None)

    def __len__(self) -> int:
        return len(self._at)

    def __contains__(self, key: str) -> bool:
        at = self._at.get(key)
        return at is not None and time.monotonic() - at < REPEAT_SECONDS


class Journal:
    """A JSON Lines file of lost writes: one line a lost write, with all that is needed to write it again.

    The file is created with mode 0600. A line is one append, and processes take turns. A journal that cannot be
    written is told in the log and never hides the error that it was to keep.

    Args:
        path: the file.
        content: ``full`` keeps messages and replies, ``off`` only their SHA-256 and the problems.
    """

    def __init__(self, path: str | os.PathLike[str], content: str = "full") -> None:
        self.path = os.fspath(path)
        self.content = content

    def write(self, event: WriteEvent, messages: Sequence[Mapping[str, Any]], replies: Sequence[str | None]) -> bool:
        """Append one lost write; return whether it was kept."""
        try:
            self._append(self._line(event, messages, replies))
        except Exception as error:  # whatever is wrong with the file, the write's own error matters more
            reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
            log.error("the journal of lost writes (HYMEMORY_JOURNAL=%s) was not written: %s", self.path, reason)
            return False
        return True

    def _line(self, event: WriteEvent, messages: Sequence[Mapping[str, Any]], replies: Sequence[str | None]) -> bytes:
        line = event.as_dict()
        if self.content == "full":
            line |= {"messages": list(messages), "replies": list(replies)}
        else:
            line |= {
                "messages_sha256": _sha256(list(messages)),
                "replies_sha256": [_sha256(r) for r in replies],
            }
        # ASCII, so that a lone surrogate in a reply is kept and never breaks the line.
        return json.dumps(line, default=repr).encode("ascii") + b"\n"

    def _append(self, line: bytes) -> None:
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)  # closing the file unlocks it
            size = os.fstat(descriptor).st_size
            if size + len(line) > JOURNAL_LIMIT:
                raise OSError(0, f"the file has reached {JOURNAL_LIMIT // 2**20} MiB: move it away")
            if size:
                os.lseek(descriptor, -1, os.SEEK_END)
                if os.read(descriptor, 1) != b"\n":
                    line = b"\n" + line  # a line that was cut (a full disk) takes no other with it
            if os.write(descriptor, line) != len(line):
                raise OSError(0, "the line was written in part only: is the disk full?")
        finally:
            os.close(descriptor)


def warn_if_unheard(call: str, swallowed: str) -> None:
    """Say once that a host hides lost writes and no journal is there to keep them, unless somebody subscribed."""
    if has_subscribers():
        return
    message = f"{call}: {swallowed} Set HYMEMORY_JOURNAL to a file to keep what is lost, or subscribe with on_write."
    say_once(f"unheard:{call}", message)


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, default=repr, sort_keys=True).encode()).hexdigest()
