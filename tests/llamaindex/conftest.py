"""LlamaIndex for the tests: the LLM behind a scripted endpoint that knows no tools. Its memories are in ``host.py``."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from tests.support.scripted import Fail, ScriptedEndpoint

if find_spec("llama_index") is None or find_spec("llama_index.llms.openai_like") is None:  # the lanes of other hosts
    collect_ignore_glob = ["test_*.py"]
else:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LlamaIndex 0.12 and 0.13 beside a newer pydantic
        import llama_index.core.memory  # noqa: F401

NO_PARSER = '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'
POISON = {
    "OPENAI_API_KEY": "sk-poison",
    "OPENAI_API_BASE": "http://127.0.0.1:9/poison",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/poison",
    "OPENAI_API_VERSION": "poison",
    "OPENAI_ORG_ID": "org-poison",
    "OPENAI_PROJECT_ID": "proj-poison",
    "OPENAI_CUSTOM_HEADERS": "X-Poison: 1",
}


@pytest.fixture(scope="session")
def _no_certificates(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(autouse=True)
def _an_app_with_openai(_fresh: None, _no_certificates: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has an app's OpenAI variables around it; and no client loads the world's CA certificates."""
    from llama_index.core import Settings

    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", _no_certificates)
    for name, value in POISON.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Settings, "_llm", None)


def refuse_tools(body: dict[str, Any]) -> Fail | None:
    """What a vLLM without a tool-call parser says."""
    return Fail(400, NO_PARSER) if "tools" in body or "tool_choice" in body else None


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint("nothing was scripted") as scripted:
        scripted.refuse = refuse_tools
        yield scripted
        posts = {request.path for request in scripted.requests if request.raw}
        assert posts <= {"/v1/chat/completions"}
        assert not [request for request in scripted.requests if "poison" in f"{request.headers}{request.raw!r}".lower()]


@pytest.fixture
def make_llm(endpoint: ScriptedEndpoint) -> Callable[..., Any]:
    """Build a ``HyMemory`` for the endpoint."""
    from hymemory_adapters.llamaindex import HyMemory

    return lambda **more: HyMemory(**{"base_url": endpoint.url, "retry_seconds": 0, **more})


@pytest.fixture
def llm(make_llm: Callable[..., Any]) -> Any:
    return make_llm()
