"""A newer LlamaIndex that asks its LLM for something else must not go unnoticed."""

from __future__ import annotations

import pytest
from llama_index.core.memory.memory_blocks import fact

from hymemory_adapters.core import drift
from hymemory_adapters.core.request import Request
from hymemory_adapters.llamaindex import prompts, sites
from hymemory_adapters.llamaindex.calls import calls

WRITES = ("llamaindex.facts", "llamaindex.condense", "llamaindex.summary")


def test_every_llm_call_of_the_installed_memories_is_known() -> None:
    assert sites.unknown_sites() == ()


def test_the_alarm_sees_llamaindex_s_calls() -> None:
    """Not a table that holds because nothing was found."""
    found = drift.uses_of(sites.PACKAGE, sites.WATCHED)
    assert found["memory_blocks/fact.py", "FactExtractionMemoryBlock._aput", "llm.achat"] == 2


@pytest.mark.parametrize("site", sites._KNOWN)
def test_a_call_that_the_table_lacks_is_told(site: drift.Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sites, "_KNOWN", {known: n - (known == site) for known, n in sites._KNOWN.items()})
    (told,) = sites.unknown_sites()
    assert told.startswith(f"{site[0]}: {site[1]} uses {site[2]}")


def test_the_table() -> None:
    assert [call.name for call in calls() if call.writes] == list(WRITES)
    assert all(call.summary for call in calls())


@pytest.mark.parametrize("name", WRITES)
def test_a_typical_request_is_recognised_by_its_row_alone(name: str) -> None:
    request = Request(prompts.typical()[name])
    assert [call.name for call in calls() if call.recognise(request)] == [name]


@pytest.mark.parametrize("template", ["DEFAULT_FACT_EXTRACT_PROMPT", "DEFAULT_FACT_CONDENSE_PROMPT"])
def test_no_xml_is_left_in_what_is_asked(template: str) -> None:
    """A reworded prompt would still ask for tags: then the shim needs another look."""
    kind = "llamaindex.facts" if "EXTRACT" in template else "llamaindex.condense"
    own = getattr(fact, template).format_messages(existing_facts="", max_facts=3)[0].content
    (call,) = (call for call in calls() if call.name == kind)
    contract = call.recognise(Request([{"role": "user", "content": own}]))
    assert contract is not None
    assert contract.messages is not None
    asked = str(contract.messages[0]["content"])
    assert "<fact>" in own
    assert "<fact>" not in asked
    assert "<facts>" not in asked
    assert "XML" not in asked
