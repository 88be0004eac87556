"""Measure what the package asks of a server: what a grammar costs, and what asking again finds in the prefix cache.

    client/bin/python live/figures.py --vllm .live/bin/python [--rows mem0.facts,mem0.update-10]

Run it with a Python that has the package and a host; it measures the write calls of that host (``tests/live/rows.py``).
It serves the tiny model with a vocabulary of Hy-Memory's size, filled from a tiktoken file: O200K_BASE names one, or
``llama-index-core`` brings it. Each run starts a server of its own, so that the first grammar is a fresh one.
"""

# ruff: noqa: S310, T201 (a script: it asks the server that it started, and prints)

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from server import MODEL_NAME, Server
from tiny_model import FULL_VOCABULARY, build

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.live.rows import ROWS, TALK, Row  # noqa: E402
from tests.live.tap import Passed, Tap  # noqa: E402
from tests.support.scripted import ScriptedEndpoint  # noqa: E402

from hymemory_adapters import HyMemoryError  # noqa: E402

O200K = "fb374d419588a4632f3f557e76b4b70aebbca790"  # the name under which tiktoken caches o200k_base
FLAGS = (
    *("--structured-outputs-config.backend", "xgrammar"),
    *("--structured-outputs-config.disable_any_whitespace", "true"),
)
REPEATS = 5
_COUNTERS = re.compile(r"^vllm:prefix_cache_(queries|hits)_total\{[^}]*\} (\S+)$", re.MULTILINE)


def tiktoken_file() -> Path:
    """The file that fills the vocabulary."""
    if named := os.environ.get("O200K_BASE"):
        return Path(named)
    found = importlib.util.find_spec("llama_index")
    for folder in (found and found.submodule_search_locations) or ():
        file = Path(folder) / "core" / "_static" / "tiktoken_cache" / O200K
        if file.is_file():
            return file
    sys.exit(
        "no tiktoken file: set O200K_BASE to an o200k_base file, or pip install llama-index-core, which brings one"
    )


# -- grammars --------------------------------------------------------------------------------------


def body_of(row: Row) -> dict[str, Any]:
    """What the package sends for a write call; no server sees it."""
    with ScriptedEndpoint("no answer") as endpoint, contextlib.suppress(HyMemoryError):
        row.ask(row.provider({"base_url": endpoint.url, "attempts": 1}), row.messages(TALK))
    return endpoint.chats[0].body


def first_token(url: str, body: Mapping[str, Any]) -> float:
    """Milliseconds until the first token of a streamed reply."""
    data = json.dumps({**body, "stream": True, "temperature": 0}).encode()
    request = urllib.request.Request(f"{url}/chat/completions", data, {"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    start = time.perf_counter()
    with direct.open(request, timeout=300) as lines:
        for line in lines:
            if line.startswith(b"data: {") and json.loads(line[6:])["choices"][0]["delta"].get("content"):
                elapsed = time.perf_counter() - start
                lines.read()
                return elapsed * 1000
    raise RuntimeError("the stream ended without a token")


def grammars(url: str, rows: Mapping[str, Row]) -> Iterator[Sequence[Any]]:
    """For each row: first-token times without a schema, with a fresh grammar, with a cached one."""
    for name, row in rows.items():
        body = body_of(row)
        plain = {key: value for key, value in body.items() if key != "response_format"}
        first_token(url, plain)  # the prompt is in the prefix cache from here on
        without = statistics.median(first_token(url, plain) for _ in range(REPEATS))
        fresh = first_token(url, body)
        cached = statistics.median(first_token(url, body) for _ in range(REPEATS))
        schema = json.dumps(body["response_format"]["json_schema"]["schema"])
        yield name, len(schema), f"{without:.0f}", f"{fresh:.0f}", f"{cached:.0f}"


# -- prefix cache ----------------------------------------------------------------------------------


def counters(root: str) -> dict[str, float]:
    """The server's own count of prompt tokens asked for in the prefix cache, and found there."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(f"{root}/metrics", timeout=30) as answer:
        return {name: float(value) for name, value in _COUNTERS.findall(answer.read().decode())}


class CountingTap(Tap):
    """Reads the counters after each chat request."""

    def __init__(self, server: Server) -> None:
        super().__init__(server.url)
        self._root = server.url.removesuffix("/v1")
        self._before = counters(self._root)
        self.counted: list[tuple[int, int]] = []

    def note(self, passed: Passed) -> None:
        """Keep it, and what the server counted meanwhile."""
        super().note(passed)
        if passed.path.endswith("/chat/completions"):
            after = counters(self._root)
            queries, hits = (int(after[name] - self._before[name]) for name in ("queries", "hits"))
            self.counted.append((queries, hits))
            self._before = after


def second_attempts(server: Server, rows: Mapping[str, Row]) -> Iterator[Sequence[Any]]:
    """For each row, whose first reply is cut: the prompts of both attempts, and the share found in the cache."""
    for name, row in rows.items():
        with CountingTap(server) as tap, contextlib.suppress(HyMemoryError):
            settings = {
                "base_url": tap.url,
                "model": MODEL_NAME,
                "attempts": 2,
                "max_tokens": 4,
                "max_tokens_ceiling": 8,
            }
            row.ask(row.provider(settings), row.messages(f"{TALK} Measured with {name}."))
        (first, first_hits), (second, second_hits) = tap.counted
        yield name, first, f"{first_hits / first:.1%}", second, f"{second_hits / second:.1%}"


# -- the table -------------------------------------------------------------------------------------


def print_table(head: Sequence[str], lines: Iterator[Sequence[Any]]) -> None:
    """As Markdown."""
    print("\n| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for line in lines:
        print("| " + " | ".join(map(str, line)) + " |", flush=True)


def main() -> None:
    """Start the server, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vllm", required=True, help="the Python that has vLLM")
    parser.add_argument("--rows", help="names of rows, with commas between; all of the installed hosts' without")
    given = parser.parse_args()
    rows = {name: ROWS[name] for name in given.rows.split(",")} if given.rows else ROWS
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        build(model, vocabulary=FULL_VOCABULARY, fill=tiktoken_file())
        with Server(model, python=given.vllm, flags=FLAGS, log=Path(folder) / "vllm.log") as server:
            times = "schema, bytes", "no schema, ms", "fresh grammar, ms", "cached grammar, ms"
            print_table(("write call", *times), grammars(server.url, rows))
            second = "attempt 1: prompt tokens", "in the cache", "attempt 2: prompt tokens", "in the cache"
            print_table(("write call", *second), second_attempts(server, rows))


if __name__ == "__main__":
    main()
