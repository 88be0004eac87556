"""What the adapter adds to a write: everyone in ``contenders.py`` against one endpoint that answers three memories.

One writer at a time, the latency is the client's own work. With 32 at once in one process the interpreter lock makes
every writer wait for everyone's work. An endpoint that answers after 100 ms stands for a fast model; one that answers
at once shows the work alone. ``to_thread`` is how Mem0's ``AsyncMemory`` calls its LLM, with asyncio's own executor: on
two cores that is six threads, whoever the provider is.

Before anything is measured, the bodies that bare and ours send are compared.
"""

from __future__ import annotations

import json

from contenders import MANY, Ways, contenders
from endpoint import Endpoint
from figures import Budget, Row
from rounds import freeze, in_turn

RATIO, EXTRA_MS = 1.05, 1.0


FULL = {(1, 0): (40, 10), (1, 100): (20, 3), (MANY, 0): (20, 3), (MANY, 100): (15, 3)}
"""Rounds, and writes of each writer in a round, by number of writers and delay in ms."""


def measure(endpoint: Endpoint, *, quick: bool) -> list[Row]:
    """The whole comparison."""
    ways = Ways()
    check_bodies(endpoint, ways)
    rows: list[Row] = []
    for (writers, delay), (rounds, times) in FULL.items():
        section = f"{writers} at once, the endpoint answers " + (f"after {delay} ms" if delay else "at once")
        budget = Budget("ratio", RATIO) if delay else Budget("extra", EXTRA_MS)
        groups = contenders(endpoint.url(delay), ways)
        freeze()
        found: list[Row] = []
        for group in groups.values():
            size = {"times": 1, "rounds": 1} if quick else {"times": times, "rounds": rounds}
            found += in_turn(section, group, endpoint, writers=writers, **size)
        for row in found:
            if row.name.startswith("ours") and (delay or writers == 1):
                row.budgets = (budget,)
        rows += found
        ways.close_clients()
    ways.close()
    return rows


def check_bodies(endpoint: Endpoint, ways: Ways) -> None:
    """Make sure that bare sends what ours sends."""
    sent = {}
    for group in contenders(endpoint.url(0), ways).values():
        for contender in group:
            contender.run(1, 1)
            sent[contender.name] = json.loads(endpoint.seen()["body"])
    for name, body in sent.items():
        if not name.startswith("stock") and body != sent["ours"]:
            raise SystemExit(f"{name!r} does not send what the adapter sends: the comparison would be unfair")
