"""HYMEMORY_ENABLE that comes after an import at which the writer could not be installed, as from a ``.env`` file."""

from __future__ import annotations

from pathlib import Path

import pytest

import _hymemory_autoload as autoload
from tests.test_autoload import BROKEN_REGISTRY, REGISTRY, SITECUSTOMIZE, Interpreter, succeeded

DOORS = """
autoload.DOORS.clear()
autoload.DOORS.update({
    "fakehost.config": ("Factory.create", "Factory.gone", "build", "GONE.create"), "fakehost.user": ("User.__init__",),
    "fakehost": ("nothing_like_it",), "not_imported": ("build",),
})
autoload.HOOKS.update({"fakehost.user": "fake", "not_imported": "fake"})
"""
CONFIG = """
class Factory:
    @classmethod
    def create(cls, name): return cls.__name__ + name
class Own(Factory): pass
def build(name="?"): return "built " + name
"""
USER = """
class User:
    def __init__(self, name): self.name = name
"""
USE = """
import os, warnings
warnings.simplefilter("ignore", RuntimeWarning)
import fakehost.config as c, fakehost.user as u
ways = (lambda: c.Factory.create("x"), lambda: c.Own.create("x"), lambda: c.build(), lambda: u.User("x").name)

def answers():
    told = []
    for way in ways:
        try:
            told.append(way())
        except RuntimeError as error:
            told.append(str(error))
    return told

AS_BEFORE = ["Factoryx", "Ownx", "built ?", "x"]
"""
NAMED = "HYMEMORY_ENABLE names fake, but hymemory-adapters cannot work with it: "
ONE_FAILS = """
def install(host, module):
    if module.__name__ == {name!r}:
        raise LookupError("our own mistake")
"""

FAULTS = {
    "our mistake": ("", BROKEN_REGISTRY, "LookupError: our own mistake"),
    "half uninstalled": ("import sys; sys.modules['hymemory_adapters'] = None\n", REGISTRY, "ModuleNotFoundError: "),
    "the first module alone": ("", ONE_FAILS.format(name="fakehost"), "LookupError: our own mistake"),
    "the last module alone": ("", ONE_FAILS.format(name="fakehost.user"), "LookupError: our own mistake"),
}


@pytest.fixture
def python(tmp_path: Path) -> Interpreter:
    made = Interpreter(tmp_path)
    made.write("sitecustomize.py", SITECUSTOMIZE + DOORS)
    made.write("fakehost/config.py", CONFIG)
    made.write("fakehost/user.py", USER)
    return made


@pytest.mark.parametrize(("before", "registry", "said"), FAULTS.values(), ids=FAULTS)
def test_no_door_is_open_while_enable_names_the_host(
    python: Interpreter, before: str, registry: str, said: str
) -> None:
    python.write("hymemory_adapters/registry.py", registry)
    result = python.program(f"""{before}{USE}
assert answers() == AS_BEFORE
for value in ("fake", "mem0, FAKE"):
    os.environ["HYMEMORY_ENABLE"] = value
    for _ in range(2):
        for told in answers():
            assert told.startswith({NAMED + said!r}), told
            assert told.endswith("or take fake out of HYMEMORY_ENABLE."), told
os.environ["HYMEMORY_ENABLE"] = "fakee"
for told in answers():
    assert told.startswith("HYMEMORY_ENABLE names 'fakee', and only fake, mem0 can be taken over"), told
for value in ("mem0", ""):
    os.environ["HYMEMORY_ENABLE"] = value
    assert answers() == AS_BEFORE
""")
    assert succeeded(result)
    assert result.stderr == ""


def test_nothing_is_watched_where_nothing_failed(python: Interpreter) -> None:
    result = python.program(f"""{USE}
os.environ["HYMEMORY_ENABLE"] = "fake"
assert answers() == AS_BEFORE
assert not hasattr(c.build, "__wrapped__")
""")
    assert succeeded(result)


def test_a_host_error_stays_one(python: Interpreter) -> None:
    """It is what an app catches."""
    registry = "class HostError(RuntimeError): pass\ndef install(host, module): raise HostError('too old')"
    python.write("hymemory_adapters/registry.py", registry)
    result = python.program(f"""{USE}
import hymemory_adapters.registry as registry
os.environ["HYMEMORY_ENABLE"] = "fake"
try:
    c.build()
except registry.HostError as error:
    assert error.args[0].startswith({NAMED!r} + "HostError: too old"), error
    assert error.__cause__.args == ("too old",)
else:
    raise SystemExit("built")
""")
    assert succeeded(result)


def test_a_failed_reload_is_watched_too(python: Interpreter) -> None:
    registry = "def install(host, module):\n    import os\n    if 'BROKEN' in os.environ: raise LookupError('reload')"
    python.write("hymemory_adapters/registry.py", registry)
    result = python.program(f"""{USE}
import importlib
os.environ["BROKEN"] = "1"
importlib.reload(c)
os.environ["HYMEMORY_ENABLE"] = "fake"
assert all(told.startswith({NAMED!r}) for told in answers()), answers()
""")
    assert succeeded(result)


def test_the_lists_agree() -> None:
    assert set(autoload.HOOKS.values()) >= autoload.TAKEOVERS
    assert set(autoload.HOOKS) >= set(autoload.DOORS)
    assert {autoload.HOOKS[module] for module in autoload.DOORS} == set(autoload.HOOKS.values())
