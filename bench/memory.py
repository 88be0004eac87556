"""Whether writing keeps memory: 10,000 writes, each answered with other words, in a process of their own.

Two things are looked at, one after the other, each after a warm-up: what the operating system says the process holds
(resident memory, where ``/proc`` tells it), and what Python's allocator says is alive (``tracemalloc``, which slows
writing down and needs memory itself). The bare openai client does the same for comparison: what it keeps, a provider
that uses it cannot give back.
"""

# ruff: noqa: S603 (a script: it starts itself)

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from endpoint import Endpoint
from figures import Row

WARM_UP = 500
CHUNKS = 10
STATM = Path("/proc/self/statm")
PAGE = 4096


def measure(endpoint: Endpoint, *, quick: bool) -> list[Row]:
    """Growth of both, bytes a write."""
    writes = 20 if quick else 10_000
    rows = []
    for who in ("bare", "ours"):
        command = [sys.executable, __file__, who, endpoint.url(0), str(writes)]
        told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
        rows += [_row(f"{kind}, {who}", samples, writes) for kind, samples in json.loads(told).items()]
    return rows


def _row(name: str, samples: list[int], writes: int) -> Row:
    return Row(
        section=f"Memory kept by {writes:,} writes",
        name=name,
        unit="bytes a write",
        values=[(after - before) / (writes / CHUNKS) for before, after in pairwise(samples)],
        more={
            "at first, MiB": f"{samples[0] / 2**20:.2f}",
            "at last, MiB": f"{samples[-1] / 2**20:.2f}",
            "all: bytes a write": f"{(samples[-1] - samples[0]) / writes:+.1f}",
        },
    )


def _resident() -> int:
    return int(STATM.read_text().split()[1]) * PAGE if STATM.exists() else 0


def _alive() -> int:
    return tracemalloc.get_traced_memory()[0]


def _child(who: str, url: str, writes: int) -> None:
    from contenders import Ways, contenders

    (contender,) = (one for one in contenders(url, Ways())["threads"] if one.name == who)

    def samples(held: Callable[[], int]) -> Iterator[int]:
        contender.run(1, min(WARM_UP, writes))  # what the next write replaces must be there already
        for chunk in range(CHUNKS + 1):
            if chunk:
                contender.run(1, writes // CHUNKS)
            gc.collect()
            yield held()

    gc.freeze()  # Mem0's own modules need no looking through at each sample
    resident = list(samples(_resident))
    tracemalloc.start()
    sys.stdout.write(json.dumps({"resident": resident, "alive": list(samples(_alive))}))


if __name__ == "__main__":
    _child(sys.argv[1], sys.argv[2], int(sys.argv[3]))
