"""Structured output: one JSON value, as a schema or a pydantic class says (``with_structured_output``)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.reply import strings_in
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.tool_messages import noted
from hymemory_adapters.core.tools import closed
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.langchain.request import is_pydantic

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_QUOTED = 4  # characters: a shorter string of the reply may well stand in a message by chance


def structured_call() -> WriteCall:
    """Build the row."""
    return WriteCall(
        "langchain.structured",
        _recognise,
        OnLost.RAISE,
        summary="asks for one JSON value of a schema (with_structured_output)",
        writes=False,
    )


def _recognise(request: Request) -> Contract | None:
    wanted = request.response_format or {}
    if request.tools or wanted.get("type") not in ("json_schema", "json_object"):
        return None
    if wanted["type"] == "json_object":
        return Contract(schema=_ANY_OBJECT, render=_as_it_is)
    named: Mapping[str, Any] = wanted.get("json_schema") or {}
    schema = named.get("schema") or {}
    # Servers show the model no schema, and what its fields mean stands nowhere else.
    note = f"Answer with one JSON value that fits this JSON Schema, and nothing else:\n{_dumped(schema)}"
    answer = getattr(request, "answer", None)
    return Contract(
        schema=_schema(json.dumps(schema, default=str), str(named.get("name") or "")),
        check=lambda value: misfits(answer, value),
        render=_as_it_is,
        messages=noted(request.messages, note),
    )


_ANY_OBJECT = Schema({"type": "object"}, name="answer")


@lru_cache(maxsize=128)
def _schema(schema: str, name: str) -> Schema:
    full = json.loads(schema)
    return Schema(full, wire=closed(full), name=_NOT_IN_A_NAME.sub("_", name)[:64] or "answer")


def _dumped(schema: Any) -> str:
    return json.dumps(schema, ensure_ascii=False, default=str)


def _as_it_is(value: Any) -> Any:
    return value


def misfits(answer: Any, value: Any, path: tuple[str | int, ...] = ()) -> list[Problem]:
    """What a pydantic class has against a value: its validators know more than its JSON Schema."""
    if not is_pydantic(answer):
        return []
    from pydantic import ValidationError

    try:
        answer.model_validate(value)
    except ValidationError as error:
        said = [text for _, text in strings_in(value) if len(text) >= _QUOTED]
        return [_misfit(found, said, path) for found in error.errors(include_url=False)[:10]]
    return []


def _misfit(found: Mapping[str, Any], said: list[str], path: tuple[str | int, ...]) -> Problem:
    message = str(found["msg"])
    if any(text in message for text in said):  # a problem holds no word of the reply
        message = f"is refused ({found['type']})"
    return Problem("schema", message, json_path((*path, *found["loc"])))
