"""Servers that do not take every form of a constraint, or every schema."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace
from typing import Any

import pytest

from hymemory_adapters.core import patience
from hymemory_adapters.core.lost import EndpointError
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, WriteCall
from hymemory_adapters.core.writer import Writer
from tests.support.calls import FACTS, GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import Fail, Recorded, Say, ScriptedEndpoint

pytestmark = both_ways

LM_STUDIO = "'response_format.type' must be 'json_schema' or 'text'"
GROQ = "This model does not support response format `json_schema`. See supported models at https://console.groq.com"
XGRAMMAR = "The provided JSON schema contains features not supported by xgrammar."


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "_SHORTEST_PAUSE", 0.001)


def form_of(chat: Recorded) -> str:
    return chat.body.get("response_format", {}).get("type", "prompt")


def refusing(status: int, message: str, *refused: str, schema: str | None = None) -> Any:
    """A server that refuses forms, of one schema or of all."""

    def play(body: dict[str, Any]) -> Any:
        told = body.get("response_format", {})
        name = told.get("json_schema", {}).get("name")
        mine = schema is None or name == schema or (name is None and schema in json.dumps(body["messages"]))
        return Fail(status, message) if told.get("type", "prompt") in refused and mine else GOOD

    return play


def test_a_form_that_is_refused_is_told_in_the_prompt(write: Write) -> None:
    with ScriptedEndpoint(refusing(400, GROQ, "json_schema")) as endpoint:
        request = ask()
        written = write(writer_at(endpoint, attempts=1), request)
        first, second = endpoint.chats
    assert (form_of(first), form_of(second)) == ("json_schema", "json_object")
    assert written.event.outcome == "ok"
    assert len(written.event.attempts) == 1, "a refused form costs no attempt"
    *before, last = second.messages
    assert before == list(request.messages[:-1])
    assert last["role"] == "user"
    assert last["content"].startswith(request.messages[-1]["content"])
    assert json.loads(last["content"].rpartition("\n")[2]) == FACTS.wire


STEPS: dict[str, tuple[tuple[str, ...], list[str]]] = {
    "json_schema": (("json_schema",), ["json_schema", "json_object"]),
    "both": (("json_schema", "json_object"), ["json_schema", "json_object", "prompt"]),
}


@pytest.mark.parametrize(("refused", "forms"), STEPS.values(), ids=STEPS)
def test_the_step_down_is_remembered_and_told_once(
    write: Write, refused: tuple[str, ...], forms: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    with ScriptedEndpoint(refusing(400, "response_format is not supported", *refused)) as endpoint:
        write(writer_at(endpoint), ask())
        assert [form_of(chat) for chat in endpoint.chats] == forms
        for call in ("facts", "decide"):
            endpoint.play(*endpoint.script)
            write(writer_at(endpoint), ask(call, text="again"))  # another Writer for the same endpoint
            assert [form_of(chat) for chat in endpoint.chats] == forms[-1:]
    told = [record.message for record in caplog.records if "does not know the form" in record.message]
    assert len(told) == len(refused)
    assert all("(response_format is not supported)" in message for message in told), "in the server's words"


@pytest.mark.parametrize("form", ["json_object", "prompt"])
def test_a_writers_own_form_is_where_it_starts(write: Write, form: str) -> None:
    with ScriptedEndpoint(refusing(400, LM_STUDIO, "json_object")) as endpoint:
        write(writer_at(endpoint, form=form), ask())
        assert [form_of(chat) for chat in endpoint.chats] == [form, "prompt"][form == "prompt" :]


OTHER = Schema({**FACTS.full, "title": "other", "minProperties": 1, "maxProperties": 1}, name="demo_other")
OTHER.wire["description"] = "other"
TWO = (
    WriteCall("demo.facts", lambda request: Contract(FACTS) if request.text(0) == "call facts" else None),
    WriteCall("demo.other", lambda request: Contract(OTHER) if request.text(0) == "call other" else None),
)


@pytest.mark.parametrize("status", [400, 500])
def test_a_schema_that_is_refused_steps_down_alone(write: Write, status: int, caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedEndpoint(refusing(status, XGRAMMAR, "json_schema", schema="demo_facts")) as endpoint:
        writer = Writer("demo", TWO, writer_at(endpoint).settings)
        for call, forms in {
            "facts": ["json_schema", "json_object"] if status == 400 else ["json_schema"] * 2 + ["prompt"],
            "other": ["json_schema"],
        }.items():
            endpoint.play(*endpoint.script)
            assert write(writer, ask(call)).event.outcome == "ok"
            assert [form_of(chat) for chat in endpoint.chats] == forms
        endpoint.play(*endpoint.script)
        write(writer, ask("facts", text="again"))
        assert [form_of(chat) for chat in endpoint.chats] == ["json_object"], "remembered"
    warnings = [record.message for record in caplog.records if "does not take the schema" in record.message]
    assert len(warnings) == 1
    assert "demo_facts" in warnings[0]
    assert f"({XGRAMMAR})" in warnings[0] if status == 400 else "(HTTP 500 with it" in warnings[0]


def test_a_schema_that_fails_steps_down_once_a_call(write: Write) -> None:
    """A malformed reply after the step is no reason for a second one."""
    failing = Fail(500, "the engine fell over")
    with ScriptedEndpoint(failing, failing, "prose", "prose", GOOD) as endpoint:
        writer = writer_at(endpoint)
        assert write(writer, ask()).event.outcome == "retried"
        assert [form_of(chat) for chat in endpoint.chats[2:]] == ["prompt", "json_object", "json_object"]
        endpoint.play(GOOD)
        write(writer, ask(text="again"))
        assert form_of(endpoint.chats[0]) == "json_object"


def test_a_server_error_that_stays_is_no_fault_of_the_schema(
    write: Write, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count()  # a second passes from failure to failure
    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with ScriptedEndpoint(Fail(500, "out of memory")) as endpoint:
        with pytest.raises(EndpointError, match=r"HTTP 500.*out of memory"):
            write(writer_at(endpoint, retry_seconds=4), ask())
        assert "prompt" in [form_of(chat) for chat in endpoint.chats], "it was tried without"
        endpoint.play(GOOD)
        write(writer_at(endpoint, retry_seconds=4), ask(text="later"))
        assert form_of(endpoint.chats[0]) == "json_schema"
    assert not [record for record in caplog.records if "does not take" in record.message]


@pytest.mark.parametrize(
    "failures",
    [[Fail(500)], [Fail(503), Fail(503)], [Fail(502), Fail(500), Fail(502)]],
    ids=["one 500", "503 twice", "one 500 among others"],
)
def test_a_passing_server_error_is_no_fault_of_the_schema(write: Write, failures: list[Fail]) -> None:
    with ScriptedEndpoint(*failures, GOOD) as endpoint:
        write(writer_at(endpoint), ask())
        assert {form_of(chat) for chat in endpoint.chats} == {"json_schema"}


def test_a_server_error_without_a_schema_says_nothing_of_it(write: Write) -> None:
    with ScriptedEndpoint(Fail(500), Fail(500), "prose", GOOD) as endpoint:
        write(writer_at(endpoint, constrain="retry"), ask())
        assert [form_of(chat) for chat in endpoint.chats[2:]] == ["prompt", "json_schema"], "from the second attempt on"


@pytest.mark.parametrize(
    "message",
    ["temperature must be in [0, 2], got 9.0.", "messages: field required", "no such LoRA"],
)
def test_another_refusal_steps_nothing_down(write: Write, message: str) -> None:
    with ScriptedEndpoint(Fail(400, message)) as endpoint:
        with pytest.raises(EndpointError):
            write(writer_at(endpoint), ask())
        assert len(endpoint.chats) == 1
        endpoint.play(GOOD)
        write(writer_at(endpoint), ask(text="later"))
        assert form_of(endpoint.chats[0]) == "json_schema"


def test_a_server_that_refuses_every_form_ends(write: Write) -> None:
    with ScriptedEndpoint(Fail(400, "response_format is not supported")) as endpoint:
        with pytest.raises(EndpointError, match="HTTP 400"):
            write(writer_at(endpoint), ask())
        assert [form_of(chat) for chat in endpoint.chats] == ["json_schema", "json_object", "prompt"]


def test_the_hosts_own_format_is_never_stepped_down(write: Write) -> None:
    request = ask("chat", response_format={"type": "json_object"})
    with ScriptedEndpoint(Fail(400, LM_STUDIO)) as endpoint:
        with pytest.raises(EndpointError):
            write(writer_at(endpoint), request)
        endpoint.play(Say(GOOD))
        write(writer_at(endpoint), ask())
        assert form_of(endpoint.chats[0]) == "json_schema"
