"""A loopback OpenAI-compatible endpoint in a process of its own, cheap enough not to be what is measured.

    python bench/endpoint.py        # prints its port; ends when its standard input does

It reads no more of a request than its length and plays one reply, made beforehand but for a number that makes each
write another. The path says how long a reply takes: ``/after-100/v1`` is a base URL that answers after 100 ms. One
process with its own event loop, so that it takes nothing from the client's interpreter lock; Nagle's algorithm is
off (it would hold a reply back by 40 ms), connections stay open for as long as the client likes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from types import TracebackType
from typing import Any
from urllib.request import urlopen

ITEMS = 3
_NUMBER = b"0000000000"


def reply_text(items: int, number: str = "") -> str:
    """What the model answers to Mem0's additive call: so many new memories."""
    memories = [
        {
            "id": str(index),
            "text": f"User {number} moved to Pune in June {index} and drinks black coffee every morning before work",
            "attributed_to": "user",
            "linked_memory_ids": ["1", "3"],
        }
        for index in range(items)
    ]
    return json.dumps({"memory": memories})


def _response() -> bytes:
    message = {"role": "assistant", "content": reply_text(ITEMS, _NUMBER.decode())}
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "hy-memory",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 8400, "completion_tokens": 120, "total_tokens": 8520},
    }
    return _http(json.dumps(body).encode())


def _http(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


_RESPONSE = _response()
_numbers = itertools.count()
_seen: dict[str, Any] = {"connections": 0, "requests": 0, "body": b"{}"}


class _Connection(asyncio.Protocol):
    """One client's connection. asyncio switches Nagle's algorithm off by itself."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = bytearray()
        self.missing = 0  # bytes until the request is whole, once its head is known
        self.used = False

    def data_received(self, data: bytes) -> None:
        self.received += data
        if not self.missing:
            end = self.received.find(b"\r\n\r\n")
            if end < 0:
                return
            self.missing = end + 4 + _content_length(bytes(self.received[:end]))
        if len(self.received) >= self.missing:
            raw, self.received, self.missing = bytes(self.received), bytearray(), 0
            self._answer(raw)

    def _answer(self, raw: bytes) -> None:
        path = raw.split(b" ", 2)[1].decode()
        if path == "/seen":
            told = {**_seen, "body": _seen["body"].decode()}
            self._write(_http(json.dumps(told).encode()))
            return
        _seen["connections"] += not self.used
        self.used = True
        _seen["requests"] += 1
        _seen["body"] = raw.partition(b"\r\n\r\n")[2]
        response = _RESPONSE.replace(_NUMBER, b"%010d" % next(_numbers))
        delay = int(path.split("/")[1].removeprefix("after-")) / 1000
        if delay:
            asyncio.get_running_loop().call_later(delay, self._write, response)
        else:
            self._write(response)

    def _write(self, response: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(response)


def _content_length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 (to whoever started it)
    await loop.run_in_executor(None, sys.stdin.read)


class Endpoint:
    """The process, started and ended."""

    def __enter__(self) -> Endpoint:
        self._process = subprocess.Popen(  # noqa: S603 (this very file)
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._root = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate(timeout=10)

    def url(self, delay_ms: int) -> str:
        """The base URL whose replies take so long."""
        return f"{self._root}/after-{delay_ms}/v1"

    def seen(self) -> dict[str, Any]:
        """How many connections and requests there were, and the last request's body."""
        with urlopen(f"{self._root}/seen", timeout=10) as response:  # noqa: S310 (our own loopback address)
            told: dict[str, Any] = json.load(response)
        return told


if __name__ == "__main__":
    asyncio.run(_serve())
