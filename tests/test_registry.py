"""The table of hosts, and switching them on explicitly."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest

import _hymemory_autoload as autoload
from hymemory_adapters import registry
from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.registry import HOSTS, Host, HostError

HERE = Path(autoload.__file__).parent

# Two small hosts on disk; what the installer does is in fake_installer.py.
PRELUDE = """
import importlib, os, sys, threading, warnings
import _hymemory_autoload as autoload
from hymemory_adapters import registry
from hymemory_adapters.registry import Host, HostError, register
autoload.HOOKS.clear()
registry.HOSTS.clear()
autoload.TAKEOVERS.add("fake")
for name in ("fake", "other"):
    autoload.HOOKS[name + "host.config"] = autoload.HOOKS[name + "host.factory"] = name
    registry.HOSTS[name] = Host(
        name, name + "host-dist", ">=1,<3", ("1.0", "2.0"), "fake_installer:install", "fake_installer:calls"
    )

def installed(host="fakehost"):
    modules = [sys.modules.get(host + "." + name) for name in ("config", "factory")]
    return [getattr(module, "installed", 0) for module in modules if module]

def load(host="fakehost"):
    for name in ("config", "factory"):
        importlib.import_module(host + "." + name)

def reload():
    for name in ("config", "factory"):
        importlib.reload(sys.modules["fakehost." + name])

def raises(call, *args):
    try:
        call(*args)
    except HostError as error:
        return str(error)
    raise SystemExit("no HostError")
"""
INSTALLER = """
def install(module):
    module.installed = getattr(module, "installed", 0) + module.ONE
"""
RAISING_INSTALLER = """
def install(module):
    raise HostError("use the other Python")
"""
BROKEN_INSTALLER = """
def install(module):
    if module.__name__.startswith("fakehost"):
        raise AttributeError("no such function")
    module.installed = 1
"""


class Interpreter:
    """Files in a folder, and Python with that folder in front of its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("fake_installer.py", INSTALLER)
        for host in ("fakehost", "otherhost"):
            self.write(f"{host}/__init__.py", "")
            self.write(f"{host}/config.py", "ONE = 1")
            self.write(f"{host}/factory.py", "ONE = 1")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def set_version(self, distribution: str, version: str) -> None:
        write_metadata(self.folder, distribution, version)

    def run(self, code: str, *flags: str, env: Mapping[str, str] | None = None) -> str:
        """Run the code after the prelude, which must succeed, and return what it says on stderr."""
        self.write("main.py", PRELUDE + code)
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HYMEMORY_", "PYTHON", "PYTEST_", "COV_"))
        }
        # The prelude's table has to be there before the hook starts.
        environ |= {"PYTHONPATH": os.pathsep.join([str(self.folder), str(HERE)]), "HYMEMORY_AUTOLOAD": "0"}
        environ |= env or {}
        result = subprocess.run(
            [sys.executable, *flags, "main.py"],
            cwd=self.folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.returncode == 0, result.stderr
        return result.stderr


def write_metadata(folder: Path, distribution: str, version: str) -> None:
    info = folder / f"{distribution.replace('-', '_')}-{version.replace(' ', '_')}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")


@pytest.fixture
def python(tmp_path: Path) -> Interpreter:
    return Interpreter(tmp_path)


# --- the table ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", HOSTS.values(), ids=HOSTS.keys())
def test_a_row_is_consistent(host: Host) -> None:
    assert HOSTS[host.name] is host
    assert host.name == host.name.lower()
    assert bool(host.modules) is bool(host.installer)  # neither, where apps name the writer themselves
    for target in filter(None, (host.installer, host.calls, host.prompts)):
        module, _, function = target.partition(":")
        assert module.startswith(f"hymemory_adapters.{host.name}")
        assert function.isidentifier()


def test_mem0() -> None:
    assert {"mem0.llms.configs", "mem0.utils.factory", "mem0.memory.main"} <= set(HOSTS["mem0"].modules)
    assert HOSTS["mem0"].distribution == "mem0ai"


