"""OPENAI_* variables belong to the app's own LLM: nothing of them reaches the writer's server.

Which of them the openai package reads differs from version to version, so this file runs on all of its majors.
"""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters.core.lost import EndpointError
from tests.support.calls import GOOD, Write, ask, both_ways, writer_at
from tests.support.scripted import Fail, ScriptedEndpoint

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


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate that no authority knows, with its key in the same file."""
    openssl, made = shutil.which("openssl"), tmp_path_factory.mktemp("tls") / "both.pem"
    if openssl is None:
        pytest.skip("makes its certificate with openssl")
    new = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=here"]
    also = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(made), "-out", str(made.with_suffix(".crt"))]
    subprocess.run([openssl, *new, *also], check=True, capture_output=True)
    with made.open("a") as both:
        both.write(made.with_suffix(".crt").read_text())
    return made


@pytest.mark.parametrize("bundled", [True, False], ids=["in the bundle", "in none"])
def test_a_server_is_trusted_by_the_ca_bundle(write: Write, certificate: Path, bundled: bool) -> None:
    endpoint = ScriptedEndpoint(GOOD)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    endpoint._server.socket = context.wrap_socket(endpoint._server.socket, server_side=True)
    bundle = str(certificate.with_suffix(".crt")) if bundled else None
    writer = writer_at(endpoint.url.replace("http:", "https:"), ca_bundle=bundle, retry_seconds=0)
    with endpoint:
        if bundled:
            assert write(writer, ask()).event.outcome == "ok"
        else:
            with pytest.raises(EndpointError):
                write(writer, ask())
    assert len(endpoint.chats) == bundled


def test_the_sdk_sends_nothing_again_by_itself(write: Write) -> None:
    """Retries are counted, and end with the deadline: the SDK's own would do neither."""
    with ScriptedEndpoint(Fail(503, headers={"Retry-After": "0.01"}), GOOD) as endpoint:
        with pytest.raises(EndpointError):
            write(writer_at(endpoint, retry_seconds=0), ask())
        assert len(endpoint.chats) == 1
