"""What one write call's reply must be, and what is to happen when it never comes.

A host's folder has a table of :class:`WriteCall` rows. A row recognises its request and says, for that
very request, what the reply must be: a :class:`Contract`. Both are pure functions of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from hymemory_adapters.core.armour import armoured
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.reply import (
    Normalise,
    Reading,
    Reply,
    is_looping,
    read_json,
    read_text,
)
from hymemory_adapters.core.request import Message, Request
from hymemory_adapters.core.schema import Schema


class OnLost(Enum):
    """What the host gets when a write call's attempts are used up."""

    RAISE = "raises"
    """An exception: the host hands it to the app, which still has the conversation."""
    SALVAGE = "salvages"
    """A conservative reply made from the request: for hosts that swallow the exception."""
    EMPTY = "returns empty"
    """An empty reply: for hosts that an exception would send into a loop."""


def _no_problems(_: Any) -> Sequence[Problem]:
    return ()


_NOT_FOR_A_WRITE = frozenset({"stop", "n", "stream_options"})


@dataclass(frozen=True)
class Contract:
    """What the reply to one request must be.

    Attributes:
        schema: of the reply's JSON value; ``None`` for a call that is answered in free text.
        check: what a schema cannot say (an id that was offered, every fact covered): the problems of a
            value that fits the schema.
        undecided: what a value leaves undecided that it was given to decide on. Asked about once; a second
            such reply is the answer, and the call counts as ``declined``.
        normalise: declared changes that this call allows, by name.
        render: how the value goes back to the host.
        fallback: for ``OnLost.SALVAGE`` and ``EMPTY``: makes the value that goes back when the call is lost,
            from the last value that fitted the schema (``None`` if there was none).
        messages: the messages to send in place of the host's, for hosts whose protocol is not JSON. They tell
            what the host's ``tools`` and ``response_format`` say, which then stay off the wire.
        left_behind: what the host has done beside this call that a loss does not undo: a sentence for the error.
    """

    schema: Schema | None = None
    check: Callable[[Any], Sequence[Problem]] = _no_problems
    undecided: Callable[[Any], Sequence[Problem]] = _no_problems
    normalise: tuple[tuple[str, Normalise], ...] = ()
    render: Callable[[Any], Any] = armoured
    fallback: Callable[[Any], Any] | None = None
    messages: Sequence[Message] | None = None
    left_behind: str = ""

    def asked(self, request: Request) -> Request:
        """What is sent for the host's request: as it is, but for what this contract's own messages tell.

        What would cut a reply in two, or ask for replies that nobody reads, is left out.
        """
        without = _NOT_FOR_A_WRITE if self.messages is None else {*_NOT_FOR_A_WRITE, "parallel_tool_calls"}
        sampling = {key: value for key, value in request.sampling.items() if key not in without}
        if self.messages is None:
            return replace(request, sampling=sampling)
        return replace(
            request, messages=self.messages, response_format=None, tools=(), tool_choice=None, sampling=sampling
        )


@dataclass(frozen=True)
class WriteCall:
    """One kind of request that a host makes on its write path: a row of the host's table.

    Attributes:
        name: ``host.call``, as events, journal and errors name it.
        recognise: the contract of a request of this kind; ``None`` for any other request.
        on_lost: what the host gets when the call is lost.
        summary: one sentence for people: what the host asks here.
        typical: for people too: the schema of a typical reply; the schema of a request is its contract's.
        swallowed: where the host drops the exception on the floor: one sentence that says so. It is told
            once, when there is no journal to keep what is lost.
        writes: whether it writes memory. Hosts have other requests for JSON too, which are constrained, validated
            and asked again alike; of those no event is published and no journal kept.
    """

    name: str
    recognise: Callable[[Request], Contract | None]
    on_lost: OnLost = OnLost.RAISE
    summary: str = ""
    typical: Schema | None = None
    swallowed: str = ""
    writes: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reply is worth.

    Attributes:
        value: the value, if it fits the schema; ``None`` otherwise.
        problems: why it cannot be taken.
        undecided: why it is asked about once, although it could be taken.
        normalisations: what reading it took.
    """

    value: Any = None
    problems: tuple[Problem, ...] = ()
    undecided: tuple[Problem, ...] = ()
    normalisations: tuple[str, ...] = ()


_REFUSED = {
    "content_filter": "the server's content filter stopped the reply",
    "abort": "the server aborted the request",
    "error": "the server failed while it generated",
}


def judge(reply: Reply, contract: Contract) -> Verdict:
    """Read and validate one reply."""
    if stopped := _stopped(reply):
        return Verdict(problems=(stopped,))
    reading = _read(reply, contract)
    if reading.problems:
        return Verdict(problems=reading.problems)
    value, names = _normalised(reading.value, contract)
    if contract.schema is None:
        return _checked(value, contract, (*reading.normalisations, *names))
    problems = contract.schema.problems(value)
    if problems and (inner := _unwrapped(reading.value)) is not None:
        inner, inner_names = _normalised(inner, contract)
        if not contract.schema.problems(inner):
            value, names, problems = inner, ("unwrapped", *inner_names), ()
    if problems:
        return Verdict(problems=problems)
    if (integral := contract.schema.integers(value)) is not value:
        value, names = integral, (*names, "integral_float")
    return _checked(value, contract, (*reading.normalisations, *names))


def _stopped(reply: Reply) -> Problem | None:
    """The finish reason decides first: a reply that was cut is cut, whatever its text looks like."""
    if reply.finish_reason == "length":
        tokens = "" if reply.tokens_out is None else f" after {reply.tokens_out} tokens"
        reasoning = (reply.reasoning or "").strip()
        if reasoning and not (reply.text or "").strip() and reasoning[0] not in "{[":
            return Problem("reasoning_only", f"only reasoning came back, and was cut{tokens}: answer at once")
        if is_looping(reply.text or reply.reasoning or ""):
            return Problem("looping", f"the reply went round in circles and was cut{tokens}")
        return Problem("truncated", f"the reply was cut{tokens}: write less, and no white space")
    if reply.finish_reason in _REFUSED:
        return Problem("finish_reason", _REFUSED[reply.finish_reason])
    return None


def _read(reply: Reply, contract: Contract) -> Reading:
    if (reply.text or "").strip() or not (reply.reasoning or "").strip():
        return read_json(reply.text) if contract.schema else read_text(reply.text)
    if contract.schema is not None:
        reading = read_json(reply.reasoning)
        if not reading.problems and not reading.normalisations and not contract.schema.problems(reading.value):
            return Reading(reading.value, normalisations=("json_in_reasoning",))
    return Reading(problems=(Problem("reasoning_only", "only reasoning came back, and no answer"),))


def _normalised(value: Any, contract: Contract) -> tuple[Any, tuple[str, ...]]:
    names = []
    for name, normalise in contract.normalise:
        changed = normalise(value)
        if changed is not value:
            value = changed
            names.append(name)
    return value, tuple(names)


def _unwrapped(value: Any) -> Any:
    if isinstance(value, dict) and len(value) == 1:
        (inner,) = value.values()
        return inner if isinstance(inner, (dict, list)) else None
    return None


def _checked(value: Any, contract: Contract, names: tuple[str, ...]) -> Verdict:
    problems = tuple(contract.check(value))
    undecided = () if problems else tuple(contract.undecided(value))
    return Verdict(value, problems, undecided, names)
