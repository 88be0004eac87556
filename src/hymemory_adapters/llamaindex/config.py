"""What the constructor of ``HyMemory`` takes: LlamaIndex's own parameters, and the settings of the writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.llms.llm import LLM
from llama_index.llms.openai_like import OpenAILike

from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.settings import FIELDS, changed, resolve
from hymemory_adapters.writers import DEFAULT_WRITER

# LlamaIndex's names of what the settings have under another one.
_SETTINGS_NAMES = {"api_base": "base_url", "default_headers": "headers"}
# What LlamaIndex itself does something with.
_TAKEN = (
    *(*BaseLLM.model_fields, *LLM.model_fields),
    *("temperature", "additional_kwargs", "logprobs", "top_logprobs", "max_retries"),
    *("context_window", "is_function_calling_model", "tokenizer", "strict"),
)
_BOTH = ("max_tokens", "timeout")
_ALWAYS = {"is_chat_model": True, "should_use_structured_outputs": True, "reuse_client": True}
WHERE = "the constructor of HyMemory"


def read(values: Mapping[str, Any]) -> dict[str, Any]:
    """Find the settings in what the constructor was given.

    Args:
        values: by LlamaIndex's names, or by those of ``WriterSettings``; ``settings`` may hold a whole
            ``WriterSettings``, which the others then change.

    Returns:
        the values of the LLM's fields, ``settings`` among them.

    Raises:
        ConfigurationError: an unknown parameter, one that cannot be honoured, or a setting that is wrong.
    """
    rest = {key: value for key, value in values.items() if not _unset(key, value)}
    base = rest.pop("settings", None)
    fields = {key: rest.pop(key) for key in _TAKEN if key in rest}
    fields |= {key: rest[key] for key in _BOTH if key in rest}
    block = _block(rest)
    if base is not None and block.get("base_url") == base.shown_url:
        del block["base_url"]  # a copy names what the original shows, which has no password in it
    if fields.get("max_retries") == 0:
        block.setdefault("retry_seconds", 0)  # how long is said in seconds here, and never is never
    if base is not None:
        settings = changed(base, block, where=WHERE)
    else:
        # Who writes the default out chose nothing against HYMEMORY_MODEL.
        settings = resolve({key: value for key, value in block.items() if (key, value) != ("model", DEFAULT_WRITER)})
    return fields | {
        "settings": settings,
        "model": settings.model,
        "api_base": settings.shown_url,
        "timeout": settings.timeout,
    }


def _block(rest: dict[str, Any]) -> dict[str, Any]:
    block = {key: rest.pop(key) for key in FIELDS if key in rest}
    named = {name: rest.pop(name) for name in _SETTINGS_NAMES if name in rest}
    if rest:
        known = dict.fromkeys((*_TAKEN, *_SETTINGS_NAMES, *FIELDS))
        raise ConfigurationError(f"HyMemory does not take {', '.join(map(repr, rest))}. It takes {', '.join(known)}")
    for name, value in named.items():
        setting = _SETTINGS_NAMES[name]
        if setting in block and block[setting] != value:
            raise ConfigurationError(f"{name} and {setting} are the same setting, and {WHERE} names both: keep one")
        block[setting] = value
    return block


def _unset(name: str, value: Any) -> bool:
    """Whether a parameter says nothing, or what is the case anyway; LlamaIndex copies an LLM with all of them."""
    if value is None or name in _ALWAYS:
        return value in (None, _ALWAYS.get(name))
    field = OpenAILike.model_fields.get(name)
    return field is not None and name not in (*FIELDS, *_TAKEN) and value == field.get_default()
