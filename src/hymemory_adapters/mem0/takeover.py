"""``HYMEMORY_ENABLE=mem0``: the writer in an app whose config names another provider.

Mem0 builds every LLM with ``LlmFactory.create`` (``utils/factory.py``): the memory's, the graph's and, since 1.0,
the reranker's, which is no writer and stays the app's own.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from hymemory_adapters.core.lost import ConfigurationError
from hymemory_adapters.settings import check_names

PROVIDER = "hymemory"
_MARK = "__hymemory_original__"


class AppLLM:
    """The LLM that the app's config names, built when it is first needed: for images."""

    def __init__(self, provider: str, config: Any, more: Mapping[str, Any]) -> None:
        self.provider = provider
        self.config = config
        self._more = dict(more)
        self._llm: Any = None

    @property
    def wishes(self) -> dict[str, Any]:
        """What the app's block says, as a dict; it may be one of Mem0's config objects."""
        block = self.config if isinstance(self.config, Mapping) else vars(self.config) if self.config else {}
        return {**block, **self._more}

    def generate_response(self, **request: Any) -> Any:
        """Ask it."""
        if self._llm is None:
            from mem0.utils.factory import LlmFactory

            self._llm = _original(LlmFactory)(LlmFactory, self.provider, self.config, **self._more)
        return self._llm.generate_response(**request)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_llm": None}  # clients cannot be copied


def take_over(factory: Any) -> None:
    """Let ``LlmFactory.create`` build the writer, whatever provider it is asked for, while ENABLE names Mem0.

    The environment is read at every call: apps load ``.env`` files late.
    """
    original = _original(factory)

    def create(cls: Any, /, provider_name: str, config: Any = None, **kwargs: Any) -> Any:
        from hymemory_adapters.registry import enabled

        check_names(os.environ)
        known = provider_name in cls.provider_to_class  # an unknown name is refused as without us
        if known and provider_name != PROVIDER and "mem0" in enabled():
            from hymemory_adapters.mem0.provider import HyMemoryLLM

            return HyMemoryLLM(app_llm=AppLLM(provider_name, config, kwargs))
        return original(cls, provider_name, config, **kwargs)

    functools.update_wrapper(create, original)
    setattr(create, _MARK, original)
    factory.create = classmethod(create)


def leave_reranker(module: ModuleType) -> None:
    """Give ``mem0.reranker.llm_reranker`` a factory that is never taken over."""
    factory: Any = module.LlmFactory
    own = type("LlmFactory", (factory,), {"create": classmethod(_original(factory))})
    module.LlmFactory = own  # type: ignore[attr-defined]


def refuse_platform(module: ModuleType) -> None:
    """Let Mem0's hosted platform say that its LLM cannot be taken over."""
    for name in ("MemoryClient", "AsyncMemoryClient"):
        client: Any = getattr(module, name)
        _refuse_when_enabled(client, name)


def _refuse_when_enabled(client: Any, name: str) -> None:
    original = getattr(client.__init__, _MARK, client.__init__)

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        from hymemory_adapters.registry import HOSTS, enabled

        check_names(os.environ)
        if "mem0" in enabled():
            raise HOSTS["mem0"].error(
                f"{name} is Mem0's hosted platform, which writes with its own LLM: use mem0.Memory, or take mem0 out "
                "of HYMEMORY_ENABLE"
            )
        original(self, *args, **kwargs)

    setattr(init, _MARK, original)
    client.__init__ = init


def refuse_llm_of_add(module: ModuleType) -> None:
    """Let ``AsyncMemory.add`` say that a procedural memory cannot be written by the LLM that it is handed."""
    memory: Any = module.AsyncMemory
    original = getattr(memory.add, _MARK, memory.add)

    @functools.wraps(original)
    async def add(self: Any, *args: Any, **kwargs: Any) -> Any:
        from hymemory_adapters.registry import enabled

        # Without a memory_type Mem0 takes no notice of it.
        if kwargs.get("llm") is not None and kwargs.get("memory_type") is not None and "mem0" in enabled():
            raise ConfigurationError(
                "HYMEMORY_ENABLE names mem0, and AsyncMemory.add(llm=...) would write this memory with that LLM: drop "
                "llm=, or take mem0 out of HYMEMORY_ENABLE"
            )
        return await original(self, *args, **kwargs)

    setattr(add, _MARK, original)
    memory.add = add


def _original(factory: Any) -> Any:
    """Mem0's own ``create``, as a function of the class."""
    create = factory.create.__func__
    return getattr(create, _MARK, create)
