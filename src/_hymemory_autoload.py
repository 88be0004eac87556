"""The import hook of hymemory-adapters: a memory framework (a "host") finds the writer with no import line.

Python calls ``start()`` whenever it starts (``hymemory_adapters.pth`` or ``.start`` in site-packages). It
puts one finder on ``sys.meta_path``, which waits for the modules in ``HOOKS`` and, right after one of them has
executed, hands it to ``hymemory_adapters.registry.install``. Every start pays for this file: until a host is
imported, it imports nothing that Python has not loaded by itself.

It breaks neither Python's start nor a host's import, but for one case: a host that HYMEMORY_ENABLE names and
that cannot be taken over raises when it is imported, so that no conversation goes to its old LLM unnoticed.
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

_warned: set[str] = set()
_looking = _local()  # per thread, and so never stale after a fork


def start() -> None:
    """Wait for hosts, unless HYMEMORY_AUTOLOAD says no, and check HYMEMORY_ENABLE's names. Never raises."""
    try:
        if os.environ.get("HYMEMORY_AUTOLOAD", "").strip().lower() in ("0", "false", "no", "off"):
            return
        if not listen():
            return
        unknown = enabled_hosts(os.environ)[1]
        if unknown:
            names = ", ".join(map(ascii, sorted(unknown)))
            known = ", ".join(sorted(set(HOOKS.values())))
            _tell(f"hymemory-adapters: HYMEMORY_ENABLE names unknown hosts: {names} (known: {known})")
    except Exception:
        return  # whatever it was, it is not worth an interpreter that does not start


def listen() -> bool:
    """Put the finder in front of the others; False if it was there already."""
    if any(finder is _FINDER for finder in sys.meta_path):
        return False
    sys.meta_path.insert(0, _FINDER)
    return True


def enabled_hosts(environ: "Mapping[str, str]") -> tuple[frozenset[str], frozenset[str]]:
    """Read HYMEMORY_ENABLE: the known hosts that it names, and the unknown ones."""
    words = environ.get("HYMEMORY_ENABLE", "").lower().split(",")
    names = frozenset(word.strip() for word in words if word.strip())
    known = frozenset(HOOKS.values())
    return names & known, names - known


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


def _tell(text: str) -> None:
    """One line on stderr, which may be closed, full or None."""
    try:
        sys.stderr.write(text + "\n")
    except Exception:
        return


def _cannot_install(host: str, error: Exception) -> None:
    """Fail closed for a host that HYMEMORY_ENABLE names, warn for any other."""
    if host not in enabled_hosts(os.environ)[0]:
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