def test_the_newest_tested_version_and_its_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    tested = [{"version": "1.0", "pins": ["other<1"]}, {"version": "2.0", "pins": ["other<2", "third"]}]
    row = {"distribution": "fakehost-dist", "supported": ">=1,<3", "tested": tested}
    monkeypatch.setitem(registry._VERSIONS, "fake", row)
    host = registry._known("fake", installer="nowhere:install", calls="nowhere:calls")
    assert (host.tested, host.pins) == (("1.0", "2.0"), ("other<2", "third"))


def test_importing_the_registry_is_light(python: Interpreter) -> None:
    python.run("""
heavy = {"mem0", "openai", "pydantic", "jsonschema", "tenacity", "packaging", "importlib.metadata"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
assert autoload._FINDER not in sys.meta_path
""")


# --- versions ----------------------------------------------------------------------------------------------


def some_host(installer: str = "nowhere:install") -> Host:
    return Host("fake", "fakehost-dist", ">=1.1,<3", ("1.1", "2.0"), installer, "nowhere:calls")


@pytest.mark.parametrize("version", [None, "1.1", "2.9.9", "2.0b1", "2.0.dev3", "2.0+local"])
def test_supported_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None) -> None:
    if version is not None:
        write_metadata(tmp_path, "fakehost-dist", version)
    monkeypatch.syspath_prepend(tmp_path)
    assert some_host().installed_version() == version
    some_host().check_version()


@pytest.mark.parametrize("version", ["1.0.99", "3.0", "1.1rc1", "not a version"])
def test_unsupported_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    write_metadata(tmp_path, "fakehost-dist", version)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(HostError) as raised:
        some_host().check_version()
    for part in ("fake", version, ">=1.1,<3", 'pip install "fakehost-dist>=1.1,<3"'):
        assert part in str(raised.value)


@pytest.mark.parametrize("enable", ["", "mem0"])
def test_an_error_says_when_it_is_one_because_of_enable(monkeypatch: pytest.MonkeyPatch, enable: str) -> None:
    monkeypatch.setenv("HYMEMORY_ENABLE", enable)
    assert ("HYMEMORY_ENABLE names mem0" in str(HOSTS["mem0"].error("text."))) is bool(enable)


def test_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    assert registry.enabled({"HYMEMORY_ENABLE": " Mem0, nonsense"}) == {"mem0"}
    assert registry.enabled({}) == frozenset()
    monkeypatch.setenv("HYMEMORY_ENABLE", "mem0")
    assert registry.enabled() == {"mem0"}


# --- install -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("installer", "cause"),
    [
        ("nowhere_at_all:install", ModuleNotFoundError),
        ("json:nonsense", AttributeError),
        ("json:loads", TypeError),
    ],
)
def test_an_installer_that_cannot_work(monkeypatch: pytest.MonkeyPatch, installer: str, cause: type[Exception]) -> None:
    monkeypatch.setitem(HOSTS, "fake", some_host(installer))
    module = ModuleType("fakehost.config")
    vars(module)["__hymemory__"] = True  # as after a reload
    with pytest.raises(HostError, match=cause.__name__) as raised:
        registry.install("fake", module)
    assert isinstance(raised.value.__cause__, cause)
    assert "fakehost.config" in str(raised.value)
    assert str(raised.value).endswith('Tested are 1.1, 2.0: pip install "fakehost-dist==2.0"')
    assert not hasattr(module, "__hymemory__")


@pytest.mark.parametrize(("version", "advice"), [("2.0", "Please report it."), ("2.5", "pip install")])
def test_a_tested_version_is_not_sent_to_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, advice: str
) -> None:
    write_metadata(tmp_path, "fakehost-dist", version)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(HOSTS, "fake", some_host("json:nonsense"))
    with pytest.raises(HostError, match=advice) as raised:
        registry.install("fake", ModuleType("fakehost.config"))
    assert ("pip install" in str(raised.value)) is (advice == "pip install")


