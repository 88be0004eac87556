"""What may stand in a cassette: nothing secret, nothing of a machine, nothing large."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cassettes.conftest import HEADERS, HOSTS, PLACE, ROOT, folder

LARGEST = 16 * 1024
SECRETS = {
    "a bearer token": r"(?i)bearer\s+\S+",
    "an OpenAI-like key": r"\bsk-[A-Za-z0-9_-]{8,}",
    "a Hugging Face token": r"\bhf_[A-Za-z0-9]{8,}",
    "the live lane's key": r"a-key-of-the-live-lane",
    "a folder of a machine": r"(?<![\w.])/(?:home|root|Users|work|tmp)/\w+",
    "an address": r"\b(?!127\.0\.0\.1\b)(?:\d{1,3}\.){3}\d{1,3}\b",
}
CASSETTES = sorted(ROOT.glob("*/*.yaml"))
each_cassette = pytest.mark.parametrize(
    "path", CASSETTES, ids=[f"{path.parent.name}/{path.stem}" for path in CASSETTES]
)


def test_every_tested_version_has_cassettes_and_no_other() -> None:
    tested = {folder(host, entry["version"]) for host, row in HOSTS.items() for entry in row.get("tested", ())}
    assert {path.parent.name for path in CASSETTES} == tested
    assert len(CASSETTES) >= 10


@each_cassette
def test_nothing_secret_and_nothing_large(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text) <= LARGEST
    assert {name for name, pattern in SECRETS.items() if re.search(pattern, text)} == set()


@each_cassette
def test_only_harmless_headers_and_one_place(path: Path) -> None:
    tape: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert tape["interactions"]
    for interaction in tape["interactions"]:
        assert interaction["request"]["uri"].startswith(f"{PLACE}/v1/")
        for side in ("request", "response"):
            assert set(interaction[side]["headers"]) <= set(HEADERS)


@pytest.mark.parametrize("name", SECRETS)
def test_the_scan_finds_what_it_looks_for(name: str) -> None:
    bait = {
        "a bearer token": "Authorization: Bearer abc",
        "an OpenAI-like key": "sk-proj-12345678",
        "a Hugging Face token": "hf_abcdefgh12",
        "the live lane's key": "a-key-of-the-live-lane",
        "a folder of a machine": "see /home/ann",
        "an address": "http://10.0.0.7:8000",
    }
    assert re.search(SECRETS[name], bait[name])
