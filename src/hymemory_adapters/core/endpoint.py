"""One server and key: what is sent to it, what is known of it, and which constraint it takes."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from hymemory_adapters.core.clients import Clients
from hymemory_adapters.core.events import say_once
from hymemory_adapters.core.gate import Gate
from hymemory_adapters.core.lost import JustLost
from hymemory_adapters.core.request import Message, Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.wire import FORMS, chat_body, extra_body

if TYPE_CHECKING:
    from hymemory_adapters.settings import WriterSettings

CONNECT_SECONDS = 5.0
DOWN_SECONDS = 2.0
"""After a refused connection, how long calls fail at once instead of finding out for themselves."""

SHORTEST_SECRET = 4  # a shorter one would take harmless words out of messages

Operation = Callable[[Any], Any]
"""One request: takes an OpenAI or AsyncOpenAI client, returns its answer or the coroutine for it."""


class WireError(Exception):
    """A request failed in a way that the openai package has no exception for (a body that is no JSON)."""


@contextmanager
def only_known_errors() -> Iterator[None]:
    """Turn whatever is no error of the openai package into a :class:`WireError`."""
    import openai

    try:
        yield
    except openai.OpenAIError:
        raise
    except Exception as error:
        # Its name only: the text may hold a header or a body.
        raise WireError(type(error).__name__) from None


class Endpoint:
    """One server and key, as this process knows it. Get it from :func:`endpoint_of`.

    Attributes:
        context: the model's context length in tokens, once it is known.
        served: the models that the server serves, once they are known.
        facts_tried: whether the server has been asked for them.
        just_lost: the calls that were lost here a moment ago.
        pid: the process it belongs to.
    """

    def __init__(self, settings: WriterSettings) -> None:
        self.settings = settings
        self.context: int | None = None
        self.served: tuple[str, ...] = ()
        self.facts_tried = False
        self.just_lost = JustLost()
        self.pid = os.getpid()
        self._form: str = settings.form
        self._refused: dict[str, str] = {}
        self._down_until = 0.0
        self._clients = Clients(settings)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What goes out in headers and may stand in no message."""
        key = self.settings.api_key.get_secret_value() if self.settings.api_key else ""
        return tuple(value for value in (key, *self.settings.headers.values()) if len(value) >= SHORTEST_SECRET)

    # -- sending -----------------------------------------------------------------------------------

    def send(self, operation: Operation, timeout: float) -> Any:
        """Do one request from a thread; wait for a free place first."""
        with self.place(timeout):
            return self.send_now(operation)

    async def asend(self, operation: Operation, timeout: float) -> Any:
        """Do one request from a coroutine; wait for a free place first."""
        async with self.aplace(timeout):
            return await self.asend_now(operation)

    @contextmanager
    def place(self, timeout: float) -> Iterator[None]:
        """Hold a place among the requests at once, from a thread."""
        gate = _gate(self.settings.concurrency)
        gate.enter(timeout)
        try:
            yield
        finally:
            gate.leave()

    @asynccontextmanager
    async def aplace(self, timeout: float) -> AsyncIterator[None]:
        """Hold a place among the requests at once, from a coroutine."""
        gate = _gate(self.settings.concurrency)
        await gate.aenter(timeout)
        try:
            yield
        finally:
            gate.leave()

    def send_now(self, operation: Operation) -> Any:
        """Do one request from a thread that holds a place."""
        with only_known_errors():
            return operation(self._clients.for_threads())

    async def asend_now(self, operation: Operation) -> Any:
        """Do one request from a coroutine that holds a place."""
        with only_known_errors():
            return await operation(await self._clients.for_this_loop())

    def chat(
        self,
        request: Request,
        messages: Sequence[Message],
        *,
        schema: Schema | None,
        form: str | None,
        max_tokens: int | None,
        timeout: Callable[[], float],
        stream: bool = False,
    ) -> Operation:
        """Build one chat request.

        Args:
            request: what the host asked.
            messages: the messages to send.
            schema: constrains the reply; ``None`` leaves the host's own ``response_format`` and tools.
            form: how the schema is told, one of ``FORMS``.
            max_tokens: the output budget; ``None`` leaves the server's.
            timeout: says the seconds when the request goes out: it may wait for its place.
            stream: whether the answer is to be a stream of chunks.
        """
        import openai

        body = chat_body(request, messages, model=self.settings.model, schema=schema, form=form, max_tokens=max_tokens)
        extra = extra_body(request, self.settings.no_think)
        if schema is not None and "response_format" in body:
            # The SDK walks its arguments by their types, 0.1 ms for a schema; what is beside them it sends as it is.
            extra["response_format"] = body.pop("response_format")
        if stream:
            body["stream"] = True

        def send(client: Any) -> Any:
            seconds = timeout()
            wait = openai.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
            return client.chat.completions.create(**body, extra_body=extra, timeout=wait)

        return send

    def ask_facts(self) -> Operation:
        """Build the request for what the server serves."""
        self.facts_tried = True
        return lambda client: client.models.list(timeout=CONNECT_SECONDS)

    # -- what is known of the server ---------------------------------------------------------------

    def learn(self, page: Any) -> None:
        """Take in the answer to :meth:`ask_facts`; servers that tell less are no error."""
        data = getattr(page, "data", None)
        models = [model for model in data if getattr(model, "id", None)] if isinstance(data, list) else []
        self.served = tuple(str(model.id) for model in models)
        for model in models:
            length = getattr(model, "max_model_len", None)
            if model.id == self.settings.model and isinstance(length, int):
                self.context = length

    def form_of(self, schema: Schema) -> str:
        """How this schema is told to this server."""
        refused = self._refused.get(schema.digest, FORMS[0])
        return max(self._form, refused, key=FORMS.index)

    def step_down(self, form: str, detail: str, schema: Schema | None = None) -> bool:
        """Remember that a form is refused (for one schema only, if given); return whether another is left."""
        if form == FORMS[-1]:
            return False
        lower = FORMS[FORMS.index(form) + 1]
        if schema is not None:
            self._refused[schema.digest] = lower
            what = f"does not take the schema {schema.name}"
        else:
            self._form = max(self._form, lower, key=FORMS.index)
            what = f"does not know the form {form}"
        say_once(
            f"form:{self.settings.base_url}:{form}:{schema.digest if schema else ''}",
            f"the server at {self.settings.shown_url} {what}; its replies are constrained by {lower} from now on, "
            f"and validated as before ({detail})",
        )
        return True

    def mark_down(self) -> None:
        """Remember that nothing listens there."""
        self._down_until = time.monotonic() + DOWN_SECONDS

    def mark_up(self) -> None:
        """Remember that something answered."""
        self._down_until = 0.0

    @property
    def is_down(self) -> bool:
        """Whether a connection was refused a moment ago."""
        return time.monotonic() < self._down_until


# -- one endpoint a server and process -------------------------------------------------------------

_lock = threading.Lock()
_endpoints: dict[str, Endpoint] = {}
_gates: dict[int, Gate] = {}


def endpoint_of(settings: WriterSettings) -> Endpoint:
    """Return this process's endpoint for these settings: the same one for equal settings."""
    key = _identity(settings)
    endpoint = _endpoints.get(key)
    if endpoint is None:
        with _lock:
            endpoint = _endpoints.setdefault(key, Endpoint(settings))
    return endpoint


def _identity(settings: WriterSettings) -> str:
    secret = settings.api_key.get_secret_value() if settings.api_key else None
    return json.dumps([settings.model_dump_json(), secret])  # the dump hides the key


def _gate(places: int) -> Gate:
    gate = _gates.get(places)
    if gate is None:
        with _lock:
            gate = _gates.setdefault(places, Gate(places))
    return gate


def _forget() -> None:
    """Start anew in a forked child: sockets, locks and places in the queue belong to the parent."""
    global _lock
    _lock = threading.Lock()
    _endpoints.clear()
    _gates.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
