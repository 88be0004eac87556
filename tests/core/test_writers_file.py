"""Named writers: the packaged ones, and a user's file of the same form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hymemory_adapters import ConfigurationError, WriterSettings
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.writer import Writer
from hymemory_adapters.settings import resolve
from hymemory_adapters.writers import ENTRY_FIELDS, load_writers
from tests.support.scripted import ScriptedEndpoint

KEY = "sk-secret-key"
NO_THINK = {
    "hy-memory": {"chat_template_kwargs": {"reasoning_effort": "no_think"}},
    "hy3": {"chat_template_kwargs": {"reasoning_effort": "no_think"}},
    "qwen3": {"chat_template_kwargs": {"enable_thinking": False}},
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "writers.toml"


def _resolved(file: Path, text: str, name: str = "w", **environ: str) -> WriterSettings:
    file.write_bytes(text.encode("utf-8"))
    return resolve(environ={"HYMEMORY_WRITERS_FILE": str(file), "HYMEMORY_WRITER": name, **environ})


@pytest.mark.parametrize("name", NO_THINK)
def test_packaged_writer(name: str) -> None:
    settings = resolve(environ={"HYMEMORY_WRITER": name})
    assert (settings.writer, settings.model, settings.no_think) == (name, name, NO_THINK[name])
    assert (settings.form, settings.api_key, settings.base_url) == ("json_schema", None, "http://127.0.0.1:8000/v1")


def test_the_table_has_every_packaged_writer() -> None:
    assert set(load_writers().entries) == set(NO_THINK)


def test_every_field_of_an_entry_is_used(file: Path) -> None:
    ca = file.with_name("ca.pem")
    ca.write_text("")
    settings = _resolved(
        file,
        f"""
        [writers.w]
        base_url = "https://h:1/v1/"
        model = "m \u8bb0\u5fc6"
        api_key_env = "MY_KEY"
        no_think = {{ think = false, chat_template_kwargs = {{ a = 1 }} }}
        form = "prompt"
        headers = {{ X-Team = "memory" }}
        ca_bundle = '{ca}'
        """,
        MY_KEY=KEY,
    )
    assert settings.api_key is not None
    assert settings.model_dump(include=set(ENTRY_FIELDS)) == {
        "base_url": "https://h:1/v1",
        "model": "m \u8bb0\u5fc6",
        "no_think": {"think": False, "chat_template_kwargs": {"a": 1}},
        "form": "prompt",
        "headers": {"X-Team": "memory"},
        "ca_bundle": str(ca),
    }
    assert settings.api_key.get_secret_value() == KEY
    assert settings.source("model") == "model in writer 'w'"


def test_an_entry_of_the_file_reaches_the_wire(file: Path) -> None:
    with ScriptedEndpoint("Hello!") as endpoint:
        settings = _resolved(
            file,
            f'[writers.w]\nbase_url = "{endpoint.url}"\nmodel = "m"\napi_key_env = "MY_KEY"\n'
            'no_think = { think = false }\nheaders = { X-Team = "memory" }\n',
            MY_KEY=KEY,
            HYMEMORY_API_KEY="another",
            OPENAI_API_KEY="another still",
        )
        Writer("host", (), settings).write(Request([{"role": "user", "content": "Hello"}]))
        (sent,) = endpoint.chats
    assert (sent.body["model"], sent.body["think"]) == ("m", False)
    assert (sent.headers["authorization"], sent.headers["x-team"]) == (f"Bearer {KEY}", "memory")


def test_an_entry_replaces_the_packaged_one_of_its_name_whole(file: Path) -> None:
    settings = _resolved(file, '[writers.qwen3]\nmodel = "qwen3-4b"\n', "qwen3")
    assert (settings.model, settings.no_think) == ("qwen3-4b", {})
    assert _resolved(file, '[writers.qwen3]\nmodel = "qwen3-4b"\n', "hy3").no_think == NO_THINK["hy3"]


def test_a_file_that_is_named_and_not_used_is_read_all_the_same(file: Path) -> None:
    with pytest.raises(ConfigurationError, match="not a TOML file"):
        _resolved(file, "writers", "hy-memory")


def test_home_in_the_files_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "w.toml").write_text('[writers.w]\nmodel = "m"\n')
    assert resolve(environ={"HYMEMORY_WRITERS_FILE": "~/w.toml", "HYMEMORY_WRITER": "w"}).model == "m"


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_variable_names_no_file(value: str) -> None:
    assert resolve(environ={"HYMEMORY_WRITERS_FILE": value}).model == "hy-memory"


# What is wrong in a file: its text, and the words that say so.
WRONG: dict[str, tuple[str, list[str]]] = {
    "no_toml": ("[writers.w\nmodel = 1", ["is not a TOML file", "line 1"]),
    "no_tables": ("", ["must hold tables named [writers.NAME]"]),
    "another_table": ('[writer.w]\nmodel = "m"', ["must hold tables named [writers.NAME]"]),
    "a_table_too_many": ('top = 1\n[writers.w]\nmodel = "m"', ["and nothing else"]),
    "no_table": ("[writers]\nw = 1", ["writer 'w' must be a table"]),
    "key_in_the_file": (f'[writers.w]\napi_key = "{KEY}"', ["writer 'w' holds a key", "api_key_env"]),
    "unknown_key": ('[writers.w]\nurl = "x"', ["unknown key 'url'", ", ".join(ENTRY_FIELDS)]),
    "a_setting_of_no_entry": ("[writers.w]\nattempts = 3", ["unknown key 'attempts'"]),
    "wrong_kind": ("[writers.w]\nmodel = 3", ["model is 3", "must be a string"]),
    "wrong_table": ('[writers.w]\nno_think = "yes"', ["no_think is 'yes'", "must be a table"]),
    "wrong_form": ('[writers.w]\nform = "json"', ["form in writer 'w' is 'json'", "json_object or prompt"]),
    "wrong_url": ('[writers.w]\nbase_url = "h:8000"', ["base_url in writer 'w' is 'h:8000'", "http://"]),
    "wrong_header": ("[writers.w]\nheaders = { a = 1 }", ["headers in writer 'w'", "a table of HTTP headers"]),
    "key_not_set": ('[writers.w]\napi_key_env = "NOT_SET"', ["'w' takes its key from NOT_SET, which is not set"]),
    "no_such_writer": ('[writers.v]\nmodel = "m"', ["HYMEMORY_WRITER: there is no writer 'w'", "hy3, qwen3, v"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_in_a_file_is_said(text: str, words: list[str], file: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        _resolved(file, text)
    assert all(word in str(caught.value) for word in words), caught.value
    assert KEY not in str(caught.value)


def _nothing(path: Path) -> None:
    pass


def _folder(path: Path) -> None:
    path.mkdir()


def _latin(path: Path) -> None:
    path.write_bytes('[writers.w]\nmodel = "\u00e9"'.encode("latin-1"))


@pytest.mark.parametrize(
    ("make", "word"), [(_nothing, "cannot be read"), (_folder, "cannot be read"), (_latin, "is not a TOML file")]
)
def test_a_file_that_cannot_be_read_is_named(make: Any, word: str, file: Path) -> None:
    make(file)
    with pytest.raises(ConfigurationError, match=word) as caught:
        resolve(environ={"HYMEMORY_WRITERS_FILE": str(file)})
    assert f"HYMEMORY_WRITERS_FILE={file}" in str(caught.value)


def test_a_key_that_is_not_set_matters_only_to_its_writer(file: Path) -> None:
    text = '[writers.w]\napi_key_env = "NOT_SET"\n[writers.v]\nmodel = "m"\n'
    assert _resolved(file, text, "v").model == "m"
