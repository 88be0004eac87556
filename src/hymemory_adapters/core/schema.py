"""The full schema that validates a reply, and the reduced schema that constrains decoding.

Servers refuse or silently ignore parts of JSON Schema, each server others (measured: vLLM 0.32.0 with
xgrammar 0.2.7 and with guidance). So only a common safe subset goes on the wire, and the full schema is
always checked here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.quick import quick

JSONSchema = Mapping[str, Any]

MAX_PROBLEMS = 10

LIST_BOUND = 200
"""``maxItems`` of a list that has no natural end. A list that reaches it may have been cut there."""

# No maxLength: the grammar then closes a string in the middle of a fact and calls the reply complete,
# and it takes seconds to compile at a vocabulary of 120,000 tokens. No minLength: it makes the mask of every
# token 8 to 17 times dearer (xgrammar 0.2.8), for a text that is hardly ever empty. No pattern: it can end in
# HTTP 500.
_KEPT = frozenset({"type", "enum", "const", "required", "minItems", "maxItems", "minimum", "maximum"})
_MAPS = frozenset({"properties", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties"})


def wire_schema(schema: Any) -> Any:
    """Reduce a JSON Schema to what every server takes and obeys; the order of its keys stays."""
    if not isinstance(schema, Mapping):
        return schema if isinstance(schema, bool) else {}
    if "$ref" in schema:
        local = str(schema["$ref"]).startswith("#")
        return {"$ref": schema["$ref"], **_definitions(schema)} if local else {}
    if len(schema.get("allOf", ())) == 1:
        return wire_schema({**{k: v for k, v in schema.items() if k != "allOf"}, **schema["allOf"][0]})
    reduced: dict[str, Any] = {}
    for key, value in schema.items():
        if key in _KEPT and value != []:
            reduced[key] = value
        elif key in _MAPS:
            reduced[key] = {name: wire_schema(part) for name, part in value.items()}
        elif key in _LISTS:
            reduced[key] = [wire_schema(part) for part in value]
        elif key == "oneOf":
            reduced["anyOf"] = [wire_schema(part) for part in value]
        elif key in _SINGLE:
            reduced[key] = wire_schema(value)
    if "required" in reduced:  # a required key that no property declares is a 400 on some servers
        declared = reduced.get("properties", {})
        reduced["required"] = [key for key in reduced["required"] if key in declared]
        if not reduced["required"]:
            del reduced["required"]
    return reduced


def _definitions(schema: JSONSchema) -> dict[str, Any]:
    found = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {key: {name: wire_schema(part) for name, part in value.items()} for key, value in found.items()}


class Schema:
    """What a reply must be: the schema that validates it and the one that constrains it.

    Args:
        full: the JSON Schema (2020-12) that a reply is validated against.
        wire: the schema that constrains decoding; without it, ``full`` reduced by :func:`wire_schema`.
            It may ask for more than ``full`` accepts: the wire asks for the shape the host's prompt
            describes, validation refuses only what would lose or damage something.
        name: the name of the schema on the wire (letters, digits, ``_`` and ``-``).
    """

    def __init__(self, full: JSONSchema, *, wire: JSONSchema | None = None, name: str = "reply") -> None:
        self.full = full
        self.name = name
        self.wire: dict[str, Any] = wire_schema(full if wire is None else wire)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the wire schema: what a server's refusal of this schema is remembered by."""
        return hashlib.sha256(json.dumps(self.wire).encode()).hexdigest()

    @cached_property
    def _validator(self) -> Any:
        # jsonschema takes 0.1 s to import, which nobody should pay who never writes.
        from jsonschema import Draft202012Validator, ValidationError
        from jsonschema.validators import extend
        from referencing import Registry

        def max_items(_: Any, bound: int, instance: Any, __: Any) -> Iterator[ValidationError]:
            # The grammar closes a list at its bound, whatever else the model had to say.
            if isinstance(instance, list) and len(instance) > bound - (bound >= LIST_BOUND):
                yield ValidationError("too many items")

        # An empty registry: a remote $ref is an error here, never a download.
        validator: Any = extend(Draft202012Validator, {"maxItems": max_items})  # type: ignore[no-untyped-call]
        return validator(dict(self.full), registry=Registry())

    @cached_property
    def _quick(self) -> Any:
        return quick(self._validator)

    def problems(self, value: Any) -> tuple[Problem, ...]:
        """Validate a value; the first ten problems, in the order of the value."""
        if self._quick.is_valid(value):
            return ()
        errors = sorted(self._validator.iter_errors(value), key=lambda error: list(error.absolute_path))
        found = dict.fromkeys(_described(error, self._keys) for error in errors)
        return tuple(found)[:MAX_PROBLEMS]

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(_keys_in(self.full))

    def integers(self, value: Any) -> Any:
        """Turn integral floats into ints where the schema says integer; the same object if there are none."""
        return _integers(value, self.full, self.full) if _has_floats(value) else value


