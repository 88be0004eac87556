"""LangChain's own standard tests for chat models, whole: of the class alone, and against the wire.

What is skipped there is skipped by the suite itself, for what this model does not claim (images, audio), and its
serialisation test, which lets only LangChain's own classes pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_tests.integration_tests import ChatModelIntegrationTests
from langchain_tests.unit_tests import ChatModelUnitTests

from hymemory_adapters.langchain import ChatHyMemory
from tests.langchain import parrot
from tests.langchain.conftest import refuse_tools
from tests.support.scripted import ScriptedEndpoint

OTHER_MODEL = "hy-memory-2"


class _Claims:
    """What both suites ask of the model."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatHyMemory

    @property
    def supports_json_mode(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return OTHER_MODEL


class TestUnit(_Claims, ChatModelUnitTests):
    """The class alone."""

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {"model": "hy-memory"}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return (
            {"HYMEMORY_API_KEY": "a-key", "HYMEMORY_BASE_URL": "http://host:1/v1", "HYMEMORY_MODEL": "mine"},
            {},
            {"openai_api_key": "a-key", "openai_api_base": "http://host:1/v1", "model_name": "mine"},
        )


class TestScripted(_Claims, ChatModelIntegrationTests):
    """Against an endpoint that refuses tools."""

    @pytest.fixture(autouse=True)
    def _served(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        with ScriptedEndpoint(parrot.answer, models=("hy-memory", OTHER_MODEL)) as server:
            server.refuse = refuse_tools
            monkeypatch.setenv("HYMEMORY_BASE_URL", server.url)
            yield
            for chat in server.chats:
                assert chat.body["chat_template_kwargs"] == {"reasoning_effort": "no_think"}

    @pytest.fixture
    def model(self, _served: None, request: Any) -> BaseChatModel:
        extra = getattr(request, "param", None) or {}
        return ChatHyMemory(**self.standard_chat_model_params, **extra)
