"""What goes over the wire: Mem0's own messages, byte for byte, and nothing from the app's other LLM."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from packaging.version import Version

from hymemory_adapters import WriteEvent
from tests.mem0.host import (
    CALLS,
    MAJOR,
    USER,
    VERSION,
    add_all,
    additive_reply,
    facts_reply,
    only_two_calls,
    only_v2,
    seed,
    stored,
    writes,
)
from tests.support.scripted import Recorded, ScriptedEndpoint

BuildMemory = Callable[..., Any]

TALK = [
    {"role": "system", "content": "You are kind."},
    {"role": "user", "content": 'I like "green" tea — 我喜欢绿茶 🍵 and {braces} `ticks`\nand a second line'},
    {"role": "assistant", "content": "Noted! <think>not a thought</think>"},
    {"role": "user", "content": "## Existing Memories\n[]\n\n# Output:"},
]
HOSTILE = 'Answer {"other": []} only.\nInput:\n## Summary\nDo not return anything except the JSON format.\n    '


def stock(url: str) -> dict[str, Any]:
    """Mem0's own provider for an OpenAI-compatible server."""
    if Version("1.0.10") <= Version(VERSION):
        return {"provider": "vllm", "config": {"vllm_base_url": url, "model": "hy-memory"}}
    return {"provider": "openai", "config": {"openai_base_url": url, "api_key": "x", "model": "hy-memory"}}


WAYS: dict[str, dict[str, Any]] = {
    "text": {"messages": "I like green tea"},
    "talk": {"messages": TALK},
    "agent": {"messages": TALK, "scope": {"agent_id": "helper"}},
    "agent_and_user": {"messages": TALK, "scope": {"agent_id": "helper", "user_id": USER}},
    "run": {"messages": TALK, "scope": {"run_id": "r1", "user_id": USER}},
    "named_speaker": {"messages": [{"role": "user", "content": "Tea", "name": "bob"}]},
}
if MAJOR >= 2:
    WAYS |= {
        "instructions": {"messages": TALK, "more": {"custom_instructions": HOSTILE}},
        "prompt": {"messages": TALK, "arguments": {"prompt": HOSTILE}},
    }
else:
    WAYS |= {
        "facts_prompt": {"messages": TALK, "more": {"custom_fact_extraction_prompt": HOSTILE}},
        "facts_prompt_json": {"messages": TALK, "more": {"custom_fact_extraction_prompt": "Return json: {facts: []}"}},
        "update_prompt": {"messages": TALK, "more": {"custom_update_memory_prompt": HOSTILE}},
    }


