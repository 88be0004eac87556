"""LangChain for the tests: the chat model behind a scripted endpoint that knows no tools. LangMem is in ``host.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support.coroutines import pytest_pyfunc_call
from tests.support.scripted import Fail, ScriptedEndpoint

__all__ = ["pytest_pyfunc_call"]

if find_spec("langchain_openai") is None:  # the lane without hosts, or with others
    collect_ignore_glob = ["test_*.py"]
elif find_spec("langmem") is None:  # the lanes that test the registry alone
    needs_langmem = ("write_table", "trustcall", "store_manager", "agents", "optimizers", "threads_and_search")
    collect_ignore_glob = [f"test_{name}.py" for name in needs_langmem]

NO_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'


@pytest.fixture(scope="session")
def _no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def _loopback_only(_no_certificates: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare every test the world's CA certificates, and keep LangSmith out of it."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", _no_certificates)
    for variable in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(variable, "false")


def refuse_tools(body: dict[str, Any]) -> Fail | None:
    """What a vLLM without a tool-call parser says."""
    return Fail(400, NO_PARSER) if "tools" in body or "tool_choice" in body else None


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint("nothing was scripted") as scripted:
        scripted.refuse = refuse_tools
        yield scripted


@pytest.fixture
def make_model(endpoint: ScriptedEndpoint) -> Callable[..., Any]:
    """Build a ``ChatHyMemory`` for the endpoint."""
    from hymemory_adapters.langchain import ChatHyMemory

    return lambda **more: ChatHyMemory(base_url=endpoint.url, **more)


@pytest.fixture
def model(make_model: Callable[..., Any]) -> Any:
    return make_model()
