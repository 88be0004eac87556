"""The import hook, in fresh interpreters, with a small host on disk and a registry that only counts."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

import _hymemory_autoload as autoload

HERE = Path(autoload.__file__).parent

# sitecustomize stands in for the .pth file: it also runs in the children that multiprocessing spawns.
SITECUSTOMIZE = """
import _hymemory_autoload as autoload
autoload.HOOKS.clear()
autoload.HOOKS.update({"fakehost": "fake", "fakehost.config": "fake"})
autoload.TAKEOVERS.add("fake")
autoload.start()
"""
REGISTRY = """
calls = []
def install(host, module):
    calls.append((host, module.__name__))
    module.installed = getattr(module, "installed", 0) + 1
"""
BROKEN_REGISTRY = """
def install(host, module):
    raise LookupError("our own mistake")
"""
CONFIG = """
VALUE = 1
LOADERS = {type(__loader__).__name__, type(__spec__.loader).__name__}
def function():
    return "source"
"""
INSTALLED = """
import sys
import hymemory_adapters.registry as registry
assert registry.calls == [("fake", "fakehost"), ("fake", "fakehost.config")], registry.calls
assert sys.modules["fakehost"].installed == sys.modules["fakehost.config"].installed == 1
"""


class Interpreter:
    """Files in a folder, and Python with that folder in front of its path."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.write("sitecustomize.py", SITECUSTOMIZE)
        self.write("hymemory_adapters/__init__.py", "")
        self.write("hymemory_adapters/registry.py", REGISTRY)
        self.write("fakehost/__init__.py", "")
        self.write("fakehost/config.py", CONFIG)
        self.write("fakehost/user.py", "from .config import VALUE")
        self.write("fakehost/data.txt", "data")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("HYMEMORY_", "PYTHON", "PYTEST_", "COV_"))
        }
        environ["PYTHONPATH"] = os.pathsep.join([str(self.folder), str(HERE)])
        environ.update(env or {})
        return subprocess.run(
            [sys.executable, *args], cwd=self.folder, env=environ, capture_output=True, text=True, timeout=60
        )

    def program(self, text: str, *flags: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        self.write("main.py", text)
        return self.run(*flags, "main.py", env=env)

    def enable(self, *hosts: str) -> None:
        """HYMEMORY_ENABLE, set late: an installed .pth file would see the name before the table knows it."""
        name = ",".join(hosts)
        self.write("sitecustomize.py", f"import os; os.environ['HYMEMORY_ENABLE'] = {name!r}\n{SITECUSTOMIZE}")


@pytest.fixture
def python(tmp_path: Path) -> Interpreter:
    return Interpreter(tmp_path)


def succeeded(result: subprocess.CompletedProcess[str]) -> bool:
    assert result.returncode == 0, result.stderr
    return True


# --- every way to import -----------------------------------------------------------------------------------

IMPORTS = {
    "import": "import fakehost.config",
    "from module": "from fakehost.config import VALUE; assert VALUE == 1",
    "from package": "from fakehost import config; assert config.VALUE == 1",
    "by the host itself": "import fakehost.user",
    "import_module": "import importlib; importlib.import_module('fakehost.config')",
    "__import__": "assert __import__('fakehost.config').config.VALUE == 1",
    "found first": "import importlib.util as u; assert u.find_spec('fakehost.config'); import fakehost.user",
    "by hand": """
import importlib.util, sys
spec = importlib.util.find_spec("fakehost.config")
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
""",
    "lazy loader": """
import importlib.util, sys
spec = importlib.util.find_spec("fakehost.config")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
assert len(__import__("hymemory_adapters.registry").registry.calls) == 1
assert module.VALUE == 1
""",
    "8 threads": """
import threading
barrier = threading.Barrier(8)
values = []
def work():
    barrier.wait()
    from fakehost.config import VALUE, installed
    values.append((VALUE, installed))
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert values == [(1, 1)] * 8, values
""",
}


@pytest.mark.parametrize("code", IMPORTS.values(), ids=IMPORTS.keys())
def test_installs_once_after_each_module(python: Interpreter, code: str) -> None:
    result = python.program(code + "\n" + INSTALLED)
    assert succeeded(result)
    assert result.stderr == ""


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.parametrize("imported_by_parent", [False, True], ids=["child imports", "both import"])
def test_child_processes(python: Interpreter, method: str, imported_by_parent: bool) -> None:
    if method == "fork" and not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    result = python.program(f"""
import multiprocessing

def work():
    import fakehost.config
    import hymemory_adapters.registry as registry
    return registry.calls, fakehost.config.installed

if __name__ == "__main__":
    if {imported_by_parent}:
        work()
    with multiprocessing.get_context({method!r}).Pool(1) as pool:
        calls, installed = pool.apply(work)
    assert calls == [("fake", "fakehost"), ("fake", "fakehost.config")], calls
    assert installed == 1, installed
""")
    assert succeeded(result)


def test_fork_while_another_thread_looks_the_name_up(python: Interpreter) -> None:
    """The child has neither that thread nor what it was in the middle of."""
    if not hasattr(os, "fork"):
        pytest.skip("this system has no fork")
    python.write("late.py", "import fakehost.config\n" + INSTALLED)
    result = python.program("""
import importlib.machinery, os, subprocess, sys, threading
entered, go_on = threading.Event(), threading.Event()
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "fakehost" and not entered.is_set():
            entered.set()
            go_on.wait()
        return None
sys.meta_path.insert(1, Slow())
thread = threading.Thread(target=sys.meta_path[0].find_spec, args=("fakehost",))
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    code = 1
    def work():
        global code
        import late
        code = 0
    worker = threading.Thread(target=work)
    worker.start()
    worker.join()
    os._exit(code)
go_on.set()
thread.join()
assert os.waitpid(child, 0)[1] == 0
""")
    assert succeeded(result)


def test_reload_installs_again(python: Interpreter) -> None:
    result = python.program("""
import importlib
import fakehost.config as config
for _ in range(2):
    importlib.reload(config)
assert config.installed == 3, config.installed
assert config.LOADERS == {"SourceFileLoader"}
""")
    assert succeeded(result)


def test_run_as_a_program(python: Interpreter) -> None:
    python.write("fakehost/config.py", "assert __name__ == '__main__'; print('ran')")
    result = python.run("-m", "fakehost.config")
    assert succeeded(result)
    assert result.stdout == "ran\n"


def test_inside_pytest(python: Interpreter) -> None:
    """Its own finder, which rewrites assertions, goes in front of ours."""
    body = ("import fakehost.config\n" + INSTALLED).replace("\n", "\n    ")
    python.write("test_it.py", f"def test_it():\n    {body}")
    result = python.run("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py")
    assert succeeded(result), result.stdout
    assert "1 passed" in result.stdout


@pytest.mark.parametrize("index", ["0", "1", "len(sys.meta_path)"], ids=["before", "after", "last"])
def test_beside_another_import_hook(python: Interpreter, index: str) -> None:
    """One that asks all finders from inside its own find_spec, as post-import-hook libraries do."""
    result = python.program(
        f"""
import importlib.util, sys
seen = []
class Loader:
    def __init__(self, loader): self.loader = loader
    def create_module(self, spec): return self.loader.create_module(spec)
    def exec_module(self, module): self.loader.exec_module(module); seen.append(module.__name__)
class Other:
    busy = False
    def find_spec(self, name, path=None, target=None):
        if self.busy or not name.startswith("fakehost"): return None
        self.busy = True
        try: spec = importlib.util.find_spec(name)
        finally: self.busy = False
        spec.loader = Loader(spec.loader)
        return spec
sys.meta_path.insert({index}, Other())
import fakehost.config
assert {index} > 1 or seen == ["fakehost", "fakehost.config"], seen
"""
        + INSTALLED
    )
    assert succeeded(result)


# --- the host's loader comes back --------------------------------------------------------------------------


@pytest.mark.parametrize("loader", ["SourceFileLoader", "zipimporter"])
def test_the_host_sees_its_own_loader(python: Interpreter, loader: str) -> None:
    if loader == "zipimporter":
        with zipfile.ZipFile(python.folder / "host.zip", "w") as archive:
            for path in sorted((python.folder / "fakehost").iterdir()):
                archive.write(path, f"fakehost/{path.name}")
                path.unlink()
        (python.folder / "fakehost").rmdir()
    result = python.program(f"""
import sys
sys.path.insert(0, "host.zip")
import fakehost, fakehost.config
{INSTALLED}
import importlib.resources, inspect, pkgutil
for module in (fakehost, fakehost.config):
    assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == {loader!r}
assert fakehost.config.LOADERS == {{{loader!r}}}, "while it executes"
assert 'return "source"' in inspect.getsource(fakehost.config.function)
assert importlib.resources.files("fakehost").joinpath("data.txt").read_text() == "data"
assert pkgutil.get_data("fakehost.config", "data.txt") == b"data"
""")
    assert succeeded(result)


def test_before_execution_the_loader_answers_as_the_original(python: Interpreter) -> None:
    result = python.program("""
import copy, importlib.util, pickle
loader = importlib.util.find_spec("fakehost.config").loader
assert "VALUE = 1" in loader.get_source("fakehost.config")
assert loader.get_code("fakehost.config").co_filename.endswith("config.py")
assert not loader.is_package("fakehost.config")
assert not hasattr(loader, "nonsense")
for twin in (copy.copy(loader), copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
    assert twin.get_filename("fakehost.config").endswith("config.py")
""")
    assert succeeded(result)


def test_other_modules_are_left_to_the_others() -> None:
    finder = autoload._FINDER
    assert finder.find_spec("json") is None
    assert finder.find_spec("mem0") is None


def test_a_module_that_does_not_exist(python: Interpreter) -> None:
    (python.folder / "fakehost" / "config.py").unlink()
    result = python.program("""
try:
    import fakehost.config
except ModuleNotFoundError as error:
    assert error.name == "fakehost.config"
else:
    raise SystemExit("imported")
""")
    assert succeeded(result)
    assert result.stderr == ""


# --- failures ----------------------------------------------------------------------------------------------


def test_a_host_that_raises_raises_its_own_error(python: Interpreter) -> None:
    python.enable("fake")
    python.write("fakehost/config.py", "raise KeyError('of the host')")
    result = python.program("""
import sys
try:
    import fakehost.config
except KeyError as error:
    assert error.args == ("of the host",) and error.__cause__ is error.__context__ is None
else:
    raise SystemExit("imported")
assert sys.modules["hymemory_adapters.registry"].calls == [("fake", "fakehost")]
""")
    assert succeeded(result)


FAILURES = {
    "our mistake": ("", BROKEN_REGISTRY, "LookupError: our own mistake", "LookupError"),
    "half uninstalled": (
        "import sys; sys.modules['hymemory_adapters'] = None\n",
        REGISTRY,
        "ModuleNotFoundError: ",
        "RuntimeError",
    ),
    "no registry": ("", "import nonsense", "ModuleNotFoundError: No module named 'nonsense'", "RuntimeError"),
}
IMPORT_BOTH = "import fakehost.config\nassert fakehost.config.VALUE == 1\nprint('alive')"


@pytest.mark.parametrize("flags", [[], ["-W", "error"], ["-W", "error::RuntimeWarning"]], ids=" ".join)
@pytest.mark.parametrize(("before", "registry", "said", "raised"), FAILURES.values(), ids=FAILURES.keys())
def test_registered_only_the_host_survives_with_one_warning(
    python: Interpreter, before: str, registry: str, said: str, raised: str, flags: list[str]
) -> None:
    python.write("hymemory_adapters/registry.py", registry)
    result = python.program(before + IMPORT_BOTH, *flags)
    assert succeeded(result)
    assert result.stdout == "alive\n"
    assert result.stderr.count("hymemory-adapters leaves fake alone") == 1, result.stderr
    assert said in result.stderr
    assert "hymemory_adapters.register('fake')" in result.stderr


@pytest.mark.parametrize(("before", "registry", "said", "raised"), FAILURES.values(), ids=FAILURES.keys())
def test_enabled_the_host_cannot_be_imported(
    python: Interpreter, before: str, registry: str, said: str, raised: str
) -> None:
    python.enable("fake")
    python.write("hymemory_adapters/registry.py", registry)
    result = python.program(f"""{before}
import sys
for _ in range(2):
    try:
        import fakehost
    except Exception as error:
        assert type(error).__name__ == {raised!r}, repr(error)
        assert not isinstance(error, ImportError)
        whole = "%s: %s %s" % (type(error).__name__, error, type(error.__cause__).__name__)
        assert {said!r} in whole, whole
        assert {raised!r} != "RuntimeError" or "take fake out of HYMEMORY_ENABLE" in whole, whole
    else:
        raise SystemExit("imported")
    assert "fakehost" not in sys.modules
""")
    assert succeeded(result)
    assert "leaves fake alone" not in result.stderr


def test_a_warning_that_cannot_be_said_is_harmless(python: Interpreter) -> None:
    python.write("hymemory_adapters/registry.py", BROKEN_REGISTRY)
    result = python.program("import sys; sys.stderr = None\n" + IMPORT_BOTH, "-W", "error")
    assert succeeded(result)
    assert result.stdout == "alive\n"


@pytest.mark.parametrize("enabled", [False, True], ids=["registered", "enabled"])
def test_a_loader_that_cannot_be_followed(python: Interpreter, enabled: bool) -> None:
    """One with load_module only: the host is imported as it is, or not at all."""
    python.write(
        "sitecustomize.py",
        SITECUSTOMIZE
        + """
import importlib.util, sys
class Legacy:
    def load_module(self, name):
        module = sys.modules[name] = type(sys)(name)
        module.VALUE = 1
        return module
class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, Legacy()) if name == "fakehost" else None
sys.meta_path.insert(1, Finder())
""",
    )
    result = python.program(
        f"import os\nos.environ['HYMEMORY_ENABLE'] = {'fake' if enabled else ''!r}\n"
        "import fakehost\nprint('alive', fakehost.VALUE)",
        "-W",
        "ignore::ImportWarning",
        "-W",
        "ignore::DeprecationWarning",
    )
    assert "the loader of fakehost has no exec_module" in result.stderr
    assert (result.returncode, result.stdout) == ((1, "") if enabled else (0, "alive 1\n")), result.stderr


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "SystemExit(3)"])
def test_an_interrupt_is_not_swallowed(python: Interpreter, error: str) -> None:
    python.write("hymemory_adapters/registry.py", f"def install(host, module): raise {error}")
    assert python.program(IMPORT_BOTH).stdout == ""