def test_the_pins_of_a_tested_version_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    host = dataclasses.replace(some_host("json:nonsense"), pins=("other<4.1", "third>=2"))
    monkeypatch.setitem(HOSTS, "fake", host)
    with pytest.raises(HostError, match=r'pip install "fakehost-dist==2\.0" "other<4\.1" "third>=2"$'):
        registry.install("fake", ModuleType("fakehost.config"))


def test_the_installer_gets_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HOSTS, "fake", some_host("builtins:vars"))
    module = ModuleType("fakehost.config")
    registry.install("fake", module)
    assert vars(module)["__hymemory__"] is True


# --- register ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", ["", '"fake"', '"FAKE", "fake"', '"other", "fake"'])
@pytest.mark.parametrize(
    ("code", "times"),
    [
        ("load(); register({0})", 1),
        ("register({0}); load()", 1),
        ("import fakehost.config; register({0}); import fakehost.factory", 1),
        ("register({0}); import fakehost.config; register({0}); import fakehost.factory; register({0})", 1),
        ("load(); register({0}); register({0}); register()", 1),
        ("autoload.start(); load(); register({0})", 1),
        ("load(); autoload.start(); register({0})", 1),
        ("load(); register({0}); reload(); register({0})", 2),
    ],
)
@pytest.mark.parametrize("setting", ["0", "1"])
def test_order_does_not_matter(python: Interpreter, code: str, args: str, times: int, setting: str) -> None:
    code = f"""
os.environ["HYMEMORY_AUTOLOAD"] = {setting!r}
{code.format(args)}
assert installed() == [{times}, {times}], installed()
assert [type(f).__module__ for f in sys.meta_path].count("_hymemory_autoload") == 1
assert not any(name.startswith("otherhost") for name in sys.modules)
"""
    assert python.run(code) == ""


def test_nothing_happens_by_itself_when_autoload_is_off(python: Interpreter) -> None:
    assert python.run("load(); assert installed() == [0, 0]") == ""


def test_an_unknown_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [f for f in sys.meta_path if f is not autoload._FINDER])
    with pytest.raises(ConfigurationError, match=r"'nonsense', '\[1\]'.*mem0"):
        registry.register("mem0", "nonsense", [1])  # type: ignore[arg-type]
    assert autoload._FINDER not in sys.meta_path


def test_from_many_threads_while_the_host_is_imported(python: Interpreter) -> None:
    python.write("fakehost/config.py", "import time; time.sleep(0.2); ONE = 1")
    python.write("fakehost/factory.py", "import fakehost.config, time; time.sleep(0.2); ONE = 1")
    python.run("""
import time
sys.setswitchinterval(1e-5)
errors = []
def work(call):
    try:
        call()
    except BaseException as error:
        errors.append(repr(error))
def later():
    time.sleep(0.1)
    register("fake")
register()
def factory(): importlib.import_module("fakehost.factory")
threads = [threading.Thread(target=work, args=(call,)) for call in [load, later, register, factory] * 5]
for thread in threads: thread.start()
for thread in threads: thread.join(30)
assert not errors, errors
assert not any(thread.is_alive() for thread in threads)
assert installed() == [1, 1], installed()
""")


def test_a_reload_that_cannot_be_installed_is_not_taken_for_installed(python: Interpreter) -> None:
    python.write("fakehost/config.py", "import os\nONE = 1 if 'GOOD' in os.environ else 'broken'")
    python.run(
        """
load()
register("fake")
del os.environ["GOOD"]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    importlib.reload(sys.modules["fakehost.config"])
assert len(caught) == 1 and "TypeError" in str(caught[0].message), caught
assert "TypeError" in raises(register, "fake")
""",
        env={"GOOD": "1"},
    )


# --- failures ----------------------------------------------------------------------------------------------


