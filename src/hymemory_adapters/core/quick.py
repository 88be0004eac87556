"""Whether a value fits a JSON Schema, by jsonschema and without the errors: most replies fit.

jsonschema makes a validator for each part of a value that it visits, and every error of every branch of an ``anyOf``.
Where only yes or no is asked, one validator for each part of the *schema* will do, and one branch that fits.
"""

from __future__ import annotations

import json
from typing import Any

_SAME_IN_PYTHON: dict[str, type] = {"string": str, "object": dict, "array": list}


def quick(validator: Any) -> Any:
    """Return a validator whose ``is_valid`` says the same in a third of the time; its errors say nothing.

    Args:
        validator: a validator of jsonschema, of draft 2020-12, with an empty registry. One whose parts have an
            ``$id``, against which their references are resolved, is returned as it is.
    """
    from jsonschema import ValidationError
    from jsonschema.validators import extend
    from referencing import Registry

    if '"$id"' in json.dumps(list(validator.schema.values()), default=str):
        return validator
    wrong = (ValidationError("does not fit"),)
    of_part: dict[int, Any] = {}

    def fits(validator: Any, part: Any, value: Any) -> bool:
        known = of_part.get(id(part))
        if known is None:
            known = of_part[id(part)] = validator.evolve(schema=part)  # it holds the part, whose id so stays its own
        return bool(known.is_valid(value))

    def properties(validator: Any, parts: Any, value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            return ()
        return () if all(fits(validator, parts[key], value[key]) for key in parts if key in value) else wrong

    def items(validator: Any, part: Any, value: Any, schema: Any) -> Any:
        if not isinstance(value, list):
            return ()
        rest = value[len(schema.get("prefixItems", ())) :]
        return () if all(fits(validator, part, item) for item in rest) else wrong

    def any_of(validator: Any, branches: Any, value: Any, _: Any) -> Any:
        return () if any(fits(validator, branch, value) for branch in branches) else wrong

    def of_type(validator: Any, kind: Any, value: Any, schema: Any) -> Any:
        if not isinstance(kind, str) or kind not in _SAME_IN_PYTHON:
            return by_jsonschema["type"](validator, kind, value, schema)
        return () if isinstance(value, _SAME_IN_PYTHON[kind]) else wrong

    def enum(validator: Any, allowed: Any, value: Any, schema: Any) -> Any:
        if not isinstance(value, str):  # of other kinds, JSON and Python call different things equal
            return by_jsonschema["enum"](validator, allowed, value, schema)
        return () if value in allowed else wrong

    by_jsonschema = validator.VALIDATORS
    keywords = {"properties": properties, "items": items, "anyOf": any_of, "type": of_type, "enum": enum}
    own: Any = extend(type(validator), keywords)  # type: ignore[no-untyped-call]
    return own(validator.schema, registry=Registry())