# --- starting ----------------------------------------------------------------------------------------------

COUNT = "import sys; print(sum(type(f).__module__ == '_hymemory_autoload' for f in sys.meta_path))"


@pytest.mark.parametrize("value", ["0", "false", "NO", " Off "])
def test_autoload_off(python: Interpreter, value: str) -> None:
    result = python.program(COUNT, env={"HYMEMORY_AUTOLOAD": value, "HYMEMORY_ENABLE": "nonsense"})
    assert succeeded(result)
    assert result.stdout == "0\n"
    assert result.stderr == ""


@pytest.mark.parametrize("value", ["", "1", "true", "nonsense"])
def test_autoload_on(python: Interpreter, value: str) -> None:
    result = python.program(COUNT, env={"HYMEMORY_AUTOLOAD": value})
    assert succeeded(result)
    assert result.stdout == "1\n"


def test_starting_twice_is_starting_once(python: Interpreter) -> None:
    code = "import _hymemory_autoload as a, sys; a.start(); a.start(); assert sys.meta_path[0] is a._FINDER\n"
    result = python.program(code + COUNT)
    assert succeeded(result)
    assert result.stdout == "1\n"


def test_the_pth_file_starts_it(python: Interpreter) -> None:
    (python.folder / "sitecustomize.py").unlink()
    python.write("main.py", f"import site; site.addsitedir({str(HERE)!r})\n{COUNT}")
    result = python.run("-S", "main.py")
    assert succeeded(result)
    assert result.stdout == "1\n"
    assert (HERE / "hymemory_adapters.start").read_text().strip() == "_hymemory_autoload:start"


