"""LangChain's chat model with Hy-Memory behind it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import LanguageModelInput
from langchain_core.language_models.chat_models import LangSmithParams
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, ensure_config
from langchain_openai.chat_models.base import BaseChatOpenAI
from pydantic import Field, SecretStr, model_validator

from hymemory_adapters._version import __version__
from hymemory_adapters.core.exchange import Written
from hymemory_adapters.core.structured import is_pydantic
from hymemory_adapters.core.tools import Answer
from hymemory_adapters.core.writer import Writer
from hymemory_adapters.langchain import config, tokens
from hymemory_adapters.langchain.calls import calls
from hymemory_adapters.langchain.request import ChatRequest, chat_request, with_extra_body
from hymemory_adapters.langchain.result import PROVIDER, completion, named, one_chunk
from hymemory_adapters.settings import WriterSettings, budgets


class ChatHyMemory(BaseChatOpenAI):  # type: ignore[misc]
    """Hy-Memory, or any other writer, as a chat model.

    Tools and structured output work on a server that knows neither: tools are told in the messages, the reply is
    constrained by a JSON Schema, validated, and asked for again where it is malformed. Plain chat is passed on.

    It takes the parameters of LangChain's chat models (``model``, ``base_url``, ``api_key``, ``temperature``,
    ``top_p``, ``max_tokens``, ``timeout``, ``stop``, ...) and every field of ``WriterSettings`` by its name; what is
    not named comes from ``HYMEMORY_*``, never from ``OPENAI_*``. ``max_retries=0`` switches retries of transport
    failures off; any other number is left to ``retry_seconds``. OpenAI's other parameters are refused.

    >>> ChatHyMemory(model="hy-memory", attempts=2).settings.attempts
    2

    Attributes:
        settings: the writer in force.

    Raises:
        ConfigurationError: a parameter is unknown, or its value is wrong.
    """

    settings: WriterSettings = Field(exclude=True)

    # What langchain-openai would take from the environment.
    openai_api_key: SecretStr | None = Field(default=None, alias="api_key")
    openai_proxy: str | None = None
    use_responses_api: bool | None = False
    stream_usage: bool | None = True

    def __init__(self, **values: Any) -> None:
        super().__init__(**config.read(values))

    # Pydantic replaces validators of the same name: these two of langchain-openai's know OpenAI's models and
    # environment, and build its clients.

    @model_validator(mode="before")
    @classmethod
    def validate_temperature(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Leave the temperature as it is."""
        return values

    @model_validator(mode="after")
    def validate_environment(self) -> ChatHyMemory:
        """Build no client: the writer has its own."""
        return self

    @model_validator(mode="after")
    def _set_hymemory_version(self) -> ChatHyMemory:
        if hasattr(self, "_add_version"):  # langchain-core 1.0 and later
            self._add_version("hymemory-adapters", __version__)
        return self

    def _resolve_model_profile(self) -> None:
        """Whatever the model is called on its server, it is none of OpenAI's."""

    @property
    def _llm_type(self) -> str:
        return "hymemory-chat"

    @property
    def lc_secrets(self) -> dict[str, str]:
        """Which parameter is secret."""
        return {"openai_api_key": "HYMEMORY_API_KEY"}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"] = PROVIDER
        return params

    # -- asking ------------------------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        writer, request = self._asked(messages, stop, run_manager, kwargs)
        return self._result(writer.write(request), request)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        writer, request = self._asked(messages, stop, run_manager, kwargs)
        return self._result(await writer.awrite(request), request)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        *,
        stream_usage: bool | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        writer, request = self._asked(messages, stop, run_manager, self._streamed(kwargs, stream_usage))
        if writer.recognise(request):
            chunks: Iterator[ChatGenerationChunk] = iter([one_chunk(self._result(writer.write(request), request))])
        else:
            chunks = filter(None, map(self._chunks(), writer.stream(request)))
        for chunk in chunks:
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        *,
        stream_usage: bool | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        writer, request = self._asked(messages, stop, run_manager, self._streamed(kwargs, stream_usage))
        async for chunk in self._achunks(writer, request):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _achunks(self, writer: Writer, request: ChatRequest) -> AsyncIterator[ChatGenerationChunk]:
        if writer.recognise(request):
            yield one_chunk(self._result(await writer.awrite(request), request))
            return
        converted = self._chunks()
        async for raw in writer.astream(request):
            if chunk := converted(raw):
                yield chunk

    def _asked(
        self, messages: list[BaseMessage], stop: list[str] | None, run_manager: Any, kwargs: Mapping[str, Any]
    ) -> tuple[Writer, ChatRequest]:
        """Say what is asked, and of whom."""
        kwargs = with_extra_body(kwargs, self.extra_body)
        answer = kwargs.pop("answer", None)
        payload = self._get_request_payload(messages, stop=stop, **kwargs)
        # Where LangChain streams on its own, it hands over no run manager.
        metadata = ensure_config().get("metadata", {}) | (getattr(run_manager, "metadata", None) or {})
        stage = metadata.get("langgraph_node")
        changes = {"model": payload.get("model"), "timeout": payload.pop("timeout", None)}
        settings = config.changed(self.settings, changes)
        payload |= budgets(settings, payload, where="the call")
        # Made anew for each request: it is nothing but these three, so the model may be copied and pickled.
        return Writer("langchain", calls(), settings), chat_request(payload, answer=answer, stage=stage)

    def _result(self, written: Written, request: ChatRequest) -> ChatResult:
        result = named(self._create_chat_result(completion(written, self.model_name)), written)
        if is_pydantic(request.answer) and request.response_format is not None:
            value = written.value
            text = value.content if isinstance(value, Answer) else json.dumps(value)
            if text:  # none where tools are called first
                # Where langchain-openai's own parser looks for it.
                parsed = request.answer.model_validate_json(text)
                result.generations[0].message.additional_kwargs["parsed"] = parsed
        return result

    def _streamed(self, kwargs: Mapping[str, Any], stream_usage: bool | None) -> dict[str, Any]:
        usage = self._should_stream_usage(stream_usage, **kwargs)
        return {**kwargs, "stream_options": {"include_usage": True}} if usage else {**kwargs}

    def _chunks(self) -> Any:
        """Make the function that turns openai's chunks into LangChain's."""

        def converted(raw: Any) -> ChatGenerationChunk | None:
            chunk = self._convert_chunk_to_generation_chunk(raw.model_dump(warnings=False), AIMessageChunk, None)
            if chunk is None:
                return None
            # Before langchain-core 1.0 the names of all chunks would be strung together: one says it there.
            said, last = chunk.message.response_metadata, (chunk.generation_info or {}).get("finish_reason")
            if last or "model_provider" in said:
                said["model_provider"] = PROVIDER
            return chunk

        return converted

    # -- structured output -------------------------------------------------------------------------

    def with_structured_output(
        self, schema: Any = None, *, method: Any = "json_schema", **kwargs: Any
    ) -> Runnable[LanguageModelInput, Any]:
        """Answer in the form of a schema: LangChain's own method, with answers that are validated.

        An answer that does not fit is asked for again; one that never fits raises ``MalformedWriteError``, also with
        ``include_raw``. With ``json_mode`` the schema, if there is one, holds as well.

        Args:
            schema: a pydantic class, a ``TypedDict``, a JSON Schema or an OpenAI function.
            method: ``json_schema``, ``function_calling`` or ``json_mode``.
            kwargs: see ``BaseChatOpenAI.with_structured_output``.
        """
        return super().with_structured_output(schema, method=method, answer=schema, **kwargs)

    # -- counting tokens ---------------------------------------------------------------------------

    def get_token_ids(self, text: str) -> list[int]:
        """As many numbers as the text has tokens by estimate; they are no ids, for no tokenizer is at hand."""
        if self.custom_get_token_ids is not None:
            return list(self.custom_get_token_ids(text))
        return list(range(tokens.of_text(text)))

    def get_num_tokens_from_messages(
        self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, **_: Any
    ) -> int:
        """Estimate, rather too high, how many tokens the messages take; nothing is downloaded for it."""
        return tokens.of_messages(messages, tools or (), self.get_num_tokens)
