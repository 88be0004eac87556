"""What is done about a failed request: told otherwise, made smaller, sent again later, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hymemory_adapters.core.budget import Budget
from hymemory_adapters.core.conversation import Conversation
from hymemory_adapters.core.endpoint import Endpoint
from hymemory_adapters.core.failure import Failure
from hymemory_adapters.core.patience import Patience
from hymemory_adapters.core.schema import Schema

if TYPE_CHECKING:
    from hymemory_adapters.settings import WriterSettings


class GoAround(Exception):  # noqa: N818 (no error: the way to the next request)
    """Send the next request, after a pause of so many seconds."""

    def __init__(self, pause: float = 0.0) -> None:
        self.pause = pause


class Recovery:
    """The failed requests of one exchange, and what they have taught of the server.

    Attributes:
        asking_facts: whether the next request asks what the server serves.
        form: how the last request told its schema; ``None`` without one.
    """

    def __init__(
        self,
        *,
        settings: WriterSettings,
        endpoint: Endpoint,
        conversation: Conversation,
        budget: Budget,
        is_write: bool,
    ) -> None:
        self.asking_facts = False
        self.form: str | None = None
        self._endpoint, self._conversation, self._budget = endpoint, conversation, budget
        self._is_write = is_write
        self._patience = Patience(settings.retry_seconds)
        self._refused_by: Failure | None = None  # waits for the server's list of models
        self._without_schema = False  # tried after HTTP 500: is it the schema?

    def form_for(self, schema: Schema | None) -> str | None:
        """Choose how the next request tells its schema."""
        if schema is None:
            self.form = None
        else:
            self.form = "prompt" if self._without_schema else self._endpoint.form_of(schema)
        return self.form

    def answered(self, schema: Schema | None) -> None:
        """The server answers."""
        if self._without_schema and schema is not None:
            # Without the schema the server no longer fails: it was the schema.
            self._endpoint.step_down(self._endpoint.form_of(schema), "HTTP 500 with it, none without", schema)
            self._without_schema = False
        self._patience.answered()
        self._endpoint.mark_up()

    def facts_are_in(self) -> Failure | None:
        """The server has said what it serves, or does not say; return the failure that waited for it."""
        self.asking_facts = False
        return self._refused_by

    def take_retries(self) -> int:
        """How often the request of this attempt was sent again; counts from 0 after that."""
        return self._patience.take_retries()

    def after(self, failure: Failure, schema: Schema | None, *, has_attempts: bool) -> None:
        """Decide what a failed request means; returns where it is the last.

        Args:
            failure: what happened.
            schema: what constrained the request.
            has_attempts: whether the model has answered before.

        Raises:
            GoAround: another request may do.
        """
        match failure.kind:
            case "form" | "schema":
                self._step_down(failure, schema)
            case "context":
                self._fit_context(failure, has_attempts=has_attempts)
            case "model" if not self._endpoint.served:
                self._refused_by, self.asking_facts = failure, True
                raise GoAround
            case "refused" | "transport" | "read_timeout":
                self._retry(failure, schema)

    def _step_down(self, failure: Failure, schema: Schema | None) -> None:
        if self.form is not None:
            only = schema if failure.kind == "schema" else None
            if self._endpoint.step_down(self.form, failure.detail, only):
                raise GoAround

    def _fit_context(self, failure: Failure, *, has_attempts: bool) -> None:
        context = failure.context or self._endpoint.context
        if context is None and not self._endpoint.facts_tried:
            self.asking_facts = True
            raise GoAround
        learned = self._endpoint.context is None and context is not None
        self._endpoint.context = context
        before = self._budget.max_tokens
        prompt = failure.prompt or self._conversation.guessed_prompt(context or 0)
        fits = self._is_write and context and self._budget.fit(context, prompt) and self._budget.max_tokens < before
        if fits or (learned and has_attempts):  # the failed replies can be left out
            raise GoAround

    def _retry(self, failure: Failure, schema: Schema | None) -> None:
        if failure.status == 500 and schema is not None:
            self._without_schema = self._patience.server_errors > 0
        pause = self._patience.pause(failure, self._budget.remaining)
        if pause is not None:
            raise GoAround(pause)
        if failure.kind == "refused":
            self._endpoint.mark_down()
