"""What the constructor of ``ChatHyMemory`` takes: LangChain's own parameters, and the settings of the writer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_openai.chat_models.base import BaseChatOpenAI

from hymemory_adapters import settings
from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.settings import FIELDS, WriterSettings, resolve
from hymemory_adapters.writers import DEFAULT_WRITER

# LangChain's names of what the settings have too.
_SETTINGS_NAMES = {
    "model_name": "model",
    "openai_api_base": "base_url",
    "openai_api_key": "api_key",
    "request_timeout": "timeout",
}
_SAMPLING = (
    *("temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "logprobs", "top_logprobs"),
    *("logit_bias", "n", "stop", "max_tokens", "extra_body", "model_kwargs", "disabled_params"),
)
_LANGCHAIN = (*BaseChatModel.model_fields, "streaming", "stream_usage", "max_retries")
_TAKEN = frozenset({*_SETTINGS_NAMES, *_SAMPLING, *_LANGCHAIN})
_ALIASES = {field.alias: name for name, field in BaseChatOpenAI.model_fields.items() if field.alias}


def read(values: Mapping[str, Any]) -> dict[str, Any]:
    """Find the settings in what the constructor was given.

    Args:
        values: by LangChain's names or their aliases, or by the names of ``WriterSettings``; ``settings`` may hold
            a whole ``WriterSettings``, which the others then change.

    Returns:
        the values of the model's fields, ``settings`` among them.

    Raises:
        ConfigurationError: an unknown parameter, one that cannot be honoured, or a setting that is wrong.
    """
    given = {_ALIASES.get(key, key): value for key, value in values.items()}
    fields = {key: value for key, value in given.items() if key in _TAKEN}
    rest = {key: value for key, value in given.items() if key not in _TAKEN and not _unset(key, value)}
    base = rest.pop("settings", None)
    block = {key: rest.pop(key) for key in FIELDS if key in rest}
    if rest:
        raise ConfigurationError(
            f"ChatHyMemory does not take {', '.join(map(repr, rest))}. It takes LangChain's "
            f"{', '.join(_ALIASES_OF.get(name, name) for name in (*_SAMPLING, *_LANGCHAIN))}, and {', '.join(FIELDS)}"
        )
    for name, setting in _SETTINGS_NAMES.items():
        if fields.get(name) is not None:
            block[setting] = fields[name]
    if fields.get("max_tokens") is not None:
        block["max_tokens"] = fields["max_tokens"]
    if fields.get("max_retries") == 0:
        block.setdefault("retry_seconds", 0)  # how long is said in seconds here, and never is never
    found = changed(base, block) if base is not None else _resolved(block)
    return fields | {
        "settings": found,
        "model_name": found.model,
        "openai_api_base": found.base_url,
        "openai_api_key": found.api_key,
        "request_timeout": found.timeout,
    }


_ALIASES_OF = {name: alias for alias, name in _ALIASES.items()}


def _unset(name: str, value: Any) -> bool:
    """Whether a parameter of OpenAI's says nothing; LangChain copies a model with all of them."""
    field = BaseChatOpenAI.model_fields.get(name)
    return field is not None and (not value or value == field.get_default(call_default_factory=True))


def _resolved(block: Mapping[str, Any]) -> WriterSettings:
    # "hymemory:hy-memory" has to name some model: nobody chose it against HYMEMORY_MODEL.
    return resolve({key: value for key, value in block.items() if (key, value) != ("model", DEFAULT_WRITER)})


def changed(base: WriterSettings, block: Mapping[str, Any]) -> WriterSettings:
    """Change what the block names; the same object if that is nothing.

    Raises:
        ConfigurationError: a value is wrong.
    """
    return settings.changed(base, block, where="the constructor of ChatHyMemory")
