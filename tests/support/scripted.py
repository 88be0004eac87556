"""A loopback OpenAI-compatible endpoint that plays replies and faults, and keeps what it was sent."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Say:
    """A chat completion. ``text=None`` is ``"content": null``."""

    text: str | None
    finish_reason: str | None = "stop"
    reasoning: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tokens_out: int | None = None
    delay: float = 0.0
    breaks_off: bool = False
    """As a stream: the connection is closed in the middle."""
    garbled: bool = False
    """As a stream: what comes in the middle is no JSON."""

    def body(self, request: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self.reasoning is not None:
            message["reasoning"] = self.reasoning
        if self.tool_calls is not None:
            message["tool_calls"] = self.tool_calls
        default = request.get("max_tokens") if self.finish_reason == "length" else 20
        tokens_out = self.tokens_out if self.tokens_out is not None else default
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": request.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish_reason}],
            "usage": {"prompt_tokens": 100, "completion_tokens": tokens_out, "total_tokens": 120},
        }

    def chunks(self, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The same as a stream: a word a chunk, the tokens at the end if they are asked for."""
        whole = self.body(request)
        base = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        words = re.findall(r"\S+\s*", self.text or "")
        for word in words[: len(words) // 2 if self.breaks_off or self.garbled else None]:
            yield {**base, "choices": [{"index": 0, "delta": {"role": "assistant", "content": word}}]}
        yield {**base, "choices": [{"index": 0, "delta": {}, "finish_reason": self.finish_reason}]}
        if (request.get("stream_options") or {}).get("include_usage"):
            yield {**base, "choices": [], "usage": whole["usage"]}


@dataclass(frozen=True)
class Fail:
    """An HTTP error."""

    status: int
    message: str = "no"
    headers: dict[str, str] = field(default_factory=dict)
    body: Any = None
    delay: float = 0.0


class Drop:
    """Close the connection without an answer."""


@dataclass
class Recorded:
    """One request that came in; header names in lower case."""

    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> dict[str, Any]:
        return dict(json.loads(self.raw))

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body["messages"])


Script = Say | Fail | Drop | str | Callable[[dict[str, Any]], "Say | Fail | Drop | str"]


class ScriptedEndpoint:
    """Plays ``script``, one entry a chat request, the last one again and again.

    An entry may be a function of the request's body.
    """

    def __init__(self, *script: Script, models: Iterable[str] = ("hy-memory",), context: int | None = 32768) -> None:
        self.script: list[Script] = list(script)
        self.models = list(models)
        self.context = context
        self.requests: list[Recorded] = []
        self.models_fail = False
        self.refuse: Callable[[dict[str, Any]], Fail | None] = lambda _: None
        """Looks at each request's body before the script does."""
        self.streams_cut = 0
        """Streams that the client closed before they ended."""
        self.at_once = self.most_at_once = 0
        self.connections = self.connections_open = 0
        """How many there have been, and how many neither side has closed."""
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def chats(self) -> list[Recorded]:
        return [request for request in self.requests if request.path == "/v1/chat/completions"]

    def play(self, *script: Script) -> ScriptedEndpoint:
        """Start a new script, and forget what came in."""
        self.script, self.requests = list(script), []
        return self

    def __enter__(self) -> ScriptedEndpoint:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _next(self, request: Recorded) -> Say | Fail | Drop | str:
        if refused := self.refuse(request.body):
            return refused
        with self._lock:
            entry = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return entry(request.body) if callable(entry) else entry


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


class _Server(ThreadingHTTPServer):
    owner: ScriptedEndpoint
    daemon_threads = True
    request_queue_size = 256

    def process_request(self, request: Any, client_address: Any) -> None:
        with self.owner._lock:
            self.owner.connections += 1
            self.owner.connections_open += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self.owner._lock:
            self.owner.connections_open -= 1
        super().shutdown_request(request)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Nagle's algorithm delays every answer by 40 ms on loopback; one buffered write a response besides.
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _Server

    def do_GET(self) -> None:
        owner = self.server.owner
        owner.requests.append(Recorded(self.path, _lower(self.headers), b""))
        if self.path != "/v1/models" or owner.models_fail:
            return self._answer(404, {"error": {"message": "no such page"}})
        length = {} if owner.context is None else {"max_model_len": owner.context}
        models = [{"id": name, "object": "model", "created": 1, "owned_by": "x", **length} for name in owner.models]
        return self._answer(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        owner = self.server.owner
        recorded = Recorded(self.path, _lower(self.headers), self.rfile.read(int(self.headers["Content-Length"])))
        with owner._lock:
            owner.requests.append(recorded)
            owner.at_once += 1
            owner.most_at_once = max(owner.most_at_once, owner.at_once)
        try:
            self._play(owner._next(recorded), recorded)
        finally:
            with owner._lock:
                owner.at_once -= 1

    def _play(self, entry: Say | Fail | Drop | str, request: Recorded) -> None:
        if isinstance(entry, str):
            entry = Say(entry)
        if isinstance(entry, Drop):
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        time.sleep(entry.delay)
        if isinstance(entry, Fail):
            body = entry.body if entry.body is not None else {"error": {"message": entry.message, "type": "x"}}
            self._answer(entry.status, body, entry.headers)
        elif request.body.get("stream"):
            self._stream(entry, request.body)
        else:
            self._answer(200, entry.body(request.body))

    def _stream(self, entry: Say, request: dict[str, Any]) -> None:
        self.close_connection = True
        try:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in entry.chunks(request):
                at_end = bool(chunk["choices"]) and "finish_reason" in chunk["choices"][0]
                if entry.breaks_off and at_end:
                    self.wfile.flush()
                    return  # no last chunk: the client sees a connection that breaks
                self._event("{" if entry.garbled and at_end else json.dumps(chunk))
            self._event("[DONE]")
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()
        except OSError:
            self.server.owner.streams_cut += 1

    def _event(self, data: str) -> None:
        raw = f"data: {data}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(raw), raw))
        self.wfile.flush()

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(raw)
            self.wfile.flush()
        except OSError:
            pass  # the client did not wait

    def log_message(self, format: str, *args: Any) -> None:
        pass
