"""LlamaIndex's LLM with Hy-Memory behind it."""

from __future__ import annotations

from typing import Any

from llama_index.llms.openai_like import OpenAILike
from pydantic import Field

from hymemory_adapters.core.structured import AnswerFormat
from hymemory_adapters.core.wire import merged
from hymemory_adapters.llamaindex import config
from hymemory_adapters.llamaindex.client import AsyncClient, Client
from hymemory_adapters.settings import WriterSettings
from hymemory_adapters.writers import DEFAULT_WRITER

CONTEXT_WINDOW = 32768
"""What LlamaIndex is told where the app says nothing; a server that was started with less says so itself."""


class HyMemory(OpenAILike):  # type: ignore[misc]
    """Hy-Memory, or any other writer, as LlamaIndex's LLM: ``Settings.llm = HyMemory()``.

    The requests of LlamaIndex's own memory blocks come back as their parsers want them, or are asked for again.
    Structured output and tools work on a server that knows neither. Plain chat is passed on.

    It takes LlamaIndex's parameters (``temperature``, ``max_tokens``, ``context_window``, ``additional_kwargs``,
    ``system_prompt``, ...) and every field of ``WriterSettings`` by its name; what is not named comes from
    ``HYMEMORY_*``, never from ``OPENAI_*``. ``max_retries=0`` switches retries of transport failures off; any other
    number is left to ``retry_seconds``. OpenAI's other parameters are refused.

    >>> HyMemory(attempts=2).settings.attempts
    2

    Args:
        model: a model that the server serves.
        values: the other parameters.

    Attributes:
        settings: the writer in force.

    Raises:
        ConfigurationError: a parameter is unknown, or its value is wrong.
    """

    settings: WriterSettings = Field(exclude=True, repr=False)
    context_window: int = CONTEXT_WINDOW
    is_chat_model: bool = True
    is_function_calling_model: bool = True
    should_use_structured_outputs: bool = True

    def __init__(self, model: str = DEFAULT_WRITER, **values: Any) -> None:
        super().__init__(**config.read({**values, "model": model}))
        # What OpenAI's constructor finds in the environment. Our key is held by the settings, and stands in no dump.
        self.api_key = self.api_version = None

    @classmethod
    def class_name(cls) -> str:
        """The name that LlamaIndex knows it by."""
        return "HyMemory"

    # LlamaIndex does the rest: messages there, answers back, callbacks, streams.

    def _get_client(self) -> Client:
        return Client(self.settings)

    def _get_aclient(self) -> AsyncClient:
        return AsyncClient(self.settings)

    def _use_chat_completions(self, kwargs: dict[str, Any]) -> bool:
        kwargs.pop("use_chat_completions", None)
        return True

    def _should_use_structure_outputs(self) -> bool:
        return True

    def _prepare_schema(self, llm_kwargs: dict[str, Any] | None, output_cls: Any) -> dict[str, Any]:
        return {**(llm_kwargs or {}), "response_format": AnswerFormat(output_cls)}

    def _get_model_kwargs(self, **kwargs: Any) -> dict[str, Any]:
        named: dict[str, Any] = super()._get_model_kwargs(**kwargs)
        own, of_the_call = self.additional_kwargs.get("extra_body"), kwargs.get("extra_body")
        if own and of_the_call:  # LlamaIndex would drop the call's
            named["extra_body"] = merged(own, of_the_call)
        return named
