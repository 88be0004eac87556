"""LangChain and LangMem: ``"hymemory:hy-memory"`` wherever they take a model string, or ``ChatHyMemory()``.

``chat_model.py`` is the chat model, ``config.py`` what its constructor takes, ``request.py`` and ``result.py`` the
way from LangChain's messages to the writer and back, ``calls.py`` the table of calls (``trustcall.py``,
``memory_tool.py`` and ``structured.py`` hold its longer rows). Here is how the provider's name becomes known.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hymemory_adapters.langchain.chat_model import ChatHyMemory

__all__ = ["ChatHyMemory", "install"]

PROVIDER = "hymemory"
_WHERE = (__name__, "ChatHyMemory")
_REGISTRIES = ("_BUILTIN_PROVIDERS", "_SUPPORTED_PROVIDERS")


def __getattr__(name: str) -> Any:
    if name != "ChatHyMemory":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hymemory_adapters.langchain.chat_model import ChatHyMemory

    globals()[name] = ChatHyMemory
    return ChatHyMemory


def install(module: ModuleType) -> None:
    """Make the provider known to ``init_chat_model``, through which every model string goes.

    Its registry is private and has had three forms: a set of names beside a chain of ifs (langchain 0.3 to 1.2.0,
    langchain-classic), a dict under the same name (1.2.1 to 1.2.9), and that dict under another name (1.2.10 and
    later).

    Raises:
        LookupError: the registry is in none of the known places.
    """
    name = next((name for name in _REGISTRIES if hasattr(module, name)), None)
    registry = getattr(module, name) if name else None
    if isinstance(registry, dict):
        # Not the module's own `_call`: it is private, and says no more than this.
        registry[PROVIDER] = (*_WHERE, _build)
    elif isinstance(registry, set):
        registry.add(PROVIDER)
        _extend_chain(module)
    else:
        raise LookupError(f"its registry of providers is not where it was ({' or '.join(_REGISTRIES)})")
    _watch_enable(module)


def _build(cls: Any, **kwargs: Any) -> Any:
    return cls(**kwargs)


def _extend_chain(module: Any) -> None:
    """Put our provider in front of the chain of ifs."""
    original, parse = module._init_chat_model_helper, module._parse_model
    if getattr(original, "__hymemory__", False):
        return

    @functools.wraps(original)
    def helper(model: str, *, model_provider: str | None = None, **kwargs: Any) -> Any:
        name, provider = parse(model, model_provider)
        if provider != PROVIDER:
            return original(model, model_provider=model_provider, **kwargs)
        return __getattr__("ChatHyMemory")(model=name, **kwargs)

    helper.__hymemory__ = True  # type: ignore[attr-defined]
    module._init_chat_model_helper = helper


def _watch_enable(module: Any) -> None:
    """Let ``init_chat_model`` build no model, of any provider, while HYMEMORY_ENABLE names what cannot be taken over.

    LangChain is such a host: there is no one LLM in it. Whether ENABLE names it when it is imported is looked at by
    `registry.install`.
    """
    original = getattr(module, "_init_chat_model_helper", None)  # through which each of its ways leads
    if original is None or hasattr(original, "__hymemory_watches__"):
        return

    @functools.wraps(original)
    def helper(*args: Any, **kwargs: Any) -> Any:
        from hymemory_adapters.settings import check_names

        check_names(os.environ)
        return original(*args, **kwargs)

    helper.__hymemory_watches__ = True  # type: ignore[attr-defined]
    module._init_chat_model_helper = helper