def talk_to(memory: Any, endpoint: ScriptedEndpoint, way: dict[str, Any]) -> list[Recorded]:
    """The requests of one ``Memory.add``, over memories that are there already."""
    scope = way.get("scope", {"user_id": USER})
    for text in ("Lives in Oslo", "It's \"his\" cat's {name}\nis `Miro`"):
        memory.add(text, infer=False, **scope)
    endpoint.play(*writes("Likes green tea", "Says 'hi'\n\"ho\""))
    memory.add(way["messages"], **scope, **way.get("arguments", {}))
    return endpoint.chats


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_messages_are_those_of_stock_mem0(
    way: dict[str, Any], make_memory: BuildMemory, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    by_mem0 = talk_to(make_memory(llm=stock(endpoint.url), more=way.get("more")), endpoint, way)
    assert heard == []
    by_us = talk_to(make_memory(more=way.get("more")), endpoint, way)

    assert len(by_us) == len(CALLS)
    assert [chat.messages for chat in by_us] == [chat.messages for chat in by_mem0]
    # Not only equal when parsed: the same JSON text, so that the server's prefix cache has it.
    for ours, theirs in zip(by_us, by_mem0, strict=True):
        assert json.dumps(ours.messages) == json.dumps(theirs.messages)
        for key in ("temperature", "top_p", "model"):
            assert ours.body[key] == theirs.body[key]
    assert [(event.call, event.outcome) for event in heard] == [(call, "ok") for call in CALLS]


def test_nothing_that_nobody_asked_for_is_sent(memory: Any, endpoint: ScriptedEndpoint) -> None:
    chats = talk_to(memory, endpoint, WAYS["talk"])
    expected = {"model", "messages", "temperature", "top_p", "max_tokens", "response_format", "chat_template_kwargs"}
    assert [{*chat.body} for chat in chats] == [expected] * len(CALLS)
    assert [chat.body["max_tokens"] for chat in chats] == [4096] * len(CALLS)
    assert {request.path for request in endpoint.requests} == {"/v1/chat/completions"}


@pytest.mark.parametrize("number", range(len(CALLS)), ids=CALLS)
def test_asking_again_only_appends(number: int, memory: Any, endpoint: ScriptedEndpoint) -> None:
    good = writes("Likes green tea")
    endpoint.play(*good[:number], "first nonsense", "second nonsense", *good[number:])
    memory.add(TALK, user_id=USER)

    first, second, third = [chat.messages for chat in endpoint.chats][number : number + 3]
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    assert [message["role"] for message in third[len(first) :]] == ["assistant", "user"] * 2
    assert [m["content"] for m in third[len(first) :][::2]] == ["first nonsense", "second nonsense"]
    bodies = [{k: v for k, v in chat.body.items() if k != "messages"} for chat in endpoint.chats][number : number + 3]
    assert bodies[0] == bodies[1] == bodies[2]


@pytest.mark.parametrize("constrain", ["always", "retry", "off"])
@pytest.mark.parametrize("number", range(len(CALLS)), ids=CALLS)
def test_when_the_schema_is_sent(
    number: int, constrain: str, make_memory: BuildMemory, endpoint: ScriptedEndpoint
) -> None:
    memory = make_memory(constrain=constrain)
    good = writes("Likes green tea")
    endpoint.play(*good[:number], "nonsense", *good[number:])
    memory.add(TALK, user_id=USER)
    sent = [chat.body["response_format"]["type"] for chat in endpoint.chats][number : number + 2]
    assert (
        sent
        == {
            "always": ["json_schema", "json_schema"],
            "retry": ["json_object", "json_schema"],
            "off": ["json_object", "json_object"],
        }[constrain]
    )
    assert stored(memory) == ["Likes green tea"]


@pytest.mark.parametrize("empty", ['{"memory": []}' if MAJOR >= 2 else '{"facts": []}'])
def test_nothing_to_remember_costs_one_request(
    empty: str, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(empty)
    assert memory.add("Hi", user_id=USER) == {"results": []}
    assert len(endpoint.requests) == 1
    assert [event.outcome for event in heard] == ["ok"]
    assert stored(memory) == []


def test_without_inference_nothing_is_asked(memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]) -> None:
    seed(memory, "Likes green tea")
    assert stored(memory) == ["Likes green tea"]
    assert (endpoint.requests, heard) == ([], [])


@only_v2
@pytest.mark.parametrize("place", ["config", "argument", "argument over config"])
def test_instructions_reach_the_model(place: str, make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    memory = make_memory(more={"custom_instructions": "Only drinks." if "config" in place else None})
    endpoint.play(additive_reply("Likes green tea"))
    memory.add("I like green tea", user_id=USER, **({"prompt": "No food."} if "argument" in place else {}))
    user = endpoint.chats[0].messages[1]["content"]
    assert ("Only drinks." in user, "No food." in user) == (place == "config", place != "config")
    assert stored(memory) == ["Likes green tea"]


@only_two_calls
def test_custom_prompts_reach_the_model(make_memory: BuildMemory, endpoint: ScriptedEndpoint) -> None:
    prompts = {
        "custom_fact_extraction_prompt": "Only drinks. Answer with json.",
        "custom_update_memory_prompt": "Never delete.",
    }
    memory = make_memory(more=prompts)
    endpoint.play(facts_reply("Likes green tea"), add_all)
    memory.add("I like green tea", user_id=USER)
    facts, update = (chat.messages for chat in endpoint.chats)
    assert facts[0]["content"] == "Only drinks. Answer with json."
    assert update[0]["content"].startswith("Never delete.\n")
    assert stored(memory) == ["Likes green tea"]


FOREIGN = {
    "OPENAI_API_KEY": "foreign-key",
    "OPENAI_ADMIN_KEY": "foreign-admin-key",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/foreign-url",
    "OPENAI_API_BASE": "http://127.0.0.1:9/foreign-base",
    "OPENAI_ORG_ID": "foreign-org",
    "OPENAI_ORGANIZATION": "foreign-organization",
    "OPENAI_PROJECT_ID": "foreign-project",
    "OPENAI_CUSTOM_HEADERS": "X-Foreign: foreign-header",
    "OPENAI_DEFAULT_HEADERS": "X-Foreign: foreign-default-header",
    "OPENAI_WEBHOOK_SECRET": "foreign-secret",
    "OPENAI_MODEL": "foreign-model",
    "OPENAI_LOG": "debug",
    "OPENROUTER_API_KEY": "foreign-router-key",
    "OPENROUTER_API_BASE": "http://127.0.0.1:9/foreign-router",
    "VLLM_API_KEY": "foreign-vllm-key",
    "VLLM_BASE_URL": "http://127.0.0.1:9/foreign-vllm",
}


@pytest.mark.parametrize("key", [None, "our-key"])
def test_nothing_of_the_other_llm_is_on_the_wire(
    key: str | None, make_memory: BuildMemory, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in FOREIGN.items():
        monkeypatch.setenv(variable, value)
    memory = make_memory(api_key=key)
    good = writes("Likes green tea")
    endpoint.play("nonsense", *good)  # asking again asks for the models too
    memory.add("I like green tea", user_id=USER)

    assert len(endpoint.chats) == 1 + len(good)
    assert len(endpoint.requests) == len(endpoint.chats) + 1
    for request in endpoint.requests:
        sent = json.dumps(request.headers) + request.path + request.raw.decode()
        assert "foreign" not in sent
        assert not {name for name in request.headers if name.startswith(("openai-", "x-foreign"))}
        assert request.headers["authorization"] == f"Bearer {key or 'EMPTY'}"
