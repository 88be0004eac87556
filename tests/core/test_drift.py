"""Finding where a package uses its LLM, in sources that are only read."""

from __future__ import annotations

import locale
from pathlib import Path

import pytest

from hymemory_adapters.core.drift import new_sites, uses_of

SOURCE = """
raise SystemExit("never run")

class Memory:
    def add(self):
        self.llm.generate(1)
        if self.config.llm.config:
            return [llm.generate(x) for x in ()]

    async def aadd(self, llm):
        await to_thread(llm.generate)
        def inner():
            return self.llm.chat("llm.generate")

llm.top
model.generate  # llm.generate
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "drifting" / "deep"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder / "main.py").write_text(SOURCE)
    (folder / "other.py").write_text("nothing = 1")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_uses_are_found_by_function_and_counted() -> None:
    assert uses_of("drifting", "llm", besides=("config",)) == {
        ("deep/main.py", "Memory.add", "llm.generate"): 2,
        ("deep/main.py", "Memory.aadd", "llm.generate"): 1,
        ("deep/main.py", "Memory.aadd.inner", "llm.chat"): 1,
        ("deep/main.py", "", "llm.top"): 1,
    }


def test_sources_are_read_as_python_reads_them(tmp_path: Path) -> None:
    """Whatever the locale says: theirs is UTF-8."""
    (tmp_path / "drifting" / "deep" / "main.py").write_text("def f(): llm.ask('\u8336')", encoding="utf-8")
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    try:
        assert uses_of("drifting", "llm") == {("deep/main.py", "f", "llm.ask"): 1}
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


def test_a_package_that_is_not_installed_has_none() -> None:
    assert uses_of("no_such_package_here", "llm") == {}


def test_what_is_not_known_is_told() -> None:
    found = uses_of("drifting", "llm", besides=("config",))
    known = {site: count for site, count in found.items() if site[1] != ""}
    assert new_sites(found, found) == ()
    assert new_sites(found, known) == ("deep/main.py: module uses llm.top",)
    assert new_sites(found, {**found, ("deep/main.py", "Memory.add", "llm.generate"): 1}) == (
        "deep/main.py: Memory.add uses llm.generate 2 times",
    )
