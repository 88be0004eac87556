"""Run the live tests against vLLM, once for each way of serving and each client that it is given.

    python live/run.py --vllm .live/bin/python --client venv/bin/python [--only loop] [-- pytest arguments]

A client is a Python that has the package, a host and pytest. ``nox -s live`` makes them and calls this.
"""

# ruff: noqa: S603, T201 (a script: it starts what it is told to start, and says so)

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from server import MODEL_NAME, Server, ServerError
from tiny_model import build

ROOT = Path(__file__).resolve().parent.parent
KEY = "a-key-of-the-live-lane"
NO_WHITESPACE = ("--structured-outputs-config.disable_any_whitespace", "true")


@dataclass(frozen=True)
class Way:
    """One way of serving the tiny model.

    Attributes:
        suffix: what the model's tags end in.
        loop: whether the model loops in white space.
        flags: vLLM's.
        key: what the server wants as a key.
        clients: how many of the clients run against it, the first ones.
    """

    suffix: str = ""
    loop: bool = False
    flags: tuple[str, ...] = ()
    key: str = ""
    clients: int = 9


WAYS = {
    # Thinking is on unless a request switches it off, so that a request that does not is found out.
    "xgrammar": Way(
        flags=(
            *("--structured-outputs-config.backend", "xgrammar", *NO_WHITESPACE),
            *("--default-chat-template-kwargs", '{"reasoning_effort": "high"}', "--api-key", KEY),
        ),
        key=KEY,
    ),
    "guidance": Way(
        suffix=":opensource",
        flags=("--structured-outputs-config.backend", "guidance", *NO_WHITESPACE),
        clients=2,
    ),
    "loop": Way(loop=True, clients=1),
}
"""By name, as the tests know it from HYMEMORY_LIVE_SERVER."""


def run(name: str, vllm: str, clients: Sequence[str], folder: Path, tests: str, arguments: Sequence[str]) -> list[str]:
    """Serve in one way and run the tests; return what failed."""
    way = WAYS[name]
    model = folder / f"tiny-{name}"
    build(model, suffix=way.suffix, loop=way.loop)
    failed = []
    chosen = clients[: way.clients]
    with Server(model, python=vllm, flags=way.flags, log=folder / f"{name}.log") as server:
        for client in chosen:
            print(f"-- {name}: {client}", flush=True)
            environment = {
                **os.environ,
                "HYMEMORY_BASE_URL": server.url,
                "HYMEMORY_MODEL": MODEL_NAME,
                "HYMEMORY_API_KEY": way.key,
                "HYMEMORY_LIVE_SERVER": name,
                "HYMEMORY_LIVE_PID": str(server.pid),
                "HYMEMORY_LIVE_LAST": str(int(client == chosen[-1])),
                "MEM0_TELEMETRY": "False",
            }
            command = [client, "-m", "pytest", "-q", tests, *arguments]
            if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
                failed.append(f"{name}: {client}")
    return failed


def main() -> None:
    """Run them all; the exit code says whether all passed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--vllm", required=True, help="the Python that has vLLM")
    parser.add_argument(
        "--client", action="append", required=True, dest="clients", help="a Python that has the package"
    )
    parser.add_argument("--only", action="append", choices=tuple(WAYS), help="these ways of serving alone")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "live", help="for checkpoints and logs")
    parser.add_argument("--tests", default="tests/live", help="a folder of tests")
    parser.add_argument("arguments", nargs="*", help="after --: arguments for pytest")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the server ends with this
    failed: list[str] = []
    for name in given.only or WAYS:
        try:
            failed += run(name, given.vllm, given.clients, given.folder, given.tests, given.arguments)
        except ServerError as error:
            sys.exit(f"{name}: {error}")
    if failed:
        sys.exit("live tests failed with " + ", ".join(failed))


if __name__ == "__main__":
    main()
