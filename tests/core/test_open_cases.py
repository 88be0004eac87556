"""The replies of public bug reports, each on its way from a server to a host: what is right for it is done."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from hymemory_adapters import MalformedWriteError, WriterSettings
from hymemory_adapters.core.events import WriteEvent
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, WriteCall
from hymemory_adapters.core.writer import Writer
from tests.support.open_cases import OPEN_CASES, OpenCase
from tests.support.scripted import Fail, ScriptedEndpoint

TAKEN = [case for case in OPEN_CASES if case.right == "take"]
ASKED_AGAIN = [case for case in OPEN_CASES if case.right in ("ask_again", "ask_for_more")]
MESSAGES = [{"role": "system", "content": "Write memories."}, {"role": "user", "content": "user: I like tea {x}"}]


def _named(cases: Sequence[OpenCase]) -> list[Any]:
    return [pytest.param(case, id=case.name) for case in cases]


def _lift(value: Any) -> Any:
    """What a host's row may declare: a fact in an object of one known key is that fact."""
    if not isinstance(value, dict) or not any(isinstance(fact, dict) for fact in value.get("facts", ())):
        return value
    facts = value["facts"]
    return {"facts": [next(iter(fact.values())) if set(fact) in ({"fact"}, {"text"}) else fact for fact in facts]}


def _writer(case: OpenCase, url: str, **settings: Any) -> Writer:
    normalise = (("fact_objects", _lift),) if "fact_objects" in case.normalisations else ()
    contract = Contract(schema=Schema(case.schema, name=case.name), normalise=normalise)
    call = WriteCall("host.call", lambda _: contract)
    return Writer("host", (call,), WriterSettings(base_url=url, retry_seconds=0, **settings))


def test_there_are_as_many_as_were_collected() -> None:
    assert len({case.name for case in OPEN_CASES}) == 29


@pytest.mark.parametrize("case", _named(TAKEN))
def test_taken_with_one_request(case: OpenCase, heard: list[WriteEvent]) -> None:
    with ScriptedEndpoint(*case.says()) as endpoint:
        written = _writer(case, endpoint.url).write(Request(MESSAGES))
        assert len(endpoint.chats) == 1
    assert json.loads(written.value) == case.good
    assert [(event.outcome, event.normalisations) for event in heard] == [("ok", case.normalisations)]


@pytest.mark.parametrize("case", _named(ASKED_AGAIN))
def test_asked_again_with_what_was_wrong(case: OpenCase, heard: list[WriteEvent]) -> None:
    with ScriptedEndpoint(*case.says(), json.dumps(case.good)) as endpoint:
        written = _writer(case, endpoint.url).write(Request(MESSAGES))
        first, second = endpoint.chats
    assert json.loads(written.value) == case.good
    assert [event.outcome for event in heard] == ["retried"]
    problems = heard[0].attempts[0].problems
    assert problems[0].rule == case.rule

    assert first.messages == MESSAGES
    assert second.messages[:2] == MESSAGES
    shown, asked = second.messages[2:]
    assert shown == {"role": "assistant", "content": (case.text or "").strip() or "(an empty reply)"}
    assert asked["role"] == "user"
    assert all(str(problem) in asked["content"] for problem in problems)
    # More room only where it was too little: a loop would fill any room, a wrong shape needs none.
    raised = second.body["max_tokens"] > first.body["max_tokens"]
    assert raised == (case.rule == "truncated")
    assert raised or case.right == "ask_again"


@pytest.mark.parametrize("case", _named(ASKED_AGAIN))
def test_never_taken_and_lost_aloud(case: OpenCase, heard: list[WriteEvent]) -> None:
    with ScriptedEndpoint(*case.says()) as endpoint:
        with pytest.raises(MalformedWriteError) as caught:
            _writer(case, endpoint.url).write(Request(MESSAGES))
        assert len(endpoint.chats) == 3
    assert [attempt.problems[0].rule for attempt in caught.value.attempts] == [case.rule] * 3
    assert caught.value.call == "host.call"
    assert [event.outcome for event in heard] == ["lost"]
    quoted = [word for word in (case.text or "").split() if len(word) > 8 and word in str(caught.value)]
    assert not quoted


