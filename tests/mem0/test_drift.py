"""A newer Mem0 that asks its LLM for something else must not go unnoticed."""

from __future__ import annotations

from pathlib import Path

import pytest

import mem0
from hymemory_adapters.core import drift
from hymemory_adapters.mem0 import sites
from hymemory_adapters.mem0.text import PROCEDURAL


def test_every_llm_call_of_the_installed_mem0_is_known() -> None:
    assert sites.unknown_sites() == ()


def test_the_alarm_sees_mem0s_calls() -> None:
    """Not a table that holds because nothing was found."""
    found = drift.uses_of("mem0", "llm")
    assert found["memory/main.py", "Memory._add_to_vector_store", "llm.generate_response"] in (1, 2)
    assert found["memory/utils.py", "get_image_description", "llm.generate_response"] == 1


@pytest.mark.parametrize("lost", ["Memory._add_to_vector_store", "AsyncMemory._create_procedural_memory"])
def test_a_call_that_the_table_lacks_is_told(lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = sites._known
    monkeypatch.setattr(
        sites, "_known", lambda **more: {site: n - (site[1] == lost) for site, n in known(**more).items()}
    )
    told = sites.unknown_sites()
    assert told
    assert all(f"memory/main.py: {lost} uses llm." in line for line in told)


def test_what_recognises_procedural_memory_stands_in_mem0() -> None:
    """The one anchor that is no constant of Mem0's prompts and no builder's output."""
    source = Path(mem0.__file__).with_name("memory").joinpath("main.py").read_text(encoding="utf-8")
    assert source.count(f'"{PROCEDURAL}"') == 2
