"""How the provider's name becomes known to Mem0, in every order of imports, and nothing else does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mem0.llms.configs import LlmConfig
from mem0.utils.factory import LlmFactory

from tests.mem0.host import hymemory, mem0
from tests.support.scripted import ScriptedEndpoint

BuildMemory = Callable[..., Any]
SOURCE = Path(sys.modules["_hymemory_autoload"].__file__ or "").parent


@pytest.mark.parametrize(
    "llm",
    [
        {"provider": "hymemori"},
        {"provider": "hymemori", "config": {}},
        {"provider": "HyMemory", "config": {}},
        {"provider": "", "config": {}},
    ],
    ids=["no block", "block", "capitals", "empty"],
)
def test_mem0_still_refuses_unknown_providers(llm: dict[str, Any], make_memory: BuildMemory) -> None:
    with pytest.raises(ValueError, match=r"(?i)unsupported llm provider"):
        make_memory(llm=llm)


def test_mem0s_own_providers_are_still_known() -> None:
    for provider in ("openai", "vllm", "ollama"):
        assert LlmConfig(provider=provider, config={"model": "m"}).config == {"model": "m"}
    assert type(LlmFactory.create("vllm", {"model": "m"})).__name__ == "VllmLLM"


def test_the_default_provider_is_still_mem0s(endpoint: ScriptedEndpoint) -> None:
    assert LlmConfig().provider == "openai"


# -- each order of imports in an interpreter that has not seen Mem0 ---------------------------------

CHECK = f"""
import hymemory_adapters, mem0.configs.base, mem0.utils.factory
from mem0.llms.configs import LlmConfig
from mem0.configs.base import MemoryConfig
config = MemoryConfig(llm={hymemory("http://127.0.0.1:1/v1")!r})
assert config.llm.provider == "hymemory", config
llm = mem0.utils.factory.LlmFactory.create(config.llm.provider, config.llm.config)
assert type(llm).__name__ == "HyMemoryLLM", llm
own = mem0.utils.factory.LlmFactory.create("vllm", {{"model": "m"}})
taken_over = os.environ.get("HYMEMORY_ENABLE") == "mem0"
assert type(own).__name__ == ("HyMemoryLLM" if taken_over else "VllmLLM"), own
try:
    from mem0.reranker.llm_reranker import LlmFactory
except ImportError:
    pass
else:
    assert type(LlmFactory.create("vllm", {{"model": "m"}})).__name__ == "VllmLLM"
for wrong in ("hymemori", ""):
    try:
        MemoryConfig(llm={{"provider": wrong, "config": {{}}}})
    except ValueError as error:
        assert "Unsupported LLM provider" in str(error), error
    else:
        raise SystemExit("accepted " + wrong)
assert MemoryConfig(llm={{"provider": "ollama", "config": {{"a": 1}}}}).llm.config == {{"a": 1}}
try:
    from mem0.graphs.configs import GraphStoreConfig, Neo4jConfig
except ImportError:
    pass
else:
    GraphStoreConfig.model_rebuild()
    graph = {{"url": "bolt://x", "username": "u", "password": "p"}}
    made = GraphStoreConfig(provider="neo4j", config=graph, llm={hymemory("http://127.0.0.1:1/v1")!r})
    assert made.llm.provider == "hymemory", made
print("all is well")
"""

ORDERS = {
    "before": "import hymemory_adapters as h; h.register(); import mem0",
    "after": "import mem0; import hymemory_adapters as h; h.register()",
    "by_name": "import mem0; import hymemory_adapters as h; h.register('mem0')",
    "twice": "import hymemory_adapters as h; h.register(); h.register('mem0'); import mem0; h.register(); h.register()",
    "between": "import mem0.llms.configs; import hymemory_adapters as h; h.register(); import mem0",
    "factory_first": "import mem0.utils.factory; import hymemory_adapters as h; h.register(); import mem0",
    "config_first": "import mem0.configs.base; import hymemory_adapters as h; h.register(); import mem0",
    "hook_alone": "import _hymemory_autoload as a; a.listen(); import mem0",
    "hook_and_register": "import _hymemory_autoload as a; a.listen(); import mem0; import hymemory_adapters as h; "
    "h.register(); a.listen()",
    "reload": "import hymemory_adapters as h; h.register(); import mem0, importlib, mem0.utils.factory as f; "
    "importlib.reload(f); h.register()",
    "nothing": "import mem0",
    "takeover": "os.environ['HYMEMORY_ENABLE'] = 'mem0'; import hymemory_adapters as h; h.register(); import mem0",
    "takeover_by_hook": "os.environ['HYMEMORY_ENABLE'] = 'mem0'; "
    "import _hymemory_autoload as a; a.listen(); import mem0",
    "takeover_after": "os.environ['HYMEMORY_ENABLE'] = 'mem0'; import mem0\n"
    "try:\n import mem0.reranker.llm_reranker\nexcept ImportError:\n pass\n"
    "import hymemory_adapters as h; h.register()",
}

# One interpreter that has what Mem0 imports, but not Mem0; each order of imports runs in a fork of it.
FORKS = f"""
import io, json, os, sys, traceback
import openai, posthog, pydantic, qdrant_client, sqlalchemy
assert not {{name for name in sys.modules if name.partition(".")[0] in ("mem0", "hymemory_adapters")}}
told = {{}}
for name, order in {ORDERS!r}.items():
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            exec(order + {CHECK!r}, {{"os": os}})
            text = "all is well"
        except BaseException as error:
            text = "".join(traceback.format_exception_only(type(error), error))
        os.write(writes, text.encode()[:60000])
        os._exit(0)
    os.close(writes)
    with open(reads, "rb") as pipe:
        told[name] = pipe.read().decode()
    os.waitpid(child, 0)
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def told() -> dict[str, str]:
    """What came of each order of imports."""
    path = os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", FORKS],
        env={**os.environ, "PYTHONPATH": path, "HYMEMORY_AUTOLOAD": "0"},  # the installed hook stays out of it
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("order", ORDERS)
def test_the_name_is_known_in_every_order_of_imports(order: str, told: dict[str, str]) -> None:
    if order == "nothing":  # then Mem0 is left as it is
        assert "Unsupported LLM provider: hymemory" in told[order]
    else:
        assert told[order] == "all is well"


def test_mem0_was_imported_for_these_tests() -> None:
    assert Path(mem0.__file__).parent.name == "mem0"
    assert "tests" not in Path(mem0.__file__).parts
