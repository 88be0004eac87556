"""The provider's config block."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mem0.configs.llms.base import BaseLlmConfig
from mem0.configs.llms.vllm import VllmConfig
from mem0.utils.factory import LlmFactory

from hymemory_adapters import ConfigurationError, EndpointError
from hymemory_adapters.mem0.config import KEYS, HyMemoryConfig
from hymemory_adapters.mem0.provider import HyMemoryLLM
from hymemory_adapters.settings import FIELDS
from tests.mem0.host import MAJOR, USER, stored, writes
from tests.support.scripted import Fail, ScriptedEndpoint

BuildMemory = Callable[..., Any]

URL_KEYS = ("base_url", "vllm_base_url", "openai_base_url", "lmstudio_base_url")


def write(memory: Any, endpoint: ScriptedEndpoint) -> dict[str, Any]:
    """Store one memory; return the first request."""
    endpoint.play(*writes("Likes green tea"))
    memory.add("I like green tea", user_id=USER)
    assert stored(memory) == ["Likes green tea"]
    return endpoint.chats[0].body


# -- the config block ------------------------------------------------------------------------------


@pytest.mark.parametrize("key", URL_KEYS)
@pytest.mark.parametrize("form", ["{}", "{}/", "{}/chat/completions"])
def test_the_url_has_the_names_of_mem0s_own_providers(
    key: str, form: str, make_memory: BuildMemory, endpoint: ScriptedEndpoint
) -> None:
    block = {key: form.format(endpoint.url)}
    write(make_memory(llm={"provider": "hymemory", "config": block}), endpoint)


def test_one_url_under_two_names_is_fine(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    write(make_memory(vllm_base_url=endpoint.url + "/"), endpoint)


def test_mem0s_own_keys_are_honoured(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    endpoint.models = ["my-model"]
    memory = make_memory(model="my-model", api_key="my-key", temperature=0.7, top_p=0.9, max_tokens=9000)
    body = write(memory, endpoint)
    assert {key: body[key] for key in ("model", "temperature", "top_p", "max_tokens")} == {
        "model": "my-model",
        "temperature": 0.7,
        "top_p": 0.9,
        "max_tokens": 9000,
    }
    assert endpoint.chats[0].headers["authorization"] == "Bearer my-key"


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        *((None, 4096), (2000, 4096), (1999, 1999), (100, 100), (4096, 4096), (20000, 20000)),
        *(("2000", 4096), ("3000", 3000), ("20000", 20000), (1e4, 10000)),
    ],
)
def test_the_output_budget(given: Any, sent: int, make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    """2000 is Mem0's own default, too small for this model's replies, and nobody chose it."""
    body = write(make_memory(**({} if given is None else {"max_tokens": given})), endpoint)
    assert body["max_tokens"] == sent


@pytest.mark.parametrize(
    ("given", "sent"),
    [({"temperature": "0.3"}, 0.3), ({"temperature": 0}, 0), ({"top_p": " 0.5\n"}, 0.5), ({"top_p": 1}, 1)],
    ids=str,
)
def test_numbers_arrive_as_numbers(
    given: dict[str, Any], sent: float, make_memory: BuildMemory, endpoint: ScriptedEndpoint
) -> None:
    """From the environment, or quoted in a YAML file, they are strings."""
    body = write(make_memory(**given), endpoint)
    assert [body[key] for key in given] == [sent]
    assert not isinstance(body[next(iter(given))], str)


def test_a_request_that_is_no_write_keeps_mem0s_budget(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    llm = make_memory().llm
    endpoint.play("Just text.")
    assert llm.generate_response(messages=[{"role": "user", "content": "Hi"}]) == "Just text."
    body = endpoint.chats[0].body
    assert body["max_tokens"] == BaseLlmConfig().max_tokens
    assert "response_format" not in body


FIELD_VALUES: dict[str, Any] = {
    "writer": "hy3",
    "base_url": "http://127.0.0.1:1/v1",
    "model": "m",
    "api_key": "k",
    "no_think": {"a": {"b": 1}},
    "form": "prompt",
    "headers": {"X-A": "b"},
    "ca_bundle": __file__,
    "attempts": 7,
    "constrain": "retry",
    "max_tokens": 7000,
    "max_tokens_ceiling": 9999,
    "timeout": 33.0,
    "deadline": 44.0,
    "retry_seconds": 5.5,
    "concurrency": 3,
    "journal": str(Path(__file__).with_name("journal.jsonl")),
    "journal_content": "off",
}


@pytest.mark.parametrize("field", FIELDS)
def test_every_setting_may_stand_in_the_block(field: str) -> None:
    settings = HyMemoryLLM(HyMemoryConfig(**{field: FIELD_VALUES[field]})).writer.settings
    got = getattr(settings, field)
    assert (got.get_secret_value() if field == "api_key" else got) == FIELD_VALUES[field]


def test_settings_of_the_block_reach_the_wire(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    memory = make_memory(no_think={"chat_template_kwargs": {"enable_thinking": False}}, headers={"X-Team": "blue"})
    body = write(memory, endpoint)
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert endpoint.chats[0].headers["x-team"] == "blue"


WRONG_BLOCKS: dict[str, tuple[dict[str, Any], str]] = {
    "unknown_key": ({"modle": "x"}, r"unknown keys.*drop them: 'modle' .*Known are: .*model.*attempts"),
    "extra_body": ({"extra_body": {"a": 1}}, "drop them: 'extra_body' "),
    "openai": (
        {"model": "gpt-4o", "openai_base_url": "http://a/v1", "store": True, "models": ["gpt-4o"], "route": "fallback"},
        "drop them: 'store', 'models', 'route' .*left over from another provider",
    ),
    "two_urls": (
        {"base_url": "http://a/v1", "vllm_base_url": "http://b/v1"},
        "two different URLs: base_url, vllm_base_url; keep one",
    ),
    "attempts": ({"attempts": 11}, "attempts in the config block is 11; it must be a whole number from 1 to 10"),
    "url": ({"openai_base_url": "127.0.0.1:8000"}, r"base_url in the config block is '127.0.0.1:8000'; it must be an"),
    "max_tokens": ({"max_tokens": 0}, "max_tokens in the config block is 0; it must be"),
    "max_tokens_text": ({"max_tokens": "many"}, "max_tokens in the config block is 'many'; it must be a whole number"),
    "max_tokens_half": ({"max_tokens": 0.5}, "max_tokens in the config block is 0.5; it must be a whole number"),
    "temperature": ({"temperature": "hot"}, "temperature in the config block is 'hot'; it must be a number, at least"),
    "temperature_infinite": ({"temperature": "inf"}, "temperature in the config block is 'inf'; it must be"),
    "top_p": ({"top_p": "2"}, "top_p in the config block is '2'; it must be a number from 0 to 1"),
    "writer": ({"writer": "gpt"}, r"'gpt'.*known are: hy-memory, hy3, qwen3"),
}


@pytest.mark.parametrize(("block", "message"), WRONG_BLOCKS.values(), ids=WRONG_BLOCKS)
def test_a_wrong_block_is_refused_when_mem0_is_built(
    block: dict[str, Any], message: str, make_memory: BuildMemory
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make_memory(llm={"provider": "hymemory", "config": block})


def test_a_wrong_key_is_not_repeated(make_memory: BuildMemory) -> None:
    with pytest.raises(ConfigurationError) as caught:
        make_memory(llm={"provider": "hymemory", "config": {"api_key": ["secret-1"]}})
    assert "secret-1" not in str(caught.value)


EVERY_MEM0_KEY = {
    "model": "hy-memory",
    "temperature": 0.1,
    "api_key": "k",
    "max_tokens": 2000,
    "top_p": 0.1,
    "top_k": 1,
    "enable_vision": False,
    "vision_details": "auto",
    "reasoning_effort": "low",
    "is_reasoning_model": False,
    "http_client_proxies": {"http://": "http://name:secret@127.0.0.1:9"},
}


def test_a_block_with_all_of_mem0s_keys_is_taken(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    """Also those that this Mem0 does not have yet: one block for every version."""
    assert {*EVERY_MEM0_KEY} <= {*KEYS}
    body = write(make_memory(**EVERY_MEM0_KEY), endpoint)
    assert not {"reasoning_effort", "is_reasoning_model", "top_k"} & {*body}


def test_proxies_are_not_used_and_this_is_told_once(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        write(make_memory(http_client_proxies=EVERY_MEM0_KEY["http_client_proxies"]), endpoint)
    (told,) = [r.getMessage() for r in caplog.records if "http_client_proxies" in r.getMessage()]
    assert "HTTPS_PROXY or HTTP_PROXY" in told
    assert "secret" not in told


@pytest.mark.parametrize("config", ["omitted", {}, None], ids=["omitted", "empty", "null"])
def test_without_a_block_the_environment_says_where(
    config: Any, make_memory: BuildMemory, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYMEMORY_BASE_URL", endpoint.url)
    monkeypatch.setenv("HYMEMORY_MODEL", "my-model")
    monkeypatch.setenv("HYMEMORY_API_KEY", "my-key")
    llm = {"provider": "hymemory", **({} if config == "omitted" else {"config": config})}
    body = write(make_memory(llm=llm), endpoint)
    assert body["model"] == "my-model"
    assert endpoint.chats[0].headers["authorization"] == "Bearer my-key"


def test_the_environment_is_read_when_the_llm_is_built(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apps load their .env file after the imports."""
    first = make_memory(attempts=1)
    monkeypatch.setenv("HYMEMORY_ATTEMPTS", "5")
    monkeypatch.setenv("HYMEMORY_TIMEOUT", "7")
    second = make_memory(attempts=2)
    assert [(m.llm.writer.settings.attempts, m.llm.writer.settings.timeout) for m in (first, second)] == [
        (1, 120),
        (2, 7),
    ]


