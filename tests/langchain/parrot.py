"""A stand-in for a model: it sees what goes over the wire, nothing else, and answers as the request asks.

It knows no test. Plain chat it answers in words. Where a schema constrains the reply, it writes a value of that
schema, and takes what it can from the last message: a quoted name, a number. Tools it calls if it must, or if the
user asks for something and has no result yet.
"""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.scripted import Say

_ASKS = re.compile(r"tool|weather|\bWhat is \d", re.IGNORECASE)


def answer(body: dict[str, Any]) -> Say:
    """Answer a request."""
    said = str(body["messages"][-1]["content"])
    constraint = (body.get("response_format") or {}).get("json_schema")
    if constraint is None:
        return Say("Hello! How are you today?")
    schema = constraint["schema"]
    calls = schema.get("properties", {}).get("tool_calls")
    if calls is None:
        return Say(json.dumps(_value(schema, schema, said), ensure_ascii=False))
    called = []
    if calls.get("minItems") or (_ASKS.search(said) and not said.startswith("Result of")):
        branches = calls["items"].get("anyOf") or [calls["items"]]
        called = [_value(branches[0], schema, said)]
    value = {"tool_calls": called}
    if "content" in schema["properties"]:
        value = {"content": "" if called else "It is done.", **value}
    return Say(json.dumps(value, ensure_ascii=False))


def _value(schema: dict[str, Any], root: dict[str, Any], said: str) -> Any:
    """Write a value of a schema."""
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        return _value(target, root, said)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _value(schema["anyOf"][0], root, said)
    kind = schema.get("type", "object")
    if kind == "object":
        wanted = schema.get("required", [])
        return {key: _value(schema["properties"][key], root, said) for key in wanted}
    if kind == "array":
        return [_value(schema["items"], root, said)] * schema.get("minItems", 0)
    if kind in ("integer", "number"):
        return int((re.findall(r"\d+", said) or ["1"])[0])
    if kind == "boolean":
        return True
    quoted = re.search(r"['\"](.+?)['\"]", said)
    return quoted[1] if quoted else "something"
