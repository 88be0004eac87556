"""The import hook of hymemory-adapters: a memory framework (a "host") finds the writer with no import line.

Python calls ``start()`` whenever it starts (``hymemory_adapters.pth`` or ``.start`` in site-packages). It
puts one finder on ``sys.meta_path``, which waits for the modules in ``HOOKS`` and, right after one of them has
executed, hands it to ``hymemory_adapters.registry.install``. Every start pays for this file: until a host is
imported, it imports nothing that Python has not loaded by itself.

It breaks neither Python's start nor a host's import, but for one case: a host that HYMEMORY_ENABLE names and
that cannot be taken over raises when it is imported, so that no conversation goes to its old LLM unnoticed. If
HYMEMORY_ENABLE names it only later (a ``.env`` file), it raises when it builds its LLM.
``HYMEMORY_AUTOLOAD=0`` turns it all off; ``hymemory_adapters.register()`` does the same explicitly.
"""

import os
import sys
from _thread import _local

TYPE_CHECKING = False  # type checkers take it for true; importing `typing` for it would cost milliseconds
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

HOOKS: dict[str, str] = {
    "mem0.llms.configs": "mem0",
    "mem0.utils.factory": "mem0",
    "mem0.memory.main": "mem0",
    "mem0.reranker.llm_reranker": "mem0",
    "mem0.client.main": "mem0",
    "langchain.chat_models.base": "langchain",
    "langchain_classic.chat_models.base": "langchain",
}
"""The module to wait for, and the host that it belongs to."""

TAKEOVERS: set[str] = {"mem0"}
"""The hosts that can be taken over: what HYMEMORY_ENABLE may name."""

DOORS: dict[str, tuple[str, ...]] = {
    "mem0.utils.factory": ("LlmFactory.create",),
    "mem0.memory.main": ("Memory.__init__", "AsyncMemory.__init__"),
    "mem0.client.main": ("MemoryClient.__init__", "AsyncMemoryClient.__init__"),
    "langchain.chat_models.base": ("_init_chat_model_helper",),
    "langchain_classic.chat_models.base": ("_init_chat_model_helper",),
}
"""Where a host comes by its LLM, in modules of HOOKS: watched once the writer could not be installed."""

_failed: dict[str, Exception] = {}  # by host, and for the rest of the process
_warned: set[str] = set()
_looking = _local()  # per thread, and so never stale after a fork


def start() -> None:
    """Wait for hosts, unless HYMEMORY_AUTOLOAD says no, and check HYMEMORY_ENABLE's names. Never raises."""
    try:
        if os.environ.get("HYMEMORY_AUTOLOAD", "").strip().lower() in ("0", "false", "no", "off"):
            return
        if not listen():
            return
        wrong = wrong_names(os.environ)
        if wrong:
            _tell(f"hymemory-adapters: {wrong}")
    except Exception:
        return  # whatever it was, it is not worth an interpreter that does not start


def listen() -> bool:
    """Put the finder in front of the others; False if it was there already."""
    if any(finder is _FINDER for finder in sys.meta_path):
        return False
    sys.meta_path.insert(0, _FINDER)
    return True


def enabled_hosts(environ: "Mapping[str, str]") -> tuple[frozenset[str], frozenset[str]]:
    """Read HYMEMORY_ENABLE: the hosts that it names, and the names that cannot be taken over."""
    words = environ.get("HYMEMORY_ENABLE", "").lower().split(",")
    names = frozenset(word.strip() for word in words if word.strip())
    return names & TAKEOVERS, names - TAKEOVERS


def wrong_names(environ: "Mapping[str, str]") -> str:
    """Say which names in HYMEMORY_ENABLE cannot be taken over, and what to do; empty if all of them can."""
    wrong = ", ".join(map(ascii, sorted(enabled_hosts(environ)[1])))
    can = ", ".join(sorted(TAKEOVERS))
    told = f"HYMEMORY_ENABLE names {wrong}, and only {can} can be taken over: correct it, or take it out"
    return wrong and f"{told} and name the writer in the app's own config"


def is_named(host: str) -> bool:
    """Whether HYMEMORY_ENABLE names the host, be it one that can be taken over or not."""
    return any(host in names for names in enabled_hosts(os.environ))


def warn_once(host: str, error: Exception) -> None:
    """Say, once for each host, that it is left alone. Never raises, not even under ``-W error``."""
    if host in _warned:
        return
    _warned.add(host)
    text = (
        f"hymemory-adapters leaves {host} alone, Hy-Memory does not write its memory: "
        f"{type(error).__name__}: {error} (hymemory_adapters.register({host!r}) raises the whole error; "
        "if it looks like ours, please report it)"
    )
    try:
        import warnings

        warnings.warn(text, RuntimeWarning, stacklevel=2)
    except Exception:
        _tell(text)


