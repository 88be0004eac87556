"""The model string: how the provider's name becomes known, on each form that LangChain's private registry has had."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hymemory_adapters
from hymemory_adapters import ConfigurationError, registry
from hymemory_adapters.langchain import install
from hymemory_adapters.registry import HostError
from tests.support.scripted import ScriptedEndpoint
from tests.test_registry import write_metadata

MODULES = ("langchain.chat_models.base", "langchain_classic.chat_models.base")
SOURCE = Path(hymemory_adapters.__path__[0]).parent
each_module = pytest.mark.parametrize(
    "name", [name for name in MODULES if find_spec(name.partition(".")[0]) is not None]
)


@each_module
def test_the_registry_is_where_it_was(name: str) -> None:
    """The drift alarm: a LangChain that moves it again fails here first."""
    module: Any = importlib.import_module(name)
    found = [getattr(module, at) for at in ("_BUILTIN_PROVIDERS", "_SUPPORTED_PROVIDERS") if hasattr(module, at)]
    assert found, "install() writes into it"
    assert "openai" in found[0]
    assert callable(module._init_chat_model_helper)
    if isinstance(found[0], set):
        assert module._parse_model("openai:x", None) == ("x", "openai")
    else:
        assert len(found[0]["openai"]) == 3


STRINGS: dict[str, Callable[[Any], Any]] = {
    "string": lambda init: init("hymemory:hy-memory"),
    "provider": lambda init: init("hy-memory", model_provider="hymemory"),
    "configurable": lambda init: init("hymemory:hy-memory", configurable_fields=("temperature",)),
}


@each_module
@pytest.mark.parametrize("build", STRINGS.values(), ids=STRINGS)
def test_a_model_string(
    name: str, build: Callable[[Any], Any], endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    hymemory_adapters.register("langchain")
    hymemory_adapters.register()  # as often as you like
    monkeypatch.setenv("HYMEMORY_BASE_URL", endpoint.url)
    endpoint.play("hello")
    model = build(importlib.import_module(name).init_chat_model)
    assert model.invoke("hi").content == "hello"
    assert endpoint.chats[0].body["model"] == "hy-memory"


@each_module
def test_parameters_of_the_model_string(name: str, endpoint: ScriptedEndpoint) -> None:
    hymemory_adapters.register("langchain")
    endpoint.play("hello")
    init = importlib.import_module(name).init_chat_model
    init("hymemory:served", base_url=endpoint.url, temperature=0.5, attempts=2).invoke("hi")
    assert endpoint.chats[0].body["model"] == "served"
    assert endpoint.chats[0].body["temperature"] == 0.5


@each_module
def test_other_providers_are_as_they_were(name: str) -> None:
    hymemory_adapters.register("langchain")
    init = importlib.import_module(name).init_chat_model
    assert type(init("openai:gpt-4o", api_key="x")).__name__ == "ChatOpenAI"
    with pytest.raises(ValueError, match="nope"):
        init("x", model_provider="nope")


class _Built:
    """What the other branch of a made-up registry builds."""


def a_module(**attributes: Any) -> Any:
    module = ModuleType("langchain.chat_models.base")
    vars(module).update(attributes)
    return module


def a_chain(**attributes: Any) -> Any:
    def parse(model: str, model_provider: str | None) -> tuple[str, str]:
        provider, _, name = model.partition(":")
        return (model, model_provider) if model_provider else (name, provider)

    def helper(model: str, *, model_provider: str | None = None, **kwargs: Any) -> Any:
        return _Built()

    return a_module(_init_chat_model_helper=helper, _parse_model=parse, **attributes)


@pytest.mark.parametrize("at", ["_BUILTIN_PROVIDERS", "_SUPPORTED_PROVIDERS"])
def test_a_registry_that_is_a_dict(at: str) -> None:
    module = a_module(**{at: {"openai": ("langchain_openai", "ChatOpenAI", None)}})
    install(module)
    install(module)
    path, name, build = getattr(module, at)["hymemory"]
    model = build(cls=getattr(importlib.import_module(path), name), model="x")
    assert model.model_name == "x"


def test_a_registry_that_is_a_set() -> None:
    module = a_chain(_SUPPORTED_PROVIDERS={"openai"})
    install(module)
    once = module._init_chat_model_helper
    install(module)
    assert module._init_chat_model_helper is once
    assert sorted(module._SUPPORTED_PROVIDERS) == ["hymemory", "openai"]
    assert once("hymemory:x", attempts=2).settings.attempts == 2
    assert once("x", model_provider="hymemory").model_name == "x"
    assert isinstance(once("openai:x"), _Built)


GONE = {
    "no registry": a_module(),
    "another kind": a_module(_BUILTIN_PROVIDERS=("openai",)),
    "no chain": a_module(_SUPPORTED_PROVIDERS={"openai"}),
}


@pytest.mark.parametrize("module", GONE.values(), ids=GONE)
def test_a_registry_that_has_moved_is_told(module: Any) -> None:
    with pytest.raises(HostError, match=r"cannot work with langchain\.chat_models\.base"):
        registry.install("langchain", module)


NOT_TAKEN_OVER = "HYMEMORY_ENABLE names 'langchain', and only mem0 can be taken over: .*take it out"


def test_there_is_nothing_to_take_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYMEMORY_ENABLE", "langchain")
    with pytest.raises(HostError, match=NOT_TAKEN_OVER):
        registry.install("langchain", a_chain(_SUPPORTED_PROVIDERS={"openai"}))


@each_module
@pytest.mark.parametrize("model", ["openai:gpt-4o", "hymemory:hy-memory"])
def test_named_in_enable_after_the_import_no_model_is_built(
    name: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a .env file, or for a model that is built only when it is asked."""
    hymemory_adapters.register("langchain")
    init = importlib.import_module(name).init_chat_model
    late = init(model, configurable_fields=("temperature",))
    monkeypatch.setenv("HYMEMORY_ENABLE", "langchain")
    for build in (lambda: init(model), lambda: late.invoke("hi")):
        with pytest.raises(ConfigurationError, match=NOT_TAKEN_OVER):
            build()
    monkeypatch.setenv("HYMEMORY_ENABLE", "mem0")
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert init(model)


