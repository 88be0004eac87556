"""Finding where a package uses its LLM, in sources that are only read."""

from __future__ import annotations

import locale
import textwrap
from pathlib import Path

import pytest

from hymemory_adapters.core.drift import Watched, new_sites, uses_of

WATCHED = Watched(
    names=("llm", "LlmFactory"),
    methods=("generate",),
    settings=("config", "store"),
    clients=("openai", "litellm"),
    folders=("llms/", "proxy/"),
)
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
model.ask  # llm.generate
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "drifting" / "deep"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("")
    (folder / "main.py").write_text(SOURCE)
    (folder / "other.py").write_text("nothing = 1")
    monkeypatch.syspath_prepend(str(tmp_path))
    return folder.parent


def test_uses_are_found_by_function_and_counted() -> None:
    assert uses_of("drifting", WATCHED) == {
        ("deep/main.py", "Memory.add", "llm.generate"): 2,
        ("deep/main.py", "Memory.aadd", "llm.generate"): 1,
        ("deep/main.py", "Memory.aadd.inner", "llm.chat"): 1,
        ("deep/main.py", "", "llm.top"): 1,
    }


@pytest.mark.parametrize(
    ("source", "uses"),
    [
        pytest.param("self.llm.other(1)", ["llm.other"], id="an attribute of it"),
        pytest.param("self.llm.one.two(1)", ["llm.one"], id="no further than that"),
        pytest.param("self.llm.llm.two", ["llm.llm", "llm.two"], id="one in the other"),
        pytest.param("self._llm.generate(1)", ["_llm.generate"], id="its method, held by another"),
        pytest.param("Maker(1).generate(1)", ["generate"], id="its method, of what has no name"),
        pytest.param("generate(1)", ["generate"], id="its method alone"),
        pytest.param("self.config.llm.generate(1)", ["llm.generate"], id="its method, held by settings"),
        pytest.param("ask = self.llm; ask.generate(1)", ["llm", "ask.generate"], id="another name for it"),
        pytest.param("ask = self.llm.generate", ["llm.generate"], id="another name for its method"),
        pytest.param("consolidate(self.llm, [])", ["llm"], id="handed on"),
        pytest.param("consolidate(llm=llm)", ["llm"], id="handed on by its name"),
        pytest.param("return self.llm", ["llm"], id="returned"),
        pytest.param("for one in [self.llm]: one(1)", ["llm"], id="in a list"),
        pytest.param("self.llm[0]", ["llm"], id="an item of it"),
        pytest.param("self.llm(1)", ["llm"], id="called itself"),
        pytest.param("getattr(self.llm, name)(1)", ["llm"], id="getattr with a name that is computed"),
        pytest.param("getattr(self.llm, 'other')(1)", ["llm.other"], id="getattr"),
        pytest.param("getattr(self, 'llm', None)", ["llm"], id="getattr of it"),
        pytest.param("getattr(self, 'llm').other(1)", ["llm.other"], id="an attribute of getattr"),
        pytest.param("hasattr(self, 'llm')", [], id="whether it has one"),
        pytest.param("getattr(self, 'llm' + x)", [], id="getattr of something else"),
        pytest.param("LlmFactory.create(1).other(1)", ["LlmFactory.create"], id="one is made"),
        pytest.param("make = LlmFactory", ["LlmFactory"], id="another name for what makes it"),
        pytest.param("from utils import LlmFactory", [], id="what makes it is imported"),
        pytest.param("from utils import LlmFactory as F", ["import LlmFactory"], id="and gets another name"),
        pytest.param("from utils import Factory as LlmFactory", [], id="another that gets its name"),
        pytest.param("self.llm = None", [], id="set"),
        pytest.param("llm = 1", [], id="a variable is set"),
        pytest.param("del self.llm", [], id="deleted"),
        pytest.param("def llm(llm: LlmConfig): 'llm'", [], id="only of the same name"),
        pytest.param("lambda: self.config.llm.provider(self.config.llm)", [], id="settings"),
        pytest.param("config.store.llm and config.llm", [], id="settings of settings"),
        pytest.param("other.llm and config.other.llm", ["llm", "llm"], id="no settings"),
        pytest.param("getattr(self, 'config').llm", [], id="getattr of settings"),
        pytest.param("import openai", ["import openai"], id="a client"),
        pytest.param("import os, openai.lib as o", ["import openai.lib"], id="a client's module"),
        pytest.param("from openai import A, B", ["import openai"], id="from a client"),
        pytest.param("from litellm.x import A", ["import litellm.x"], id="from a client's module"),
        pytest.param("from os import path", [], id="no client"),
        pytest.param("import openaiish, x.openai", [], id="no client either"),
        pytest.param("from .openai import A", [], id="its own module"),
        pytest.param("from . import A", [], id="its own package"),
    ],
)
def test_what_counts(source: str, uses: list[str], package: Path) -> None:
    (package / "deep" / "main.py").write_text(f"def f():\n{textwrap.indent(source, ' ')}")
    found = uses_of("drifting", WATCHED)
    assert sorted(found.elements()) == sorted(("deep/main.py", place(source), use) for use in uses)


def place(source: str) -> str:
    return "f.llm" if source.startswith("def llm") else "f"


@pytest.mark.parametrize("file", ["llms/one.py", "proxy/deep/one.py", "memory/llms/one.py", "llms.py"])
def test_where_the_host_has_its_clients_they_may_be_imported(file: str, package: Path) -> None:
    """But what uses its LLM there is found."""
    (package / "deep" / "main.py").unlink()
    (package / file).parent.mkdir(parents=True, exist_ok=True)
    (package / file).write_text("import openai\nllm.other(1)\n")
    outside = {} if file in ("llms/one.py", "proxy/deep/one.py") else {(file, "", "import openai"): 1}
    assert uses_of("drifting", WATCHED) == {(file, "", "llm.other"): 1, **outside}


def test_sources_are_read_as_python_reads_them(package: Path) -> None:
    """Whatever the locale says: theirs is UTF-8."""
    (package / "deep" / "main.py").write_text("def f(): llm.ask('\u8336')", encoding="utf-8")
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C")
    try:
        assert uses_of("drifting", Watched(("llm",))) == {("deep/main.py", "f", "llm.ask"): 1}
    finally:
        locale.setlocale(locale.LC_CTYPE, before)


@pytest.mark.parametrize("source", ["x.generate()", "import openai", "llm.x"], ids=["method", "client", "name"])
def test_a_file_with_one_of_them_is_read(source: str, package: Path) -> None:
    (package / "deep" / "main.py").write_text(source)
    assert len(uses_of("drifting", WATCHED)) == 1


def test_a_package_that_is_not_installed_has_none() -> None:
    assert uses_of("no_such_package_here", WATCHED) == {}


def test_what_is_not_known_is_told() -> None:
    found = uses_of("drifting", WATCHED)
    known = {site: count for site, count in found.items() if site[1] != ""}
    assert new_sites(found, found) == ()
    assert new_sites(found, known) == ("deep/main.py: module uses llm.top",)
    assert new_sites(found, {**found, ("deep/main.py", "Memory.add", "llm.generate"): 1}) == (
        "deep/main.py: Memory.add uses llm.generate 2 times",
    )
