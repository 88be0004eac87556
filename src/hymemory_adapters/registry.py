"""The hosts: which modules to wait for, and who installs the writer. Their versions stand in ``hosts.toml``.

The import hook (`_hymemory_autoload`) calls `install` after a host's module has executed; `register` does the
same explicitly. Importing this module imports no host, and nothing heavy.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

import _hymemory_autoload as autoload
from hymemory_adapters import packaged
from hymemory_adapters.core.lost import HyMemoryError

if TYPE_CHECKING:
    from hymemory_adapters.core.request import Message
    from hymemory_adapters.core.write_call import WriteCall

_MARK = "__hymemory__"


class HostError(HyMemoryError, RuntimeError):
    """hymemory-adapters cannot work with the host that is installed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Host:
    """A memory framework that hymemory-adapters can write for."""

    name: str
    """What HYMEMORY_ENABLE and `register` call it."""
    distribution: str
    """Its name on PyPI."""
    supported: str
    """The supported versions, as a PEP 440 specifier."""
    tested: tuple[str, ...]
    """The versions that the tests run against, oldest first."""
    installer: str
    """`module:function`, called with each of the host's modules after it has executed, and again after a
    reload. It must bear being called twice on one module, from two threads at once. Empty for a host whose apps
    name the writer themselves: it has no modules to wait for."""
    calls: str
    """`module:function` that returns the table of write calls of the installed version."""
    prompts: str = ""
    """`module:function` that returns the messages of a typical request of the installed version, by write call,
    made by the host's own builders."""
    drift: str = ""
    """`module:function` that says where the installed version asks its LLM for something unknown to its table."""
    pins: tuple[str, ...] = ()
    """What the newest of the tested versions needs beside it, as requirements."""

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules whose import the hook waits for."""
        return tuple(module for module, host in autoload.HOOKS.items() if host == self.name)

    def installed_version(self) -> str | None:
        """The version that is installed, or None where there is no metadata (not installed, or vendored)."""
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version(self.distribution)
        except PackageNotFoundError:
            return None

    def write_calls(self) -> tuple[WriteCall, ...]:
        """The table of write calls of the installed version; imports the host."""
        calls: tuple[WriteCall, ...] = _load(self.calls)()
        return calls

    def typical_prompts(self) -> Mapping[str, Sequence[Message]]:
        """The messages of a typical request by write call; imports the host."""
        prompts: Mapping[str, Sequence[Message]] = _load(self.prompts)() if self.prompts else {}
        return prompts

    def unknown_sites(self) -> tuple[str, ...]:
        """Where the installed version asks its LLM for something that the table does not know, a line a place."""
        sites: tuple[str, ...] = _load(self.drift)() if self.drift else ()
        return sites

    def check_version(self) -> None:
        """Raise `HostError` if the installed version is known and not supported."""
        from packaging.specifiers import SpecifierSet
        from packaging.version import InvalidVersion

        version = self.installed_version()
        if version is None:
            return
        try:
            supported = SpecifierSet(self.supported).contains(version, prereleases=True)
        except InvalidVersion:
            supported = False
        if not supported:
            raise self.error(
                f"{self.distribution} {version} is installed, hymemory-adapters supports {self.name} only in "
                f'{self.supported}. Change it: pip install "{self.distribution}{self.supported}"'
            )

    def error(self, text: str) -> HostError:
        """The error to raise, which also says why it is one where the host could have gone on without us."""
        if self.name in enabled():
            text += f" (HYMEMORY_ENABLE names {self.name}: it must not go on with another LLM unnoticed)"
        return HostError(text)


def _known(name: str, **functions: str) -> Host:
    """The row of a host: its versions from `hosts.toml`, its functions from here."""
    said = _VERSIONS[name]
    return Host(
        name=name,
        distribution=said["distribution"],
        supported=said["supported"],
        tested=tuple(entry["version"] for entry in said["tested"]),
        pins=tuple(said["tested"][-1].get("pins", ())),
        **functions,
    )


_VERSIONS = packaged.read("hosts.toml")
HOSTS: dict[str, Host] = {
    host.name: host
    for host in (
        _known(
            "mem0",
            installer="hymemory_adapters.mem0:install",
            calls="hymemory_adapters.mem0.calls:calls",
            prompts="hymemory_adapters.mem0.prompts:typical",
            drift="hymemory_adapters.mem0.sites:unknown_sites",
        ),
        _known(
            "langchain",
            installer="hymemory_adapters.langchain:install",
            calls="hymemory_adapters.langchain.calls:calls",
            prompts="hymemory_adapters.langchain.prompts:typical",
            drift="hymemory_adapters.langchain.sites:unknown_sites",
        ),
        _known(
            "llamaindex",
            installer="",
            calls="hymemory_adapters.llamaindex.calls:calls",
            prompts="hymemory_adapters.llamaindex.prompts:typical",
            drift="hymemory_adapters.llamaindex.sites:unknown_sites",
        ),
    )
}
"""Every host that works, by name. A new one needs a row here, its modules in `_hymemory_autoload.HOOKS` if it is to
be switched on from outside (`TAKEOVERS` and `DOORS` there say how far), and its tested versions in `hosts.toml`."""


def enabled(environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """The hosts that HYMEMORY_ENABLE names and that can be taken over."""
    return autoload.enabled_hosts(os.environ if environ is None else environ)[0]


def install(host_name: str, module: ModuleType) -> None:
    """Install the writer into a host's module, which has just executed or is loaded already.

    Raises `HostError` if that cannot work, or if HYMEMORY_ENABLE names the host and it cannot be taken over. It holds
    no lock of its own: it may run inside the host's import, and the installer may import more of the host in turn.
    """
    host = HOSTS[host_name]
    # Reloading keeps a module's attributes: take the mark away, in case this time it fails.
    vars(module).pop(_MARK, None)
    if host_name in autoload.enabled_hosts(os.environ)[1]:
        raise HostError(autoload.wrong_names(os.environ))
    try:
        host.check_version()
        _load(host.installer)(module)
    except HostError:
        raise
    except Exception as error:
        version = host.installed_version() or "of unknown version"
        advice = "Please report it."  # it is ours, if the tests run against this very version
        if version not in host.tested:
            newest = " ".join(f'"{part}"' for part in (f"{host.distribution}=={host.tested[-1]}", *host.pins))
            advice = f"Tested are {', '.join(host.tested)}: pip install {newest}"
        raise host.error(
            f"hymemory-adapters cannot work with {module.__name__} ({host.distribution} {version}): "
            f"{type(error).__name__}: {error}. {advice}"
        ) from error
    vars(module)[_MARK] = True


def _load(target: str) -> Callable[..., Any]:
    path, _, function = target.partition(":")
    loaded: Callable[..., Any] = getattr(importlib.import_module(path), function)
    return loaded


def register(*hosts: str) -> None:
    """Switch the hosts on: now where they are imported already, otherwise as soon as they are.

    Needed only where Python does not run the import hook by itself (a zipapp, `python -S`, an editable
    install, HYMEMORY_AUTOLOAD=0). Call it as often as you like, before or after a host is imported.

    Without names: every known host; one that cannot work is left alone with a warning, unless HYMEMORY_ENABLE
    names it. With names, such a host raises `HostError`; an unknown name raises `ConfigurationError`.
    """
    names = [str(name).lower() for name in hosts] or list(HOSTS)
    unknown = [name for name in names if name not in HOSTS]
    if unknown:
        from hymemory_adapters.core.lost import ConfigurationError

        raise ConfigurationError(
            f"register() does not know {', '.join(map(repr, unknown))}; the hosts are {', '.join(HOSTS)}"
        )
    autoload.listen()
    for name in names:
        try:
            if hosts:  # an old version should raise here, not only warn when the host is imported
                HOSTS[name].check_version()
            _install_loaded(HOSTS[name])
        except HostError as error:
            autoload.shut(name, error)
            if hosts or autoload.is_named(name):
                raise
            autoload.warn_once(name, error)


def _install_loaded(host: Host) -> None:
    """Install into those of the host's modules that are imported already."""
    for name in host.modules:
        if name not in sys.modules:
            continue
        # Not sys.modules[name]: another thread may be executing it just now; import_module waits for that.
        module = importlib.import_module(name)
        if _MARK not in vars(module):
            install(host.name, module)
