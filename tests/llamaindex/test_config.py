"""What the constructor of ``HyMemory`` takes, where the rest comes from, and what never stands in a dump."""

from __future__ import annotations

import copy
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.utils import resolve_llm
from pydantic import ValidationError

from hymemory_adapters import ConfigurationError, WriterSettings
from hymemory_adapters.llamaindex import HyMemory
from tests.support.scripted import ScriptedEndpoint

KEY = "sk-very-secret"
HI = [ChatMessage(role="user", content="Hi")]


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({}, "base_url", "http://127.0.0.1:8000/v1"),
        ({}, "model", "hy-memory"),
        ({"api_base": "http://h:1/v1"}, "base_url", "http://h:1/v1"),
        ({"base_url": "http://h:1/v1"}, "base_url", "http://h:1/v1"),
        ({"base_url": "http://h:1/v1", "api_base": "http://h:1/v1"}, "base_url", "http://h:1/v1"),
        ({"model": "other"}, "model", "other"),
        ({"attempts": 5}, "attempts", 5),
        ({"timeout": 7}, "timeout", 7),
        ({"max_tokens": 100}, "max_tokens", 100),
        ({"default_headers": {"X": "y"}}, "headers", {"X": "y"}),
        ({"max_retries": 0}, "retry_seconds", 0),
        ({"max_retries": 9}, "retry_seconds", 10),
        ({"settings": WriterSettings(attempts=7)}, "attempts", 7),
        ({"settings": WriterSettings(attempts=7), "attempts": 2}, "attempts", 2),
        ({"settings": WriterSettings(model="m")}, "model", "hy-memory"),
    ],
)
def test_what_it_takes(given: dict[str, Any], field: str, value: Any) -> None:
    assert getattr(HyMemory(**given).settings, field) == value


def test_llamaindex_s_own_parameters_stay() -> None:
    llm = HyMemory("m", temperature=0.7, context_window=9000, max_tokens=50, system_prompt="Be kind.", timeout=7)
    assert (llm.temperature, llm.context_window, llm.max_tokens, llm.timeout) == (0.7, 9000, 50, 7)
    assert llm.metadata.num_output == 50
    assert llm.system_prompt == "Be kind."


@pytest.mark.parametrize(
    ("variables", "given", "model"),
    [
        ({"HYMEMORY_MODEL": "from-env"}, {}, "from-env"),
        ({"HYMEMORY_MODEL": "from-env"}, {"model": "hy-memory"}, "from-env"),
        ({"HYMEMORY_MODEL": "from-env"}, {"model": "mine"}, "mine"),
    ],
)
def test_the_environment_fills_in(
    variables: dict[str, str], given: dict[str, Any], model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    llm = HyMemory(**given)
    assert (llm.settings.model, llm.model) == (model, model)


@pytest.mark.parametrize(
    "given",
    [
        {"modell": "x"},
        {"openai_client": object()},
        {"http_client": object()},
        {"reasoning_effort": "high"},
        {"modalities": ["audio"]},
        {"api_version": "1"},
        {"is_chat_model": False},
        {"reuse_client": False},
    ],
    ids=lambda given: next(iter(given)),
)
def test_what_it_cannot_honour_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"does not take {next(iter(given))!r}"):
        HyMemory(**given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"attempts": 0}, "a whole number from 1 to 10"),
        ({"base_url": "127.0.0.1"}, r"an http:// or https:// URL"),
        ({"base_url": "http://a/v1", "api_base": "http://b/v1"}, "keep one"),
        ({"settings": WriterSettings(), "attempts": 0}, "a whole number from 1 to 10"),
    ],
)
def test_wrong_values_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        HyMemory(**given)


def test_llamaindex_judges_its_own_values() -> None:
    with pytest.raises(ValidationError, match="temperature"):
        HyMemory(temperature=7)


def test_there_is_nothing_to_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYMEMORY_ENABLE", "llamaindex")
    with pytest.raises(ConfigurationError, match="HYMEMORY_ENABLE names 'llamaindex', and only mem0 can be"):
        HyMemory()


def test_it_is_the_settings_llm(llm: Any) -> None:
    Settings.llm = llm
    assert Settings.llm is llm
    assert resolve_llm(llm) is llm


# -- secrets and copies ----------------------------------------------------------------------------

SHOWN: dict[str, Callable[[Any], str]] = {
    "to_dict": lambda llm: json.dumps(llm.to_dict(), default=repr),
    "to_json": lambda llm: str(llm.to_json()),
    "model_dump": lambda llm: repr(llm.model_dump()),
    "repr": repr,
    "str": str,
    "metadata": lambda llm: repr(llm.metadata),
}


@pytest.mark.parametrize("show", SHOWN.values(), ids=SHOWN.keys())
def test_no_secret_is_shown(show: Callable[[Any], str]) -> None:
    llm = HyMemory(base_url=f"http://user:{KEY}@127.0.0.1:1/v1", api_key=KEY, headers={"X-Key": KEY})
    shown = show(llm)
    assert "HyMemory" in shown or "hy-memory" in shown
    assert KEY not in shown
    assert "poison" not in shown


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda llm: pickle.loads(pickle.dumps(llm)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "model_copy": lambda llm: llm.model_copy(),
}


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES.keys())
def test_a_copy_writes_as_the_original(
    made: Callable[[Any], Any], make_llm: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    url = endpoint.url.replace("//", "//user:word@")
    llm = make_llm(base_url=url, api_key=KEY, attempts=2, temperature=0.3)
    endpoint.play("Hello.")
    llm.chat(HI)
    copied = made(llm)
    assert copied.settings == llm.settings
    assert copied.chat(HI).message.content == "Hello."
    first, second = endpoint.chats
    assert first.body == second.body
    assert first.headers["authorization"] == second.headers["authorization"]


def test_a_dump_can_be_read_back(make_llm: Callable[..., Any], endpoint: ScriptedEndpoint) -> None:
    """But for the secrets, which come from the environment again."""
    llm = make_llm(api_key=KEY, temperature=0.3, max_tokens=77)
    read = HyMemory.from_dict(llm.to_dict())
    assert (read.temperature, read.max_tokens, read.settings.base_url) == (0.3, 77, endpoint.url)
    assert read.settings.api_key is None


def test_openai_s_variables_stay_where_they_are(llm: Any, endpoint: ScriptedEndpoint) -> None:
    before = dict(os.environ)
    endpoint.play("Hello.")
    llm.chat(HI)
    assert endpoint.chats[0].headers["authorization"] == "Bearer EMPTY"
    assert dict(os.environ) == before
