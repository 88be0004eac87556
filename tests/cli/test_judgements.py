"""What doctor makes of what it saw: the cases that no server at hand would show."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters.cli import checks_local
from hymemory_adapters.cli.check import Context, Finding, InstalledHost, Step, Verdict
from hymemory_adapters.cli.checks_local import find_route, judge_host, judge_journal
from hymemory_adapters.cli.checks_model import WORD, judge_obedience, judge_thinking, judge_white_space
from hymemory_adapters.cli.checks_server import judge_context, judge_version
from hymemory_adapters.cli.doctor import STEPS, exit_code, run
from hymemory_adapters.cli.proxies import is_near, proxy_for
from hymemory_adapters.cli.server import Server
from hymemory_adapters.core.reply import Reply
from hymemory_adapters.settings import WriterSettings
from tests.cli.support import NOTES

GOOD = f'{{"word": "{WORD}"}}'


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({}, 0),
        ({"schema": "warning", "white space": "unknown", "version": "unknown"}, 0),
        ({"schema": "unknown"}, 2),
        ({"context": "unknown", "thinking": "warning"}, 2),
        ({"thinking": "unknown", "journal": "bad"}, 1),
        ({"reachable": "bad", "schema": "skipped"}, 1),
    ],
)
def test_exit_code(found: dict[str, str], code: int) -> None:
    results = {step.name: [Finding(Verdict(found.get(step.name, "ok")), "")] for step in STEPS}
    assert exit_code(results) == code


def test_a_step_needs_only_steps_before_it() -> None:
    names = [step.name for step in STEPS]
    assert all(need in names[: names.index(step.name)] for step in STEPS for need in step.needs)


@pytest.mark.parametrize("verdict", ["bad", "skipped"])
def test_a_step_is_skipped(verdict: str) -> None:
    step = Step("b", lambda _: pytest.fail("was run"), ("a",))
    (found,) = run(step, Context(), {"a": [Finding(Verdict(verdict), "")]})
    assert (found.verdict, found.text) == (Verdict.SKIPPED, "needs a")


@pytest.mark.parametrize(
    ("said", "owner", "verdict", "text"),
    [
        ("0.31.0", "vllm", "ok", "vLLM 0.31.0"),
        ("0.32.0+cpu", "vllm", "ok", "vLLM 0.32.0+cpu"),
        ("0.32.0", "", "ok", "vLLM 0.32.0"),
        ("0.30.2", "vllm", "warning", "was not tried"),
        ("1.0.0", "vllm", "ok", "newer than those known to work"),
        ("0.5.9", "sglang", "ok", "sglang 0.5.9"),
        ("main-1234", "vllm", "unknown", "vLLM main-1234"),
    ],
)
def test_version(said: str, owner: str, verdict: str, text: str) -> None:
    found = judge_version(said, owner)
    assert found.verdict.value == verdict
    assert text in found.text


@pytest.mark.parametrize(
    ("length", "verdict", "text"),
    [
        (32768, "ok", "20,272 are left"),
        (12496, "ok", ": 0 are left"),
        (12495, "warning", "leaves 4,095 for conversation and reply"),
        (8464, "warning", "leaves 64"),
        (8463, "bad", "8,463 tokens are too few"),
        (None, "unknown", "does not say"),
    ],
)
def test_context(length: int | None, verdict: str, text: str) -> None:
    found = judge_context(length, "notes.write", 8400, 4096, counted=True)
    assert found.verdict.value == verdict
    assert text in found.text
    assert "about" not in found.text
    if verdict in ("bad", "warning"):
        assert "--max-model-len 16384" in found.do


def test_an_estimate_is_called_one() -> None:
    assert "takes about 8,400" in judge_context(32768, "notes.write", 8400, 4096, counted=False).text


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        (Reply(GOOD, finish_reason="stop"), "ok"),
        (Reply(None, reasoning=GOOD, finish_reason="stop"), "ok"),
        (Reply('{"word": "zebra"}', finish_reason="stop"), "bad"),
        (Reply("Sure! A zebra", finish_reason="stop"), "bad"),
        (Reply("Sure! A zebra", finish_reason="length"), "bad"),
        (Reply("", finish_reason="stop"), "bad"),
        (Reply("{" + "\n" * 255, finish_reason="length"), "bad"),
        (Reply("{" + " \t\r\n" * 60, finish_reason="length"), "bad"),
        (Reply('{\n  "word": "quo', finish_reason="length"), "unknown"),
        (Reply(None, reasoning="The user", finish_reason="length"), "unknown"),
    ],
)
def test_obedience(reply: Reply, verdict: str) -> None:
    assert judge_obedience(reply).verdict.value == verdict


@pytest.mark.parametrize(
    ("prompt", "reply", "verdict", "text"),
    [
        ("hi<bot><think></think>", Reply("hello"), "ok", "opens no thinking"),
        ("hi<bot>", Reply("hello"), "ok", "opens no thinking"),
        (None, Reply("hello"), "ok", "no reasoning came back"),
        ("hi<bot><think>", Reply("hello"), "bad", "thinks"),
        ("<think>in the user's text</think>hi<bot><think:suffix>\n", Reply("hello"), "bad", "thinks"),
        ("<think>in the user's text<bot><think></think>", Reply("hello"), "ok", "opens no thinking"),
        ("hi<bot>", Reply("hello", reasoning="hm"), "bad", "thinks"),
        (None, Reply("<think>hm</think>hello"), "bad", "thinks"),
        ("hi<bot><think></think>", Reply(None, reasoning="hello"), "bad", "files answers under reasoning"),
        (None, Reply(None, reasoning=GOOD, finish_reason="stop"), "bad", "files answers under reasoning"),
        ("hi<bot><think>", Reply(None, reasoning=GOOD, finish_reason="stop"), "bad", "thinks"),
    ],
)
def test_thinking(prompt: str | None, reply: Reply, verdict: str, text: str) -> None:
    found = judge_thinking(prompt, [reply], writer="mine", no_think={"a": 1})
    assert found.verdict.value == verdict
    assert text in found.text
    if verdict == "bad":
        assert "the writer 'mine' sends no_think = {\"a\": 1}" in found.do


@pytest.mark.parametrize(
    ("free", "bound", "verdict"),
    [
        ("\n\n", '{"ok":true}', "ok"),
        ("\n\n", '{"ok": true}', "ok"),
        ("\n\n", "{\n \n \n \n ", "warning"),
        ("\n\n", '{\n\n\n\n\n\n\n\n\n"ok"', "warning"),
        ("\n\n", "{" + "\n" * 8 + '"ok":true}', "unknown"),
        ("\n\n", "", "unknown"),
        ("hello", '{"ok":true}', "unknown"),
        ("", '{"ok":true}', "unknown"),
    ],
)
def test_white_space(free: str, bound: str, verdict: str) -> None:
    assert judge_white_space(free, bound).verdict.value == verdict


# -- hosts -----------------------------------------------------------------------------------------

OLD = InstalledHost(NOTES, "0.1", error="notes 0.1 is ...", unsupported=True)
BROKEN = InstalledHost(NOTES, "1.0", error="hymemory-adapters cannot work with notes.main")


@pytest.mark.parametrize(
    ("installed", "route", "named", "verdict", "text", "do"),
    [
        (InstalledHost(NOTES, "1.0"), "hook", False, "ok", "finds the writer by the import hook", ""),
        (InstalledHost(NOTES, "1.1"), "hook", True, "ok", "1.1, supported (tested: 1.0)", ""),
        (InstalledHost(NOTES, "1.0"), "off", False, "warning", "HYMEMORY_AUTOLOAD switches", 'register("notes")'),
        (InstalledHost(NOTES, "1.0"), "none", False, "warning", "an editable install", 'register("notes")'),
        (InstalledHost(NOTES, "1.0"), "none", True, "bad", "its own LLM would go on", 'register("notes")'),
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
    (found,) = checks_local.hosts(Context(environ={"HYMEMORY_ENABLE": "mem0"}))
    assert found.verdict is Verdict.WARNING
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
    assert "pw" not in (proxy.shown if proxy else "")


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
