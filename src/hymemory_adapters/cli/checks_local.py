"""The checks of this machine: the settings, the hosts that are installed, the journal."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import _hymemory_autoload as autoload
from hymemory_adapters.cli.check import Context, Finding, InstalledHost, Verdict
from hymemory_adapters.cli.server import Server
from hymemory_adapters.core.events import log
from hymemory_adapters.core.lost import JOURNAL_LIMIT, ConfigurationError
from hymemory_adapters.registry import HOSTS
from hymemory_adapters.settings import resolve

# -- settings --------------------------------------------------------------------------------------


def settings(context: Context) -> Sequence[Finding]:
    """Which writer is in force, and what set its endpoint; names that nobody reads."""
    # What HYMEMORY_ENABLE names is for the step hosts: here it would hide all the rest.
    environ = {name: value for name, value in context.environ.items() if name != "HYMEMORY_ENABLE"}
    with _warnings() as said:
        try:
            context.settings = resolve(context.block, environ=environ)
        except ConfigurationError as error:
            return [Finding(Verdict.BAD, str(error), "correct it: every host refuses to start")]
    for field in context.block:
        if context.settings.source(field) == f"{field} in the config block":
            context.settings.sources[field] = "--" + field.replace("_", "-")
    context.server = Server(context.settings)
    return [_in_force(context), *(Finding(Verdict.WARNING, text, "correct or remove it") for text in said)]


def _in_force(context: Context) -> Finding:
    assert context.settings is not None
    now = context.settings
    key = f"a key ({now.source('api_key')})" if now.api_key else "no key"
    text = (
        f"writer {now.writer!r} ({now.source('writer')}), model {now.model!r} ({now.source('model')})\n"
        f"at {now.shown_url} ({now.source('base_url')}), {key}"
    )
    values = {"writer": now.writer, "base_url": now.shown_url, "model": now.model, "api_key": now.api_key is not None}
    data = {name: {"value": value, "source": now.source(name)} for name, value in values.items()}
    return Finding(Verdict.OK, text, data=data)


@contextmanager
def _warnings() -> Iterator[list[str]]:
    """Catch what the package would log, to tell it among the findings."""
    said: list[str] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    handler = Handler(logging.WARNING)
    log.addHandler(handler)
    try:
        yield said
    finally:
        log.removeHandler(handler)


# -- hosts -----------------------------------------------------------------------------------------


def hosts(context: Context) -> Sequence[Finding]:
    """Which hosts are installed, whether their versions are supported, and how they find the writer."""
    named, _ = autoload.enabled_hosts(context.environ)
    installed = context.hosts
    route = find_route(context)
    found = [judge_host(host, route, named=host.host.name in named) for host in installed]
    wrong = autoload.wrong_names(context.environ)
    if wrong:
        found.append(Finding(Verdict.BAD, wrong, "do what it says: until then every host refuses to start"))
    for name in sorted(named - {host.host.name for host in installed}):
        do = "run doctor with the Python of the app, or take it out"
        found.append(Finding(Verdict.WARNING, f"HYMEMORY_ENABLE names {name}, which is not installed here", do))
    if not installed:
        text = f"none is installed for {sys.executable} (known are: {', '.join(HOSTS)})"
        do = f'run doctor with the Python of the app, or pip install "hymemory-adapters[{next(iter(HOSTS))}]"'
        found.append(Finding(Verdict.WARNING, text, do))
    return found


def find_route(context: Context) -> str:
    """How a host finds the writer here: ``hook``, ``off`` (switched off) or ``none`` (nothing runs the hook)."""
    if context.hook:
        return "hook"
    value = context.environ.get("HYMEMORY_AUTOLOAD", "").strip().lower()
    return "off" if value in ("0", "false", "no", "off") else "none"


def judge_host(installed: InstalledHost, route: str, *, named: bool) -> Finding:
    """Say how an installed host stands.

    Args:
        installed: the host.
        route: how it finds the writer, from :func:`find_route`.
        named: whether HYMEMORY_ENABLE names it.
    """
    host, version = installed.host, installed.version
    about = f"{host.name}: {host.distribution} {version}"
    data = {"host": host.name, "version": version, "supported": host.supported, "route": route, "enabled": named}
    if installed.unsupported:
        text = f"{about} is not supported: only {host.supported} is"
        return Finding(Verdict.BAD, text, f'pip install "{host.distribution}{host.supported}"', data)
    if installed.error:
        out = f", or take {host.name} out of HYMEMORY_ENABLE" if named else ""
        return Finding(Verdict.BAD, f"{about}: {installed.error}", f"do what the error says{out}", data)
    about += ", supported"
    if version not in host.tested:
        about += f", but this very version is untested (tested are {', '.join(host.tested)})"
    if installed.unknown:
        text = f"{about}; it asks its LLM where this version does not look: {'; '.join(installed.unknown)}"
        do = f"update hymemory-adapters, or take a tested version: {host.distribution}=={host.tested[-1]}"
        return Finding(Verdict.WARNING, text, do, {**data, "unknown": list(installed.unknown)})
    if not host.installer:
        return Finding(Verdict.OK, f"{about}, needs no import hook: the app names the writer itself", data=data)
    if route == "hook":
        return Finding(Verdict.OK, f"{about}, finds the writer by the import hook ({_hook_file()})", data=data)
    why = (
        "HYMEMORY_AUTOLOAD switches the import hook off"
        if route == "off"
        else "Python does not run the import hook here (an editable install, a zipapp, python -S)"
    )
    do = f'call hymemory_adapters.register("{host.name}") in the app before it builds its memory'
    verdict = Verdict.BAD if named else Verdict.WARNING
    more = ", and HYMEMORY_ENABLE names it: its own LLM would go on unnoticed" if named else ""
    return Finding(verdict, f"{about}; {why}{more}", do, data)


def _hook_file() -> str:
    """The file that runs the hook, if the package was installed with one."""
    name = "hymemory_adapters.pth"
    return name if Path(autoload.__file__).with_name(name).is_file() else "not from a .pth file"


# -- journal ---------------------------------------------------------------------------------------


def journal(context: Context) -> Sequence[Finding]:
    """Whether lost writes are kept, in a file that can be written and that others cannot read."""
    assert context.settings is not None
    path = context.settings.journal
    if path is not None:
        return [judge_journal(Path(path), context.settings.source("journal"))]
    hidden = [call.swallowed for host in context.hosts for call in host.calls if call.swallowed]
    if hidden:
        do = "set HYMEMORY_JOURNAL to a file, or subscribe with on_write"
        return [Finding(Verdict.WARNING, f"there is none, and errors are hidden from the app: {' '.join(hidden)}", do)]
    return [
        Finding(Verdict.OK, "there is none (HYMEMORY_JOURNAL would keep lost writes), and no host here hides errors")
    ]


def judge_journal(path: Path, source: str) -> Finding:
    """Say whether a journal can be written, without writing to it or creating it."""
    shown, data = f"{path} ({source})", {"path": str(path)}
    free = "name another file, or make this one writable for the app's user"
    try:
        mode, size = path.stat().st_mode, path.stat().st_size
    except FileNotFoundError:
        if os.access(path.parent, os.W_OK | os.X_OK):
            return Finding(Verdict.OK, f"{shown}, not there yet: the first lost write creates it", data=data)
        return Finding(Verdict.BAD, f"{shown} cannot be created: its folder is not writable", free, data)
    except OSError as error:
        return Finding(Verdict.BAD, f"{shown} cannot be looked at: {error.strerror}", free, data)
    if stat.S_ISDIR(mode) or not os.access(path, os.W_OK):
        return Finding(Verdict.BAD, f"{shown} cannot be written, lost writes would not be kept", free, data)
    if size >= JOURNAL_LIMIT:
        return Finding(Verdict.BAD, f"{shown} is full ({size >> 20} MiB): it takes no more", "move it away", data)
    if os.name != "nt" and stat.S_ISREG(mode) and mode & 0o077:
        text = f"{shown} holds conversations, and others may read it (mode {stat.S_IMODE(mode):o})"
        return Finding(Verdict.WARNING, text, f"chmod 600 {path}", data)
    lines = f"{size:,} bytes of lost writes: hymemory lost {path}" if size else "empty"
    return Finding(Verdict.OK, f"{shown}, {lines}", data=data)
