"""What doctor makes of what it saw: the cases that no server at hand would show."""

from __future__ import annotations

import pytest

from hymemory_adapters.cli.check import Context, Finding, Step, Verdict
from hymemory_adapters.cli.checks_model import WORD, judge_obedience, judge_thinking, judge_white_space
from hymemory_adapters.cli.checks_server import judge_context, judge_version
from hymemory_adapters.cli.doctor import STEPS, exit_code, run
from hymemory_adapters.core.reply import Reply

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
