"""``HyMemory`` as LlamaIndex's LLM: chat, streams, structured output, tools, agents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel, Field, field_validator

from hymemory_adapters import ConfigurationError, EndpointError, MalformedWriteError, WriteEvent
from tests.support import cases
from tests.support.scripted import Fail, Say, ScriptedEndpoint

HI = [ChatMessage(role="user", content="Hi")]
ASK = PromptTemplate("Who is {name}?")


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int = Field(default=0, description="in years")
    tags: list[str] = []

    @field_validator("name")
    @classmethod
    def _is_capital(cls, name: str) -> str:
        if not name[:1].isupper():
            raise ValueError("starts with a capital")
        return name


GOOD = {"name": "Ana {x} `json` <b>", "age": 41, "tags": ["a"]}
ANA = Person(**GOOD)


def test_it_is_an_llm_of_llamaindex(llm: Any) -> None:
    assert {BaseLLM, OpenAILike} <= {*type(llm).__mro__}
    assert type(llm).class_name() == "HyMemory"
    assert llm.metadata.is_chat_model
    assert llm.metadata.model_name == "hy-memory"


# -- chat ------------------------------------------------------------------------------------------

CHATS: dict[str, Callable[[Any], Any]] = {
    "chat": lambda llm: llm.chat(HI).message.content,
    "achat": lambda llm: asyncio.run(llm.achat(HI)).message.content,
    "complete": lambda llm: llm.complete("Hi").text,
    "acomplete": lambda llm: asyncio.run(llm.acomplete("Hi")).text,
    "predict": lambda llm: llm.predict(PromptTemplate("Hi")),
}


@pytest.mark.parametrize("ask", CHATS.values(), ids=CHATS.keys())
def test_plain_chat_passes_through(
    ask: Callable[[Any], Any], make_llm: Callable[..., Any], endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play("<facts>Hello.</facts>", "one too many")
    assert ask(make_llm(api_key="k-1", temperature=0.4, max_tokens=50)) == "<facts>Hello.</facts>"
    (chat,) = endpoint.chats
    assert chat.body == {
        "messages": [{"role": "user", "content": "Hi"}],
        **{"model": "hy-memory", "temperature": 0.4, "max_tokens": 50},
        "chat_template_kwargs": {"reasoning_effort": "no_think"},
        **({"stream": False} if "stream" in chat.body else {}),
    }
    assert chat.headers["authorization"] == "Bearer k-1"
    assert heard == []


BUDGETS: dict[str, Callable[[Any, str], Any]] = {
    "constructor": lambda make, given: make(additional_kwargs={"max_tokens": given}).complete("Hi"),
    "call": lambda make, given: make().complete("Hi", max_tokens=given),
    "acall": lambda make, given: asyncio.run(make().acomplete("Hi", max_tokens=given)),
}


@pytest.mark.parametrize("ask", BUDGETS.values(), ids=BUDGETS)
def test_a_budget_may_be_a_string(
    ask: Callable[[Any, str], Any], make_llm: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    """As it is when it comes from the environment or a YAML file."""
    endpoint.play("Hello.")
    ask(make_llm, "50")
    assert endpoint.chats[0].body["max_tokens"] == 50
    with pytest.raises(ConfigurationError, match="max_tokens in the request is 'many'; it must be a whole number"):
        ask(make_llm, "many")


async def _collected(stream: Any) -> list[Any]:
    return [chunk async for chunk in await stream]


STREAMS: dict[str, Callable[[Any], list[Any]]] = {
    "stream_chat": lambda llm: list(llm.stream_chat(HI)),
    "astream_chat": lambda llm: asyncio.run(_collected(llm.astream_chat(HI))),
    "stream_complete": lambda llm: list(llm.stream_complete("Hi")),
    "astream_complete": lambda llm: asyncio.run(_collected(llm.astream_complete("Hi"))),
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())
def test_plain_chat_streams(stream: Callable[[Any], list[Any]], llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("Hello there, you.")
    chunks = stream(llm)
    assert [chunk.delta for chunk in chunks if chunk.delta] == ["Hello ", "there, ", "you."]
    last = chunks[-1]
    assert (last.message.content if hasattr(last, "message") else last.text) == "Hello there, you."
    assert endpoint.chats[0].body["stream"] is True
    assert endpoint.chats[0].body["chat_template_kwargs"] == {"reasoning_effort": "no_think"}


@pytest.mark.parametrize("ask", [*CHATS.values(), *STREAMS.values()], ids=[*CHATS, *STREAMS])
def test_a_failure_costs_one_request(ask: Callable[[Any], Any], llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Fail(500))
    with pytest.raises(EndpointError):
        ask(llm)
    assert len(endpoint.requests) == 1


def test_an_answer_brings_the_servers_own(llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("Hello.")
    answer = llm.chat(HI)
    assert answer.raw.id == "chatcmpl-1"
    assert answer.additional_kwargs == {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}


@pytest.mark.parametrize(
    ("own", "of_the_call", "sent"),
    [
        ({}, {"top_k": 5}, {"top_k": 5}),
        ({"top_k": 5}, {}, {"top_k": 5}),
        ({"top_k": 5, "min_p": 0.1}, {"top_k": 6}, {"top_k": 6, "min_p": 0.1}),
        ({"chat_template_kwargs": {"a": 1, "reasoning_effort": "high"}}, {}, {}),
    ],
)
def test_extra_body_is_merged(
    own: dict[str, Any],
    of_the_call: dict[str, Any],
    sent: dict[str, Any],
    make_llm: Callable[..., Any],
    endpoint: ScriptedEndpoint,
) -> None:
    endpoint.play("Hello.")
    llm = make_llm(additional_kwargs={"extra_body": own} if own else {})
    llm.chat(HI, **({"extra_body": of_the_call} if of_the_call else {}))
    body = endpoint.chats[0].body
    assert {key: value for key, value in body.items() if key in ("top_k", "min_p")} == sent
    assert body["chat_template_kwargs"]["reasoning_effort"] == "no_think"


def test_a_call_may_name_another_model(llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("Hello.")
    llm.chat(HI, model="other", timeout=7)
    assert endpoint.chats[0].body["model"] == "other"
    with pytest.raises(ConfigurationError, match="timeout in the request is -1"):
        llm.chat(HI, timeout=-1)
    assert "timeout" not in endpoint.chats[0].body


def test_what_only_llamaindex_knows_stays_off_the_wire(llm: Any, endpoint: ScriptedEndpoint) -> None:
    """Memory marks each message with its session, and keeps openai's objects of tool calls in them."""
    from openai.types.chat import ChatCompletionMessageToolCall

    function = {"name": "weather", "arguments": "{}"}
    made = ChatCompletionMessageToolCall.model_validate({"id": "c1", "type": "function", "function": function})
    mark = {"session_id": "s-1"}
    said = [
        ChatMessage(role="user", content="Rain?", additional_kwargs=dict(mark)),
        ChatMessage(role="assistant", content="", additional_kwargs={**mark, "tool_calls": [made]}),
        ChatMessage(role="tool", content="Yes", additional_kwargs={**mark, "tool_call_id": "c1"}),
    ]
    endpoint.play("Yes.")
    llm.chat(said)
    llm.chat(said, tools=[TOOL.metadata.to_openai_tool()], tool_choice="none")
    for chat in endpoint.chats:
        assert "session_id" not in chat.raw.decode()
        assert chat.messages[1]["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]
        assert not {"tools", "tool_choice"} & {*chat.body}


def test_a_recognised_call_drops_what_would_cut_it(make_llm: Callable[..., Any], endpoint: ScriptedEndpoint) -> None:
    llm = make_llm(additional_kwargs={"stop": ["}"], "n": 2, "top_p": 0.9})
    endpoint.play(json.dumps(GOOD))
    assert llm.structured_predict(Person, ASK, name="Ana") == ANA
    llm.chat(HI)
    structured, plain = (chat.body for chat in endpoint.chats)
    assert structured["top_p"] == plain["top_p"] == 0.9
    assert not {"stop", "n"} & {*structured}
    assert (plain["stop"], plain["n"]) == (["}"], 2)


def test_complete_never_leaves_the_chat_endpoint(llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("Hello.")
    assert llm.complete("Hi", use_chat_completions=False).text == "Hello."
    assert [request.path for request in endpoint.requests] == ["/v1/chat/completions"]


def test_llamaindex_hears_of_each_request(make_llm: Callable[..., Any], endpoint: ScriptedEndpoint) -> None:
    from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler

    handler = LlamaDebugHandler(print_trace_on_end=False)
    endpoint.play("Hello.")
    make_llm(callback_manager=CallbackManager([handler])).chat(HI)
    assert len(handler.get_llm_inputs_outputs()) == 1


# -- structured output -----------------------------------------------------------------------------


def _last(stream: Any) -> Any:
    return list(stream)[-1]


STRUCTURED: dict[str, Callable[[Any], Any]] = {
    "structured_predict": lambda llm: llm.structured_predict(Person, ASK, name="Ana"),
    "astructured_predict": lambda llm: asyncio.run(llm.astructured_predict(Person, ASK, name="Ana")),
    "stream_structured_predict": lambda llm: _last(llm.stream_structured_predict(Person, ASK, name="Ana")),
    "astream_structured_predict": lambda llm: asyncio.run(
        _collected(llm.astream_structured_predict(Person, ASK, name="Ana"))
    )[-1],
    "structured_chat": lambda llm: llm.as_structured_llm(Person).chat(HI).raw,
    "structured_achat": lambda llm: asyncio.run(llm.as_structured_llm(Person).achat(HI)).raw,
    "structured_complete": lambda llm: llm.as_structured_llm(Person).complete("Hi").raw,
}


@pytest.mark.parametrize("ask", STRUCTURED.values(), ids=STRUCTURED.keys())
@pytest.mark.parametrize("bad", ['{"age": 3}', '{"name": "ana"}', "Ana, 41", "", '{"name": "An'])
def test_invalid_output_is_asked_for_again(
    bad: str, ask: Callable[[Any], Any], llm: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    endpoint.play(bad, json.dumps(GOOD), "one too many")
    assert ask(llm) == ANA
    assert len(endpoint.chats) == 2
    assert heard == []  # no memory is written


@pytest.mark.parametrize("ask", STRUCTURED.values(), ids=STRUCTURED.keys())
def test_output_that_stays_invalid_raises(ask: Callable[[Any], Any], llm: Any, endpoint: ScriptedEndpoint) -> None:
    """Never a model of defaults."""
    endpoint.play("{}")
    with pytest.raises(MalformedWriteError, match="llamaindex"):
        ask(llm)
    assert len(endpoint.chats) == 3


@pytest.mark.parametrize(
    "reply",
    [pytest.param(reply, id=reply.name) for reply in cases.malformed(GOOD) if reply.name != "unknown_key"],
)  # the class allows unknown keys
def test_every_malformed_kind_is_asked_for_again(reply: Any, llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(reply.say(), json.dumps(GOOD))
    assert llm.structured_predict(Person, ASK, name="Ana") == ANA
    assert len(endpoint.chats) == 2


def test_the_schema_goes_into_the_request(llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(json.dumps(GOOD))
    llm.structured_predict(Person, ASK, name="Ana")
    (chat,) = endpoint.chats
    wanted = chat.body["response_format"]["json_schema"]
    assert wanted["name"] == "Person"
    assert list(wanted["schema"]["properties"]) == ["name", "age", "tags"]
    assert "in years" in chat.messages[0]["content"]  # the server shows the model no schema
    assert chat.messages[-1] == {"role": "user", "content": "Who is Ana?"}


@pytest.mark.parametrize(
    "wanted",
    [
        Person,
        {"type": "json_schema", "json_schema": {"name": "p", "schema": Person.model_json_schema()}},
        {"type": "json_object"},
    ],
    ids=["class", "schema", "object"],
)
def test_a_response_format_holds(wanted: Any, llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play("no JSON", json.dumps(GOOD))
    assert json.loads(llm.chat(HI, response_format=wanted).message.content) == GOOD
    assert len(endpoint.chats) == 2


# -- tools -----------------------------------------------------------------------------------------


def weather(place: str, days: int = 1) -> str:
    """Say what the weather is."""
    return f"Rain in {place} for {days}"


TOOL = FunctionTool.from_defaults(weather)


def call(name: str = "weather", **arguments: Any) -> str:
    return json.dumps({"content": "", "tool_calls": [{"name": name, "arguments": arguments}]})


WITH_TOOLS: dict[str, Callable[[Any], Any]] = {
    "chat": lambda llm: llm.chat_with_tools([TOOL], user_msg="Rain?"),
    "achat": lambda llm: asyncio.run(llm.achat_with_tools([TOOL], user_msg="Rain?")),
    "stream": lambda llm: _last(llm.stream_chat_with_tools([TOOL], user_msg="Rain?")),
    "astream": lambda llm: asyncio.run(_collected(llm.astream_chat_with_tools([TOOL], user_msg="Rain?")))[-1],
}


@pytest.mark.parametrize("ask", WITH_TOOLS.values(), ids=WITH_TOOLS.keys())
@pytest.mark.parametrize("bad", ['{"tool_calls": [{"name": "wheather", "arguments": {}}]}', call(days=2), "It rains."])
def test_tools_work_on_a_server_that_has_none(
    bad: str, ask: Callable[[Any], Any], llm: Any, endpoint: ScriptedEndpoint
) -> None:
    place = 'Os"lo {x} \\ `json`'
    endpoint.play(bad, call(place=place))
    (chosen,) = llm.get_tool_calls_from_response(ask(llm))
    assert (chosen.tool_name, chosen.tool_kwargs) == ("weather", {"place": place})
    assert len(endpoint.chats) == 2


def test_an_agent_calls_a_tool_and_answers(llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(call(place="Oslo", days=2), json.dumps({"content": "It rains.", "tool_calls": []}))

    async def run() -> str:
        agent = FunctionAgent(tools=[weather], llm=llm)
        return str(await agent.run("Rain?", memory=Memory.from_defaults(session_id="a")))

    assert asyncio.run(run()) == "It rains."
    assert "Rain in Oslo for 2" in endpoint.chats[1].messages[-1]["content"]


def test_a_text_that_no_tool_was_asked_for_is_an_answer(llm: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(Say(json.dumps({"content": "Hello.", "tool_calls": []})))
    answer = llm.chat_with_tools([TOOL], user_msg="Hi")
    assert answer.message.content == "Hello."
    assert llm.get_tool_calls_from_response(answer, error_on_no_tool_call=False) == []
