"""``hymemory doctor`` against servers of every kind: each fault is named, with what to do and the exit code."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters.registry import Host
from tests.cli.support import ONLY_NOTES, PROMPT, PretendVllm, invoke, run

ALL_FINE = {
    "settings": "ok", "reachable": "ok", "version": "ok", "key": "ok", "model": "ok", "context": "ok", "schema": "ok",
    "thinking": "ok", "white space": "ok", "grammars": "ok", "hosts": "warning", "journal": "ok",
}  # fmt: skip
AFTER = {
    "settings": [*list(ALL_FINE)[1:-2], "journal"],
    "reachable": list(ALL_FINE)[2:-2],
    "key": list(ALL_FINE)[4:-2],
    "model": list(ALL_FINE)[5:-2],
}


@pytest.fixture(autouse=True)
def _only_notes(notes_host: Callable[..., Host], monkeypatch: pytest.MonkeyPatch) -> None:
    notes_host()
    # Other tests may have set the hook in this process: here nothing has, which is a warning.
    monkeypatch.setattr("hymemory_adapters.cli.check._hook_is_set", lambda: False)


def doctor(*args: str) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """Run it with ``--json``: what it says, and the findings by step."""
    done = invoke("doctor", "--json", *args)
    said = json.loads(done.stdout)
    assert done.exit_code == said["exit_code"]
    steps = {step["step"]: step["findings"] for step in said["steps"]}
    for step in said["steps"]:
        assert all(finding["do"] for finding in step["findings"] if finding["verdict"] == "bad"), "what to do?"
    return said, steps


def verdicts(said: dict[str, Any]) -> dict[str, str]:
    return {step["step"]: step["verdict"] for step in said["steps"]}


def skipped_after(step: str) -> dict[str, str]:
    return {step: "bad", **dict.fromkeys(AFTER[step], "skipped")}


FLAG = "disable_any_whitespace"
CASES: dict[str, tuple[dict[str, Any], dict[str, str], int, dict[str, str], str]] = {
    # the server, the environment; the exit code, the verdicts that are not ok, what is to be read
    "all fine": ({}, {}, 0, {}, "4,096: "),
    "a key that is right": ({"key": "sesame-42"}, {"HYMEMORY_API_KEY": "sesame-42"}, 0, {}, "the key is taken"),
    "a key that is wrong": (
        {"key": "sesame-42", "says_key": True}, {"HYMEMORY_API_KEY": "sesame-43"}, 1, skipped_after("key"),
        "set HYMEMORY_API_KEY to the server's key: the one from HYMEMORY_API_KEY is wrong there",
    ),
    "no key": ({"key": "sesame-42"}, {}, 1, skipped_after("key"), "set HYMEMORY_API_KEY to the server's key: none"),
    "another model": ({"models": ("qwen", "llama")}, {}, 1, skipped_after("model"), "the server has 'qwen', 'llama'"),
    "another model, what to do": ({"models": ("qwen",)}, {}, 1, skipped_after("model"), "set HYMEMORY_MODEL=qwen"),
    "no list of models": ({"lists": False}, {}, 2, {"context": "unknown"}, "it lists no models"),
    "no list, another model": (
        {"lists": False, "models": ("qwen",)}, {}, 1, skipped_after("model"), "whether the URL should end in /v1",
    ),
    "not ready": ({"status": 503}, {}, 1, skipped_after("reachable"), "wait until it has loaded the model"),
    "ignores schemas": (
        {"obeys": False}, {}, 1, {"schema": "bad", "white space": "skipped"}, "takes the schema and ignores it",
    ),
    "refuses schemas": (
        {"knows_schemas": False}, {}, 0, {"schema": "warning", "white space": "skipped", "grammars": "warning"},
        "refuses to be constrained",
    ),
    "empty replies": ({"empty": True}, {}, 1, {"schema": "bad", "white space": "skipped"}, "the reply is empty"),
    "thinks": (
        {"thinks": True}, {}, 1, {"schema": "unknown", "thinking": "bad", "white space": "skipped"},
        "correct the writer's entry",
    ),
    "thinks, no /tokenize": (
        {"thinks": True, "tokenize": False}, {}, 1,
        {"schema": "unknown", "thinking": "bad", "white space": "skipped"}, "thinks before it answers",
    ),
    "files answers under reasoning": (
        {"misfiles": True}, {}, 1, {"thinking": "bad", "white space": "skipped"}, "--reasoning-parser expects thinking",
    ),
    "context too small": ({"context": 3000}, {}, 1, {"context": "bad"}, "--max-model-len 12288"),
    "context small": ({"context": 6000}, {}, 0, {"context": "warning"}, "for conversation and reply"),
    "context not told": ({"context": None}, {}, 2, {"context": "unknown"}, "does not say how long"),
    "white space allowed": ({"spaces": True}, {}, 0, {"white space": "warning"}, FLAG),
    "loops in white space": ({"loops": True}, {}, 1, {"schema": "bad", "white space": "bad"}, FLAG),
    "no /tokenize": ({"tokenize": False}, {}, 0, {"white space": "unknown"}, "has no /tokenize"),
    "no logit_bias": ({"biased": False}, {}, 0, {"white space": "unknown"}, "ignores logit_bias"),
    "no version": ({"version": None}, {}, 0, {"version": "unknown"}, "does not say (known to work: vLLM"),
    "not constrained by choice": (
        {}, {"HYMEMORY_CONSTRAIN": "off"}, 0, {"schema": "warning", "white space": "skipped", "grammars": "skipped"},
        "HYMEMORY_CONSTRAIN=off",
    ),
    "a variable that nobody reads": (
        {}, {"HYMEMORY_MODELL": "x"}, 0, {"settings": "warning"}, "Did you mean HYMEMORY_MODEL?",
    ),
    "an unknown host in ENABLE": ({}, {"HYMEMORY_ENABLE": "mem1"}, 1, {"hosts": "bad"}, "HYMEMORY_ENABLE names 'mem1'"),
    "a host in ENABLE that cannot be taken over": (
        {}, {"HYMEMORY_ENABLE": "mem0,langchain"}, 1, {"hosts": "bad"},
        "HYMEMORY_ENABLE names 'langchain', and only mem0 can be taken over",
    ),
    "a bad setting": (
        {}, {"HYMEMORY_ATTEMPTS": "11"}, 1, skipped_after("settings"), "HYMEMORY_ATTEMPTS is '11'; it must be",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("traits", "environ", "code", "others", "text"), CASES.values(), ids=CASES)
def test_each_kind_of_server(
    monkeypatch: pytest.MonkeyPatch,
    traits: dict[str, Any],
    environ: dict[str, str],
    code: int,
    others: dict[str, str],
    text: str,
) -> None:
    with PretendVllm(**traits) as server:
        monkeypatch.setenv("HYMEMORY_BASE_URL", server.url)
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        said, steps = doctor()
    assert verdicts(said) == ALL_FINE | others
    assert said["exit_code"] == code
    bad = [name for name, verdict in verdicts(said).items() if verdict == "bad"]
    assert not bad or said["summary"] == f"Writes will be lost: {', '.join(bad)}."
    assert text in " ".join(f"{each['text']} {each['do']}" for found in steps.values() for each in found)


def test_a_stopped_server(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:  # bound and not listening: nothing answers there
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("HYMEMORY_BASE_URL", f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        said, steps = doctor()
    assert verdicts(said) == ALL_FINE | skipped_after("reachable")
    assert said["exit_code"] == 1
    assert "vllm serve" in steps["reachable"][0]["do"]
    assert "HYMEMORY_BASE_URL" in steps["reachable"][0]["do"]


def test_which_variable_set_what(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    writers = tmp_path / "writers.toml"
    writers.write_text('[writers.mine]\nmodel = "mine"\napi_key_env = "MY_KEY"\n')
    for name, value in (("WRITERS_FILE", str(writers)), ("WRITER", "mine"), ("BASE_URL", "http://127.0.0.1:1/v1")):
        monkeypatch.setenv(f"HYMEMORY_{name}", value)
    monkeypatch.setenv("MY_KEY", "sesame-42")
    _, steps = doctor("--base-url", "http://127.0.0.1:2/v1")
    assert steps["settings"][0]["data"] == {
        "writer": {"value": "mine", "source": "HYMEMORY_WRITER"},
        "base_url": {"value": "http://127.0.0.1:2/v1", "source": "--base-url"},
        "model": {"value": "mine", "source": "model in writer 'mine'"},
        "api_key": {"value": True, "source": "api_key in writer 'mine'"},
    }


def test_what_it_asks_is_what_writes_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    with PretendVllm() as server:
        monkeypatch.setenv("HYMEMORY_BASE_URL", server.url)
        doctor()
    switch = {"reasoning_effort": "no_think"}
    asked = [(chat.body.get("response_format") or {}).get("json_schema", {}).get("name") for chat in server.chats]
    assert asked == ["doctor_word", "doctor_word", None, None, "doctor_truth", "notes"]
    assert all(chat.body["chat_template_kwargs"] == switch for chat in server.chats)
    assert server.chats[-1].body["max_tokens"] == 1
    bias = server.chats[-2].body["logit_bias"]
    assert {chr(int(token)) for token in bias} == {"\n", " ", "\t"}
    prompts = [each.body for each in server.requests if each.path == "/tokenize" and "messages" in each.body]
    assert prompts[0]["messages"] == [{"role": "user", "content": PROMPT}]
    assert all(prompt["chat_template_kwargs"] == switch for prompt in prompts)


@contextmanager
def both(**proxy: Any) -> Iterator[tuple[PretendVllm, PretendVllm]]:
    with PretendVllm() as server, PretendVllm(**proxy) as other:
        yield server, other


@pytest.mark.parametrize(
    ("proxy", "excepted", "verdict", "text"),
    [
        pytest.param({"status": 502}, "", "bad", "something listens there", id="answers instead"),
        pytest.param({"status": 403}, "localhost", "bad", "is in the way", id="localhost is not 127.0.0.1"),
        pytest.param({}, "", "warning", "go through the proxy", id="passes on"),
        pytest.param({"key": "sesame-42"}, "", "warning", "go through the proxy", id="passes on, the key is refused"),
        pytest.param({"status": 502}, "127.0.0.1", "ok", "answers", id="excepted"),
    ],
)
def test_a_proxy(
    monkeypatch: pytest.MonkeyPatch, proxy: dict[str, Any], excepted: str, verdict: str, text: str
) -> None:
    with both(**proxy) as (server, other):
        monkeypatch.setenv("HYMEMORY_BASE_URL", server.url)
        monkeypatch.setenv("HTTP_PROXY", other.root.replace("://", "://ann:sesame-44@"))
        monkeypatch.setenv("NO_PROXY", excepted)
        said, steps = doctor()
    (found,) = steps["reachable"]
    assert found["verdict"] == verdict
    assert text in found["text"]
    if verdict != "ok":
        assert found["do"] == "set NO_PROXY=127.0.0.1 where the app runs"
        assert other.requests
    assert "sesame-44" not in json.dumps(said)


def test_a_proxy_to_a_server_far_away(monkeypatch: pytest.MonkeyPatch) -> None:
    with PretendVllm() as proxy:
        monkeypatch.setenv("HYMEMORY_BASE_URL", "http://memory.example.com/v1")
        monkeypatch.setenv("HTTP_PROXY", proxy.root)
        said, steps = doctor()
    assert said["exit_code"] == 0
    assert steps["reachable"][0]["verdict"] == "ok"
    assert steps["reachable"][0]["text"].startswith("http://memory.example.com/v1 answers through the proxy 127.0.0.1")


SECRETS: dict[str, tuple[dict[str, Any], str, dict[str, str]]] = {
    # the server, its URL with USER in it, the environment
    "right": ({"key": "sesame-42"}, "", {"HYMEMORY_API_KEY": "sesame-42"}),
    "wrong and quoted": ({"key": "x", "says_key": True}, "", {"HYMEMORY_API_KEY": "sesame-42"}),
    "quoted as a model": ({"models": ("sesame-42",)}, "", {"HYMEMORY_API_KEY": "sesame-42"}),
    "in the URL": ({"status": 500}, "http://ann:sesame-42@", {}),
    "in the URL, alone": ({"status": 500}, "http://sesame-42@", {}),
    "in a wrong URL": ({}, "ftp://ann:sesame-42@", {}),
    "not fit for a header": ({}, "", {"HYMEMORY_API_KEY": "sesame-42 x"}),
}


@pytest.mark.parametrize("mode", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(("traits", "prefix", "environ"), SECRETS.values(), ids=SECRETS)
def test_the_key_is_never_printed(
    monkeypatch: pytest.MonkeyPatch, mode: list[str], traits: dict[str, Any], prefix: str, environ: dict[str, str]
) -> None:
    with PretendVllm(**traits) as server:
        monkeypatch.setenv("HYMEMORY_BASE_URL", server.url.replace("http://", prefix or "http://"))
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        done = invoke("doctor", *mode)
    assert "settings" in done.stdout
    assert "sesame" not in done.stdout + done.stderr


def test_a_password_in_a_writers_file_is_never_printed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    writers = tmp_path / "writers.toml"
    writers.write_text('[writers.hy-memory]\nbase_url = "ftp://ann:sesame-42@127.0.0.1/v1"\n')
    monkeypatch.setenv("HYMEMORY_WRITERS_FILE", str(writers))
    done = invoke("doctor")
    assert done.exit_code == 1
    assert "ftp://127.0.0.1/v1" in done.stdout
    assert "sesame" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("traits", "code"), [({}, 0), ({"thinks": True}, 1), ({"context": None}, 2)], ids=["0", "1", "2"]
)
def test_a_process_of_its_own(traits: dict[str, Any], code: int) -> None:
    env = {"HYMEMORY_API_KEY": "sesame-42", "HYMEMORY_MODELL": "x"}  # a warning, which is told once
    with PretendVllm(key="sesame-42", **traits) as server:
        done = run("doctor", "--json", code=ONLY_NOTES, HYMEMORY_BASE_URL=server.url, **env)
        text = run("doctor", code=ONLY_NOTES, HYMEMORY_BASE_URL=server.url, **env)
    assert done.returncode == text.returncode == code, done.stderr
    assert json.loads(done.stdout)["exit_code"] == code
    assert "HYMEMORY_MODELL" in done.stdout
    assert done.stderr == text.stderr == ""
    assert text.stdout.splitlines()[-1] == json.loads(done.stdout)["summary"]
    assert "sesame" not in done.stdout + text.stdout


def test_a_check_that_fails_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("sesame-42")

    monkeypatch.setattr("hymemory_adapters.cli.checks_model.judge_thinking", broken)
    with PretendVllm() as server:
        monkeypatch.setenv("HYMEMORY_BASE_URL", server.url)
        said, steps = doctor()
    assert said["exit_code"] == 2
    assert steps["thinking"][0]["text"] == "the check itself failed: ZeroDivisionError"


def test_what_a_host_prints_is_no_part_of_the_json(
    monkeypatch: pytest.MonkeyPatch, notes_host: Callable[..., Host]
) -> None:
    notes_host(calls="tests.cli.support:printing_calls")
    with PretendVllm() as server:
        monkeypatch.setenv("HYMEMORY_BASE_URL", server.url)
        done = invoke("doctor", "--json")
    assert json.loads(done.stdout)["exit_code"] == 0
    assert "Welcome to Notes" in done.stderr
