"""The write calls of a made-up host, so that the core is tested without any framework.

Everything is a plain function at module level: a writer with this table can be pickled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from hymemory_adapters.core.exchange import Written
from hymemory_adapters.core.problem import Problem
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall
from hymemory_adapters.core.writer import Writer
from hymemory_adapters.settings import WriterSettings
from tests.support.scripted import ScriptedEndpoint

_FACT = {"type": "string", "minLength": 1}
FACTS = Schema(
    {
        "type": "object",
        "properties": {"facts": {"type": "array", "items": _FACT, "maxItems": 50}},
        "required": ["facts"],
        "additionalProperties": False,
    },
    name="demo_facts",
)
GOOD, EMPTY = '{"facts": ["Likes tea"]}', '{"facts": []}'
SAID = "Alice whispered that her safe opens with 4711"
"""What the user says in every request that says nothing else. It must show up in no error and no log."""


def _forbidden(value: Any) -> list[Problem]:
    found = [i for i, fact in enumerate(value["facts"]) if fact == "forbidden"]
    return [Problem("forbidden", "this fact was not offered", f"$.facts[{i}]") for i in found]


def _decides_nothing(value: Any) -> list[Problem]:
    return [] if value["facts"] else [Problem("undecided", "nothing was decided", "$.facts")]


def _keep(fitting: Any) -> Any:
    return {"facts": ["kept", *(fitting or {"facts": []})["facts"]]}


def _nothing(_: Any) -> Any:
    return {"facts": []}


OWN_MESSAGES = ({"role": "user", "content": "list the facts as JSON"},)
CONTRACTS = {
    "facts": Contract(FACTS, check=_forbidden),
    "kept": Contract(FACTS, check=_forbidden, fallback=_keep),
    "emptied": Contract(FACTS, check=_forbidden, fallback=_nothing),
    "text": Contract(render=str),
    "decide": Contract(FACTS, check=_forbidden, undecided=_decides_nothing),
    "reworded": Contract(FACTS, messages=OWN_MESSAGES),
}
_LOSS = {"kept": OnLost.SALVAGE, "emptied": OnLost.EMPTY}


def _recognise(name: str, request: Request) -> Contract | None:
    return CONTRACTS[name] if request.text(0) == f"call {name}" else None


CALLS = tuple(WriteCall(f"demo.{name}", partial(_recognise, name), _LOSS.get(name, OnLost.RAISE)) for name in CONTRACTS)


def ask(name: str = "facts", text: str = SAID, **more: Any) -> Request:
    """A request of the made-up host that the row ``name`` recognises."""
    return Request([{"role": "system", "content": f"call {name}"}, {"role": "user", "content": text}], **more)


def writer_at(endpoint: ScriptedEndpoint | str, **settings: Any) -> Writer:
    """A writer of the made-up host for an endpoint."""
    url = endpoint if isinstance(endpoint, str) else endpoint.url
    return Writer("demo", CALLS, WriterSettings(base_url=url, **settings))


def soon(true: Callable[[], bool]) -> bool:
    """Wait until something is true, ten seconds at most."""
    for _ in range(1000):
        if true():
            return True
        time.sleep(0.01)
    return False


Write = Callable[[Writer, Request], Written]


def in_a_thread(writer: Writer, request: Request) -> Written:
    return writer.write(request)


def in_a_loop(writer: Writer, request: Request) -> Written:
    return asyncio.run(writer.awrite(request))


both_ways = pytest.mark.parametrize("write", [in_a_thread, in_a_loop], ids=["write", "awrite"])
