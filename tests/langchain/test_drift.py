"""A newer LangMem, trustcall or LangChain that asks its LLM for something else must not go unnoticed."""

from __future__ import annotations

from typing import Any

import pytest

from hymemory_adapters.core import drift
from hymemory_adapters.langchain import prompts, sites
from hymemory_adapters.langchain.calls import calls
from hymemory_adapters.langchain.installed import spec_of
from tests.support.scripted import ScriptedEndpoint

IN_EVERY_VERSION = ("trustcall", "langmem")
KNOWN = [
    pytest.param(package, site, id=f"{package} {site[1]} {site[2]}")
    for package in IN_EVERY_VERSION
    for site in sites._KNOWN[package]
]


def test_every_llm_call_of_what_is_installed_is_known() -> None:
    assert sites.unknown_sites() == ()


@pytest.mark.skipif(spec_of("langmem.knowledge") is None, reason="LangMem is not installed")
@pytest.mark.parametrize(("package", "site"), KNOWN)
def test_a_call_that_the_table_lacks_is_told(package: str, site: drift.Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """So the table holds nothing that is not there."""
    fewer = {known: count - (known == site) for known, count in sites._KNOWN[package].items()}
    monkeypatch.setattr(sites, "_KNOWN", {package: fewer})
    (told,) = sites.unknown_sites()
    assert told.startswith(f"{package}/{site[0]}: {site[1]} uses {site[2]}")


def test_the_classic_memories_are_looked_at() -> None:
    packages = [package for package in sites._KNOWN if package.endswith(".memory") and spec_of(package)]
    if not packages:
        pytest.skip("langchain-classic is not installed")
    for package in packages:
        found = drift.uses_of(package, sites._WATCHED[package])
        assert found["entity.py", "ConversationEntityMemory.save_context", "chain.predict"] == 1


def test_the_table() -> None:
    names = [call.name for call in calls()]
    assert len(set(names)) == len(names)
    assert all(call.summary for call in calls())
    assert names[-2:] == ["langchain.tools", "langchain.structured"], "what is left goes to these"
    assert [call.name for call in calls() if not call.writes] == ["langmem.search", *names[-2:]]


def test_typical_requests_are_those_that_are_sent(endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYMEMORY_BASE_URL", endpoint.url)
    typical = prompts.typical()
    assert endpoint.requests == [], "nothing is sent for it"
    wanted = {"langmem.extract", "langmem.update", "langmem.summary"} if spec_of("langmem.knowledge") else set()
    if spec_of("langchain.agents.middleware.summarization"):
        wanted |= {"langchain.summary"}
    assert set(typical) == wanted
    for messages in typical.values():
        assert all(isinstance(message["content"], str) for message in messages)
    for name in wanted & {"langmem.extract", "langmem.update"}:
        assert "# Tools" in typical[name][0]["content"], "with what tells the tools"


def test_typical_requests_trace_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangSmith is switched on in the environment of many apps; nobody has run anything here."""
    traced: list[Any] = []
    client = pytest.importorskip("langsmith").Client
    monkeypatch.setattr(client, "create_run", lambda *args, **kwargs: traced.append(args))
    for variable in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(variable, "true")
    prompts.typical()
    assert traced == []