@pytest.mark.parametrize("case", _named(OPEN_CASES))
def test_request_carries_schema_and_no_think_switch(case: OpenCase) -> None:
    tools = [{"type": "function", "function": {"name": "Memory", "parameters": case.schema}}]
    request = Request(MESSAGES, response_format={"type": "json_object"}, tools=tools, tool_choice="required")
    no_think = {"chat_template_kwargs": {"reasoning_effort": "no_think"}}
    with ScriptedEndpoint(json.dumps(case.good)) as endpoint:
        _writer(case, endpoint.url, no_think=no_think).write(request)
        (sent,) = endpoint.chats
    told = sent.body["response_format"]
    assert told["type"] == "json_schema"
    assert told["json_schema"] == {"name": case.name, "schema": Schema(case.schema).wire, "strict": True}
    assert sent.body["chat_template_kwargs"] == {"reasoning_effort": "no_think"}
    # Not left to the server's tool parser.
    assert "tools" not in sent.body
    assert "tool_choice" not in sent.body


def _formats(endpoint: ScriptedEndpoint) -> list[str]:
    return [chat.body.get("response_format", {"type": "prompt"})["type"] for chat in endpoint.chats]


def test_schema_mode_rejected_steps_down_once_and_still_validates(caplog: pytest.LogCaptureFixture) -> None:
    case = next(case for case in OPEN_CASES if case.name == "schema_mode_rejected")
    with ScriptedEndpoint(*case.says(), json.dumps(case.good)) as endpoint:
        writer = _writer(case, endpoint.url)
        written = writer.write(Request(MESSAGES))
        assert _formats(endpoint) == ["json_schema", "json_object", "json_object"]
        asked = endpoint.chats[-1].messages[-1]["content"]
        assert json.loads(written.value) == case.good
        assert '$.nodes[0]: the key "description" is missing' in asked
        # The endpoint remembers: the next write starts where this one ended.
        endpoint.play(json.dumps(case.good))
        writer.write(Request(MESSAGES))
        assert _formats(endpoint) == ["json_object"]
    assert [record.levelname for record in caplog.records if "json_schema" in record.message] == ["WARNING"]


def test_json_object_is_asked_for_with_the_word_json_and_the_schema() -> None:
    case = next(case for case in OPEN_CASES if case.name == "needs_word_json")
    with ScriptedEndpoint(json.dumps(case.good)) as endpoint:
        written = _writer(case, endpoint.url, form="json_object").write(Request(MESSAGES))
        (sent,) = endpoint.chats
    assert json.loads(written.value) == case.good
    *before, last = sent.messages
    assert before == MESSAGES[:-1]
    assert last["content"].startswith(MESSAGES[-1]["content"])
    assert "JSON" in last["content"]
    assert json.dumps(Schema(case.schema).wire) in last["content"]


def test_a_refusal_of_the_format_never_repeats_the_identical_request() -> None:
    case = next(case for case in OPEN_CASES if case.name == "needs_word_json")
    with ScriptedEndpoint(Fail(400, case.refusal)) as endpoint:
        with pytest.raises(Exception, match="HTTP 400"):
            _writer(case, endpoint.url).write(Request(MESSAGES))
        assert _formats(endpoint) == ["json_schema", "json_object", "prompt"]
        assert len({chat.raw for chat in endpoint.chats}) == 3


def test_json_in_reasoning_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    case = next(case for case in OPEN_CASES if case.name == "content_null_json_in_reasoning")
    with ScriptedEndpoint(*case.says()) as endpoint:
        writer = _writer(case, endpoint.url)
        writer.write(Request(MESSAGES))
        writer.write(Request(MESSAGES))
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1
