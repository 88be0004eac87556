"""The wheel in a LangChain app: the model's name is all that it says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.scripted import Fail, Say, ScriptedEndpoint
from tests.wheel.process import needs_wheel, run

pytestmark = needs_wheel
pytest.importorskip("langchain_openai")

CHAT = """
from langchain.chat_models import init_chat_model
message = init_chat_model("hymemory:hy-memory").invoke("Hi")
print(type(message).__name__, message.content)
"""
MANAGER = """
import json
from langgraph.store.memory import InMemoryStore
from langmem import create_memory_store_manager

store = InMemoryStore()
manager = create_memory_store_manager("hymemory:hy-memory", namespace=("memories",), store=store)
for said in ("I drink coffee", "I drink tea now"):
    manager.invoke({"messages": [{"role": "user", "content": said}]})
print(json.dumps([item.value["content"]["content"] for item in store.search(("memories",))]))
"""
REMEMBERED = json.dumps({"tool_calls": [{"name": "Memory", "arguments": {"content": "Drinks coffee"}}]})


def changed(body: dict[str, object]) -> Say:
    """Change the one memory that is shown."""
    shown = json.dumps(body["messages"])
    change = {
        "json_doc_id": shown.partition("<instance id=")[2].partition(" ")[0],
        "planned_edits": "as told",
        "patches": [{"op": "replace", "path": "/content", "value": "Drinks tea"}],
    }
    return Say(json.dumps({"tool_calls": [{"name": "PatchDoc", "arguments": change}]}))


def no_tools(body: dict[str, object]) -> Fail | None:
    """What a vLLM without a tool-call parser says."""
    return Fail(400, "no tool-call parser") if "tools" in body else None


def test_the_model_string_is_known_without_an_import_line(tmp_path: Path) -> None:
    with ScriptedEndpoint("Hello!") as server:
        done = run(CHAT, tmp_path, HYMEMORY_BASE_URL=server.url)
    assert done.stdout.splitlines()[-1:] == ["AIMessage Hello!"], done.stderr
    assert [chat.body["model"] for chat in server.chats] == ["hy-memory"]


def test_a_langmem_manager_writes_and_changes(tmp_path: Path) -> None:
    pytest.importorskip("langmem")
    with ScriptedEndpoint("no JSON", REMEMBERED, "no JSON", changed) as server:
        server.refuse = no_tools
        done = run(MANAGER, tmp_path, HYMEMORY_BASE_URL=server.url)
    assert done.stdout.splitlines()[-1:] == ['["Drinks tea"]'], done.stderr
    assert len(server.chats) == 4


def test_switched_off(tmp_path: Path) -> None:
    done = run(CHAT, tmp_path, HYMEMORY_AUTOLOAD="0")
    assert done.returncode != 0
    assert "ValueError" in done.stderr


def test_other_providers_are_still_rejected(tmp_path: Path) -> None:
    done = run(CHAT.replace("hymemory:", "hymemoryx:"), tmp_path)
    assert done.returncode != 0
    assert "ValueError" in done.stderr


def test_register_works_where_the_hook_is_off(tmp_path: Path) -> None:
    code = f"import hymemory_adapters; hymemory_adapters.register('langchain')\n{CHAT}"
    with ScriptedEndpoint("Hello!") as server:
        done = run(code, tmp_path, HYMEMORY_AUTOLOAD="0", HYMEMORY_BASE_URL=server.url)
    assert done.stdout.splitlines()[-1:] == ["AIMessage Hello!"], done.stderr
