"""Structured output: one JSON value, as a schema or a pydantic class says (``with_structured_output``)."""

from __future__ import annotations

from functools import partial
from typing import Any

from hymemory_adapters.core.structured import structured_contract
from hymemory_adapters.core.write_call import OnLost, WriteCall


def structured_call() -> WriteCall:
    """Build the row."""
    return WriteCall(
        "langchain.structured",
        partial(structured_contract, render=_as_it_is),
        OnLost.RAISE,
        summary="asks for one JSON value of a schema (with_structured_output)",
        writes=False,
    )


def _as_it_is(value: Any) -> Any:
    return value
