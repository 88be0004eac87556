"""Start a vLLM on loopback, wait until it answers, and end it again with all its children.

    python live/server.py build/tiny --port 8000 [--python .live/bin/python] [-- more vLLM flags]

Needs nothing but the standard library; the Python that runs vLLM may be another one.
"""

# ruff: noqa: S603, T201 (a script: it starts what it is told to start, and says so)

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

MODEL_NAME = "hy-memory"
START_SECONDS = 900
STOP_SECONDS = 20
TAIL = 30

FLAGS = (
    *("--served-model-name", MODEL_NAME, "--max-num-seqs", "8", "--enforce-eager"),
    *("--reasoning-parser", "hy_v3", "--enable-auto-tool-choice", "--tool-call-parser", "hy_v3"),
)


class ServerError(RuntimeError):
    """The server did not come up; the message ends with the end of its log."""


class Server:
    """A vLLM of one's own, as a context manager.

    Args:
        model: the checkpoint's folder.
        python: the Python that has vLLM.
        port: 0 takes a free one.
        context: the context length in tokens.
        flags: more flags of vLLM's.
        log: the file for its output; without it, a temporary one.
    """

    def __init__(
        self,
        model: Path,
        *,
        python: str = sys.executable,
        port: int = 0,
        context: int = 32768,
        flags: Sequence[str] = (),
        log: Path | None = None,
    ) -> None:
        self.port = port or _free_port()
        self.log = log or Path(tempfile.mkdtemp(prefix="live-")) / "vllm.log"
        self._command = [
            *(python, "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)),
            *("--host", "127.0.0.1", "--port", str(self.port), "--max-model-len", str(context), *FLAGS, *flags),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The base URL of its API."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def pid(self) -> int:
        """The process that listens; the engine is a child of it."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def __enter__(self) -> Server:
        with self.log.open("wb") as log:
            # A session of its own, so that its children can be ended with it.
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment(),
                start_new_session=True,
            )  # fmt: skip
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the server; whatever of it is still there after a while is killed."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def tail(self) -> str:
        """The end of its log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-TAIL:])

    def _wait(self) -> None:
        assert self._process is not None
        until = time.monotonic() + START_SECONDS
        while not self._healthy():
            if self._process.poll() is not None:
                raise ServerError(f"vLLM ended with {self._process.returncode}; its log ({self.log}):\n{self.tail()}")
            if time.monotonic() > until:
                raise ServerError(f"vLLM is not up after {START_SECONDS} s; its log ({self.log}):\n{self.tail()}")
            time.sleep(0.3)

    def _healthy(self) -> bool:
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with direct.open(f"http://127.0.0.1:{self.port}/health", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _environment() -> dict[str, str]:
    cores = sorted(os.sched_getaffinity(0))[:4] if hasattr(os, "sched_getaffinity") else [0]
    quiet = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    cpu = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": ",".join(map(str, cores))}
    return {**os.environ, **quiet, **cpu, "PYTHONPATH": ""}


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--python", default=sys.executable, help="a Python that has vLLM")
    parser.add_argument("--context", type=int, default=32768)
    parser.add_argument("--log", type=Path)
    parser.add_argument("flags", nargs="*", help="after --: flags for vLLM")
    given = vars(parser.parse_args())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with Server(given.pop("model"), **given) as server:
        print(f"{server.url} (pid {server.pid}, log {server.log})", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main()
