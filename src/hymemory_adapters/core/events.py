"""One event per write call: who hears of it, and what the log says."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from hymemory_adapters.core.problem import Problem

log = logging.getLogger("hymemory_adapters")

Outcome = Literal["ok", "retried", "salvaged", "declined", "lost", "cancelled"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One model request for a write call.

    Attributes:
        number: 1 for the first.
        finish_reason: the server's; ``None`` where none came.
        problems: why the reply was not taken; empty if it was.
        tokens_in: prompt tokens by the server's count.
        tokens_out: completion tokens by the server's count.
        seconds: from sending the request to having the reply, transport retries included.
        transport_retries: how often the request was sent again because the server did not answer.
    """

    number: int
    finish_reason: str | None = None
    problems: tuple[Problem, ...] = ()
    tokens_in: int | None = None
    tokens_out: int | None = None
    seconds: float = 0.0
    transport_retries: int = 0


@dataclass(frozen=True, slots=True)
class WriteEvent:
    """What became of one write call.

    Attributes:
        host: the framework, ``mem0``.
        call: the write call, ``mem0.update``.
        writer: the named writer in force, ``hy-memory``.
        model: the model's name on the wire.
        outcome: ``ok``: the first reply was taken. ``retried``: a later one was. ``declined``: the model was
            given things to decide on and twice decided nothing. ``salvaged``: lost, and a conservative reply
            was made from the request. ``lost``: no reply. ``cancelled``: the app cancelled the call.
        attempts: one entry a model request.
        normalisations: names of the lossless changes that reading the taken reply needed.
        error: for ``lost`` and ``salvaged``: why, in one line.
        repeat: whether the host only repeated a call that had just been lost.
        context: what :func:`write_context` said.
        at: when the call ended, in seconds since the epoch.
    """

    host: str
    call: str
    writer: str
    model: str
    outcome: Outcome
    attempts: tuple[Attempt, ...] = ()
    normalisations: tuple[str, ...] = ()
    error: str | None = None
    repeat: bool = False
    context: Mapping[str, str] = field(default_factory=dict)
    at: float = field(default_factory=time.time)

    def as_dict(self) -> dict[str, Any]:
        """Return the event as plain data, ready for ``json.dumps``."""
        return asdict(self)


Subscriber = Callable[[WriteEvent], None]

passed_through: Counter[str] = Counter()
"""Requests that no row of the host's table recognised, by host."""

_subscribers: list[Subscriber] = []
_context: ContextVar[Mapping[str, str]] = ContextVar("hymemory_write_context")
_said: set[str] = set()
_said_lock = threading.Lock()


def on_write(subscriber: Subscriber) -> Callable[[], None]:
    """Call ``subscriber`` with a :class:`WriteEvent` at the end of every write call.

    It is called in the thread that writes, so it should be quick. What it raises is logged and never
    reaches the host.

    Returns:
        a function that unsubscribes.
    """
    _subscribers.append(subscriber)

    def unsubscribe() -> None:
        with contextlib.suppress(ValueError):
            _subscribers.remove(subscriber)

    return unsubscribe


def has_subscribers() -> bool:
    """Whether anybody hears of write events."""
    return bool(_subscribers)


@contextlib.contextmanager
def write_context(*, user: str | None = None, request: str | None = None) -> Iterator[None]:
    """Say whose write this is: it stands in the events and journal lines of the calls inside.

    Args:
        user: whose memory is written.
        request: your own id of the request.
    """
    named = {key: value for key, value in (("user", user), ("request", request)) if value is not None}
    token = _context.set({**current_context(), **named})
    try:
        yield
    finally:
        _context.reset(token)


def current_context() -> Mapping[str, str]:
    """Return what :func:`write_context` says here."""
    return _context.get({})


def publish(event: WriteEvent) -> None:
    """Tell the log and the subscribers. Never raises."""
    level, message = _line(event)
    log.log(level, message)
    for subscriber in tuple(_subscribers):
        try:
            subscriber(event)
        except Exception as error:
            # Not exc_info: a traceback's last line may hold the event, and with it a problem's details.
            log.warning("an on_write subscriber raised %s; the write is not affected", type(error).__name__)


def _line(event: WriteEvent) -> tuple[int, str]:
    requests = f"{len(event.attempts)} attempt" + ("s" if len(event.attempts) != 1 else "")
    if event.outcome in ("lost", "salvaged"):
        return logging.ERROR, f"write {event.outcome} after {requests}: {event.error}"
    if event.outcome == "retried":
        first = event.attempts[0].problems
        return (
            logging.INFO,
            f"{event.call}: taken after {requests}; the first reply: {'; '.join(map(str, first))}",
        )
    return logging.DEBUG, f"{event.call}: {event.outcome} after {requests}"


def say_once(key: str, message: str) -> None:
    """Log a warning once per process and key."""
    with _said_lock:
        if key in _said:
            return
        _said.add(key)
    log.warning(message)


def _unlock() -> None:
    """In a forked child: the lock may be held by a thread that is not there."""
    global _said_lock
    _said_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)