def _keys_in(schema: Any) -> Iterator[str]:
    """Yield the keys that a schema names: in a path, any other key is a word of the reply."""
    if isinstance(schema, Mapping):
        if isinstance(schema.get("properties"), Mapping):
            yield from schema["properties"]
        for part in schema.values():
            yield from _keys_in(part)
    elif isinstance(schema, (list, tuple)):
        for part in schema:
            yield from _keys_in(part)


def _described(error: Any, keys: frozenset[str]) -> Problem:
    """Say what is wrong without a word of the reply, which may be private."""
    while error.validator in ("anyOf", "oneOf") and error.context:
        error = _nearest(error)
    kind, wanted, instance = error.validator, error.validator_value, error.instance
    match kind:
        case "required":
            missing = [key for key in wanted if key not in instance]
            message = f"the key {_listed(missing)} is missing"
        case "additionalProperties":
            known = list(error.schema.get("properties", ()))
            message = f"there is a key that does not belong here; allowed: {_listed(known) or 'none'}"
        case "type":
            message = f"must be {_listed(wanted, plain=True)}, is {_json_type(instance)}"
        case "enum" | "const":
            message = f"must be {_listed(wanted if kind == 'enum' else [wanted])}"
        case "minLength":
            message = "must not be empty" if wanted == 1 else f"must have at least {wanted} characters"
        case "maxItems" if wanted >= LIST_BOUND:
            message = f"may have at most {wanted - 1} items, and was perhaps cut there"
        case "maxItems":
            message = f"may have at most {wanted} {'item' if wanted == 1 else 'items'}"
        case "oneOf":  # with a cause, it fitted none of them
            message = "fits more than one of the allowed forms"
        case None:  # the schema is False
            message = "there is a value that does not belong here"
        case _:
            message = f"must satisfy {kind}: {json.dumps(wanted)[:200]}"
    path = json_path(part if isinstance(part, int) or part in keys else "" for part in error.absolute_path)
    return Problem("schema", message, path)


def _nearest(error: Any) -> Any:
    """Of the branches of an anyOf, take the one that the value was meant for.

    A branch whose ``const`` (the discriminator) fits is meant; if none fits, the discriminator itself
    is the mistake, and all its allowed values are named.
    """
    branches: dict[int, list[Any]] = {}
    for cause in error.context:
        branches.setdefault(cause.schema_path[0], []).append(cause)

    def misfit(branch: list[Any]) -> tuple[int, int, int]:
        keys = [cause.validator for cause in branch]
        wrong_kind = any(cause.validator == "type" and not cause.relative_path for cause in branch)
        return int(wrong_kind), int("const" in keys), len(keys)

    best = min(branches.values(), key=misfit)
    discriminators = [cause for branch in branches.values() for cause in branch if cause.validator == "const"]
    if any(cause.validator == "const" for cause in best) and len(discriminators) > 1:
        allowed = [cause.validator_value for cause in discriminators]
        chosen = next(cause for cause in best if cause.validator == "const")
        chosen.validator, chosen.validator_value = "enum", allowed
        return chosen
    return best[0]


def _listed(values: str | Sequence[Any], *, plain: bool = False) -> str:
    items = [values] if isinstance(values, str) else list(values)
    shown = [str(item) if plain else json.dumps(item, ensure_ascii=False) for item in items[:30]]
    return " or ".join(shown) + (" or ..." if len(items) > 30 else "")


def _json_type(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "boolean", str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), type(value).__name__)


def _has_floats(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_floats, value.values()))
    return any(map(_has_floats, value)) if isinstance(value, list) else isinstance(value, float)


def _integers(value: Any, schema: Any, root: JSONSchema) -> Any:
    if not isinstance(schema, Mapping) or not isinstance(value, (float, list, dict)):
        return value
    for branch in (*schema.get("anyOf", ()), *schema.get("allOf", ()), *schema.get("oneOf", ())):
        value = _integers(value, branch, root)
    reference = schema.get("$ref", "")
    if reference == "#" or reference.startswith("#/"):
        target: Any = root
        for part in reference[2:].split("/") if reference != "#" else ():
            target = target.get(part, {})
        return _integers(value, target, root)
    if isinstance(value, float):
        whole = value.is_integer() and "integer" in (schema.get("type") or ())
        return int(value) if whole else value
    if not isinstance(value, (list, dict)):
        return value
    if isinstance(value, list):
        changed: Any = [_integers(item, schema.get("items"), root) for item in value]
        same = all(new is old for new, old in zip(changed, value, strict=True))
    else:
        properties, others = schema.get("properties", {}), schema.get("additionalProperties")
        changed = {key: _integers(item, properties.get(key, others), root) for key, item in value.items()}
        same = all(changed[key] is value[key] for key in value)
    return value if same else changed