BY_HAND: dict[str, Callable[[dict[str, Any]], Any]] = {
    "factory": lambda block: LlmFactory.create("hymemory", block),
    "constructor": HyMemoryLLM,
    "constructor_with_config": lambda block: HyMemoryLLM(HyMemoryConfig(**block)),
}


@pytest.mark.parametrize("build", BY_HAND.values(), ids=BY_HAND)
def test_the_llm_may_be_built_by_hand(build: Callable[[dict[str, Any]], Any], endpoint: ScriptedEndpoint) -> None:
    llm = build({"vllm_base_url": endpoint.url, "model": "m", "temperature": 0.5})
    endpoint.play("Hello.")
    assert llm.generate_response([{"role": "user", "content": "Hi"}]) == "Hello."
    assert (endpoint.chats[0].body["model"], endpoint.chats[0].body["temperature"]) == ("m", 0.5)


@pytest.mark.parametrize("by_factory", [True, False], ids=["factory", "constructor"])
def test_a_base_config_is_taken(by_factory: bool, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYMEMORY_BASE_URL", endpoint.url)
    config = BaseLlmConfig(model="m", temperature=0.5, max_tokens=77)
    llm = LlmFactory.create("hymemory", config) if by_factory else HyMemoryLLM(config)
    endpoint.play("Hello.")
    llm.generate_response([{"role": "user", "content": "Hi"}])
    body = endpoint.chats[0].body
    assert (body["model"], body["temperature"], body["max_tokens"]) == ("m", 0.5, 77)
    assert config.model == "m"


@pytest.mark.parametrize("by_factory", [True, False], ids=["factory", "constructor"])
def test_without_a_config_the_defaults_hold(by_factory: bool) -> None:
    llm = LlmFactory.create("hymemory") if by_factory else HyMemoryLLM()
    assert (llm.config.model, llm.writer.settings.base_url) == ("hy-memory", "http://127.0.0.1:8000/v1")


def test_a_vllm_block_keeps_working_when_only_the_provider_changes(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint
) -> None:
    """Every key that Mem0's own vllm provider takes, with a value that it would take."""
    keys = [name for name in inspect.signature(VllmConfig.__init__).parameters if name not in ("self", "kwargs")]
    values = {**EVERY_MEM0_KEY, "vllm_base_url": endpoint.url, "model": "hy-memory", "api_key": "vllm-api-key"}
    block = {key: values[key] for key in keys}
    assert "vllm_base_url" in block
    write(make_memory(llm={"provider": "hymemory", "config": block}), endpoint)
    assert endpoint.chats[0].headers["authorization"] == "Bearer vllm-api-key"


# -- a block left over from another provider -------------------------------------------------------


def test_a_foreign_model_ends_in_an_error_that_names_the_served_one(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint
) -> None:
    memory = make_memory(model="gpt-4o-mini")
    endpoint.play(Fail(404, "The model `gpt-4o-mini` does not exist."))
    with pytest.raises(Exception, match="does not serve 'gpt-4o-mini'") as caught:
        memory.add("I like green tea", user_id=USER)
    ours = caught.value.__cause__ if MAJOR >= 2 else caught.value
    assert isinstance(ours, EndpointError)
    assert "model in the config block" in str(ours)
    assert "it serves 'hy-memory': drop or change the model's name" in str(ours)
    assert len(endpoint.chats) == 1
