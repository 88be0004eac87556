"""How cassettes are recorded, stored and matched: method, path and body; only harmless headers; nothing unplayed.

They are played on a day that is not today, so that a request which holds the day fails at once and not tomorrow.
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters import packaged
from tests.live.server import LIVE

pytest.importorskip("vcr", reason="cassettes are played by nox -s cassettes")
time_machine = pytest.importorskip("time_machine", reason="cassettes are played by nox -s cassettes")

ANOTHER_DAY = time_machine.travel(timedelta(days=400, hours=7))
if LIVE.base_url is None:
    ANOTHER_DAY.start()  # here: prompts may hold the day on which the host was imported

ROOT = Path(__file__).resolve().parents[2] / "cassettes"
HOSTS = packaged.read("hosts.toml")
PLACE = "http://127.0.0.1:8000"
"""Where every recorded server stands: the real address and port say nothing."""
HEADERS = ("content-type",)
LONGEST = 500
"""Characters of a message that are stored as they are."""


def pytest_sessionfinish() -> None:
    if LIVE.base_url is None:
        ANOTHER_DAY.stop()


def _kept(headers: Any) -> dict[str, Any]:
    return {name.lower(): value for name, value in headers.items() if name.lower() in HEADERS}


def _request(request: Any) -> Any:
    request.uri = re.sub(r"^https?://[^/]+", PLACE, request.uri)
    request.headers = _kept(request.headers)
    if request.body:
        body = json.loads(request.body)
        for message in body.get("messages", ()):
            message["content"] = _told(message["content"])
        request.body = json.dumps(body, ensure_ascii=False).encode()
    return request


def _told(content: str) -> str:
    """A host's long prompt stands in a cassette as its digest: it still has to match, and is not copied."""
    if len(content) <= LONGEST:
        return content
    return f"{len(content)} characters, sha256 {hashlib.sha256(content.encode()).hexdigest()}"


def _response(response: dict[str, Any]) -> dict[str, Any]:
    body = json.loads(response["body"]["string"])
    for model in body.get("data", ()):
        for field in ("root", "permission"):  # the checkpoint's folder on the machine that recorded
            model.pop(field, None)
    return {**response, "headers": _kept(response["headers"]), "body": {"string": json.dumps(body).encode()}}


def same_body(one: Any, other: Any) -> None:
    """Match bodies as JSON: openai's versions order the keys differently."""
    bodies = [json.loads(request.body) if request.body else None for request in (one, other)]
    assert bodies[0] == bodies[1]


def pytest_recording_configure(config: pytest.Config, vcr: Any) -> None:
    vcr.register_matcher("same_body", same_body)


@pytest.fixture(scope="module")
def vcr_config() -> dict[str, Any]:
    return {
        "match_on": ["method", "path", "same_body"],
        "before_record_request": _request,
        "before_record_response": _response,
        "decode_compressed_response": True,
    }


def folder(host: str, version: str) -> str:
    """Where the cassettes of a host's version are: its own, or those of the version whose requests are the same."""
    shared = {entry["version"]: entry.get("cassettes") for entry in HOSTS[host]["tested"]}
    return f"{host}-{shared.get(version) or version}"


@pytest.fixture
def vcr_cassette_dir(request: pytest.FixtureRequest) -> str:
    if "row" not in request.fixturenames:
        return str(ROOT)  # no write is played
    host = request.node.callspec.params["row"].host
    return str(ROOT / folder(host, version(HOSTS[host]["distribution"])))


@pytest.fixture
def default_cassette_name(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.id)
