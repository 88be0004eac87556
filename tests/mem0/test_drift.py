"""A newer Mem0 that asks its LLM for something else must not go unnoticed."""

from __future__ import annotations

from importlib.machinery import ModuleSpec
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
    found = drift.uses_of("mem0", sites.WATCHED)
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
    assert all(f"memory/main.py: {lost} uses llm" in line for line in told)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param("self.llm.generate_response([])", ["llm.generate_response"], id="another call"),
        pytest.param("await self.llm.agenerate_response([])", ["llm.agenerate_response"], id="another method"),
        pytest.param("ask = self.llm; ask.generate_response([])", ["ask.generate_response", "llm"], id="alias"),
        pytest.param(
            "self.summarizer = LlmFactory.create('openai', {}); self.summarizer.generate_response([])",
            ["LlmFactory.create", "summarizer.generate_response"],
            id="another LLM",
        ),
        pytest.param("self._llm.generate_response([])", ["_llm.generate_response"], id="renamed"),
        pytest.param("consolidate(self.llm, [])", ["llm"], id="handed on"),
        pytest.param("getattr(self.llm, 'generate_response')([])", ["llm.generate_response"], id="getattr"),
        pytest.param("getattr(self.llm, name)([])", ["llm"], id="getattr of a variable"),
        pytest.param(
            "import openai; openai.OpenAI().chat.completions.create(messages=[])", ["import openai"], id="a client"
        ),
    ],
)
def test_a_newer_mem0_that_asks_for_more_is_told(
    more: str, told: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The installed one with a method more, however that is written."""
    source = Path(mem0.__file__).with_name("memory").joinpath("main.py").read_text(encoding="utf-8")
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "main.py").write_text(f"{source}\n\nasync def more(self):\n    {more}\n", encoding="utf-8")
    spec = ModuleSpec("mem0", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(drift, "find_spec", lambda package: spec)
    assert sites.unknown_sites() == tuple(f"memory/main.py: more uses {use}" for use in told)


def test_what_recognises_procedural_memory_stands_in_mem0() -> None:
    """The one anchor that is no constant of Mem0's prompts and no builder's output."""
    source = Path(mem0.__file__).with_name("memory").joinpath("main.py").read_text(encoding="utf-8")
    assert source.count(f'"{PROCEDURAL}"') == 2
