"""Every write call as a real vLLM answered it, on every openai client, without the server.

A changed prompt, schema or request no longer matches and fails: then record again (``nox -s record``).
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from hymemory_adapters.core.events import WriteEvent
from tests.live.rows import TALK, Row, each_row
from tests.live.server import LIVE

SERVER: dict[str, Any] = (
    {"base_url": "http://127.0.0.1:8000/v1", "model": LIVE.model}
    if LIVE.base_url is None
    else {"base_url": LIVE.base_url, "model": LIVE.model, "api_key": LIVE.api_key}
)


@pytest.mark.vcr
@pytest.mark.block_network(allowed_hosts=["127.0.0.1"] if LIVE.base_url else [])
@each_row
def test_a_recorded_write(row: Row, vcr: Any, heard: list[WriteEvent]) -> None:
    given = row.ask(row.provider({**SERVER, "retry_seconds": 0}), row.messages(TALK))

    (event,) = heard
    assert event.call == row.call
    assert event.attempts[-1].finish_reason == "stop"
    assert row.items is not None
    items = row.items(row.value(given))
    assert items or row.quiet
    assert all(row.item_keys <= set(item) for item in items if row.item_keys)

    sent = [json.loads(request.body) for request in vcr.requests if request.path.endswith("/chat/completions")]
    assert len(sent) == len(event.attempts)
    for body in sent:
        assert body["response_format"]["type"] == "json_schema"
        assert body["chat_template_kwargs"] == {"reasoning_effort": "no_think"}
    assert all(body["messages"][: len(sent[0]["messages"])] == sent[0]["messages"] for body in sent)
    if LIVE.base_url is None:
        assert vcr.all_played, "the code sends fewer requests than were recorded"
