"""The writer's server as ``hymemory doctor`` asks it: an answer or a :class:`Failure`, never an exception.

Chat requests are built by the core's endpoint, so that what is proved here is what writes send.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hymemory_adapters.core.endpoint import CONNECT_SECONDS, Operation, WireError, endpoint_of
from hymemory_adapters.core.failure import Failure, classify
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Message, Request
from hymemory_adapters.core.wire import parse_completion

if TYPE_CHECKING:
    from hymemory_adapters.core.schema import Schema
    from hymemory_adapters.settings import WriterSettings

PLAIN_SECONDS = 30.0
"""For the pages beside the chat: a busy server answers them late."""


class Server:
    """One server, asked politely."""

    def __init__(self, settings: WriterSettings) -> None:
        self.settings = settings
        self.endpoint = endpoint_of(settings)
        self.root = settings.base_url.removesuffix("/v1")

    @property
    def is_direct(self) -> bool:
        """Whether the client says that no proxy applies; False where it cannot be asked."""

        def asked(client: Any) -> bool:
            http = client._client
            return bool(http._transport_for_url(type(http.base_url)(self.settings.base_url)) is http._transport)

        answer = self._ask(asked)
        return answer is True

    def models(self) -> str | Failure:
        """Learn what the server serves; return who owns the models."""
        page = self._ask(self.endpoint.ask_facts(), timeout=CONNECT_SECONDS)
        if isinstance(page, Failure):
            return page
        self.endpoint.learn(page)
        owners = (getattr(model, "owned_by", None) for model in getattr(page, "data", None) or ())
        return next((owner for owner in owners if isinstance(owner, str)), "")

    def get(self, path: str) -> Any:
        """Get a page beside ``/v1``: its JSON, its text, or a :class:`Failure`."""
        options: Any = {"timeout": PLAIN_SECONDS}
        return self._ask(
            lambda client: client.get(self.root + path, cast_to=object, options=options), timeout=PLAIN_SECONDS
        )

    def tokenize(self, **what: Any) -> Mapping[str, Any] | None:
        """Ask vLLM's ``/tokenize``; ``None`` where there is none."""
        body = {"model": self.settings.model, **what}
        options: Any = {"timeout": PLAIN_SECONDS}
        answer = self._ask(
            lambda client: client.post(self.root + "/tokenize", cast_to=object, body=body, options=options),
            timeout=PLAIN_SECONDS,
        )
        return answer if isinstance(answer, Mapping) and isinstance(answer.get("tokens"), list) else None

    def tokenize_prompt(self, messages: Sequence[Message], **what: Any) -> Mapping[str, Any] | None:
        """Ask for the tokens of a whole prompt, as the writer's switches make it."""
        return self.tokenize(messages=list(messages), **self.settings.no_think, **what)

    def chat(self, text: str, schema: Schema | None, *, max_tokens: int, **sampling: Any) -> Reply | Failure:
        """Ask the model something, with the writer's own switches."""
        request = Request([{"role": "user", "content": text}], sampling={"temperature": 0, **sampling})
        operation = self.endpoint.chat(
            request,
            request.messages,
            schema=schema,
            form=self.endpoint.form_of(schema) if schema else None,
            max_tokens=max_tokens,
            timeout=lambda: self.settings.timeout,
        )
        answer = self._ask(operation, constrained=schema is not None, messages=request.messages)
        if isinstance(answer, Failure):
            return answer
        return parse_completion(answer) or Failure("request", "the answer is no chat completion")

    def _ask(
        self,
        operation: Operation,
        *,
        timeout: float | None = None,
        constrained: bool = False,
        messages: Sequence[Message] = (),
    ) -> Any:
        import openai

        try:
            return self.endpoint.send(operation, timeout or self.settings.timeout)
        except openai.OpenAIError as error:
            return classify(error, constrained=constrained, messages=messages)
        except WireError as error:
            return Failure("request", f"the answer cannot be read ({error})")
        except TimeoutError:
            return Failure("transport", "no place among this process's own requests")
