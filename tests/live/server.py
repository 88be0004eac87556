"""The server under test: the user's own, or one that ``live/run.py`` started."""

from __future__ import annotations

import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pytest

_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class LiveServer:
    """Where it is, and what is known of it.

    Attributes:
        base_url: of its API; ``None``: there is none, and the tests are skipped.
        way: how ``live/run.py`` serves (``WAYS`` there); ``""`` for the user's own server.
        pid: of a server that ``live/run.py`` started; 0 for the user's own.
        last: whether the server is not needed after these tests.
    """

    base_url: str | None
    model: str
    api_key: str | None
    way: str
    pid: int
    last: bool

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of a host's config block that lead to it."""
        settings = {"base_url": self.base_url, "model": self.model, "api_key": self.api_key}
        # Without chance, the tiny model's noise repeats one item for ever under guidance's grammar.
        return settings | ({"temperature": 1.0, "top_p": 1.0} if self.way == "guidance" else {})

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
        """Ask it directly, past the package: GET, or POST with a body; return status and answer."""
        url = f"{self.base_url}{path}" if path.startswith("/chat") else f"{self.root}{path}"
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with _DIRECT.open(urllib.request.Request(url, data, headers), timeout=120) as answer:
                status, raw = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, raw = error.code, error.read()
        try:
            return status, json.loads(raw)
        except ValueError:
            return status, raw.decode(errors="replace")

    @property
    def root(self) -> str:
        """The server's address, without the API's ``/v1``."""
        return (self.base_url or "").rstrip("/").removesuffix("/v1")

    @cached_property
    def context(self) -> int:
        """The context length; skips the test where the server does not tell."""
        status, page = self.ask("/v1/models")
        lengths = [model.get("max_model_len") for model in page["data"]] if status == 200 else [None]
        if not lengths[0]:
            pytest.skip("the server does not tell its context length")
        return int(lengths[0])

    def tokens(self, **body: Any) -> dict[str, Any]:
        """vLLM's tokenization of a prompt or of messages; skips the test on servers without it."""
        status, answer = self.ask("/tokenize", {"model": self.model, **body})
        if status == 404:
            pytest.skip("the server has no /tokenize (vLLM has)")
        assert status == 200, answer
        return dict(answer)

    def running(self) -> int:
        """How many requests it is working on, by its own metrics."""
        _, text = self.ask("/metrics")
        return int(sum(map(float, re.findall(r"^vllm:num_requests_running\{[^}]*\} (\S+)$", text, re.MULTILINE))))


# Read while this file is imported: during a test the variables are gone (tests/conftest.py).
LIVE = LiveServer(
    base_url=os.environ.get("HYMEMORY_BASE_URL"),
    model=os.environ.get("HYMEMORY_MODEL") or "hy-memory",
    api_key=os.environ.get("HYMEMORY_API_KEY") or None,
    way=os.environ.get("HYMEMORY_LIVE_SERVER", ""),
    pid=int(os.environ.get("HYMEMORY_LIVE_PID", "0")),
    last=os.environ.get("HYMEMORY_LIVE_LAST") == "1",
)

needs_server = pytest.mark.skipif(
    LIVE.base_url is None,
    reason="no server: nox -s live starts one; HYMEMORY_BASE_URL=http://127.0.0.1:8000/v1 names your own "
    "(also read: HYMEMORY_MODEL, HYMEMORY_API_KEY)",
)


def only(ways: Sequence[str], why: str) -> pytest.MarkDecorator:
    """Skip unless the server is one of these; ``""`` is the user's own."""
    return pytest.mark.skipif(LIVE.way not in ways, reason=why)


own_server = only(("xgrammar", "guidance"), "only against a server of our own, which nox -s live starts")
answers = only(("", "xgrammar", "guidance"), "this server's model loops in white space on purpose")
