"""The wheel as a user has it: a fresh process, one config key, no import line.

These tests need the wheel installed (``nox -s hook``): from a source tree no .pth file is read.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted import ScriptedEndpoint
from tests.test_registry import write_metadata
from tests.wheel.process import SITE, needs_wheel, run

pytestmark = needs_wheel
pytest.importorskip("mem0")

APP = """
import json, logging, os, sys
from mem0 import Memory
from mem0.utils.factory import EmbedderFactory

class Embedder:
    def __init__(self, config=None): self.config = config
    def embed(self, text, action=None): return [float(len(text)), 1.0, 2.0, 3.0]
    def embed_batch(self, texts, action=None): return [self.embed(text) for text in texts]

sys.modules["app_embedder"] = sys.modules[__name__]
EmbedderFactory.provider_to_class["huggingface"] = "app_embedder.Embedder"
memory = Memory.from_config({
    "llm": LLM,
    "embedder": {"provider": "huggingface", "config": {"embedding_dims": 4}},
    "vector_store": {"provider": "qdrant", "config": {"embedding_model_dims": 4, "path": os.environ["MEM0_DIR"]}},
})
result = memory.add("I drink tea", user_id="ann")
print(json.dumps([item["memory"] for item in result["results"]]))
memory.vector_store.client.close()
"""


def app(llm: dict[str, Any]) -> str:
    return APP.replace("LLM", repr(llm))


GOOD = json.dumps({"memory": [{"id": "0", "text": "Drinks tea", "attributed_to": "user"}]})


@pytest.mark.parametrize("block", [{}, {"config": {}}, {"config": {"temperature": 0.3}}], ids=["none", "empty", "some"])
def test_provider_is_known_without_an_import_line(tmp_path: Path, block: dict[str, Any]) -> None:
    with ScriptedEndpoint(GOOD) as server:
        done = run(app({"provider": "hymemory", **block}), tmp_path, HYMEMORY_BASE_URL=server.url)
    assert json.loads(done.stdout.splitlines()[-1]) == ["Drinks tea"], done.stderr
    assert len(server.chats) == 1


def test_unknown_providers_are_still_rejected(tmp_path: Path) -> None:
    done = run(app({"provider": "hymemoryx", "config": {}}), tmp_path)
    assert done.returncode != 0
    assert "Unsupported LLM provider: hymemoryx" in done.stderr


def test_switched_off(tmp_path: Path) -> None:
    done = run(app({"provider": "hymemory", "config": {}}), tmp_path, HYMEMORY_AUTOLOAD="0")
    assert "Unsupported LLM provider: hymemory" in done.stderr


def test_register_works_where_the_hook_is_off(tmp_path: Path) -> None:
    code = "import hymemory_adapters; hymemory_adapters.register('mem0')\n" + app(
        {"provider": "hymemory", "config": {}}
    )
    with ScriptedEndpoint(GOOD) as server:
        done = run(code, tmp_path, HYMEMORY_AUTOLOAD="0", HYMEMORY_BASE_URL=server.url)
    assert json.loads(done.stdout.splitlines()[-1]) == ["Drinks tea"], done.stderr


def test_an_unsupported_mem0_builds_no_llm_once_enable_names_it(tmp_path: Path) -> None:
    """A .env file that is loaded after the imports."""
    write_metadata(tmp_path, "mem0ai", "9.0")
    openai = {"provider": "openai", "config": {"api_key": "sk-app"}}
    late = app(openai).replace("class Embedder", "os.environ['HYMEMORY_ENABLE'] = 'mem0'\nclass Embedder")
    done = run(late, tmp_path, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "HYMEMORY_ENABLE names mem0, but hymemory-adapters cannot work with it: HostError: mem0ai 9.0" in done.stderr


def test_a_name_that_cannot_be_taken_over_is_told_when_python_starts(tmp_path: Path) -> None:
    done = run("print('alive')", tmp_path, HYMEMORY_ENABLE="langchain")
    assert done.stdout.strip() == "alive"
    assert done.stderr.startswith("hymemory-adapters: HYMEMORY_ENABLE names 'langchain', and only mem0 can be")


def test_python_starts_with_nothing_loaded(tmp_path: Path) -> None:
    code = "import sys; print([m for m in ('hymemory_adapters', 'mem0', 'openai', 'pydantic') if m in sys.modules])"
    assert run(code, tmp_path).stdout.strip() == "[]"


def test_the_wheel_holds_what_it_should() -> None:
    assert (SITE / "hymemory_adapters.pth").read_text() == "import _hymemory_autoload; _hymemory_autoload.start()\n"
    assert (SITE / "hymemory_adapters.start").read_text() == "_hymemory_autoload:start\n"
    package = SITE / "hymemory_adapters"
    assert (package / "py.typed").exists()
    assert (package / "writers.toml").exists()
