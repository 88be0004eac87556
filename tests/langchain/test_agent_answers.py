"""An agent whose last answer is structured: ``create_agent(response_format=...)``, with tools beside it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import BaseModel, Field, field_validator

from hymemory_adapters import MalformedWriteError
from tests.support.scripted import ScriptedEndpoint

agents = pytest.importorskip("langchain.agents")
if not hasattr(agents, "create_agent"):
    pytest.skip("create_agent came with LangChain 1.0", allow_module_level=True)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy  # noqa: E402


class Place(BaseModel):
    """A place."""

    city: str = Field(description="without the country")


class Weather(BaseModel):
    """The weather."""

    place: Place
    degrees: int


@tool
def look_up(city: str) -> str:
    """Look the weather up."""
    return f"{city}: 21 degrees"


ASKED = {"messages": [HumanMessage("How warm is Pune?")]}
VALUE = {"place": {"city": "Pune"}, "degrees": 21}
LOOK_UP = json.dumps({"tool_calls": [{"name": "look_up", "arguments": {"city": "Pune"}}]})


def call(name: str, value: Any) -> str:
    return json.dumps({"tool_calls": [{"name": name, "arguments": value}]})


# The strategy, and what the model calls the answer.
STRATEGIES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "default": (lambda schema: schema, "Weather"),
    "tool": (ToolStrategy, "Weather"),
    "provider": (ProviderStrategy, "answer"),
}
each_strategy = pytest.mark.parametrize(("strategy", "name"), STRATEGIES.values(), ids=STRATEGIES)
BAD = {
    "text": "It is warm.",
    "nothing": json.dumps({"tool_calls": []}),
    "wrong type": "degrees",
    "missing key": "place",
    "cut": "cut",
}


def bad(kind: str, name: str) -> str:
    broken = {"degrees": {**VALUE, "degrees": "warm"}, "place": {"degrees": 21}}
    if BAD[kind] in broken:
        return call(name, broken[BAD[kind]])
    return call(name, VALUE)[:-4] if kind == "cut" else BAD[kind]


@each_strategy
@pytest.mark.parametrize("kind", BAD)
def test_an_answer_that_does_not_fit_is_asked_for_again(
    kind: str, strategy: Callable[[Any], Any], name: str, model: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(LOOK_UP, bad(kind, name), call(name, VALUE))
    agent = agents.create_agent(model, tools=[look_up], response_format=strategy(Weather))
    done = agent.invoke(ASKED)
    assert done["structured_response"] == Weather(**VALUE)
    assert len(endpoint.chats) == 3
    for chat in endpoint.chats:
        assert "tools" not in chat.body
        wire = json.dumps(chat.body["response_format"])
        assert '"degrees"' in wire, "the answer's schema constrains too"
        assert '"look_up"' in wire


@each_strategy
def test_an_answer_that_never_fits_raises(
    strategy: Callable[[Any], Any], name: str, model: Any, endpoint: ScriptedEndpoint
) -> None:
    endpoint.play(call(name, {"degrees": "warm"}))
    with pytest.raises(MalformedWriteError):
        agents.create_agent(model, tools=[look_up], response_format=strategy(Weather)).invoke(ASKED)
    assert len(endpoint.chats) == 3


def test_the_answer_comes_alone(model: Any, endpoint: ScriptedEndpoint) -> None:
    """LangChain would answer, and never look at the other call."""
    both = json.dumps({"tool_calls": [*json.loads(LOOK_UP)["tool_calls"], {"name": "answer", "arguments": VALUE}]})
    endpoint.play(both, LOOK_UP, call("answer", VALUE))
    agent = agents.create_agent(model, tools=[look_up], response_format=ProviderStrategy(Weather))
    messages = agent.invoke(ASKED)["messages"]
    assert [message.type for message in messages] == ["human", "ai", "tool", "ai"]
    assert json.loads(messages[-1].content) == VALUE
    assert not messages[-1].tool_calls


def test_a_tool_of_the_same_name(model: Any, endpoint: ScriptedEndpoint) -> None:
    @tool
    def answer(question: str) -> str:
        """Ask an oracle."""
        return "42"

    endpoint.play(call("answer", {"question": "?"}), call("answer_", VALUE))
    agent = agents.create_agent(model, tools=[answer], response_format=ProviderStrategy(Weather))
    assert agent.invoke(ASKED)["structured_response"] == Weather(**VALUE)


def test_what_must_call_a_tool_does(model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(call("answer", VALUE), LOOK_UP)
    bound = model.bind_tools([look_up], tool_choice="any", response_format=Weather)
    assert [made["name"] for made in bound.invoke("How warm is Pune?").tool_calls] == ["look_up"]
    assert len(endpoint.chats) == 2


def test_an_agent_with_langmems_tool(model: Any, endpoint: ScriptedEndpoint) -> None:
    langmem = pytest.importorskip("langmem")
    from langgraph.store.memory import InMemoryStore

    store = InMemoryStore()
    tools = [langmem.create_manage_memory_tool(("memories",))]
    # LangChain's "strict" makes every argument a required one.
    remembered = call("manage_memory", {"content": "Asks of Pune", "action": "create", "id": None})
    endpoint.play(remembered, call("answer", {"degrees": 21}), call("answer", VALUE))
    agent = agents.create_agent(model, tools=tools, response_format=ProviderStrategy(Weather), store=store)
    assert agent.invoke(ASKED)["structured_response"] == Weather(**VALUE)
    assert [item.value["content"] for item in store.search(("memories",))] == ["Asks of Pune"]
    assert len(endpoint.chats) == 3


class Late(Weather):
    """The weather, of which the schema does not say everything."""

    @field_validator("degrees")
    @classmethod
    def _is_warm(cls, degrees: int) -> int:
        if degrees < 0:
            raise ValueError("too cold")
        return degrees


def test_with_structured_output_beside_tools(model: Any, endpoint: ScriptedEndpoint) -> None:
    asked = model.with_structured_output(Late, tools=[look_up], include_raw=True)
    endpoint.play(call("answer", {**VALUE, "degrees": -1}), call("answer", VALUE))
    assert asked.invoke("How warm?")["parsed"] == Late(**VALUE)
    endpoint.play(LOOK_UP)
    got = asked.invoke("How warm?")
    assert got["parsed"] is None
    assert [made["name"] for made in got["raw"].tool_calls] == ["look_up"]


def test_any_json_object_beside_tools(model: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("words", call("answer", {"any": [1]}))
    bound = model.bind_tools([look_up]).bind(response_format={"type": "json_object"})
    assert json.loads(bound.invoke("Answer in JSON").content) == {"any": [1]}
