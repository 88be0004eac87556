"""One server and key: what is told of it, what is remembered, and how long is waited for it."""

from __future__ import annotations

import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest

from hymemory_adapters.core import endpoint as endpoint_module
from hymemory_adapters.core.endpoint import endpoint_of
from hymemory_adapters.core.lost import EndpointError
from hymemory_adapters.core.schema import Schema
from tests.support.calls import FACTS, GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import Fail, ScriptedEndpoint

NOWHERE = "http://127.0.0.1:9/v1"


def model(name: Any, **more: Any) -> SimpleNamespace:
    return SimpleNamespace(id=name, **more)


PAGES: dict[str, tuple[Any, tuple[str, ...], int | None]] = {
    "vLLM": ([model("hy-memory", max_model_len=8192)], ("hy-memory",), 8192),
    "no length": ([model("hy-memory")], ("hy-memory",), None),
    "a length in words": ([model("hy-memory", max_model_len="8192")], ("hy-memory",), None),
    "another model's length": ([model("base", max_model_len=8192)], ("base",), None),
    "two lengths": (
        [model("base", max_model_len=8192), model("hy-memory", max_model_len=4096), model("x", max_model_len=1)],
        ("base", "hy-memory", "x"),
        4096,
    ),
    "no names": ([model(None), model(""), "x"], (), None),
    "no list": ({"a": 1}, (), None),
}


@pytest.mark.parametrize(("data", "served", "context"), PAGES.values(), ids=PAGES)
def test_what_a_server_says_of_itself(data: Any, served: tuple[str, ...], context: int | None) -> None:
    endpoint = writer_at(NOWHERE).endpoint
    endpoint.learn(SimpleNamespace(data=data))
    assert (endpoint.served, endpoint.context) == (served, context)
    endpoint.learn("<html></html>")
    assert endpoint.served == ()


def test_what_it_serves_is_asked_for_with_little_patience() -> None:
    client = SimpleNamespace(models=SimpleNamespace(list=lambda **sent: sent))
    endpoint = writer_at(NOWHERE).endpoint
    assert (endpoint.served, endpoint.facts_tried) == ((), False)
    assert endpoint.ask_facts()(client) == {"timeout": 5.0}
    assert endpoint.facts_tried


@pytest.mark.parametrize(("seconds", "connecting"), [(120.0, 5.0), (2.0, 2.0)])
def test_a_request_has_its_seconds_and_connecting_five_of_them(seconds: float, connecting: float) -> None:
    request = ask()
    operation = writer_at(NOWHERE).endpoint.chat(
        request, request.messages, schema=FACTS, form="json_schema", max_tokens=9, timeout=lambda: seconds
    )
    client = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=lambda **sent: sent)))
    sent = operation(client)
    assert (sent["timeout"].read, sent["timeout"].connect) == (seconds, connecting)
    assert "stream" not in sent


def test_a_refused_connection_is_remembered_for_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(endpoint_module, "time", SimpleNamespace(monotonic=lambda: now))
    endpoint = writer_at(NOWHERE).endpoint
    assert not endpoint.is_down
    endpoint.mark_down()
    now = 1001.9
    assert endpoint.is_down
    now = 1002.0
    assert not endpoint.is_down
    endpoint.mark_down()
    endpoint.mark_up()
    assert not endpoint.is_down


def test_each_refusal_is_told_once_and_remembered_apart(caplog: pytest.LogCaptureFixture) -> None:
    other = Schema({"type": "array"}, name="demo_other")
    endpoint = writer_at(NOWHERE).endpoint
    for schema in (FACTS, other, FACTS):
        assert endpoint.step_down("json_schema", "no such keyword", schema)
    assert [endpoint.form_of(schema) for schema in (FACTS, other, Schema({}))] == [
        "json_object",
        "json_object",
        "json_schema",
    ]
    assert endpoint.step_down("json_object", "not known")
    assert endpoint.step_down("json_schema", "not known"), "a request that was under way"
    assert endpoint.form_of(Schema({})) == "prompt"
    assert not endpoint.step_down("prompt", "not known")
    told = [record.message for record in caplog.records]
    for message, words in zip(
        told,
        (
            f"{NOWHERE} does not take the schema demo_facts; its replies are constrained by json_object from now on, ",
            "does not take the schema demo_other; ",
            "does not know the form json_object; its replies are constrained by prompt from now on, and validated as ",
            "does not know the form json_schema; ",
        ),
        strict=True,
    ):
        assert words in message
    assert told[0].endswith("(no such keyword)")


SECRETS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "none": ({}, ()),
    "a key": ({"api_key": "sk-1"}, ("sk-1",)),
    "headers": ({"api_key": "sk-1", "headers": {"x-org": "acme", "x-on": "yes"}}, ("sk-1", "acme")),
    "too short to be one": ({"api_key": "k-1", "headers": {"x-n": "1"}}, ()),
}


@pytest.mark.parametrize(("settings", "secrets"), SECRETS.values(), ids=SECRETS)
def test_what_may_stand_in_no_message(settings: dict[str, Any], secrets: tuple[str, ...]) -> None:
    assert writer_at(NOWHERE, **settings).endpoint.secrets == secrets


@both_ways
def test_a_body_that_is_no_json_is_told_by_its_kind(write: Write) -> None:
    said = r"refused the request: its answer cannot be read \(JSONDecodeError\)\. Its log"
    with ScriptedEndpoint(Fail(200, body=b'{"choices": [{"mess')) as endpoint, pytest.raises(EndpointError, match=said):
        write(writer_at(endpoint), ask())


@both_ways
def test_another_limit_is_another_queue(write: Write) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        narrow, wide = (writer_at(endpoint, concurrency=places, deadline=5) for places in (1, 2))
        with narrow.endpoint.place(1):
            assert write(wide, ask()).event.outcome == "ok"


SAME: dict[str, tuple[dict[str, Any], bool]] = {
    "the same": ({}, True),
    "another key": ({"api_key": "other"}, False),
    "no key": ({"api_key": None}, False),
    "another header": ({"headers": {"a": "2"}}, False),
    "another model": ({"model": "other"}, False),
    "the value is from elsewhere": ({"sources": {"model": "a file"}}, True),
}


@pytest.mark.parametrize(("other", "same"), SAME.values(), ids=SAME)
def test_equal_settings_have_one_endpoint(other: dict[str, Any], same: bool) -> None:
    mine: dict[str, Any] = {"api_key": "key", "headers": {"a": "1"}}
    one, two = (endpoint_of(writer_at(NOWHERE, **settings).settings) for settings in (mine, mine | other))
    assert (one is two) == same


def test_the_module_as_it_is_imported() -> None:
    """Every test begins by forgetting all endpoints, which builds new locks: here are the first ones."""
    spec = importlib.util.find_spec(endpoint_module.__name__)
    assert spec is not None
    assert spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    assert fresh.endpoint_of(writer_at(NOWHERE).settings).send(lambda client: client.max_retries, 1) == 0
