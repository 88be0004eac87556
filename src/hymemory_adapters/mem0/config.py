"""The config block of the provider: ``{"llm": {"provider": "hymemory", "config": {...}}}``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from mem0.configs.llms.base import BaseLlmConfig

from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.settings import FIELDS

URL_KEYS = ("base_url", "vllm_base_url", "openai_base_url", "lmstudio_base_url")
"""The endpoint's URL, under the names that Mem0's OpenAI-compatible providers have for it."""

_MEM0_KEYS = tuple(name for name in inspect.signature(BaseLlmConfig.__init__).parameters if name != "self")
_NEWER_MEM0_KEYS = ("reasoning_effort", "is_reasoning_model")  # a block keeps working on an older Mem0
KEYS = tuple(dict.fromkeys((*URL_KEYS, *_MEM0_KEYS, *_NEWER_MEM0_KEYS, *FIELDS)))
_WISHES = ("temperature", "top_p", "max_tokens", "enable_vision", "vision_details")


class HyMemoryConfig(BaseLlmConfig):  # type: ignore[misc]
    """What the config block says: Mem0's own keys, and any field of ``WriterSettings`` by its name.

    Attributes:
        block: the fields of ``WriterSettings`` that the block names.

    Raises:
        ConfigurationError: an unknown key, a key that cannot be honoured, or two different URLs.
    """

    def __init__(self, **block: Any) -> None:
        given = {key: value for key, value in block.items() if value is not None}
        unknown = [key for key in given if key not in KEYS]
        if unknown:
            raise ConfigurationError(
                f"unknown keys in Mem0's llm config block, drop them: {', '.join(map(repr, unknown))} "
                f"(a block left over from another provider?). Known are: {', '.join(KEYS)}"
            )
        if "http_client_proxies" in given:
            raise ConfigurationError("http_client_proxies is not used: set HTTPS_PROXY or HTTP_PROXY, or drop the key")
        super().__init__(**{key: value for key, value in given.items() if key in _MEM0_KEYS})
        self.block = {key: value for key, value in given.items() if key in FIELDS}
        urls = {key: given[key] for key in URL_KEYS if key in given}
        if len({str(url).rstrip("/") for url in urls.values()}) > 1:
            raise ConfigurationError(f"Mem0's llm config block names two different URLs: {', '.join(urls)}; keep one")
        if urls:
            self.block["base_url"] = next(iter(urls.values()))
        if self.block.get("max_tokens") == BaseLlmConfig().max_tokens:
            # Mem0's own default, which its factory writes into blocks: nobody chose it.
            del self.block["max_tokens"]

    @classmethod
    def taking_over(cls, block: Mapping[str, Any]) -> HyMemoryConfig:
        """Take from another provider's block what the app wishes of any LLM, and nothing that says where it is."""
        return cls(**{key: block[key] for key in _WISHES if block.get(key) is not None})
