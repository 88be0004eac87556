"""Settings: every variable, which source wins, what a wrong value says, and that the key is never shown."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from hymemory_adapters import ConfigurationError, WriterSettings
from hymemory_adapters.settings import FIELDS, VARIABLES, changed, resolve

KEY = "sk-secret-key"
URL = "http://10.0.0.1:9000/v1"

# field: default, a value of its variable, what that is, wrong values
TABLE: dict[str, tuple[Any, str, Any, list[str]]] = {
    "writer": ("hy-memory", "qwen3", "qwen3", ["no-such-writer"]),
    "base_url": ("http://127.0.0.1:8000/v1", URL, URL,
        ["10.0.0.1:8000", "localhost", "ftp://host/v1", "http://", "http:///v1", "http://[::1", "http://host:port/v1"]),
    "model": ("hy-memory", "hy-memory-fp8", "hy-memory-fp8", []),
    "api_key": (None, KEY, KEY, ["two words", "sk-\u043a\u043b\u044e\u0447", "sk\x00x"]),
    "attempts": (3, "10", 10, ["0", "11", "-1", "three", "2.5"]),
    "constrain": ("always", "retry", "retry", ["never", "ALWAYS!", "1"]),
    "max_tokens": (4096, "1", 1, ["0", "-5", "many", "4k"]),
    "max_tokens_ceiling": (16384, "32768", 32768, ["0", "x"]),
    "timeout": (120, "0.5", 0.5, ["0", "-1", "nan", "inf", "2min"]),
    "deadline": (600, "30", 30, ["0", "-1", "nan", "inf", "x"]),
    "retry_seconds": (10, "0", 0, ["-1", "nan", "inf", "x"]),
    "concurrency": (32, "1", 1, ["0", "10001", "x", "1.5"]),
    "journal": (None, "lost.jsonl", "lost.jsonl", ["no/such/folder/lost.jsonl"]),
    "journal_content": ("full", "off", "off", ["on", "digest"]),
}  # fmt: skip
CHOICES = [(field, value) for field, (_, _, _, wrong) in TABLE.items() for value in wrong]


def _shown(settings: WriterSettings, field: str) -> Any:
    value = getattr(settings, field)
    return value.get_secret_value() if field == "api_key" and value else value


def test_the_table_has_every_variable() -> None:
    assert {field: f"HYMEMORY_{field.upper()}" for field in TABLE} == VARIABLES


@pytest.mark.parametrize("field", TABLE)
def test_default(field: str) -> None:
    settings = resolve(environ={})
    assert _shown(settings, field) == TABLE[field][0]
    assert settings.no_think == {"chat_template_kwargs": {"reasoning_effort": "no_think"}}


@pytest.mark.parametrize("field", TABLE)
def test_variable(field: str) -> None:
    _, text, value, _ = TABLE[field]
    settings = resolve(environ={VARIABLES[field]: text})
    assert _shown(settings, field) == value
    assert settings.source(field) == VARIABLES[field]


@pytest.mark.parametrize("field", TABLE)
@pytest.mark.parametrize("empty", ["", "  "])
def test_empty_variable_is_not_set(field: str, empty: str) -> None:
    assert _shown(resolve(environ={VARIABLES[field]: empty}), field) == TABLE[field][0]


@pytest.mark.parametrize(("field", "text"), CHOICES)
def test_wrong_value_is_named_with_its_variable_and_what_is_allowed(field: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve(environ={VARIABLES[field]: text})
    message = str(caught.value)
    allowed = "hy-memory, hy3, qwen3" if field == "writer" else str(WriterSettings.model_fields[field].description)
    assert VARIABLES[field] in message
    assert allowed in message
    assert ("(hidden)" if field == "api_key" else repr(text)) in message
    assert field != "api_key" or text not in message


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"attempts": 0}, ["attempts in the config block", "0", "from 1 to 10"]),
        ({"form": "json"}, ["form in the config block", "'json'", "json_schema, json_object or prompt"]),
        ({"base_url": ""}, ["base_url in the config block"]),
        ({"model": ""}, ["model in the config block"]),
        ({"ca_bundle": "no/such/file.pem"}, ["ca_bundle in the config block", "no/such/file.pem"]),
        ({"no_think": "yes"}, ["no_think in the config block", "a table"]),
        ({"colour": 1, "attempts": 3}, ["unknown key 'colour'", *FIELDS]),
        ({"writer": "nobody"}, ["writer in the config block", "'nobody'", "hy-memory, hy3, qwen3"]),
    ],
)
def test_wrong_config_block(block: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve(block, environ={})
    assert all(word in str(caught.value) for word in words), caught.value


def test_a_secret_in_headers_is_not_shown_when_they_are_wrong() -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve({"headers": {"Authorization": [KEY]}}, environ={})
    assert "headers in the config block" in str(caught.value)
    assert KEY not in str(caught.value)


# -- which source wins -----------------------------------------------------------------------------

FILE = """
[writers.mine]
base_url = "http://file:1/v1"
model = "from-file"
[writers.keyed]
base_url = "http://keyed:1/v1"
api_key_env = "MY_KEY"
"""
BLOCK = {"base_url": "http://block:1/v1", "model": "from-block", "api_key": "key-of-block", "max_tokens": 77}
ENV = {"HYMEMORY_BASE_URL": "http://env:1/v1", "HYMEMORY_MODEL": "from-env", "HYMEMORY_API_KEY": "key-of-env"}


MINE, HY3, KEYED = ({"HYMEMORY_WRITER": name} for name in ("mine", "hy3", "keyed"))
WITH_KEY = {**KEYED, "MY_KEY": "key-of-keyed"}

# block, environment, takeover: where URL, model and key come from
WINS: dict[str, tuple[dict[str, Any], dict[str, str], bool, str]] = {
    "block_over_environment": (BLOCK, ENV, False, "block block block"),
    "field_by_field": ({"model": "from-block"}, ENV, False, "env block env"),
    "none_is_not_set": ({"model": None}, ENV, False, "env env env"),
    "entry_and_default": ({}, {}, False, "default hy-memory none"),
    "block_names_a_writer": ({"writer": "mine"}, {}, False, "file file none"),
    "environment_over_that_writers_entry": ({"writer": "mine"}, ENV, False, "env env env"),
    "block_over_that_writers_entry": ({**BLOCK, "writer": "mine"}, {}, False, "block block block"),
    "takeover_never_uses_the_block": (BLOCK, {}, True, "default hy-memory none"),
    "takeover_by_environment": ({"colour": 1}, ENV, True, "env env env"),
    "writer_over_block": (BLOCK, MINE, False, "file file none"),  # the block's key is for the block's URL
    "writer_over_both": (BLOCK, {**ENV, **MINE}, False, "file file env"),
    "writer_without_url": (BLOCK, {**ENV, **HY3}, False, "block hy3 block"),
    "writer_in_takeover": (BLOCK, {**ENV, **HY3}, True, "env hy3 env"),
    "writer_with_a_key_of_its_own": (BLOCK, WITH_KEY, False, "keyed block keyed"),
    "writers_key_over_all": (BLOCK, {**ENV, **WITH_KEY}, False, "keyed block keyed"),
}
URLS = {
    "default": "http://127.0.0.1:8000/v1",
    **{name: f"http://{name}:1/v1" for name in ("block", "env", "file", "keyed")},
}
MODELS = {"hy-memory": "hy-memory", "hy3": "hy3", **{name: f"from-{name}" for name in ("block", "env", "file")}}
KEYS = {"none": None, **{name: f"key-of-{name}" for name in ("block", "env", "keyed")}}


@pytest.mark.parametrize(("block", "env", "takeover", "expected"), WINS.values(), ids=WINS)
def test_precedence(block: dict[str, Any], env: dict[str, str], takeover: bool, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "writers.toml"
    file.write_text(FILE)
    settings = resolve(block, takeover=takeover, environ={**env, "HYMEMORY_WRITERS_FILE": str(file)})
    url, model, key = expected.split()
    assert (settings.base_url, settings.model, _shown(settings, "api_key")) == (URLS[url], MODELS[model], KEYS[key])


def test_budget_of_the_block_stays_when_a_writer_is_chosen() -> None:
    assert resolve(BLOCK, environ=HY3).max_tokens == 77


def test_openai_variables_are_not_read() -> None:
    environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://api.openai.com/v1", "OPENAI_MODEL": "gpt-4o"}
    assert resolve(environ=environ) == resolve(environ={})


def test_without_an_environment_given_the_process_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYMEMORY_MODEL", "of-the-process")
    assert resolve().model == "of-the-process"


# -- names of variables ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "hint"),
    [
        ("HYMEMORY_ATEMPTS", "Did you mean HYMEMORY_ATTEMPTS?"),
        ("HYMEMORY_BASEURL", "Did you mean HYMEMORY_BASE_URL?"),
        ("HYMEMORY_ZZZZZZZZZZZZZZZZ", "is not read by anything."),
    ],
)
def test_unknown_variable_is_pointed_out_once(variable: str, hint: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        resolve(environ={variable: KEY})
    (message,) = [record.message for record in caplog.records]
    assert variable in message
    assert hint in message
    assert KEY not in message


def test_known_variables_are_not_pointed_out(caplog: pytest.LogCaptureFixture) -> None:
    resolve(environ={"HYMEMORY_ENABLE": "mem0", "HYMEMORY_AUTOLOAD": "1", "HYMEMORY_TIMEOUT": "9", "OTHER": "x"})
    assert caplog.records == []


@pytest.mark.parametrize(
    ("text", "named"), [("mem0,memzero", "memzero"), ("Letta", "letta"), (" , langchain ", "langchain")]
)
def test_host_that_cannot_be_taken_over(text: str, named: str) -> None:
    with pytest.raises(ConfigurationError, match=f"HYMEMORY_ENABLE names '{named}', and only mem0 can be taken over"):
        resolve(environ={"HYMEMORY_ENABLE": text})


@pytest.mark.parametrize("text", ["", " ", ",", "mem0", " MEM0 ,"])
def test_known_host_to_enable(text: str) -> None:
    assert resolve(environ={"HYMEMORY_ENABLE": text}).model == "hy-memory"


# -- the object ------------------------------------------------------------------------------------


def test_key_is_hidden_wherever_settings_are_shown() -> None:
    settings = resolve({"api_key": KEY, "headers": {"X-Token": KEY}}, environ={})
    for shown in (repr(settings), str(settings), repr([settings]), f"{settings.api_key}"):
        assert KEY not in shown
    assert KEY not in settings.model_dump_json(exclude={"headers"})
    assert _shown(settings, "api_key") == KEY


def test_settings_are_pickled_whole() -> None:
    settings = resolve({"api_key": KEY, "attempts": 2}, environ={"HYMEMORY_TIMEOUT": "9"})
    again = pickle.loads(pickle.dumps(settings))
    assert again == settings
    assert _shown(again, "api_key") == KEY
    assert [again.source(field) for field in ("attempts", "timeout", "model", "deadline")] == [
        "attempts in the config block", "HYMEMORY_TIMEOUT", "model in writer 'hy-memory'", "the default",
    ]  # fmt: skip


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError):
        resolve(environ={}).model = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "used", "shown"),
    [
        ("http://h:8000/v1", "http://h:8000/v1", "http://h:8000/v1"),
        ("http://h:8000/v1/", "http://h:8000/v1", "http://h:8000/v1"),
        (" https://h/v1//\n", "https://h/v1", "https://h/v1"),
        ("http://h/v1/chat/completions", "http://h/v1", "http://h/v1"),
        ("http://h/v1/chat/completions/", "http://h/v1", "http://h/v1"),
        ("http://h", "http://h", "http://h"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("https://u:pw@h:1/v1", "https://u:pw@h:1/v1", "https://h:1/v1"),
        ("http://h/v1?api-version=1", "http://h/v1?api-version=1", "http://h/v1?api-version=1"),
    ],
)
def test_url(given: str, used: str, shown: str) -> None:
    settings = WriterSettings(base_url=given)
    assert (settings.base_url, settings.shown_url) == (used, shown)


def test_home_in_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "ca.pem").write_text("")
    settings = resolve({"ca_bundle": "~/ca.pem"}, environ={"HYMEMORY_JOURNAL": "~/lost.jsonl"})
    assert (settings.ca_bundle, settings.journal) == (str(tmp_path / "ca.pem"), str(tmp_path / "lost.jsonl"))


def test_key_from_a_file_may_end_in_a_line_break() -> None:
    assert _shown(resolve(environ={"HYMEMORY_API_KEY": f"{KEY}\n"}), "api_key") == KEY


def test_a_password_in_a_wrong_url_is_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="HYMEMORY_BASE_URL is") as raised:
        resolve(environ={"HYMEMORY_BASE_URL": "http://ann:swordfish@host:badport/v1"})
    assert "swordfish" not in str(raised.value)


def test_changed_keeps_what_the_block_does_not_name() -> None:
    base = resolve({"base_url": "http://h/v1", "api_key": KEY}, environ={})
    after = changed(base, {"model": "other", "timeout": None}, where="the request")
    assert (after.model, after.base_url, after.timeout) == ("other", base.base_url, base.timeout)
    assert _shown(after, "api_key") == KEY
    assert (after.source("model"), after.source("base_url")) == ("model in the request", base.source("base_url"))


@pytest.mark.parametrize("block", [{}, {"model": None}, {"model": "hy-memory", "attempts": 3}])
def test_nothing_changed_is_the_same_object(block: dict[str, Any]) -> None:
    base = resolve(environ={})
    assert changed(base, block, where="x") is base


def test_a_wrong_change_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"^attempts in the request is 0; it must be a whole number"):
        changed(resolve(environ={}), {"attempts": 0}, where="the request")
