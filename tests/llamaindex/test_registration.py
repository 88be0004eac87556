"""How LlamaIndex is listed: it needs no import hook, so there is nothing to switch on and nothing to take over."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import _hymemory_autoload as autoload
from hymemory_adapters import register
from hymemory_adapters.cli.checks_local import InstalledHost, judge_host
from hymemory_adapters.registry import HOSTS, HostError

LLAMAINDEX = HOSTS["llamaindex"]


def test_it_has_no_hook() -> None:
    assert LLAMAINDEX.modules == ()
    register("llamaindex")  # does no harm
    assert LLAMAINDEX.installed_version() is not None


def test_an_unsupported_version_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(LLAMAINDEX), "installed_version", lambda _: "0.11.0")
    with pytest.raises(HostError, match=r"llama-index-core 0\.11\.0 is installed"):
        register("llamaindex")


def test_there_is_nothing_to_take_over() -> None:
    environ = {"HYMEMORY_ENABLE": "llamaindex,mem0"}
    assert autoload.enabled_hosts(environ) == ({"mem0"}, {"llamaindex"})


@pytest.mark.parametrize("route", ["hook", "off", "none"])
def test_doctor_is_content_without_a_hook(route: str) -> None:
    version = LLAMAINDEX.tested[-1]
    finding = judge_host(InstalledHost(LLAMAINDEX, version), route, named=False)
    assert finding.verdict.value == "ok"
    assert "the app names the writer itself" in finding.text


def test_its_calls_are_listed() -> None:
    rows = LLAMAINDEX.write_calls()
    assert {row.name: row.on_lost.value for row in rows} == {
        "llamaindex.facts": "raises",
        "llamaindex.condense": "salvages",
        "llamaindex.summary": "salvages",
        "llamaindex.tools": "raises",
        "llamaindex.structured": "raises",
    }
    assert set(LLAMAINDEX.typical_prompts()) == {row.name for row in rows if row.writes}


def test_importing_the_package_imports_no_llamaindex() -> None:
    code = """
import json, sys
import hymemory_adapters.llamaindex as package
before = sorted(name for name in sys.modules if name.partition(".")[0] in ("llama_index", "openai"))
print(json.dumps([before, package.HyMemory.__name__, package.HyMemoryFactExtractionBlock.__name__, dir(package)]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    before, *names, listed = json.loads(done.stdout.splitlines()[-1])
    assert before == []
    assert names == ["HyMemory", "HyMemoryFactExtractionBlock"]
    assert {*names} <= {*listed}


def test_other_names_are_not_there() -> None:
    import hymemory_adapters.llamaindex as package

    with pytest.raises(AttributeError, match="ChatHyMemory"):
        _ = package.ChatHyMemory
