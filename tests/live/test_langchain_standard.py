"""LangChain's own standard tests for chat models, against a real vLLM that was started without a tool-call parser.

The tiny model of ``nox -s live`` writes noise, so the tests that want sense of it (the right argument in a tool
call) are left to your own model's server.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from tests.live.server import LIVE, answers, needs_server

if find_spec("langchain_tests") is None:
    pytest.skip("needs langchain-tests", allow_module_level=True)

from langchain_core.language_models import BaseChatModel
from langchain_tests.integration_tests import ChatModelIntegrationTests

from hymemory_adapters.langchain import ChatHyMemory

pytestmark = [needs_server, answers]
NOISE = bool(LIVE.way)


class TestLive(ChatModelIntegrationTests):
    """Against the server."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatHyMemory

    @property
    def chat_model_params(self) -> dict[str, Any]:
        return {**LIVE.settings, "max_tokens": 256}

    @property
    def has_tool_calling(self) -> bool:
        return not NOISE

    @property
    def has_structured_output(self) -> bool:
        return True