def broken(python: Interpreter, how: str) -> str:
    """Make the first host fail; returns what its error says."""
    if how == "installer":
        python.write("fake_installer.py", BROKEN_INSTALLER)
        return "AttributeError: no such function"
    python.set_version("fakehost-dist", "0.9")
    return "fakehost-dist 0.9 is installed"


@pytest.mark.parametrize("how", ["installer", "version"])
def test_asked_for_by_name_a_loaded_host_that_fails_raises(python: Interpreter, how: str) -> None:
    said = broken(python, how)
    code = f"load()\nfor _ in range(2): assert {said!r} in raises(register, 'fake')"
    assert python.run(code) == ""


def test_an_installer_may_say_itself_what_to_do(python: Interpreter) -> None:
    python.write("fake_installer.py", "from hymemory_adapters.registry import HostError\n" + RAISING_INSTALLER)
    python.run("load(); assert raises(register, 'fake') == 'use the other Python'")


def test_asked_for_by_name_an_unsupported_version_raises_before_the_import(python: Interpreter) -> None:
    said = broken(python, "version")
    assert python.run(f"assert {said!r} in raises(register, 'fake')") == ""


@pytest.mark.parametrize("how", ["installer", "version"])
@pytest.mark.parametrize("code", ["load(); register(); register()", "register(); load(); register()"])
@pytest.mark.parametrize("flags", [[], ["-W", "error"]], ids=["plain", "-W error"])
def test_without_names_it_warns_once_and_goes_on(python: Interpreter, how: str, code: str, flags: list[str]) -> None:
    said = broken(python, how)
    stderr = python.run(
        f"load('otherhost')\n{code}\nassert installed('otherhost') == [1, 1]\nassert installed() == [0, 0]",
        *flags,
    )
    assert stderr.count("hymemory-adapters leaves fake alone") == 1, stderr
    assert said in stderr


@pytest.mark.parametrize("how", ["installer", "version"])
@pytest.mark.parametrize(
    "code",
    [
        "load(); {enable}; message = raises(register)",
        "{enable}; register(); message = raises(load); assert message == raises(load)",
        "{enable}; autoload.listen(); message = raises(load)",
    ],
    ids=["loaded before", "imported after", "by the hook"],
)
def test_enabled_it_raises(python: Interpreter, how: str, code: str) -> None:
    said = broken(python, how)
    code = code.format(enable="os.environ['HYMEMORY_ENABLE'] = 'fake'")
    stderr = python.run(f"{code}\nassert {said!r} in message and 'HYMEMORY_ENABLE names fake' in message, message")
    assert stderr == ""


@pytest.mark.parametrize("how", ["installer", "version"])
@pytest.mark.parametrize(
    "code",
    [
        "load(); register()",
        "load(); raises(register, 'fake')",
        "register(); load()",
        "autoload.listen(); load()",
    ],
    ids=["loaded before", "by name", "imported after", "by the hook"],
)
def test_enabled_after_it_failed_it_builds_no_llm(python: Interpreter, how: str, code: str) -> None:
    said = broken(python, how)
    python.write("fakehost/factory.py", "def build(): return 'built'")
    python.run(f"""
warnings.simplefilter("ignore")
autoload.DOORS["fakehost.factory"] = ("build",)
{code}
build = sys.modules["fakehost.factory"].build
assert build() == "built"
os.environ["HYMEMORY_ENABLE"] = "fake"
message = raises(build)
assert message.startswith("HYMEMORY_ENABLE names fake, ") and {said!r} in message, message
""")


@pytest.mark.parametrize("code", ["load('otherhost'); {enable}; call = register", "{enable}; register(); call = load"])
def test_what_cannot_be_taken_over_raises(python: Interpreter, code: str) -> None:
    code = code.format(enable="os.environ['HYMEMORY_ENABLE'] = 'other'")
    stderr = python.run(f"""
{code}
message = raises(call) if call is register else raises(call, "otherhost")
assert message.startswith("HYMEMORY_ENABLE names 'other', and only fake, mem0 can be taken over"), message
""")
    assert stderr == ""
