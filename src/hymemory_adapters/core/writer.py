"""The loop: ask the model, judge its reply, ask again.

:class:`Exchange` decides; here is only what differs between threads and coroutines: sending and waiting.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tenacity import AsyncRetrying, RetryCallState, Retrying, retry_if_exception_type

from hymemory_adapters.core import events
from hymemory_adapters.core.endpoint import Endpoint, endpoint_of, only_known_errors
from hymemory_adapters.core.exchange import Exchange, Written
from hymemory_adapters.core.lost import HyMemoryError, warn_if_unheard
from hymemory_adapters.core.recovery import GoAround
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.write_call import Contract, WriteCall

if TYPE_CHECKING:
    from hymemory_adapters.settings import WriterSettings


class Writer:
    """The model that writes memory for one host.

    It holds settings and the host's table, nothing that belongs to a process, thread or event loop: it may be
    copied, used from any thread and loop, and across a fork, and pickled where the table's functions can be.

    Args:
        host: the host's name, as events carry it.
        calls: the host's table of write calls; the first row that recognises a request has it.
        settings: which writer, where, how patiently.
    """

    def __init__(self, host: str, calls: Sequence[WriteCall], settings: WriterSettings) -> None:
        self.host = host
        self.calls = tuple(calls)
        self.settings = settings
        self._endpoint: Endpoint | None = None

    def write(self, request: Request) -> Written:
        """Do one request of the host, from a thread.

        Returns:
            what goes back to the host. A request that no row recognises passes through: its ``value`` is
            ``None``, and ``reply`` is the server's.

        Raises:
            MalformedWriteError: no reply could be taken, and the call's policy is to raise.
            EndpointError: the endpoint did not answer or refused, and the call's policy is to raise.
        """
        exchange = self._begin(request)
        with exchange.cancelling():
            for attempt in Retrying(**_GO_AROUND):
                with attempt, exchange.handling():
                    operation = exchange.next_operation()
                    exchange.take(self.endpoint.send(operation, exchange.remaining))
        return _result(exchange)

    async def awrite(self, request: Request) -> Written:
        """Do one request of the host, from a coroutine: like :meth:`write`."""
        exchange = self._begin(request)
        with exchange.cancelling():
            async for attempt in AsyncRetrying(**_GO_AROUND):
                with attempt, exchange.handling():
                    operation = exchange.next_operation()
                    exchange.take(await self.endpoint.asend(operation, exchange.remaining))
        return _result(exchange)

    def stream(self, request: Request) -> Iterator[Any]:
        """Do one request that no row recognises, from a thread, and pass its answer on as it comes.

        Its place among the requests at once is held until the stream ends or is closed. A request that fails is
        retried as ever; an answer that breaks off is not, for its beginning is with the app already.

        Yields:
            openai's chunks.

        Raises:
            EndpointError: the endpoint did not answer, refused, or stopped in the middle.
        """
        exchange = self._begin(request, stream=True)
        with exchange.reading(), self.endpoint.place(exchange.remaining):
            for attempt in Retrying(**_GO_AROUND):
                with attempt, exchange.handling():
                    exchange.take(self.endpoint.send_now(exchange.next_operation()))
            with _chunks(exchange) as chunks, only_known_errors():
                yield from chunks

    async def astream(self, request: Request) -> AsyncIterator[Any]:
        """Do one request that no row recognises, from a coroutine: like :meth:`stream`."""
        exchange = self._begin(request, stream=True)
        with exchange.reading():
            async with self.endpoint.aplace(exchange.remaining):
                async for attempt in AsyncRetrying(**_GO_AROUND):
                    with attempt, exchange.handling():
                        exchange.take(await self.endpoint.asend_now(exchange.next_operation()))
                async with _chunks(exchange) as chunks:
                    with only_known_errors():
                        async for chunk in chunks:
                            yield chunk

    def recognise(self, request: Request) -> tuple[WriteCall, Contract] | None:
        """Find the row of the host's table that this request belongs to."""
        for call in self.calls:
            contract = call.recognise(request)
            if contract is not None:
                return call, contract
        return None

    @property
    def endpoint(self) -> Endpoint:
        """This process's endpoint for the settings."""
        if self._endpoint is None or self._endpoint.pid != os.getpid():
            self._endpoint = endpoint_of(self.settings)
        return self._endpoint

    def _begin(self, request: Request, *, stream: bool = False) -> Exchange:
        try:
            return self._begun(request, stream=stream)
        except HyMemoryError:
            raise
        except Exception as error:  # a fault of ours or of a host's row, in a request that has no record yet
            # Not its text, which may quote the request. Some hosts drop the exception on the floor.
            events.log.error("%s: a request could not be sent: %s", self.host, type(error).__name__)
            raise

    def _begun(self, request: Request, *, stream: bool) -> Exchange:
        call, contract = (None, None) if stream else self.recognise(request) or (None, None)
        if call is None:
            self._pass_through(request)
        elif call.swallowed and self.settings.journal is None:
            warn_if_unheard(call.name, call.swallowed)
        return Exchange(
            host=self.host,
            settings=self.settings,
            endpoint=self.endpoint,
            request=request,
            call=call,
            contract=contract,
            stream=stream,
        )

    def _pass_through(self, request: Request) -> None:
        events.passed_through[self.host] += 1
        if request.wants_json:
            events.say_once(
                f"drift:{self.host}",
                f"{self.host} asks for JSON in a request that this version does not know: it is passed on as it is, "
                "neither constrained nor validated. Is the host newer than the versions this package was tested with?",
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_endpoint": None}


def _pause(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    return error.pause if isinstance(error, GoAround) else 0.0


_GO_AROUND: dict[str, Any] = {"retry": retry_if_exception_type(GoAround), "wait": _pause}


def _result(exchange: Exchange) -> Written:
    assert exchange.result is not None  # the loop ends with a result or an exception
    return exchange.result


def _chunks(exchange: Exchange) -> Any:
    """Return the open stream of an answer."""
    reply = _result(exchange).reply
    assert reply is not None  # whatever the server sent
    return reply.completion
