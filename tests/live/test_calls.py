"""Each write call against a real vLLM: accepted, obeyed, read, and without thinking.

A model of random weights will do: what is judged is the form of its replies, never what they say.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from hymemory_adapters import MalformedWriteError, WriteEvent
from hymemory_adapters.core.reply import read_text
from tests.live.rows import OF_FORM_NO_SCHEMA_CAN_SAY, ROWS, TALK, TEXT_ROWS, Row, each_row, each_text_row
from tests.live.server import LIVE, answers, needs_server
from tests.live.tap import Passed, Tap

pytestmark = [needs_server, answers]

_TAG = re.compile(r"<(/?)think(?:ing)?(?::[\w.-]+)?>")


def _once(row: Row, tap: Tap) -> tuple[Any, Passed]:
    """Have the host ask once; return what it got, and the one request that went over the wire."""
    short = {} if row.items else {"max_tokens": 64, "max_tokens_ceiling": 64}  # a text has no natural end
    provider = row.provider({**LIVE.settings, "base_url": tap.url, "attempts": 1, **short})
    returned = row.ask(provider, row.messages(TALK))
    (passed,) = tap.chats
    return returned, passed


@each_row
def test_accepted_obeyed_and_read(row: Row, tap: Tap, heard: list[WriteEvent]) -> None:
    returned, passed = _once(row, tap)

    (event,) = heard
    assert event.call == row.call
    assert passed.sent["messages"] == row.sent(TALK)
    assert "tools" not in passed.sent
    assert passed.sent["response_format"]["type"] == "json_schema"
    assert passed.status == 200
    assert passed.choice["finish_reason"] == "stop"
    value = json.loads(passed.content or "")
    Draft202012Validator(passed.sent["response_format"]["json_schema"]["schema"]).validate(value)
    assert not event.normalisations
    assert {problem.rule for problem in event.attempts[0].problems} <= OF_FORM_NO_SCHEMA_CAN_SAY
    if not event.attempts[0].problems:
        assert row.value(returned) == value


@each_row
def test_the_schema_alone_holds_every_field_that_the_host_reads(row: Row, tap: Tap) -> None:
    _, passed = _once(row, tap)
    schema = passed.sent["response_format"]["json_schema"]
    pushed = {**passed.sent, "logit_bias": dict.fromkeys(map(str, _closers()), 100)}
    pushed["response_format"] = {"type": "json_schema", "json_schema": {**schema, "schema": _short(schema["schema"])}}

    status, answer = LIVE.ask("/chat/completions", pushed)

    assert status == 200, answer
    value = json.loads(answer["choices"][0]["message"]["content"])
    assert row.items is not None
    (item,) = row.items(value)
    assert item == "x" if not row.item_keys else item.keys() >= row.item_keys


def _closers() -> list[int]:
    """The tokens that close what may be closed."""
    return [token for text in ("}", "]") for token in LIVE.tokens(prompt=text, add_special_tokens=False)["tokens"]]


def _short(schema: Any) -> Any:
    """The same schema with one item in each list and one letter in each free string: there a push does no harm."""
    if isinstance(schema, list):
        return [_short(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "string" and "enum" not in schema:
        return {"type": "string", "enum": ["x"]}
    changed = {key: value if key in ("required", "enum", "const") else _short(value) for key, value in schema.items()}
    return {**changed, "minItems": 1, "maxItems": 1} if schema.get("type") == "array" else changed


@each_text_row
def test_a_text_is_taken_whole_or_not_at_all(row: Row, tap: Tap, heard: list[WriteEvent]) -> None:
    """The model of random weights hardly ever ends by itself: then nothing may reach the host."""
    returned = None
    with contextlib.suppress(MalformedWriteError):
        returned, _ = _once(row, tap)

    (passed,), (event,) = tap.chats, heard
    assert event.call == row.call
    assert passed.sent["messages"] == row.sent(TALK)
    assert "response_format" not in passed.sent
    assert passed.status == 200
    reading = read_text(passed.content)  # noise writes tags of thinking, too
    if passed.choice["finish_reason"] == "stop" and not reading.problems:
        assert returned == reading.value
    elif keeps := row.keeps(TALK):
        assert all(kept in returned for kept in keeps)
        assert event.outcome == "salvaged"
    else:
        assert returned is None
        assert event.outcome == "lost"


@pytest.mark.parametrize("row", {**ROWS, **TEXT_ROWS}.values(), ids={**ROWS, **TEXT_ROWS})
def test_thinking_is_off(row: Row, tap: Tap) -> None:
    with contextlib.suppress(MalformedWriteError):
        _once(row, tap)
    (passed,) = tap.chats
    message = passed.choice["message"]
    assert not message.get("reasoning")
    assert not message.get("reasoning_content")
    if row.items:  # in free text, weights that are noise write tags too
        assert not _TAG.search(passed.content or "")

    fields = ("messages", "chat_template_kwargs")
    asked = {field: passed.sent[field] for field in fields if field in passed.sent}
    end = "".join(LIVE.tokens(**asked, return_token_strs=True)["token_strs"][-20:])

    tags = _TAG.findall(end)
    assert tags[-2:] == ["", "/"] if LIVE.way else tags[-1:] != [""], f"the prompt ends in {end!r}"
