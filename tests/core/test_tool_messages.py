"""What the model is told of a host's tools and earlier tool turns, and what of them reaches the wire: nothing."""

from __future__ import annotations

import copy
import json
from datetime import date
from typing import Any

import pytest

from hymemory_adapters import MalformedWriteError
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.tool_messages import flattened, noted, told
from hymemory_adapters.core.tools import Answer, ToolCall, Tools, tool_contract
from hymemory_adapters.core.write_call import Contract, WriteCall
from hymemory_adapters.core.writer import Writer
from hymemory_adapters.settings import WriterSettings
from tests.support.calls import Write, both_ways
from tests.support.scripted import Fail, Say, ScriptedEndpoint
from tests.support.tools import FORGET, PING, REMEMBER, SAID, TEA, asking, reply, tools_of

DAY = date(2026, 11, 30)


def test_the_tools_are_told_behind_the_hosts_own_system_prompt() -> None:
    system, user = told(SAID, tools_of(REMEMBER, FORGET))
    assert user == SAID[1]
    assert system["content"].startswith(SAID[0]["content"])
    for function in (REMEMBER, FORGET):
        assert f"- {function['name']}: {function['description'] or ''}\n" in system["content"]
        assert json.dumps(function["parameters"]) in system["content"]


WHOLE = """# Tools

- remember: Keep a fact.
  JSON Schema of its arguments: {"type": "object"}
- forget: \u5fd8\u8bb0
  JSON Schema of its arguments: {"properties": {"day": {"title": "\u65e5", "default": "2026-11-30"}}}
- ping: \n  JSON Schema of its arguments: {}

Answer with one JSON object and nothing else: """
ENDS = {
    False: (
        '{"tool_calls": [{"name": "...", "arguments": {...}}]}\n'
        'Call what needs to be called, one entry a call; if nothing does, answer {"tool_calls": []}.'
    ),
    True: (
        '{"content": "...", "tool_calls": [{"name": "...", "arguments": {...}}]}\n'
        'To call a tool, put the call into "tool_calls". To answer in words, put them into "content" and leave '
        '"tool_calls" empty: [].'
    ),
}


@pytest.mark.parametrize("text", [False, True])
def test_all_that_is_told(text: bool) -> None:
    """The model reads exactly this. Python hosts have values in their schemas that JSON does not have."""
    day = {"title": "\u65e5", "default": DAY}
    functions = (
        {**REMEMBER, "parameters": {"type": "object"}},
        {"name": "forget", "description": " \u5fd8\u8bb0\n", "parameters": {"properties": {"day": day}}},
        PING,
    )
    assert told([], Tools(functions, text=text)) == [{"role": "system", "content": WHOLE + ENDS[text]}]


USER = {"role": "user", "content": "Hi"}
PARTS = [{"type": "text", "text": "Keep"}]
SYSTEMS: dict[str, tuple[list[dict[str, Any]], Any]] = {
    "none": ([USER], "Note."),
    "empty": ([{"role": "system", "content": ""}, USER], "Note."),
    "null": ([{"role": "system", "content": None}, USER], "Note."),
    "text": ([{"role": "system", "content": "Keep"}, USER], "Keep\n\nNote."),
    "parts": ([{"role": "system", "content": PARTS}, USER], [*PARTS, {"type": "text", "text": "Note."}]),
    "no_messages": ([], "Note."),
}


@pytest.mark.parametrize(("messages", "content"), SYSTEMS.values(), ids=SYSTEMS)
def test_there_is_one_system_message(messages: list[dict[str, Any]], content: Any) -> None:
    before = copy.deepcopy(messages)
    assert noted(messages, "Note.") == [{"role": "system", "content": content}, *[USER] * bool(messages)]
    assert messages == before


FORMS: dict[str, tuple[Tools, str]] = {
    "auto": (tools_of(REMEMBER, FORGET), 'answer {"tool_calls": []}'),
    "required": (tools_of(REMEMBER, FORGET, tool_choice="required"), "Call one of the tools at least once."),
    "named": (tools_of(REMEMBER, FORGET, tool_choice="forget"), "Call forget exactly once."),
    "one_required": (tools_of(REMEMBER, tool_choice="required"), "Call remember at least once."),
    "text": (tools_of(REMEMBER, text=True), 'To answer in words, put them into "content"'),
}


@pytest.mark.parametrize(("tools", "said"), FORMS.values(), ids=FORMS)
def test_how_often_is_told(tools: Tools, said: str) -> None:
    content = told(SAID, tools)[0]["content"]
    assert said in content
    assert ('{"content": "...", "tool_calls"' in content) is tools.text


