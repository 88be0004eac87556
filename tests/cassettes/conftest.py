"""How cassettes are recorded, stored and matched: method, path and body; only harmless headers; nothing unplayed."""

from __future__ import annotations

import hashlib
import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vcr", reason="cassettes are played by nox -s cassettes")

ROOT = Path(__file__).resolve().parents[2] / "cassettes"
PLACE = "http://127.0.0.1:8000"
"""Where every recorded server stands: the real address and port say nothing."""
HEADERS = ("content-type",)
LONGEST = 500
"""Characters of a message that are stored as they are."""


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


@pytest.fixture(scope="module")
def vcr_cassette_dir() -> str:
    return str(ROOT / f"mem0-{version('mem0ai')}")


@pytest.fixture
def default_cassette_name(request: pytest.FixtureRequest) -> str:
    return str(request.node.callspec.id)
