"""Contenders take turns, so that the noise of a shared machine falls on all alike.

Each round everyone does the same number of writes, in changing order. Latencies, the wall time of the round by its
writes, and the CPU time of this process (the endpoint is another) by its writes: what a noisy machine disturbs least.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from endpoint import Endpoint
from figures import Row


@dataclass(frozen=True)
class Contender:
    """Someone who does a number of writes in one round.

    Attributes:
        name: of its row.
        against: the row that it is compared with.
        run: writes so often from each of so many writers; returns the latency of each write in ms.
    """

    name: str
    against: str
    run: Callable[[int, int], list[float]]


@dataclass
class _Found:
    latencies: list[float]
    medians: list[float]
    walls: list[float]
    work: list[float]
    connections: int = 0


def freeze() -> None:
    """Take what is loaded by now out of the garbage collector's sight.

    A full collection of Mem0 and all that it imports takes 0.2 s and would fall on some contender by chance.
    """
    gc.collect()
    gc.freeze()


def in_turn(
    section: str, everyone: Sequence[Contender], endpoint: Endpoint, *, writers: int, times: int, rounds: int
) -> list[Row]:
    """Let everyone run once a round, in changing order; the round before the first warms up (a single one has none)."""
    found = {contender.name: _Found([], [], [], []) for contender in everyone}
    for number in range(rounds == 1, rounds + 1):
        first = number % len(everyone)
        order = [*everyone[first:], *everyone[:first]]
        for contender in order if number % 2 else reversed(order):
            connections, before, work = endpoint.seen()["connections"], time.perf_counter(), time.process_time()
            latencies = contender.run(writers, times)
            wall, work = (time.perf_counter() - before) * 1000, (time.process_time() - work) * 1000
            if not number:
                continue
            mine = found[contender.name]
            mine.latencies += latencies
            mine.medians.append(statistics.median(latencies))
            mine.walls.append(wall / len(latencies))
            mine.work.append(work / len(latencies))
            mine.connections += endpoint.seen()["connections"] - connections
    return [_row(section, contender, found) for contender in everyone]


def _row(section: str, contender: Contender, found: dict[str, _Found]) -> Row:
    mine, others = found[contender.name], found.get(contender.against)
    return Row(
        section=section,
        name=contender.name,
        unit="ms",
        values=mine.latencies,
        rounds=mine.medians,
        against=contender.against,
        base=others.medians if others else [],
        more={
            "all: wall / writes": _with_extra(mine.walls, others and others.walls),
            "CPU a write": _with_extra(mine.work, others and others.work),
            "connections": mine.connections,
        },
    )


def _with_extra(values: list[float], base: list[float] | None) -> str:
    shown = f"{statistics.median(values):.3f}"
    if base:
        shown += f" ({statistics.median(a - b for a, b in zip(values, base, strict=True)):+.3f})"
    return shown