def shut(host: str, error: "Exception | None" = None) -> None:
    """Let a host where the writer could not be installed build no LLM while HYMEMORY_ENABLE names it.

    Apps may set that long after the import that failed. Never raises; does nothing where nothing has failed.

    Args:
        host: the host; those of its modules that come later are shut when they have been imported.
        error: why, if that is news.
    """
    if error is not None:
        _failed.setdefault(host, error)
    if host not in _failed:
        return
    for module_name, doors in DOORS.items():
        if HOOKS.get(module_name) == host:
            for door in doors:
                _shut_door(module_name, door, host)


def _shut_door(module_name: str, door: str, host: str) -> None:
    *path, name = door.split(".")
    try:
        from functools import wraps

        owner: Any = sys.modules[module_name]
        for part in path:
            owner = getattr(owner, part)
        found = vars(owner)[name]
        original = getattr(found, "__func__", found)  # of a class method
        if hasattr(original, "__hymemory_shut__"):
            return

        @wraps(original)
        def shut_one(*args: "Any", **kwargs: "Any") -> "Any":
            _refuse_if_named(host)
            return original(*args, **kwargs)

        vars(shut_one)["__hymemory_shut__"] = True
        setattr(owner, name, shut_one if found is original else type(found)(shut_one))
    except Exception:
        return  # not imported yet, or not there: then another door is, or the warning has to do


def _refuse_if_named(host: str) -> None:
    error = _failed[host]
    wrong = wrong_names(os.environ)
    if wrong:
        raise RuntimeError(wrong) from error
    if is_named(host):
        kind = type(error) if isinstance(error, RuntimeError) else RuntimeError  # a HostError stays one
        raise kind(
            f"HYMEMORY_ENABLE names {host}, but hymemory-adapters cannot work with it: "
            f"{type(error).__name__}: {error}. Correct that, or take {host} out of HYMEMORY_ENABLE."
        ) from error


def _tell(text: str) -> None:
    """One line on stderr, which may be closed, full or None."""
    try:
        sys.stderr.write(text + "\n")
    except Exception:
        return


def _cannot_install(host: str, error: Exception) -> None:
    """Fail closed for a host that HYMEMORY_ENABLE names; warn for any other, which may be named later."""
    shut(host, error)
    if not is_named(host):
        warn_once(host, error)
    elif isinstance(error, ImportError):
        # Not as it is: `try: import mem0 ... except ImportError` is common, and would hide it.
        raise RuntimeError(
            f"HYMEMORY_ENABLE names {host}, but hymemory-adapters cannot follow its import: "
            f"{type(error).__name__}: {error}. "
            f"Reinstall hymemory-adapters, or take {host} out of HYMEMORY_ENABLE."
        ) from error
    else:
        raise error


class _InstallingLoader:
    """A host module's own loader, and what comes after it; everything but ``exec_module`` is the loader's."""

    def __init__(self, loader: "Loader", host: str) -> None:
        self._loader = loader
        self._host = host

    def __getattr__(self, name: str) -> object:
        # object.__getattribute__, because copy and pickle ask for attributes before __init__ has run.
        return getattr(object.__getattribute__(self, "_loader"), name)

    def exec_module(self, module: "ModuleType") -> None:
        # The original goes back first: resources, sources and tracebacks of the host never see this class.
        for holder, name in ((module, "__loader__"), (module.__spec__, "loader")):
            if getattr(holder, name, None) is self:
                setattr(holder, name, self._loader)
        self._loader.exec_module(module)
        try:
            from hymemory_adapters.registry import install

            install(self._host, module)
        except Exception as error:
            _cannot_install(self._host, error)
        shut(self._host)  # if another of its modules has failed


class _Finder:
    """Finds the modules in HOOKS by asking the other finders, and gives them an ``_InstallingLoader``."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        host = HOOKS.get(name)
        if host is None:
            return None
        # This finder is asked as well, and another hook may look the name up again: stay out of that.
        names: set[str] = _looking.__dict__.setdefault("names", set())
        if name in names:
            return None
        names.add(name)
        try:
            spec = self._ask_the_others(name, path, target)
        finally:
            names.discard(name)
        if spec is None:
            return None
        if spec.loader is None or not hasattr(spec.loader, "exec_module"):
            _cannot_install(host, ImportError(f"the loader of {name} has no exec_module: {spec.loader!r}"))
        else:
            spec.loader = _InstallingLoader(spec.loader, host)  # type: ignore[assignment]
        return spec

    def _ask_the_others(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None"
    ) -> "ModuleSpec | None":
        for finder in tuple(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find_spec(name, path, target) if find_spec else None
            if spec is not None:
                return spec
        return None


_FINDER = _Finder()  # one object: listed twice by racing threads, it would still wrap a loader once
