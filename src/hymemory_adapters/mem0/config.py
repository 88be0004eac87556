"""The config block of the provider: ``{"llm": {"provider": "hymemory", "config": {...}}}``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from mem0.configs.llms.base import BaseLlmConfig
from pydantic import BaseModel, Field, ValidationError

from hymemory_adapters.core.events import say_once
from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.settings import FIELDS

URL_KEYS = ("base_url", "vllm_base_url", "openai_base_url", "lmstudio_base_url")
"""The endpoint's URL, under the names that Mem0's OpenAI-compatible providers have for it."""

_MEM0_KEYS = tuple(name for name in inspect.signature(BaseLlmConfig.__init__).parameters if name != "self")
_NEWER_MEM0_KEYS = ("reasoning_effort", "is_reasoning_model")  # a block keeps working on an older Mem0
KEYS = tuple(dict.fromkeys((*URL_KEYS, *_MEM0_KEYS, *_NEWER_MEM0_KEYS, *FIELDS)))
_WISHES = ("temperature", "top_p", "max_tokens", "enable_vision", "vision_details")
_NO_LIMIT = -1
"""What Ollama and LM Studio take as an output budget."""


class _Numbers(BaseModel):
    """The numbers that Mem0's providers pass on unseen. From environments and YAML files they arrive as strings."""

    max_tokens: int | None = Field(None, ge=1, description="a whole number of tokens, at least 1")
    temperature: float | None = Field(None, ge=0, allow_inf_nan=False, description="a number, at least 0")
    top_p: float | None = Field(None, ge=0, le=1, description="a number from 0 to 1")


class HyMemoryConfig(BaseLlmConfig):  # type: ignore[misc]
    """What the config block says: Mem0's own keys, and any field of ``WriterSettings`` by its name.

    Attributes:
        block: the fields of ``WriterSettings`` that the block names.

    Raises:
        ConfigurationError: an unknown key, a value that is not the number it should be, or two different URLs.
    """

    def __init__(self, **block: Any) -> None:
        given = {key: value for key, value in block.items() if value is not None}
        unknown = [key for key in given if key not in KEYS]
        if unknown:
            raise ConfigurationError(
                f"unknown keys in Mem0's llm config block, drop them: {', '.join(map(repr, unknown))} "
                f"(a block left over from another provider?). Known are: {', '.join(KEYS)}"
            )
        if given.pop("http_client_proxies", None):
            say_once(
                "mem0:proxies",
                "http_client_proxies in Mem0's llm config block is not used, as Mem0's own vllm provider does not use "
                "it: if there is a proxy before the endpoint, name it in HTTPS_PROXY or HTTP_PROXY; else drop the key",
            )
        given |= _numbers_of(given, where="the config block")
        super().__init__(**{key: value for key, value in given.items() if key in _MEM0_KEYS})
        self.block = {key: value for key, value in given.items() if key in FIELDS}
        urls = {key: given[key] for key in URL_KEYS if key in given}
        if len({str(url).rstrip("/") for url in urls.values()}) > 1:
            raise ConfigurationError(f"Mem0's llm config block names two different URLs: {', '.join(urls)}; keep one")
        if urls:
            self.block["base_url"] = next(iter(urls.values()))
        if _is_the_rerankers(self.block):
            del self.block["model"]
        if self.block.get("max_tokens") == BaseLlmConfig().max_tokens:
            # Mem0's own default, which its factory writes into blocks: nobody chose it.
            del self.block["max_tokens"]

    @classmethod
    def taking_over(cls, block: Mapping[str, Any]) -> HyMemoryConfig:
        """Take from another provider's block what the app wishes of any LLM, and nothing that says where it is."""
        wishes = {key: block[key] for key in _WISHES if block.get(key) is not None}
        if wishes.get("max_tokens") == _NO_LIMIT:
            del wishes["max_tokens"]
        return cls(**wishes | _numbers_of(wishes, where="the app's llm config block"))


def _numbers_of(block: Mapping[str, Any], *, where: str) -> dict[str, Any]:
    given = {key: value for key, value in block.items() if key in _Numbers.model_fields}
    try:
        return _Numbers(**given).model_dump(exclude_unset=True)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        allowed = _Numbers.model_fields[key].description
        raise ConfigurationError(f"{key} in {where} is {given[key]!r}; it must be {allowed}") from None


def _is_the_rerankers(block: Mapping[str, Any]) -> bool:
    """Whether this is the block that Mem0's LLM reranker writes (1.0 and later) where its config names no model.

    It holds the defaults of the reranker's config class: a model of OpenAI's, and a budget that no writer has.
    """
    try:
        from mem0.configs.rerankers.llm import LLMRerankerConfig
    except ImportError:
        return False
    defaults = {key: LLMRerankerConfig.model_fields[key].default for key in ("model", "max_tokens")}
    return all(block.get(key) == default for key, default in defaults.items())