def test_starting_imports_nothing(python: Interpreter) -> None:
    python.write(
        "main.py",
        """
import os, sys
before = set(sys.modules)
import _hymemory_autoload
_hymemory_autoload.start()
_hymemory_autoload.start()
print(sorted(set(sys.modules) - before))
""",
    )
    result = python.run("-S", "main.py")
    assert succeeded(result)
    assert result.stdout == "['_hymemory_autoload']\n"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("mem0", []),
        (" MEM0 ,, ", []),
        ("mem0,Nope", ["'nope'"]),
        ("zep,nope,mem0", ["'nope', 'zep'"]),
        ("two\nlines,caf\u00e9", [r"'caf\xe9', 'two\nlines'"]),
        ("langchain", ["'langchain'"]),
    ],
)
def test_unknown_names_in_enable(python: Interpreter, value: str, said: list[str]) -> None:
    python.write("sitecustomize.py", "import _hymemory_autoload as a; a.start(); a.start()")
    result = python.program("print('alive')", env={"HYMEMORY_ENABLE": value, "PYTHONUTF8": "1"})
    assert succeeded(result)
    assert result.stdout == "alive\n"
    lines = result.stderr.splitlines()
    assert len(lines) == len(said), result.stderr
    for line, names in zip(lines, said, strict=True):
        assert line.startswith(f"hymemory-adapters: HYMEMORY_ENABLE names {names}, and only mem0 can be taken over: ")


