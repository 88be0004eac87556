"""What a check of ``hymemory doctor`` finds, and what all checks share."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hymemory_adapters.core.reply import Reply
from hymemory_adapters.registry import HOSTS, Host, HostError, register

if TYPE_CHECKING:
    from hymemory_adapters.cli.server import Server
    from hymemory_adapters.core.failure import Failure
    from hymemory_adapters.core.request import Message
    from hymemory_adapters.core.write_call import WriteCall
    from hymemory_adapters.settings import WriterSettings


class Verdict(str, Enum):
    """What a check found; the worst of a step comes first here."""

    BAD = "bad"
    """Something will lose writes."""
    UNKNOWN = "unknown"
    """It cannot be told."""
    WARNING = "warning"
    """It works, and it could be better, or it is not known to be wrong."""
    OK = "ok"
    SKIPPED = "skipped"
    """An earlier step made it pointless."""


@dataclass(frozen=True)
class Finding:
    """One thing that a check found.

    Attributes:
        verdict: how it is.
        text: what was found.
        do: what the user can do about it; every bad finding has it.
        data: the same for programs (``--json``).
    """

    verdict: Verdict
    text: str
    do: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


def worst(findings: Sequence[Finding]) -> Verdict:
    """The verdict of a step: its worst finding's."""
    return min((finding.verdict for finding in findings), key=list(Verdict).index)


@dataclass(frozen=True)
class Step:
    """One step of the doctor.

    Attributes:
        name: what it is called.
        check: finds out.
        needs: steps without which this one is pointless: if one of them is bad or skipped, it is skipped.
        decides: whether its ``unknown`` leaves open that writes are lost (exit code 2).
    """

    name: str
    check: Callable[[Context], Sequence[Finding]]
    needs: tuple[str, ...] = ()
    decides: bool = True


@dataclass
class Context:
    """What the checks share: what they were given, and what earlier ones found out.

    Attributes:
        environ: the environment that the settings are read from.
        block: what the command line names, as a host's config block would.
        settings: the settings in force, once they are known.
        server: the server, once the settings are known.
        listed: what the server answered to the question which models it serves: their owner, or a failure.
        replies: what came back from the chat requests of the checks, in order.
        obeyed: whether the server obeys schemas.
        looped: whether a reply was white space without end.
        hook: whether Python had set up the import hook when it started.
    """

    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    block: Mapping[str, str] = field(default_factory=dict)
    settings: WriterSettings | None = None
    server: Server | None = None
    listed: str | Failure = ""
    replies: list[Reply] = field(default_factory=list)
    obeyed: bool = False
    looped: bool = False
    hook: bool = field(default_factory=lambda: _hook_is_set())

    @cached_property
    def hosts(self) -> tuple[InstalledHost, ...]:
        """The hosts that are installed here; imports them."""
        return tuple(InstalledHost.read(host) for host in HOSTS.values() if host.installed_version() is not None)


@dataclass(frozen=True)
class InstalledHost:
    """A host that is installed, and what its folder here says of it.

    Attributes:
        host: its row in the registry.
        version: the version that is installed.
        calls: its write calls.
        prompts: a typical request's messages by write call.
        unknown: where it asks its LLM for something that its table does not know.
        error: why it cannot be worked with; ``""`` if it can.
        unsupported: whether that is because of its version.
    """

    host: Host
    version: str
    calls: tuple[WriteCall, ...] = ()
    prompts: Mapping[str, Sequence[Message]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    error: str = ""
    unsupported: bool = False

    @classmethod
    def read(cls, host: Host) -> InstalledHost:
        """Switch the host on in this process, as ``register`` would, and read its tables."""
        version = str(host.installed_version())
        try:
            host.check_version()
        except HostError as error:
            return cls(host, version, error=str(error), unsupported=True)
        try:
            register(host.name)
            for module in host.modules:
                _import_if_there(module)
            return cls(host, version, host.write_calls(), host.typical_prompts(), host.unknown_sites())
        except HostError as error:
            return cls(host, version, error=str(error))
        except Exception as error:
            return cls(host, version, error=f"{host.distribution} cannot be imported: {type(error).__name__}: {error}")


def _import_if_there(module: str) -> None:
    """Import one of a host's modules; not every version has them all."""
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise


def _hook_is_set() -> bool:
    import _hymemory_autoload as autoload

    return any(finder is autoload._FINDER for finder in sys.meta_path)
