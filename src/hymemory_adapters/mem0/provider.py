"""The LLM that Mem0 builds for ``provider: hymemory``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mem0.configs.llms.base import BaseLlmConfig
from mem0.llms.base import LLMBase

from hymemory_adapters.core.events import log
from hymemory_adapters.core.lost import ConfigurationError, HyMemoryError, MalformedWriteError
from hymemory_adapters.core.reply import Reply, read_text
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.writer import Writer
from hymemory_adapters.mem0.calls import calls
from hymemory_adapters.mem0.config import KEYS, HyMemoryConfig
from hymemory_adapters.mem0.takeover import AppLLM
from hymemory_adapters.mem0.text import IMAGE, beside_text, words_of
from hymemory_adapters.settings import resolve

_NOT_TO_DESCRIBE = (
    "mem0: there is {part} in the messages, and Hy-Memory reads text only. Name the provider of {model} in the config, "
    "and let Hy-Memory take over the writing with HYMEMORY_ENABLE=mem0: then that model describes it. Or have it "
    "described before you add it"
)
_NOT_TO_SUM_UP = (
    "mem0: there is {part} in the messages, and Hy-Memory reads text only. Mem0 has nothing described in a procedural "
    "memory: have {model} describe it, and put the description in its place before you add it"
)
_NOT_DESCRIBED = (
    "mem0: the app's own LLM (provider {provider!r}) was to describe {part}, and answered nothing: this add is not "
    "written. Is it {model}?"
)


class HyMemoryLLM(LLMBase):  # type: ignore[misc]
    """Mem0's LLM, with Hy-Memory behind it.

    Mem0 calls :meth:`generate_response` from any thread, also for ``AsyncMemory``.

    Args:
        config: the provider's config block; Mem0 passes a :class:`HyMemoryConfig`.
        app_llm: in a takeover, the LLM that the app's config names. Images are described by it; of its block only
            sampling and the output budget are looked at.

    Raises:
        ConfigurationError: a setting is wrong.
    """

    def __init__(
        self, config: BaseLlmConfig | Mapping[str, Any] | None = None, *, app_llm: AppLLM | None = None
    ) -> None:
        if app_llm is not None:
            config = HyMemoryConfig.taking_over(app_llm.wishes)
        elif not isinstance(config, HyMemoryConfig):
            if isinstance(config, BaseLlmConfig):
                config = {key: getattr(config, key) for key in KEYS if hasattr(config, key)}
            config = HyMemoryConfig(**(config or {}))
        settings = resolve(config.block, takeover=app_llm is not None)
        config.model = settings.model
        super().__init__(config)
        self.writer = Writer("mem0", calls(), settings)
        self._app_llm = app_llm
        self._max_tokens = config.block.get("max_tokens", config.max_tokens)

    def __getstate__(self) -> dict[str, Any]:
        # The table holds functions made from the installed Mem0's prompts: it is built anew where it is needed.
        return {**self.__dict__, "writer": self.writer.settings}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self.writer = Writer("mem0", calls(), state["writer"])

    def generate_response(
        self,
        messages: Sequence[Mapping[str, Any]],
        response_format: Mapping[str, Any] | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        tool_choice: str | Mapping[str, Any] = "auto",
        **sampling: Any,
    ) -> Any:
        """Do one of Mem0's LLM requests.

        Returns:
            for a write call, text that Mem0's parser cannot lose; for any other request what Mem0's own
            providers return: the text. With ``tools``: ``{"content": ..., "tool_calls": [...]}``.

        Raises:
            MalformedWriteError: no reply could be taken, or the app's own LLM described an image with nothing.
            EndpointError: the endpoint did not answer, or refused.
            ConfigurationError: an image is to be described, and no LLM is there that can.
        """
        if part := beside_text(messages):
            return self._described(messages, part)
        words = words_of(messages)
        if words is not None:
            return words
        request = Request(
            messages=messages,
            response_format=response_format,
            tools=tools or (),
            tool_choice=tool_choice if tools else None,
            sampling={"temperature": self.config.temperature, "top_p": self.config.top_p, **sampling},
            max_tokens=self._max_tokens,
        )
        written = self.writer.write(request)
        if written.event is not None:
            return written.value
        return _as_mem0_has_it(written.reply or Reply(None), with_tools=bool(tools))

    def _described(self, messages: Sequence[Mapping[str, Any]], part: str) -> Any:
        about = {"part": part, "model": "a vision model" if part == IMAGE else "a model that takes it"}
        if len(messages) != 1:
            raise _told(ConfigurationError(_NOT_TO_SUM_UP.format(**about)))
        if self._app_llm is None:
            raise _told(ConfigurationError(_NOT_TO_DESCRIBE.format(**about)))
        description = self._app_llm.generate_response(messages=list(messages))
        if not description or (isinstance(description, str) and not description.strip()):
            # Mem0 would put the nothing in the place of the whole message, its words included.
            provider = self._app_llm.provider
            raise _told(MalformedWriteError(_NOT_DESCRIBED.format(provider=provider, **about)))
        return description


def _told(error: HyMemoryError) -> HyMemoryError:
    """Log an error in whose place Mem0 may put an exception of its own."""
    log.error(str(error))
    return error


def _as_mem0_has_it(reply: Reply, *, with_tools: bool) -> str | dict[str, Any] | None:
    if not with_tools:
        # Mem0's reranker takes the first number that it finds for the score, in the thinking too.
        reading = read_text(reply.text)
        thought = "think" in reading.normalisations and "think_unopened" not in reading.normalisations
        return str(reading.value) if thought else reply.text
    try:
        tool_calls = [
            {"name": call["function"]["name"], "arguments": json.loads(call["function"]["arguments"])}
            for call in reply.tool_calls
        ]
    except json.JSONDecodeError as error:
        raise MalformedWriteError(f"mem0: the arguments of a tool call are not valid JSON: {error.msg}") from None
    return {"content": reply.text, "tool_calls": tool_calls}
