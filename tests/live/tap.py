"""A proxy on loopback that passes requests on and keeps what went over the wire."""

from __future__ import annotations

import http.client
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

_PASSED_ON = ("Content-Type", "Authorization")


@dataclass(frozen=True)
class Passed:
    """One request and its answer."""

    path: str
    sent: Any
    status: int
    answer: Any

    @property
    def choice(self) -> dict[str, Any]:
        return dict(self.answer["choices"][0])

    @property
    def content(self) -> str | None:
        return self.choice["message"]["content"]


class Tap:
    """Stands between the package and a server.

    Args:
        base_url: of the server's API.
    """

    def __init__(self, base_url: str) -> None:
        self.passed: list[Passed] = []
        self.target = urlsplit(base_url)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.tap = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.target.path}"

    @property
    def chats(self) -> list[Passed]:
        return [passed for passed in self.passed if passed.path.endswith("/chat/completions")]

    def note(self, passed: Passed) -> None:
        """Keep what went by; called before the answer goes on."""
        self.passed.append(passed)

    def __enter__(self) -> Tap:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        self._pass_on("GET", None)

    def do_POST(self) -> None:
        self._pass_on("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def _pass_on(self, method: str, raw: bytes | None) -> None:
        tap: Tap = self.server.tap  # type: ignore[attr-defined]
        secure = tap.target.scheme == "https"
        connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(
            tap.target.hostname or "", tap.target.port, timeout=300
        )
        headers = {name: self.headers[name] for name in _PASSED_ON if name in self.headers}
        try:
            connection.request(method, self.path, raw, headers)
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        tap.note(Passed(self.path, json.loads(raw) if raw else None, response.status, json.loads(answer)))
        self.send_response(response.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass
