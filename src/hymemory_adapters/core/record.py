"""What is kept of one write call, and told when it ends: attempts, replies, event, journal line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hymemory_adapters.core.events import Attempt, Outcome, WriteEvent, current_context, publish
from hymemory_adapters.core.lost import Journal
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Message
from hymemory_adapters.core.write_call import WriteCall

if TYPE_CHECKING:
    from hymemory_adapters.settings import WriterSettings


class Record:
    """One write call's attempts, for its event and its journal line.

    Args:
        host: the host's name.
        call: the write call; ``None`` for a request that passes through, of which nothing is told.
        settings: the writer in force.
        repeat: whether the host repeats a call that was just lost.
    """

    def __init__(self, host: str, call: WriteCall | None, settings: WriterSettings, *, repeat: bool) -> None:
        self.attempts: list[Attempt] = []
        self._host, self._call, self._settings, self._repeat = host, call, settings, repeat
        self._replies: list[str | None] = []

    def note(self, reply: Reply, problems: Sequence[Problem], *, seconds: float, transport_retries: int) -> None:
        """Add an attempt."""
        self._replies.append(reply.text or reply.reasoning)
        self.attempts.append(
            Attempt(
                number=len(self.attempts) + 1,
                finish_reason=reply.finish_reason,
                problems=tuple(problems),
                tokens_in=reply.tokens_in,
                tokens_out=reply.tokens_out,
                seconds=round(seconds, 6),
                transport_retries=transport_retries,
            )
        )

    def taken(self, normalisations: tuple[str, ...], *, declined: bool) -> WriteEvent:
        """The last attempt's reply goes to the host."""
        first = len(self.attempts) == 1
        outcome: Outcome = "declined" if declined else "ok" if first else "retried"
        return self._publish(self._event(outcome, normalisations=normalisations))

    def cancelled(self) -> WriteEvent:
        """The app gave up."""
        return self._publish(self._event("cancelled"))

    def lost(self, outcome: Outcome, error: str, messages: Sequence[Message]) -> WriteEvent:
        """No reply goes to the host: keep the call in the journal, unless it only repeats the last line."""
        event = self._event(outcome, error=error)
        if self._settings.journal is not None and not self._repeat and self._writes:
            journal = Journal(self._settings.journal, self._settings.journal_content)
            journal.write(event, messages, self._replies)
        return self._publish(event)

    def _event(self, outcome: Outcome, *, error: str | None = None, normalisations: tuple[str, ...] = ()) -> WriteEvent:
        return WriteEvent(
            host=self._host,
            call=self._call.name if self._call else "",
            writer=self._settings.writer,
            model=self._settings.model,
            outcome=outcome,
            attempts=tuple(self.attempts),
            normalisations=normalisations,
            error=error,
            repeat=self._repeat,
            context=current_context(),
        )

    def _publish(self, event: WriteEvent) -> WriteEvent:
        if self._writes:
            publish(event)
        return event

    @property
    def _writes(self) -> bool:
        return self._call is not None and self._call.writes