# -- a fresh process -------------------------------------------------------------------------------

AS_THE_PTH_FILE_DOES = "import _hymemory_autoload; _hymemory_autoload.start()\n"


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HYMEMORY_", "OPENAI_"))}
    clean |= {"PYTHONPATH": str(SOURCE), "LANGSMITH_TRACING": "false", **env}
    return subprocess.run(
        [sys.executable, "-c", AS_THE_PTH_FILE_DOES + code],
        env=clean, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


CHAT = """
from {package}.chat_models import init_chat_model
print(init_chat_model("hymemory:hy-memory").invoke("hi").content)
"""


@each_module
def test_a_fresh_process_needs_no_import_line(name: str) -> None:
    with ScriptedEndpoint("hello") as server:
        done = run(CHAT.format(package=name.partition(".")[0]), HYMEMORY_BASE_URL=server.url)
    assert done.stdout.strip() == "hello", done.stderr


def test_a_fresh_process_that_switches_it_off() -> None:
    done = run(CHAT.format(package="langchain"), HYMEMORY_AUTOLOAD="0")
    assert "hello" not in done.stdout
    assert "Unable to infer model provider" in done.stderr or "Unsupported" in done.stderr


MANAGER = """
import json
from langmem import create_memory_manager
manager = create_memory_manager("hymemory:hy-memory")
print(json.dumps([each.content.content for each in manager.invoke({"messages": [{"role": "user", "content": "Tea"}]})]))
"""


@pytest.mark.skipif(find_spec("langmem") is None, reason="LangMem is not installed")
def test_a_fresh_process_with_langmem() -> None:
    good = '{"tool_calls": [{"name": "Memory", "arguments": {"content": "Likes tea"}}]}'
    with ScriptedEndpoint(good) as server:
        done = run(MANAGER, HYMEMORY_BASE_URL=server.url)
    assert done.stdout.strip() == '["Likes tea"]', done.stderr


def test_importing_the_package_imports_no_langchain() -> None:
    done = run("import hymemory_adapters.langchain, sys; print([m for m in sys.modules if m.startswith('langchain')])")
    assert done.stdout.strip() == "[]", done.stderr


@each_module
def test_an_unsupported_langchain_builds_no_model_once_enable_names_it(name: str, tmp_path: Path) -> None:
    write_metadata(tmp_path, "langchain", "9.0")
    code = f"""
import os, warnings
warnings.simplefilter("ignore")
from {name} import init_chat_model
def build(): return type(init_chat_model("openai:gpt-4o", api_key="x")).__name__
assert build() == "ChatOpenAI"
os.environ["HYMEMORY_ENABLE"] = "langchain"
build()
"""
    done = run(code, PYTHONPATH=os.pathsep.join(map(str, (tmp_path, SOURCE))))
    told = done.stderr.splitlines()[-1]
    assert told.startswith("RuntimeError: HYMEMORY_ENABLE names 'langchain', and only mem0 can be"), done.stderr
