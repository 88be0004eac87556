"""A typical request of each of the calls with long prompts, made by the *installed* LangMem and LangChain.

Nothing here is sent for a write: it tells ``hymemory doctor`` how long their prompts are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, get_buffer_string
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

from hymemory_adapters.core.request import Message
from hymemory_adapters.core.write_call import Contract
from hymemory_adapters.langchain.chat_model import ChatHyMemory
from hymemory_adapters.langchain.installed import spec_of
from hymemory_adapters.langchain.request import ChatRequest
from hymemory_adapters.settings import resolve

_SAID: list[BaseMessage] = [
    HumanMessage("I moved to Pune, and I drink black coffee every morning.", id="1"),
    AIMessage("Noted. How do you like Pune?", id="2"),
    HumanMessage("Very much.", id="3"),
]
_MIDDLEWARE = "langchain.agents.middleware.summarization"
_MEMORIES = ("Lives in Oslo", "Likes tea", "Has a dog", "Is training for a half marathon")


class Notes(ChatHyMemory):
    """A chat model that sends nothing: it notes what it is asked, by call, and has nothing to say."""

    _asked_for: dict[str, tuple[ChatRequest, Contract]] = PrivateAttr(default_factory=dict)

    @property
    def asked_for(self) -> Mapping[str, tuple[ChatRequest, Contract]]:
        """The last request of each call, and its contract."""
        return self._asked_for

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        writer, request = self._asked(messages, stop, run_manager, kwargs)
        if found := writer.recognise(request):
            call, contract = found
            self._asked_for[call.name] = request, contract
        return ChatResult(generations=[ChatGeneration(message=AIMessage("nothing"))])


def typical() -> Mapping[str, Sequence[Message]]:
    """Return the messages of a typical request, by write call."""
    notes = Notes(settings=resolve({}, environ={}))
    with import_module("langsmith").tracing_context(enabled=False):  # nobody ran anything
        if spec_of("langmem.knowledge"):
            _langmem(notes)
        if spec_of(_MIDDLEWARE):
            prompt = import_module(_MIDDLEWARE).DEFAULT_SUMMARY_PROMPT
            notes.invoke(prompt.format(messages=get_buffer_string(_SAID)))
    return {name: contract.asked(request).messages for name, (request, contract) in notes.asked_for.items()}


def _langmem(notes: Notes) -> None:
    manager = import_module("langmem").create_memory_manager(notes, enable_deletes=True)
    for known in ((), _MEMORIES):
        existing = [(str(number), "Memory", {"content": text}) for number, text in enumerate(known)]
        manager.invoke({"messages": _SAID, "existing": existing})
    sum_up = import_module("langmem.short_term").summarize_messages
    sum_up(_SAID, running_summary=None, model=notes, max_tokens=20, max_summary_tokens=10)