@pytest.mark.parametrize(
    ("value", "known", "unknown"),
    [
        (None, set(), set()),
        ("", set(), set()),
        (" , ", set(), set()),
        ("mem0", {"mem0"}, set()),
        ("Mem0, mem0 ,MEM0", {"mem0"}, set()),
        ("x,mem0,Y y", {"mem0"}, {"x", "y y"}),
        ("langchain,mem0", {"mem0"}, {"langchain"}),  # has a hook, but no one LLM
    ],
)
def test_enabled_hosts(value: str | None, known: set[str], unknown: set[str]) -> None:
    environ = {} if value is None else {"HYMEMORY_ENABLE": value}
    assert [set(names) for names in autoload.enabled_hosts(environ)] == [known, unknown]


class Broken:
    def __getattr__(self, name: str) -> object:
        raise OSError("broken")


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        (sys, "stderr", None),
        (sys, "stderr", Broken()),
        (os, "environ", Broken()),
        (sys, "meta_path", None),
    ],
    ids=["no stderr", "broken stderr", "broken environ", "no meta_path"],
)
def test_start_never_raises(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, value: object) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("HYMEMORY_ENABLE", "nonsense")
        patch.delenv("HYMEMORY_AUTOLOAD", raising=False)
        patch.setattr(sys, "meta_path", [])
        patch.setattr(owner, name, value)
        autoload.start()
