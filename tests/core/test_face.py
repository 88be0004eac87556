"""The package's face: its names are all there, and importing it costs nearly nothing."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hymemory_adapters

HEAVY = ("openai", "pydantic", "jsonschema", "mem0", "tenacity", "httpx", "tomllib", "asyncio")
SOURCE = Path(hymemory_adapters.__file__).parents[1]


def _in_a_fresh_process(code: str) -> str:
    environ = {**os.environ, "PYTHONPATH": str(SOURCE), "HYMEMORY_AUTOLOAD": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        "import hymemory_adapters",
        "from hymemory_adapters import __version__",
        "import hymemory_adapters; dir(hymemory_adapters)",
        "from hymemory_adapters import on_write, write_context, WriteEvent, Problem",
        "from hymemory_adapters import HyMemoryError, EndpointError, MalformedWriteError",
    ],
)
def test_importing_loads_nothing_heavy(code: str) -> None:
    # What Python itself has loaded before (a .pth file of another package, say) is not ours.
    listing = "import sys; before = set(sys.modules)\n{}\nprint(*sorted(set(sys.modules) - before))"
    loaded = _in_a_fresh_process(listing.format(code)).split()
    assert "hymemory_adapters" in loaded
    assert not [module for module in loaded if module.partition(".")[0] in HEAVY]


def test_switching_hosts_on_reads_a_file_and_nothing_more() -> None:
    """``hosts.toml``, for which Python has a parser of its own since 3.11."""
    code = "from hymemory_adapters import register; register(); import sys; print(*sys.modules)"
    loaded = {module.partition(".")[0] for module in _in_a_fresh_process(code).split()}
    assert loaded & {*HEAVY} <= {"tomllib"}


@pytest.mark.parametrize("name", hymemory_adapters.__all__)
def test_every_name_resolves_alone_in_a_fresh_process_and_is_kept(name: str) -> None:
    value = getattr(hymemory_adapters, name)
    assert value is getattr(hymemory_adapters, name)
    assert vars(hymemory_adapters)[name] is value


def test_names_that_the_interface_promises() -> None:
    promised = {
        *("register", "WriterSettings", "HyMemoryError", "MalformedWriteError", "EndpointError"),
        *("ConfigurationError", "on_write", "write_context", "WriteEvent", "__version__"),
    }
    assert promised <= set(hymemory_adapters.__all__)
    assert len(set(hymemory_adapters.__all__)) == len(hymemory_adapters.__all__)


def test_star_import_gives_all_of_them() -> None:
    printed = _in_a_fresh_process("from hymemory_adapters import *\nprint(*sorted(globals()))")
    assert set(hymemory_adapters.__all__) <= set(printed.split())


def test_dir_lists_names_before_they_are_used() -> None:
    printed = _in_a_fresh_process("import hymemory_adapters\nprint(*dir(hymemory_adapters))").split()
    assert set(hymemory_adapters.__all__) <= set(printed)
    assert printed == sorted(set(printed))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'hymemory_adapters' has no attribute 'Wirter'"):
        hymemory_adapters.Wirter  # noqa: B018


def test_errors_are_what_hosts_and_apps_catch() -> None:
    from hymemory_adapters import ConfigurationError, EndpointError, HyMemoryError, MalformedWriteError

    for error in (ConfigurationError, EndpointError, MalformedWriteError):
        assert issubclass(error, HyMemoryError)
    assert issubclass(MalformedWriteError, ValueError)
    assert not issubclass(EndpointError, ValueError)
    lost = MalformedWriteError("host.call: no", call="host.call", attempts=[])
    assert (str(lost), lost.call, lost.attempts) == ("host.call: no", "host.call", ())
    assert EndpointError("no", status=503).status == 503


def test_version_is_a_release_number() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+([ab.]\w+)?", hymemory_adapters.__version__)
