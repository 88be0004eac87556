"""What doctor makes of this machine: hosts, journal, proxies."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters.cli import checks_local
from hymemory_adapters.cli.check import Context, InstalledHost, Verdict
from hymemory_adapters.cli.checks_local import find_route, judge_host, judge_journal
from hymemory_adapters.cli.proxies import is_near, proxy_for
from hymemory_adapters.cli.server import Server
from hymemory_adapters.settings import WriterSettings
from tests.cli.support import NOTES

# -- hosts -----------------------------------------------------------------------------------------

OLD = InstalledHost(NOTES, "0.1", error="notes 0.1 is ...", unsupported=True)
BY_HAND = InstalledHost(dataclasses.replace(NOTES, installer=""), "1.0")
DRIFTED = InstalledHost(NOTES, "1.1", unknown=("notes.py: Notes.tidy uses llm.ask",))
BROKEN = InstalledHost(NOTES, "1.0", error="hymemory-adapters cannot work with notes.main")


@pytest.mark.parametrize(
    ("installed", "route", "named", "verdict", "text", "do"),
    [
        (InstalledHost(NOTES, "1.0"), "hook", False, "ok", "finds the writer by the import hook", ""),
        (InstalledHost(NOTES, "1.1"), "hook", True, "ok", "this very version is untested (tested are 1.0)", ""),
        (InstalledHost(NOTES, "1.0"), "off", False, "warning", "HYMEMORY_AUTOLOAD switches", 'register("notes")'),
        (InstalledHost(NOTES, "1.0"), "none", False, "warning", "an editable install", 'register("notes")'),
        (InstalledHost(NOTES, "1.0"), "none", True, "bad", "its own LLM would go on", 'register("notes")'),
        (DRIFTED, "hook", False, "warning", "does not look: notes.py: Notes.tidy uses llm.ask", "typer==1.0"),
        (BY_HAND, "hook", False, "ok", "the app names the writer itself", ""),
        (BY_HAND, "none", False, "ok", "the app names the writer itself", ""),
        (OLD, "hook", False, "bad", "0.1 is not supported: only >=0 is", 'pip install "typer>=0"'),
        (BROKEN, "hook", False, "bad", "cannot work with notes.main", "do what the error says"),
        (BROKEN, "hook", True, "bad", "cannot work with notes.main", "or take notes out of HYMEMORY_ENABLE"),
    ],
)
def test_host(installed: InstalledHost, route: str, named: bool, verdict: str, text: str, do: str) -> None:
    found = judge_host(installed, route, named=named)
    assert found.verdict.value == verdict
    assert text in found.text
    assert do in found.do


@pytest.mark.parametrize(
    ("hook", "environ", "route"),
    [
        (True, {}, "hook"),
        (False, {"HYMEMORY_AUTOLOAD": "0"}, "off"),
        (False, {"HYMEMORY_AUTOLOAD": " No "}, "off"),
        (False, {"HYMEMORY_AUTOLOAD": "1"}, "none"),
        (False, {}, "none"),
    ],
)
def test_route(hook: bool, environ: dict[str, str], route: str) -> None:
    assert find_route(Context(environ=environ, hook=hook)) == route


@pytest.mark.parametrize(
    ("changes", "error", "unsupported"),
    [
        ({}, "", False),
        ({"supported": "<0.1"}, "supports notes only in <0.1", True),
        ({"calls": "tests.cli.nowhere:calls"}, "typer cannot be imported: ModuleNotFoundError", False),
    ],
    ids=["fine", "old", "broken"],
)
def test_reading_a_host(notes_host: Any, changes: dict[str, str], error: str, unsupported: bool) -> None:
    read = InstalledHost.read(notes_host(**changes))
    assert error in read.error
    assert bool(read.error) is bool(error)
    assert read.unsupported is unsupported
    assert bool(read.calls) is bool(read.prompts) is (not error)


def test_no_host(notes_host: Any) -> None:
    notes_host(distribution="no-such-distribution")
    (found,) = checks_local.hosts(Context(environ={}))
    assert found.verdict is Verdict.WARNING
    assert sys.executable in found.text
    assert 'pip install "hymemory-adapters[notes]"' in found.do


def test_enabled_and_not_installed(notes_host: Any) -> None:
    notes_host(name="mem0", distribution="no-such-distribution")  # a name that ENABLE knows
    found, none = checks_local.hosts(Context(environ={"HYMEMORY_ENABLE": "mem0"}))
    assert found.verdict is none.verdict is Verdict.WARNING
    assert "HYMEMORY_ENABLE names mem0, which is not installed here" in found.text


# -- journal ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "content", "verdict", "text"),
    [
        (None, "", "ok", "not there yet"),
        (0o600, "", "ok", "empty"),
        (0o600, "{}\n", "ok", "3 bytes of lost writes: hymemory lost"),
        (0o644, "{}\n", "warning", "others may read it (mode 644)"),
        (0o620, "{}\n", "warning", "others may read it"),
    ],
)
def test_journal(tmp_path: Path, mode: int | None, content: str, verdict: str, text: str) -> None:
    path = tmp_path / "lost.jsonl"
    if mode is not None:
        path.write_text(content)
        path.chmod(mode)
    found = judge_journal(path, "HYMEMORY_JOURNAL")
    assert found.verdict.value == verdict
    assert text in found.text
    assert path.exists() is (mode is not None), "looking at it creates nothing"


@pytest.mark.parametrize("kind", ["folder", "not writable", "folder not writable", "full"])
def test_a_journal_that_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    path = tmp_path / "lost.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "full":
        monkeypatch.setattr(checks_local, "JOURNAL_LIMIT", 2)
        path.write_text("{}\n")
    else:
        if kind == "not writable":
            path.write_text("")
        monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    found = judge_journal(path, "HYMEMORY_JOURNAL")
    assert found.verdict is Verdict.BAD
    assert found.do


def test_no_journal_and_a_host_that_hides_errors(notes_host: Any) -> None:
    notes_host(calls="tests.cli.support:hiding_calls")
    context = Context(environ={})
    checks_local.settings(context)
    (found,) = checks_local.journal(context)
    assert found.verdict is Verdict.WARNING
    assert "Notes hides errors of this call." in found.text
    assert "HYMEMORY_JOURNAL" in found.do


# -- proxies ---------------------------------------------------------------------------------------

NEAR = "http://10.1.2.3:8000/v1"


@pytest.mark.parametrize(
    ("url", "environ", "variable"),
    [
        (NEAR, {}, None),
        (NEAR, {"HTTP_PROXY": "http://p:3128"}, "HTTP_PROXY"),
        (NEAR, {"HTTPS_PROXY": "http://p:3128"}, None),
        ("https://h/v1", {"HTTPS_PROXY": "http://p:3128"}, "HTTPS_PROXY"),
        (NEAR, {"all_proxy": "p:3128"}, "all_proxy"),
        (NEAR, {"HTTP_PROXY": "http://p", "http_proxy": "http://ann:pw@q:1"}, "http_proxy"),
        (NEAR, {"HTTP_PROXY": "http://p", "NO_PROXY": "10.1.2.3"}, None),
        (NEAR, {"HTTP_PROXY": "http://p", "no_proxy": "a, 10.1.2.3 ,b"}, None),
        (NEAR, {"HTTP_PROXY": "http://p", "NO_PROXY": "10.0.0.0/8"}, "HTTP_PROXY"),
        (NEAR, {"HTTP_PROXY": "http://p", "NO_PROXY": "*"}, None),
        ("http://127.0.0.1/v1", {"HTTP_PROXY": "http://p", "NO_PROXY": "localhost"}, "HTTP_PROXY"),
        ("http://gpu.lan/v1", {"HTTP_PROXY": "http://p", "NO_PROXY": ".lan"}, None),
        ("http://gpu.lan/v1", {"HTTP_PROXY": "http://p", "NO_PROXY": "lan"}, None),
        ("http://gpu.lan/v1", {"HTTP_PROXY": "http://p", "NO_PROXY": "an"}, "HTTP_PROXY"),
        ("http://[::1]:8000/v1", {"HTTP_PROXY": "http://p", "NO_PROXY": "[::1]"}, None),
    ],
)
def test_which_proxy_applies(url: str, environ: dict[str, str], variable: str | None) -> None:
    proxy = proxy_for(url, environ)
    assert (proxy.variable if proxy else None) == variable
    assert proxy is None or proxy.shown in ("p", "p:3128", "q:1"), "no user name, no password"


@pytest.mark.parametrize("url", [NEAR, "http://gpu.lan/v1"])
@pytest.mark.parametrize("no_proxy", ["", "10.1.2.3", "*", ".lan", "lan", "an", "10.0.0.0/8"])
def test_the_client_has_the_same_rules(monkeypatch: pytest.MonkeyPatch, url: str, no_proxy: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", no_proxy)
    direct = Server(WriterSettings(base_url=url)).is_direct
    ruled = proxy_for(url, dict(os.environ)) is None
    assert direct is ruled or (direct and no_proxy == "10.0.0.0/8")


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]/v1", True),
        ("http://192.168.1.9/v1", True),
        ("http://localhost/v1", True),
        ("http://vllm:8000/v1", True),
        ("http://gpu.internal/v1", True),
        ("https://api.example.com/v1", False),
        ("http://8.8.8.8/v1", False),
    ],
)
def test_near(url: str, near: bool) -> None:
    assert is_near(url) is near