def _called(identity: str, name: str, arguments: Any) -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_earlier_turns_are_told_in_the_form_that_is_asked_for() -> None:
    turns = [
        {"role": "user", "content": "I like tea"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [_called("c1", "remember", '{"text": "Tée"}'), _called("c2", "forget", '{"id": ')],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "kept"},
        {
            "role": "tool",
            "tool_call_id": "c2",
            "content": [{"type": "text", "text": "no"}, {"type": "text", "text": "!"}],
        },
        {"role": "assistant", "content": "Done."},
        {"role": "tool", "name": "ping", "content": None},
        {"role": "tool", "content": ["seen", {"type": "image_url"}]},
    ]
    before = copy.deepcopy(turns)
    user, called, results, done, late = flattened(turns)
    assert user == turns[0]
    assert called["role"] == "assistant"
    assert json.loads(called["content"]) == {
        "tool_calls": [
            {"id": "c1", "name": "remember", "arguments": {"text": "Tée"}},
            {"id": "c2", "name": "forget", "arguments": '{"id": '},  # as it was
        ]
    }
    assert "Tée" in called["content"]
    assert results == {
        "role": "user",
        "content": "Result of remember (c1):\nkept\n\nResult of forget (c2):\nno\n!",
    }
    assert done == turns[4]
    assert late == {"role": "user", "content": "Result of ping:\n\n\nResult of a tool:\nseen\n"}
    assert turns == before


def test_text_beside_earlier_calls_is_kept_where_text_may_be() -> None:
    turn = {"role": "assistant", "content": "Let me see.", "tool_calls": [_called("c1", "ping", {})]}
    _, flat = told([SAID[0], turn], tools_of(REMEMBER, text=True))
    assert json.loads(flat["content"])["content"] == "Let me see."


# -- over the wire ------------------------------------------------------------------------------------


def _recognise(request: Request) -> Contract | None:
    tools = Tools.of(request)
    return tool_contract(request, tools) if tools else None


@pytest.fixture
def endpoint() -> Any:
    def without_tools(body: dict[str, Any]) -> Any:
        """A vLLM that was started without a tool-call parser."""
        if "tools" in body or "tool_choice" in body or "parallel_tool_calls" in body:
            return Fail(400, '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set')
        return endpoint.replies.pop(0) if len(endpoint.replies) > 1 else endpoint.replies[0]

    with ScriptedEndpoint(without_tools) as endpoint:
        endpoint.replies = [reply(TEA)]  # type: ignore[attr-defined]
        yield endpoint


def _writer(endpoint: Any, **settings: Any) -> Writer:
    return Writer("demo", [WriteCall("demo.tools", _recognise)], WriterSettings(base_url=endpoint.url, **settings))


@both_ways
@pytest.mark.parametrize("constrain", ["always", "retry", "off"])
@pytest.mark.parametrize("form", ["json_schema", "json_object", "prompt"])
def test_tools_never_go_out(write: Write, constrain: str, form: str, endpoint: Any) -> None:
    request = asking(REMEMBER, FORGET, tool_choice="auto", sampling={"parallel_tool_calls": True, "temperature": 0.3})
    written = write(_writer(endpoint, constrain=constrain, form=form), request)
    assert written.value == Answer((ToolCall(*TEA),))
    (chat,) = endpoint.chats
    assert ("response_format" in chat.body) is (constrain == "always" and form != "prompt")
    assert chat.body["temperature"] == 0.3
    assert "Keep a fact." in chat.messages[0]["content"]


@both_ways
def test_asking_again_keeps_the_told_prompt(write: Write, endpoint: Any) -> None:
    endpoint.replies = ["I shall remember that.", reply(TEA)]
    written = write(_writer(endpoint), asking(REMEMBER))
    assert written.value == Answer((ToolCall(*TEA),))
    first, second = (chat.messages for chat in endpoint.chats)
    assert second[: len(first)] == first


@both_ways
def test_a_lost_call_says_what_it_leaves_behind(write: Write, endpoint: Any) -> None:
    def recognise(request: Request) -> Contract | None:
        tools = Tools.of(request)
        return tool_contract(request, tools, left_behind="The other half is kept") if tools else None

    endpoint.replies = [Say("no")]
    writer = Writer("demo", [WriteCall("demo.half", recognise)], WriterSettings(base_url=endpoint.url, attempts=2))
    with pytest.raises(MalformedWriteError, match=r"demo\.half: none of 2 replies .*\. The other half is kept$"):
        write(writer, asking(REMEMBER))
