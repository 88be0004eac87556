"""Structured output: one JSON value, as a schema or a pydantic class says.

Frameworks ask for it as OpenAI does, with a ``response_format``. An app's class rides along as
:class:`AnswerFormat`: its validators know more than its JSON Schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from hymemory_adapters.core.armour import armoured
from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.reply import strings_in
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.tool_messages import noted
from hymemory_adapters.core.tools import closed
from hymemory_adapters.core.write_call import Contract

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_QUOTED = 4  # characters: a shorter string of the reply may well stand in a message by chance


class AnswerFormat(dict[str, Any]):
    """A ``response_format`` that remembers the class it was made of.

    It is plain data for whoever logs or copies it; a copy has forgotten the class.

    Attributes:
        answer: the pydantic class.
    """

    def __init__(self, answer: Any) -> None:
        schema = answer.model_json_schema()
        named = {"name": _name(str(schema.get("title") or "")), "schema": schema}
        super().__init__(type="json_schema", json_schema=named)
        self.answer = answer


def is_pydantic(answer: Any) -> bool:
    """Whether it is a class of pydantic 2."""
    return isinstance(answer, type) and hasattr(answer, "model_json_schema")


def structured_contract(request: Request, *, render: Callable[[Any], Any] = armoured) -> Contract | None:
    """Build the contract of a request that asks for JSON and has no tools; ``None`` for any other.

    Args:
        request: the host's.
        render: how the value goes back.
    """
    wanted = request.response_format or {}
    if request.tools or not request.wants_json:
        return None
    if wanted["type"] == "json_object":
        return Contract(schema=_ANY_OBJECT, render=render, messages=request.messages)
    named: Mapping[str, Any] = wanted.get("json_schema") or {}
    schema = named.get("schema") or {}
    # Servers show the model no schema, and what its fields mean stands nowhere else.
    told = json.dumps(schema, ensure_ascii=False, default=str)
    note = f"Answer with one JSON value that fits this JSON Schema, and nothing else:\n{told}"
    answer = getattr(wanted, "answer", None)
    return Contract(
        schema=_schema(json.dumps(schema, default=str), str(named.get("name") or "")),
        check=lambda value: misfits(answer, value),
        render=render,
        messages=noted(request.messages, note),
    )


_ANY_OBJECT = Schema({"type": "object"}, name="answer")


@lru_cache(maxsize=128)
def _schema(schema: str, name: str) -> Schema:
    full = json.loads(schema)
    return Schema(full, wire=closed(full), name=_name(name))


def _name(name: str) -> str:
    return _NOT_IN_A_NAME.sub("_", name)[:64] or "answer"


def misfits(answer: Any, value: Any, path: tuple[str | int, ...] = (), *, python: bool = False) -> list[Problem]:
    """What a pydantic class has against a value that came as JSON.

    Args:
        answer: the class; anything else has nothing against any value.
        value: the value.
        path: where in the reply it stands.
        python: whether the host makes the object of the value itself, not of its JSON: a strict class then takes
            no text for a date.
    """
    if not is_pydantic(answer):
        return []
    from pydantic import ValidationError

    try:
        if python:
            answer.model_validate(value)
        else:
            answer.model_validate_json(json.dumps(value))
    except ValidationError as error:
        said = [text for _, text in strings_in(value) if len(text) >= _QUOTED]
        return [_misfit(found, said, path) for found in error.errors()[:10]]
    return []


def _misfit(found: Mapping[str, Any], said: list[str], path: tuple[str | int, ...]) -> Problem:
    message = str(found["msg"])
    if any(text in message for text in said):  # a problem holds no word of the reply
        message = f"is refused ({found['type']})"
    return Problem("schema", message, json_path((*path, *found["loc"])))
