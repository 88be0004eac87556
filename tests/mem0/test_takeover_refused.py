"""HYMEMORY_ENABLE=mem0 where there is something that the writer cannot take over: nobody else writes instead."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import _hymemory_autoload as autoload
from hymemory_adapters import ConfigurationError
from tests.mem0.host import MAJOR, USER, astored, async_memory, drop, hymemory, mem0, writes
from tests.support.scripted import ScriptedEndpoint
from tests.test_registry import write_metadata

SOURCE = Path(autoload.__file__).parent
needs_langchain_core = pytest.mark.skipif(find_spec("langchain_core") is None, reason="langchain-core is not installed")

# -- an LLM that is handed over with the call ------------------------------------------------------------

TRACE = [{"role": "user", "content": "Book the train"}, {"role": "assistant", "content": "Booked"}]
PROCEDURE = {"memory_type": "procedural_memory"}


class AppModel:
    """What an app hands to ``AsyncMemory.add``: a LangChain model, of which Mem0 uses no more than this."""

    content = "Written by the app's model"

    def invoke(self, **_: Any) -> AppModel:
        return self


def add(endpoint: ScriptedEndpoint, enable: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What an ``AsyncMemory`` holds after one ``add``; HYMEMORY_ENABLE comes after it was built."""

    async def run() -> list[str]:
        memory = await async_memory(hymemory(endpoint.url))
        monkeypatch.setenv("HYMEMORY_ENABLE", enable)
        try:
            await memory.add(TRACE, user_id=USER, agent_id="travel", **more)
        finally:
            held = await astored(memory)
            drop(memory)
        return held

    return asyncio.run(run())


def test_a_takeover_refuses_the_llm_of_a_call(endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"names mem0, and AsyncMemory\.add\(llm=.*drop llm=, or"):
        add(endpoint, "mem0", {**PROCEDURE, "llm": AppModel()}, monkeypatch)
    assert endpoint.requests == []


@needs_langchain_core
def test_without_enable_it_is_the_apps_choice(endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    assert add(endpoint, "", {**PROCEDURE, "llm": AppModel()}, monkeypatch) == [AppModel.content]
    assert endpoint.requests == []


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(PROCEDURE, id="procedure", marks=() if MAJOR >= 1 else needs_langchain_core),
        pytest.param({**PROCEDURE, "llm": None}, id="none", marks=() if MAJOR >= 1 else needs_langchain_core),
        pytest.param({"llm": AppModel()}, id="of no use"),  # Mem0 takes no notice of it
    ],
)
def test_every_other_add_is_written_by_the_writer(
    more: dict[str, Any], endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.play(*(["Booked the train"] if "memory_type" in more else writes("Booked the train")))
    assert add(endpoint, "mem0", more, monkeypatch) == ["Booked the train"]


def test_the_method_looks_as_before() -> None:
    assert inspect.iscoroutinefunction(mem0.AsyncMemory.add)
    assert "llm" in inspect.signature(mem0.AsyncMemory.add).parameters


# -- ENABLE comes after the import, at which the writer could not be installed -----------------------------

DOORS = """
from mem0.utils.factory import LlmFactory
block = {"model": "gpt-4o-mini", "api_key": "sk-app", "openai_base_url": "http://127.0.0.1:9/v1"}
store = {"provider": "qdrant", "config": {"path": os.environ["MEM0_DIR"] + "/store", "embedding_model_dims": 4}}
embedder = {"provider": "openai", "config": {"api_key": "sk-app", "embedding_dims": 4}}
config = {"llm": {"provider": "openai", "config": block}, "vector_store": store, "embedder": embedder}

def built(cls):
    async def build():
        made = cls.from_config(config)
        return await made if inspect.isawaitable(made) else made
    memory = asyncio.run(build())
    memory.vector_store.client.close()
    return memory.llm

DOORS = {
    "LlmFactory": lambda: LlmFactory.create("openai", block),
    "Memory": lambda: built(mem0.Memory),
    "AsyncMemory": lambda: built(mem0.AsyncMemory),
    "MemoryClient": lambda: mem0.MemoryClient(api_key="m0-x", host="http://127.0.0.1:9"),
    "AsyncMemoryClient": lambda: mem0.AsyncMemoryClient(api_key="m0-x", host="http://127.0.0.1:9"),
}

def answers():
    told = {}
    for name, build in DOORS.items():
        try:
            told[name] = type(build()).__name__
        except Exception as error:
            told[name] = f"{type(error).__name__}: {error}"
    return told
"""
APP = f"""
import asyncio, inspect, json, os, sys, warnings
warnings.simplefilter("ignore")
FAULT
import _hymemory_autoload
_hymemory_autoload.start()
import mem0
{DOORS}
without = answers()
os.environ["HYMEMORY_ENABLE"] = "mem0"  # load_dotenv()
print(json.dumps([without, answers()]))
"""
BREAK = """
import hymemory_adapters.mem0 as ours
install = ours.install
def broken(module):
    if module.__name__.startswith({0!r}):
        raise AttributeError("no such function")
    install(module)
ours.install = broken
"""
FAULTS = {
    "version": ("", "HostError: mem0ai 9.0 is installed, hymemory-adapters supports mem0 only in "),
    "every module": (BREAK.format("mem0."), "AttributeError: no such function"),
    "memory alone": (BREAK.format("mem0.memory.main"), "AttributeError: no such function"),
    "configs alone": (BREAK.format("mem0.llms.configs"), "AttributeError: no such function"),
    "half uninstalled": ("sys.modules['hymemory_adapters'] = None", "ModuleNotFoundError: "),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mem0_that_could_not_be_taken_over_builds_nothing(fault: str, tmp_path: Path) -> None:
    before, said = FAULTS[fault]
    if fault == "version":
        write_metadata(tmp_path, "mem0ai", "9.0")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("HYMEMORY_", "OPENAI_"))}
    done = subprocess.run(
        [sys.executable, "-c", APP.replace("FAULT", before)],
        env={**clean, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, SOURCE))), "MEM0_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    without, enabled = json.loads(done.stdout.splitlines()[-1])
    assert [without[door] for door in ("LlmFactory", "Memory", "AsyncMemory")] == ["OpenAILLM"] * 3
    assert "mem0 out of HYMEMORY_ENABLE" not in str(without)
    for door, told in enabled.items():
        assert "HYMEMORY_ENABLE names mem0, but hymemory-adapters cannot work with it: " in told, (door, told)
        assert said in told, (door, told)
        assert "take mem0 out of HYMEMORY_ENABLE" in told, (door, told)
