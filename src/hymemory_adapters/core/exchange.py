"""One write call in flight: its messages, attempts and budget.

It is driven by :mod:`hymemory_adapters.core.writer`, which only sends and waits. Whatever is decided is
decided here, once for threads and coroutines: ``next_operation`` says what to send, ``take`` takes in what
came back and raises :class:`GoAround` to go on, ``handling`` turns what the wire raises into the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from hymemory_adapters.core import advice
from hymemory_adapters.core.budget import Budget
from hymemory_adapters.core.conversation import Conversation
from hymemory_adapters.core.endpoint import Endpoint, Operation, WireError
from hymemory_adapters.core.events import WriteEvent, current_context, say_once
from hymemory_adapters.core.failure import Failure, classify
from hymemory_adapters.core.lost import EndpointError, HyMemoryError, MalformedWriteError
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.record import Record
from hymemory_adapters.core.recovery import GoAround, Recovery
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.wire import parse_completion
from hymemory_adapters.core.write_call import Contract, OnLost, Verdict, WriteCall, judge

if TYPE_CHECKING:
    from hymemory_adapters.settings import WriterSettings


@dataclass(frozen=True, slots=True)
class Written:
    """What a request came to.

    Attributes:
        value: what goes back to the host, rendered by the call's contract; ``None`` for a request that no row
            of the host's table recognised.
        reply: the last reply of the server; ``None`` where none came.
        event: what was published; ``None`` for a request that no row recognised.
    """

    value: Any
    reply: Reply | None
    event: WriteEvent | None


class Exchange:
    """One request of a host, from its first attempt to its end."""

    def __init__(
        self,
        *,
        host: str,
        settings: WriterSettings,
        endpoint: Endpoint,
        request: Request,
        call: WriteCall | None,
        contract: Contract | None,
        stream: bool,
    ) -> None:
        self.result: Written | None = None
        self._host, self._settings, self._endpoint = host, settings, endpoint
        self._request, self._call, self._contract = request, call, contract
        self._stream = stream
        self._asked = request if contract is None else contract.asked(request)
        self._conversation = Conversation(self._asked.messages)
        self._budget = Budget(
            max_tokens=max(settings.max_tokens, request.max_tokens or 0),
            ceiling=settings.max_tokens_ceiling,
            timeout=settings.timeout,
            deadline=settings.deadline,
        )
        self._repeat = bool(endpoint.just_lost) and self._key in endpoint.just_lost
        self._limit = 1 if self._repeat else settings.attempts
        self._record = Record(host, call, settings, repeat=self._repeat)
        self._recovery = Recovery(
            settings=settings,
            endpoint=endpoint,
            conversation=self._conversation,
            budget=self._budget,
            is_write=call is not None,
        )
        self._last: Reply | None = None
        self._fitting: Any = None  # the last value that fitted the schema
        self._asked_undecided = False
        self._sent_at = 0.0

    @property
    def _key(self) -> str:
        """What a repeat of this call is known by: the same words of another user are none."""
        return f"{self._request.digest} {sorted(current_context().items())}"

    # -- what is sent ------------------------------------------------------------------------------

    @property
    def remaining(self) -> float:
        """Seconds left, for whoever waits."""
        return max(0.001, self._budget.remaining)

    def next_operation(self) -> Operation:
        """Say what to send now."""
        if self._budget.remaining <= 0:
            raise self._error(EndpointError, advice.deadline(self._settings))
        if self._endpoint.is_down and not self._sent_at and not self._record.attempts:  # not in the middle of a call
            raise self._error(EndpointError, advice.refused(self._settings, again=True))
        if self._recovery.asking_facts:
            return self._endpoint.ask_facts()
        self._sent_at = self._sent_at or time.monotonic()
        schema = self._schema
        return self._endpoint.chat(
            self._asked,
            self._conversation.fitted(self._budget, self._endpoint.context),
            schema=schema,
            form=self._recovery.form_for(schema),
            max_tokens=self._budget.max_tokens if self._call else self._request.max_tokens,
            timeout=lambda: self._budget.request_timeout,
            stream=self._stream,
        )

    @property
    def _schema(self) -> Schema | None:
        """The schema that constrains this attempt."""
        if self._contract is None or self._settings.constrain == "off":
            return None
        first = not self._record.attempts
        return None if first and self._settings.constrain == "retry" else self._contract.schema

    # -- what came back ----------------------------------------------------------------------------

    def take(self, answer: Any) -> None:
        """Take in an answer: set ``result``, or raise :class:`GoAround`."""
        if self._recovery.asking_facts:
            self._endpoint.learn(answer)
            self._go_on_with_facts()
        reply = Reply(None, completion=answer) if self._stream else parse_completion(answer)
        if reply is None:
            raise self._error(EndpointError, advice.no_completion(self._settings))
        self._last = reply
        self._recovery.answered(self._schema)
        if self._contract is None:
            self.result = Written(None, reply, None)
            return
        self._judge(reply, self._contract)

    def _judge(self, reply: Reply, contract: Contract) -> None:
        verdict = judge(reply, contract)
        problems = verdict.problems or verdict.undecided
        self._note(reply, problems)
        if verdict.value is not None:
            self._fitting = verdict.value
        last = len(self._record.attempts) >= self._limit
        if not verdict.problems and (not verdict.undecided or self._asked_undecided or last):
            self._finish(verdict, contract)
            return
        self._asked_undecided |= not verdict.problems
        if self._context_is_full(reply, verdict.problems):
            raise self._error(MalformedWriteError, advice.context_full(self._settings, reply))
        if last:
            text = contract.schema is None
            raise self._error(MalformedWriteError, advice.malformed(self._settings, self._record.attempts, text=text))
        if any(problem.rule == "truncated" for problem in problems):
            self._budget.raise_after_truncation()
        self._conversation.ask_again(reply, problems)
        self._recovery.asking_facts = not self._endpoint.facts_tried
        raise GoAround

    def _note(self, reply: Reply, problems: Sequence[Problem]) -> None:
        seconds, retries = time.monotonic() - self._sent_at, self._recovery.take_retries()
        self._record.note(reply, problems, seconds=seconds, transport_retries=retries)
        self._sent_at = 0.0
        if reply.reasoning and ((reply.text or "").strip() or any(p.rule == "reasoning_only" for p in problems)):
            say_once(f"thinking:{self._settings.base_url}", advice.thinking(self._settings))

    def _context_is_full(self, reply: Reply, problems: Sequence[Problem]) -> bool:
        """Whether the server stopped before the budget did: then no second attempt finds more room."""
        cut = any(problem.rule == "truncated" for problem in problems) and reply.finish_reason == "length"
        return cut and reply.tokens_out is not None and reply.tokens_out < self._budget.max_tokens

    def _finish(self, verdict: Verdict, contract: Contract) -> None:
        if "json_in_reasoning" in verdict.normalisations:
            say_once(f"reasoning:{self._settings.base_url}", advice.json_in_reasoning(self._settings))
        if self._repeat:
            self._endpoint.just_lost.discard(self._key)
        value = contract.render(verdict.value)
        event = self._record.taken(verdict.normalisations, declined=bool(verdict.undecided))
        self.result = Written(value, self._last, event)

    # -- what went wrong ---------------------------------------------------------------------------

    @contextmanager
    def handling(self) -> Iterator[None]:
        """Turn what sending or taking raises into the next request, a salvaged result or an error."""
        import openai

        try:
            try:
                yield
            except openai.OpenAIError as error:
                self._failed(error)
            except WireError as error:
                if self._recovery.asking_facts:
                    self._go_on_with_facts()
                raise self._final(Failure("request", f"its answer cannot be read ({error})")) from None
            except TimeoutError:
                raise self._error(EndpointError, advice.no_place(self._settings)) from None
        except GoAround:
            raise
        except HyMemoryError as error:
            self._lost(error)
        except Exception as error:  # a fault of ours or of a host's row: loud, and told like any loss
            if self._call is not None:
                self._record.lost("lost", f"{self._call.name}: {type(error).__name__}", self._conversation.messages)
            raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn what breaks a stream into an error: what has gone to the app cannot be asked for again."""
        import openai

        try:
            yield
        except openai.OpenAIError as error:
            broken = advice.broken_off(self._settings, self._classified(error).detail)
            raise self._error(EndpointError, broken) from None
        except WireError as error:
            raise self._error(EndpointError, advice.broken_off(self._settings, str(error))) from None
        except TimeoutError:
            raise self._error(EndpointError, advice.no_place(self._settings)) from None

    @contextmanager
    def cancelling(self) -> Iterator[None]:
        """Tell of a call that the app gives up, in a request or in a pause between two."""
        try:
            yield
        except Exception:
            raise
        except BaseException:
            if self.result is None:
                self._record.cancelled()
            raise

    def _failed(self, error: Exception) -> NoReturn:
        if self._recovery.asking_facts:  # they were asked for by the way: whatever the answer, the write goes on
            self._go_on_with_facts()
        failure = self._classified(error)
        self._recovery.after(failure, self._schema, has_attempts=bool(self._record.attempts))
        raise self._final(failure) from None  # the SDK's own message may quote the conversation

    def _go_on_with_facts(self) -> NoReturn:
        refused_by = self._recovery.facts_are_in()
        if refused_by is not None:
            raise self._final(refused_by) from None
        raise GoAround

    def _classified(self, error: Exception) -> Failure:
        return classify(
            error,  # type: ignore[arg-type]
            constrained=self._recovery.form in ("json_schema", "json_object"),
            messages=self._conversation.fitted(self._budget, None),
            secrets=self._endpoint.secrets,
        )

    def _final(self, failure: Failure) -> HyMemoryError:
        message = advice.failure(self._settings, self._endpoint, failure)
        self._note(Reply(None), (Problem(failure.kind, message),))
        return self._error(EndpointError, message, status=failure.status)

    def _error(self, kind: type[HyMemoryError], message: str, **more: Any) -> HyMemoryError:
        name = self._call.name if self._call else self._host
        left = f". {self._contract.left_behind}" if self._contract and self._contract.left_behind else ""
        return kind(f"{name}: {message}{left}", call=name, attempts=self._record.attempts, **more)

    def _lost(self, error: HyMemoryError) -> None:
        """End a write call without a usable reply: tell everyone, then give the host what it can keep."""
        if self._call is None or self._contract is None:
            raise error
        fallback = self._contract.fallback if self._call.on_lost is not OnLost.RAISE else None
        salvaged = fallback is not None and self._call.on_lost is OnLost.SALVAGE
        value = self._contract.render(fallback(self._fitting)) if fallback else None
        self._endpoint.just_lost.add(self._key)
        event = self._record.lost("salvaged" if salvaged else "lost", str(error), self._conversation.messages)
        if fallback is None:
            raise error
        self.result = Written(value, self._last, event)
