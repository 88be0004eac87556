"""What tracers see, who wrap the SDK's ``create`` and read its arguments: OpenTelemetry's, Langfuse's and others."""

from __future__ import annotations

from typing import Any

import pytest
from openai.resources.chat.completions import AsyncCompletions, Completions

from tests.support.calls import GOOD, SAID, Write, ask, both_ways, writer_at
from tests.support.scripted import ScriptedEndpoint

Seen = list[dict[str, Any]]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The arguments of every request."""
    found: Seen = []
    for kind in (Completions, AsyncCompletions):

        def create(self: Any, *, original: Any = kind.create, **arguments: Any) -> Any:
            found.append(arguments)
            return original(self, **arguments)

        monkeypatch.setattr(kind, "create", create)
    return found


@both_ways
def test_a_tracer_sees_what_is_asked_and_how(write: Write, seen: Seen) -> None:
    sampling = {"temperature": 0.1, "top_p": 0.9, "seed": 7, "stop": ["\n\n"], "top_k": 3}
    with ScriptedEndpoint(GOOD) as endpoint:
        written = write(writer_at(endpoint, max_tokens=500), ask("facts", sampling=sampling))
    (arguments,) = seen
    assert arguments["model"] == "hy-memory"
    assert arguments["messages"][-1] == {"role": "user", "content": SAID}
    assert {key: arguments[key] for key in ("temperature", "top_p", "seed", "max_tokens")} == {
        "temperature": 0.1,
        "top_p": 0.9,
        "seed": 7,
        "max_tokens": 500,
    }
    assert "top_k" not in arguments, "the SDK does not know it"
    assert endpoint.chats[0].body["top_k"] == 3
    assert endpoint.chats[0].body["response_format"]["type"] == "json_schema"
    assert written.reply is not None
