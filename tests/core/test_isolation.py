"""OPENAI_* variables belong to the app's own LLM: nothing of them reaches the writer's server.

Which of them the openai package reads differs from version to version, so this file runs on all of its majors.
"""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.support.calls import GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import ScriptedEndpoint

pytestmark = both_ways

THEIRS = {
    "OPENAI_API_KEY": "theirs-key",
    "OPENAI_ADMIN_KEY": "theirs-admin",
    "OPENAI_ORG_ID": "theirs-org",
    "OPENAI_ORGANIZATION": "theirs-organization",
    "OPENAI_PROJECT_ID": "theirs-project",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/theirs-url",
    "OPENAI_API_BASE": "http://127.0.0.1:9/theirs-base",
    "OPENAI_CUSTOM_HEADERS": "X-Theirs: theirs-header\nAuthorization: Bearer theirs-auth\nX-Ours: theirs-ours",
    "OPENAI_WEBHOOK_SECRET": "theirs-secret",
    "OPENAI_API_TYPE": "azure",
    "OPENAI_API_VERSION": "theirs-version",
    "OPENAI_LOG": "info",
}
OURS: dict[str, Any] = {"api_key": "ours-key", "headers": {"X-Ours": "ours-header", "X-Title": "memory"}}


def test_nothing_of_theirs_is_sent(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in THEIRS.items():
        monkeypatch.setenv(name, value)
    with ScriptedEndpoint("prose", GOOD) as endpoint:
        write(writer_at(endpoint, **OURS), ask())
        assert len(endpoint.requests) == 3, "chat, models, chat"
        for request in endpoint.requests:
            sent = f"{request.path} {request.headers} {request.raw!r}".lower()
            assert "theirs" not in sent
            assert not [name for name in request.headers if name in ("openai-organization", "openai-project")]
            assert request.headers["authorization"] == "Bearer ours-key"
            assert (request.headers["x-ours"], request.headers["x-title"]) == ("ours-header", "memory")
            assert all(request.headers.values()), "no empty header either"


def test_without_a_key_of_ours_no_key_of_theirs_is_sent(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "theirs-key")
    with ScriptedEndpoint(GOOD) as endpoint:
        write(writer_at(endpoint), ask())
        assert endpoint.chats[0].headers["authorization"] == "Bearer EMPTY"


def test_without_their_variables_everything_works_too(write: Write) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        assert write(writer_at(endpoint, **OURS), ask()).event.outcome == "ok"
        assert endpoint.chats[0].headers["authorization"] == "Bearer ours-key"


def test_variables_that_come_late_change_nothing(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        writer = writer_at(endpoint, **OURS)
        write(writer, ask())
        for name, value in THEIRS.items():
            monkeypatch.setenv(name, value)
        write(writer, ask(text="later"))
        assert not [chat for chat in endpoint.chats if "theirs" in f"{chat.headers} {chat.raw!r}"]


def test_two_keys_for_one_server_do_not_mix(write: Write) -> None:
    with ScriptedEndpoint(GOOD) as endpoint:
        for key in ("one", "two", "one"):
            write(writer_at(endpoint, api_key=key), ask())
        assert [chat.headers["authorization"] for chat in endpoint.chats] == ["Bearer one", "Bearer two", "Bearer one"]


def test_a_ca_bundle_changes_no_header(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    if not Path(bundle).is_file():
        bundle = pytest.importorskip("certifi").where()
    for name, value in THEIRS.items():
        monkeypatch.setenv(name, value)
    with ScriptedEndpoint(GOOD) as endpoint:
        write(writer_at(endpoint, ca_bundle=bundle, **OURS), ask())
        assert "theirs" not in f"{endpoint.chats[0].headers}"
        assert endpoint.chats[0].headers["x-ours"] == "ours-header"
