"""Mem0 (PyPI ``mem0ai``): ``{"llm": {"provider": "hymemory"}}``.

``config.py`` is the provider's config block, ``provider.py`` the LLM that Mem0 builds, ``calls.py`` the table of
its write calls (``update.py``, ``graph.py`` and ``text.py`` hold its longer rows), ``takeover.py`` what
HYMEMORY_ENABLE does. Here is how the provider's name becomes known to Mem0.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

PROVIDER = "hymemory"


def install(module: ModuleType) -> None:
    """Make the provider known, and ready the takeover; called when one of the modules concerned has been imported.

    Mem0 knows its providers in two places: ``LlmConfig``'s validator has a closed list of names
    (``mem0/llms/configs.py``, 0.1.116 to 2.2.1), and ``LlmFactory`` has a table with an official way in
    (``mem0/utils/factory.py``, since 0.1.116).
    """
    match module.__name__:
        case "mem0.llms.configs":
            _accept_name(module.LlmConfig)
        case "mem0.utils.factory":
            from hymemory_adapters.mem0.config import HyMemoryConfig
            from hymemory_adapters.mem0.takeover import take_over

            module.LlmFactory.register_provider(PROVIDER, "hymemory_adapters.mem0.provider.HyMemoryLLM", HyMemoryConfig)
            take_over(module.LlmFactory)
        case "mem0.memory.main":
            from hymemory_adapters.mem0.takeover import refuse_llm_of_add
            from hymemory_adapters.mem0.threads import inherit_context

            inherit_context(module)
            refuse_llm_of_add(module)
        case "mem0.reranker.llm_reranker":
            from hymemory_adapters.mem0.takeover import leave_reranker

            leave_reranker(module)
        case "mem0.client.main":
            from hymemory_adapters.mem0.takeover import refuse_platform

            refuse_platform(module)


def _accept_name(config: Any) -> None:
    """Let ``LlmConfig`` take our provider's name; every other name is judged as before.

    Pydantic compiles validators into the class, so the function is exchanged where pydantic keeps it, and the
    class is built anew: as are the two that have compiled it in, if Mem0 was imported before us.
    """
    decorator = config.__pydantic_decorators__.field_validators["validate_config"]
    original = decorator.func
    if getattr(original, "__hymemory__", False):
        return

    def validate_config(cls: Any, value: Any, info: Any) -> Any:
        # Mem0 reads the block as a dict at every write: an empty `config:` in a YAML file arrives as None.
        return (value or {}) if info.data.get("provider") == PROVIDER else original(value, info)

    bound = validate_config.__get__(config)  # pydantic holds the function bound to its class
    validate_config.__hymemory__ = True  # type: ignore[attr-defined]
    decorator.func = bound
    config.model_rebuild(force=True)
    for module_name, class_name in (
        ("mem0.graphs.configs", "GraphStoreConfig"),
        ("mem0.configs.base", "MemoryConfig"),
    ):
        holder = getattr(sys.modules.get(module_name), class_name, None)
        if holder is not None:
            holder.model_rebuild(force=True)
