"""HYMEMORY_ENABLE=mem0: the writer in an app that names another provider, whose LLM is asked for no write."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from mem0.utils.factory import LlmFactory

from hymemory_adapters import ConfigurationError, EndpointError, MalformedWriteError
from tests.mem0.graph import STORE, Model, entities, relations, tool_of, triples
from tests.mem0.host import MAJOR, USER, async_memory, facts_reply, mem0, seed, stored, writes
from tests.support.scripted import Say, ScriptedEndpoint

BuildMemory = Callable[..., Any]
SAID = "I like green tea"
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/cat.png"}}


@pytest.fixture
def app() -> Iterator[ScriptedEndpoint]:
    """The endpoint of the app's own LLM."""
    with ScriptedEndpoint("A cat on a mat.", models=["gpt-4o-mini"]) as scripted:
        yield scripted


@pytest.fixture
def taken_over(endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYMEMORY_ENABLE", "mem0")
    monkeypatch.setenv("HYMEMORY_BASE_URL", endpoint.url)


def openai_of(app: ScriptedEndpoint, **block: Any) -> dict[str, Any]:
    """An app's block of Mem0's openai provider."""
    return {
        "provider": "openai",
        "config": {"model": "gpt-4o-mini", "api_key": "sk-app", "openai_base_url": app.url, **block},
    }


def foreign_blocks(app: ScriptedEndpoint) -> dict[str, dict[str, Any]]:
    """Blocks of other providers; some of their packages are not even installed."""
    return {
        "openai": openai_of(app, store=True, models=["gpt-4o"], route="fallback"),
        "vllm": {"provider": "vllm", "config": {"model": "qwen", "vllm_base_url": app.url, "api_key": "sk-app"}},
        "ollama": {"provider": "ollama", "config": {"model": "llama3.1", "ollama_base_url": app.url}},
        "anthropic": {"provider": "anthropic", "config": {"model": "claude", "api_key": "sk-app"}},
        "azure_openai": {"provider": "azure_openai", "config": {"model": "gpt", "azure_kwargs": {"api_key": "sk-app"}}},
        "langchain": {"provider": "langchain", "config": {"model": "not even a model"}},
        "no_block": {"provider": "openai"},
    }


PROVIDERS = ("openai", "vllm", "ollama", "anthropic", "azure_openai", "langchain", "no_block")


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_whatever_the_config_names_the_writer_writes(
    provider: str, make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint
) -> None:
    memory = make_memory(llm=foreign_blocks(app)[provider])
    endpoint.play(*writes("Likes green tea"))
    memory.add(SAID, user_id=USER)
    assert stored(memory) == ["Likes green tea"]
    assert app.requests == []
    for chat in endpoint.chats:
        assert chat.body["model"] == "hy-memory"
        assert chat.body["response_format"]["type"] == "json_schema"
        assert chat.headers["authorization"] == "Bearer EMPTY"
        assert "sk-app" not in chat.raw.decode()


@pytest.mark.usefixtures("taken_over")
def test_without_an_llm_in_the_config_too(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    """Then Mem0 would write with OpenAI."""
    from tests.mem0 import host

    memory = mem0.Memory.from_config(host.config(None))
    endpoint.play(*writes("Likes green tea"))
    memory.add(SAID, user_id=USER)
    assert stored(memory) == ["Likes green tea"]
    host.drop(memory)


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize(
    ("block", "sent"),
    [
        ({"temperature": 0.7, "top_p": 0.9, "max_tokens": 9000}, (0.7, 0.9, 9000)),
        ({"temperature": "0.7", "top_p": "0.9", "max_tokens": "9000"}, (0.7, 0.9, 9000)),
        ({"max_tokens": "3000"}, (0.1, 0.1, 4096)),
        ({"max_tokens": -1}, (0.1, 0.1, 4096)),  # no limit, for Ollama and LM Studio
    ],
    ids=["numbers", "strings", "less", "no_limit"],
)
def test_sampling_and_budget_are_the_apps(
    block: dict[str, Any], sent: Any, make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint
) -> None:
    memory = make_memory(llm=openai_of(app, **block))
    endpoint.play(*writes("Likes green tea"))
    memory.add(SAID, user_id=USER)
    body = endpoint.chats[0].body
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == sent


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"max_tokens": "many"}, "max_tokens in the app's llm config block is 'many'; it must be a whole number"),
        ({"temperature": "hot"}, "temperature in the app's llm config block is 'hot'; it must be a number"),
        ({"top_p": -1}, "top_p in the app's llm config block is -1; it must be a number from 0 to 1"),
    ],
    ids=["max_tokens", "temperature", "top_p"],
)
def test_what_is_no_number_is_refused_when_the_llm_is_built(
    block: dict[str, Any], message: str, make_memory: BuildMemory, app: ScriptedEndpoint
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        make_memory(llm=openai_of(app, **block))


@pytest.mark.usefixtures("taken_over")
def test_the_environment_says_who_writes(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYMEMORY_MODEL", "my-model")
    monkeypatch.setenv("HYMEMORY_API_KEY", "my-key")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-env")
    memory = make_memory(llm=openai_of(app))
    endpoint.play(*writes("Likes green tea"))
    memory.add(SAID, user_id=USER)
    assert endpoint.chats[0].body["model"] == "my-model"
    assert endpoint.chats[0].headers["authorization"] == "Bearer my-key"


@pytest.mark.usefixtures("taken_over")
def test_when_the_writer_is_down_the_app_hears_of_it_and_its_llm_does_not(
    make_memory: BuildMemory, app: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYMEMORY_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("HYMEMORY_RETRY_SECONDS", "0")
    memory = make_memory(llm=openai_of(app))
    with pytest.raises(Exception, match=r"nothing answers at http://127\.0\.0\.1:9/v1") as caught:
        memory.add(SAID, user_id=USER)
    assert isinstance(caught.value if MAJOR < 2 else caught.value.__cause__, EndpointError)
    assert app.requests == []


@pytest.mark.usefixtures("taken_over")
def test_async_memory(endpoint: ScriptedEndpoint, app: ScriptedEndpoint) -> None:
    async def run() -> Any:
        memory = await async_memory(openai_of(app))
        return await memory.add(SAID, user_id=USER)

    endpoint.play(*writes("Likes green tea"))
    assert [row["memory"] for row in asyncio.run(run())["results"]] == ["Likes green tea"]
    assert app.requests == []


@pytest.mark.usefixtures("taken_over")
def test_an_unknown_provider_is_still_refused(make_memory: BuildMemory) -> None:
    with pytest.raises(ValueError, match=r"(?i)unsupported llm provider"):
        make_memory(llm={"provider": "opanai", "config": {}})
    with pytest.raises(ValueError, match=r"(?i)unsupported llm provider"):
        LlmFactory.create("opanai", {})


@pytest.mark.usefixtures("taken_over")
def test_our_own_block_is_no_leftover(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    """An app that names us and sets ENABLE besides: its block counts."""
    endpoint.models = ["my-model"]
    memory = make_memory(model="my-model")
    endpoint.play(*writes("Likes green tea"))
    memory.add(SAID, user_id=USER)
    assert endpoint.chats[0].body["model"] == "my-model"


def test_without_enable_the_app_keeps_its_llm(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint
) -> None:
    memory = make_memory(llm=openai_of(app))
    app.play(*writes("Likes green tea"))
    memory.add(SAID, user_id=USER)
    assert stored(memory) == ["Likes green tea"]
    assert endpoint.requests == []
    assert app.chats[0].body["model"] == "gpt-4o-mini"


def test_the_environment_is_read_when_an_llm_is_built(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Apps load their .env file after the imports."""
    before = make_memory(llm=openai_of(app))
    monkeypatch.setenv("HYMEMORY_ENABLE", "mem0")
    after = make_memory(llm=openai_of(app))
    assert [type(memory.llm).__name__ for memory in (before, after)] == ["OpenAILLM", "HyMemoryLLM"]


@pytest.mark.parametrize("provider", ["openai", "hymemory", "MemoryClient", "AsyncMemoryClient"])
@pytest.mark.parametrize("name", ["mem1", "langchain", "llamaindex"])
def test_what_cannot_be_taken_over_is_an_error_for_every_provider(
    name: str, provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYMEMORY_ENABLE", name)
    client = getattr(mem0, provider, None)
    with pytest.raises(ConfigurationError, match=f"HYMEMORY_ENABLE names '{name}', and only mem0 can be taken over"):
        client(api_key="m0-x") if client else LlmFactory.create(provider, {})


# -- what stays with the app's own LLM -----------------------------------------------------------------


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize("content", [IMAGE, [{"type": "text", "text": "My cat"}, IMAGE]], ids=["part", "list"])
def test_images_are_described_by_the_apps_own_llm(
    content: Any, make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint
) -> None:
    memory = make_memory(llm=openai_of(app, enable_vision=True))
    endpoint.play(*writes("Has a cat"))
    memory.add([{"role": "user", "content": content}], user_id=USER)
    assert stored(memory) == ["Has a cat"]
    (described,) = app.chats
    assert described.body["model"] == "gpt-4o-mini"
    assert described.headers["authorization"] == "Bearer sk-app"
    assert IMAGE["image_url"]["url"] in described.raw.decode()
    assert "A cat on a mat." in endpoint.chats[0].messages[-1]["content"]
    assert "image_url" not in endpoint.chats[0].raw.decode()


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize("nothing", [None, "", " \n"], ids=["null", "empty", "blank"])
def test_an_image_that_is_described_with_nothing_is_told(
    nothing: str | None, make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint
) -> None:
    """Mem0 would go on without the message."""
    memory = make_memory(llm=openai_of(app, enable_vision=True))
    app.play(Say(nothing))
    endpoint.play(*writes("Has nothing"))
    with pytest.raises(MalformedWriteError, match=r"'openai'.* to describe an image, and answered nothing.*a vision"):
        memory.add([{"role": "user", "content": [{"type": "text", "text": "My cat"}, IMAGE]}], user_id=USER)
    assert endpoint.requests == []
    assert stored(memory) == []


@pytest.mark.usefixtures("taken_over")
def test_images_in_a_procedural_memory_go_to_nobody(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint
) -> None:
    memory = make_memory(llm=openai_of(app, enable_vision=True))
    with pytest.raises(ConfigurationError, match="have a vision model describe it, and put the description"):
        memory.add([{"role": "user", "content": [IMAGE]}], agent_id="a", memory_type="procedural_memory")
    assert [*app.requests, *endpoint.requests] == []


@pytest.mark.usefixtures("taken_over")
@pytest.mark.skipif(MAJOR < 1, reason="Mem0 0.1 has no reranker")
def test_the_reranker_keeps_its_llm(
    make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", app.url)
    reranker = {"provider": "llm_reranker", "config": {"provider": "openai", "model": "gpt-4o-mini", "api_key": "sk-r"}}
    memory = make_memory(llm=openai_of(app), more={"reranker": reranker})
    seed(memory, "Likes tea", "Has a cat")
    app.play("0.5")
    scope = {"filters": {"user_id": USER}} if MAJOR >= 2 else {"user_id": USER}
    found = memory.search("a cat that likes tea has", rerank=True, **scope)["results"]
    assert [row["rerank_score"] for row in found] == [0.5, 0.5]
    assert [chat.headers["authorization"] for chat in app.chats] == ["Bearer sk-r"] * 2
    assert endpoint.requests == []


@pytest.mark.usefixtures("taken_over")
@pytest.mark.skipif(MAJOR >= 2, reason="Mem0 2.x has no graph memory")
@pytest.mark.parametrize(
    ("provider", "tool"),
    [("openai", "establish_relationships"), ("openai_structured", "establish_relations")],
)
def test_the_graph_is_taken_over_too(
    provider: str, tool: str, make_memory: BuildMemory, endpoint: ScriptedEndpoint, app: ScriptedEndpoint
) -> None:
    memory = make_memory(llm={**openai_of(app), "provider": provider}, more=STORE)
    model = Model(
        facts=[facts_reply("Lives in Oslo")],
        graph_entities=[entities(alice="person", Oslo="city")],
        graph_relations=[relations("alice -- lives_in -- Oslo", tool=tool)],
    )
    endpoint.play(model)
    memory.add("I live in Oslo", user_id=USER)
    assert triples(memory, USER) == ["alice -- lives_in -- oslo"]
    tools = {tool_of(c.body) for c in endpoint.chats if "tool_calls" in json.dumps(c.body["response_format"])}
    assert tools == {"extract_entities", tool, "delete_graph_memory"}
    assert app.requests == []


# -- the rest ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize("client", ["MemoryClient", "AsyncMemoryClient"])
def test_the_hosted_platform_cannot_be_taken_over(client: str) -> None:
    with pytest.raises(RuntimeError, match=f"{client} is Mem0's hosted platform.*take mem0 out of HYMEMORY_ENABLE"):
        getattr(mem0, client)(api_key="m0-x")


@pytest.mark.usefixtures("taken_over")
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda llm: pickle.loads(pickle.dumps(llm))], ids=["copy", "pickle"])
def test_a_copy_writes_and_sees(copied: Any, endpoint: ScriptedEndpoint, app: ScriptedEndpoint) -> None:
    llm = LlmFactory.create("openai", openai_of(app)["config"])
    picture = [{"role": "user", "content": [IMAGE]}]
    llm.generate_response(messages=picture)
    twin = copied(llm)
    endpoint.play("Hello.")
    assert twin.generate_response(messages=[{"role": "user", "content": "Hi"}]) == "Hello."
    assert twin.generate_response(messages=picture) == "A cat on a mat."
    assert len(app.chats) == 2
