"""What the constructor takes, where settings come from, and copies of the model."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import ConfigurableField

from hymemory_adapters import ConfigurationError, WriterSettings
from hymemory_adapters.langchain import ChatHyMemory
from tests.support.scripted import ScriptedEndpoint

OPENAI = {
    "OPENAI_API_KEY": "sk-foreign",
    "OPENAI_API_BASE": "http://127.0.0.1:9/foreign",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/foreign",
    "OPENAI_ORG_ID": "foreign-org",
    "OPENAI_ORGANIZATION": "foreign-org",
    "OPENAI_PROJECT_ID": "foreign-project",
    "OPENAI_PROXY": "http://foreign:9",
    "OPENAI_CUSTOM_HEADERS": "X-Foreign: foreign",
}


@pytest.mark.parametrize("key", [None, "mine"])
@pytest.mark.parametrize("stream", [False, True])
def test_openai_variables_are_never_used(
    key: str | None,
    stream: bool,
    make_model: Callable[..., Any],
    endpoint: ScriptedEndpoint,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, value in OPENAI.items():
        monkeypatch.setenv(variable, value)
    endpoint.play("hello")
    model = make_model(api_key=key)
    assert [*model.stream("hi")] if stream else model.invoke("hi")
    (chat,) = endpoint.chats
    assert chat.headers["authorization"] == f"Bearer {key or 'EMPTY'}"
    assert "foreign" not in repr(chat.headers) + repr(chat.raw) + repr(model) + repr(model.__dict__)


NAMES = {
    "default": ({}, {}, "hy-memory"),
    "model string": ({"model": "hy-memory"}, {}, "hy-memory"),
    "model string, environment": ({"model": "hy-memory"}, {"HYMEMORY_MODEL": "served"}, "served"),
    "other model string": ({"model": "other"}, {"HYMEMORY_MODEL": "served"}, "other"),
    "by its other name": ({"model_name": "other"}, {}, "other"),
    "writer": ({"writer": "qwen3"}, {}, "qwen3"),
}


@pytest.mark.parametrize(("given", "environ", "expected"), NAMES.values(), ids=NAMES)
def test_the_name_of_the_model(
    given: dict[str, Any], environ: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in environ.items():
        monkeypatch.setenv(variable, value)
    model = ChatHyMemory(**given)
    assert (model.model_name, model.settings.model) == (expected, expected)


def test_every_setting_may_be_named() -> None:
    model = ChatHyMemory(
        base_url="http://host/v1/", api_key="k", timeout=3, attempts=2, constrain="retry", max_tokens=7, form="prompt"
    )
    settings = model.settings
    assert (settings.base_url, settings.timeout, settings.attempts) == ("http://host/v1", 3, 2)
    assert (settings.constrain, settings.max_tokens, settings.form) == ("retry", 7, "prompt")
    assert (model.openai_api_base, model.request_timeout, model.max_tokens) == ("http://host/v1", 3, 7)
    assert model.openai_api_key.get_secret_value() == "k"


@pytest.mark.parametrize(("retries", "seconds"), [(None, 10), (2, 10), (0, 0)])
def test_max_retries(retries: int | None, seconds: float) -> None:
    assert ChatHyMemory(max_retries=retries).settings.retry_seconds == seconds


WRONG = {
    "unknown": ({"attemps": 2}, "does not take 'attemps'"),
    "of openai": ({"organization": "x"}, "does not take 'openai_organization'"),
    "proxy": ({"openai_proxy": "http://x"}, "does not take 'openai_proxy'"),
    "thinking": ({"reasoning_effort": "high"}, "does not take 'reasoning_effort'"),
    "responses": ({"use_responses_api": True}, "does not take 'use_responses_api'"),
    "client": ({"http_client": object()}, "does not take 'http_client'"),
    "value": ({"attempts": 11}, "it must be a whole number from 1 to 10"),
    "url": ({"base_url": "host:1"}, "it must be an http:// or https:// URL"),
    "change": ({"settings": WriterSettings(), "attempts": 11}, "must be a whole number from 1 to 10"),
}


@pytest.mark.parametrize(("given", "message"), WRONG.values(), ids=WRONG)
def test_what_it_does_not_take(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ChatHyMemory(**given)


def test_the_key_stays_hidden() -> None:
    model = ChatHyMemory(api_key="a-secret", headers={"X-Key": "another-secret"})
    shown = repr(model) + str(model) + repr(model.model_dump()) + repr(model._identifying_params)
    assert "secret" not in shown
    assert model.lc_secrets == {"openai_api_key": "HYMEMORY_API_KEY"}
    assert not model.is_lc_serializable()


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda model: model.model_copy(update={"temperature": 0.25}),
    "configurable": lambda model: model.configurable_fields(temperature=ConfigurableField("t")).with_config(
        configurable={"t": 0.25}
    ),
    "rebuilt": lambda model: ChatHyMemory(**{name: getattr(model, name) for name in ChatHyMemory.model_fields}),
    "other settings": lambda model: ChatHyMemory(settings=model.settings, temperature=0.25),
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_copies_work_and_keep_the_settings(
    copied: Callable[[Any], Any], make_model: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    endpoint.play("hello")
    model = make_model(api_key="k", temperature=0.25, headers={"X-A": "b"})
    assert model.invoke("hi").content == "hello"
    assert copied(model).invoke("hi").content == "hello"
    first, second = endpoint.chats
    assert first.body == second.body
    assert (second.headers["x-a"], second.headers["authorization"]) == ("b", "Bearer k")


def test_tokens_are_estimated_and_nothing_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken

    def no_download(*_: Any) -> None:
        raise AssertionError("tiktoken was asked")

    monkeypatch.setattr(tiktoken, "get_encoding", no_download)
    monkeypatch.setattr(tiktoken, "encoding_for_model", no_download)
    model = ChatHyMemory()
    assert model.get_num_tokens("one two three") == 5
    assert model.get_num_tokens("\u6211\u559c\u6b22\u8336") == 4
    assert len(model.get_token_ids("one two three")) == 5
    assert model.get_num_tokens_from_messages([HumanMessage("one two three"), HumanMessage("x")]) == 5 + 1 + 2 * 4
    assert ChatHyMemory(custom_get_token_ids=lambda text: [1]).get_num_tokens("one two three") == 1
