"""Chats that look a little like a request for a summary, and packages that the app does not use."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import pytest

pytest.importorskip("langmem", reason="the lanes that test the registry alone have none")

from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from hymemory_adapters.core.events import WriteEvent
from hymemory_adapters.langchain.classic import classic_calls
from hymemory_adapters.langchain.installed import spec_of
from hymemory_adapters.langchain.summaries import summary_calls
from tests.langchain.free_text import SUMMARY, talk
from tests.langchain.host import LANGCHAIN
from tests.support.scripted import ScriptedEndpoint


def _prompts() -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from langmem.short_term import summarization

        found = {"existing": summarization.DEFAULT_EXISTING_SUMMARY_PROMPT.messages[-1].prompt.template}
        if LANGCHAIN >= (1, 0):
            from langchain.agents.middleware import summarization as middleware

            found["middleware"] = middleware.DEFAULT_SUMMARY_PROMPT
        try:
            from langchain_classic.memory import prompt
        except ImportError:
            from langchain.memory import prompt
        for name in ("SUMMARY_PROMPT", "ENTITY_EXTRACTION_PROMPT", "ENTITY_SUMMARIZATION_PROMPT"):
            found[name] = getattr(prompt, name).template
    return found


PROMPTS = _prompts()
INITIAL = "Create a summary of the conversation above:"
STRANGERS: dict[str, list[Any]] = {
    "a_chat": [SystemMessage("You are kind."), *talk(), HumanMessage("What is my dog called?")],
    "a_question": [HumanMessage("Hello!")],
    "a_wish": [*talk(), HumanMessage("Create a summary of the conversation above, please.")],
    "a_wish_in_front": [*talk(), HumanMessage(f"{INITIAL} and translate it")],
    "nothing_to_sum_up": [HumanMessage(INITIAL)],
    "the_words_of_another": [*talk(), AIMessage(INITIAL)],
    "a_summary_that_was_asked": [*talk(), HumanMessage(INITIAL), AIMessage(SUMMARY), HumanMessage("Thanks.")],
    **{f"quoted_{name}": [HumanMessage(f'What does "{text}" mean?')] for name, text in PROMPTS.items()},
    **{f"something_before_{name}": [HumanMessage(f"Is this good?\n{text}")] for name, text in PROMPTS.items()},
    **{f"half_of_{name}": [HumanMessage(text[: len(text) // 2])] for name, text in PROMPTS.items()},
    **{f"end_of_{name}": [HumanMessage(text[len(text) // 2 :])] for name, text in PROMPTS.items()},
    **{f"more_after_{name}": [HumanMessage(f"{text}\nIs that good?")] for name, text in PROMPTS.items()},
    **{
        f"answered_{name}": [HumanMessage(text), AIMessage("x"), HumanMessage("Go on")]
        for name, text in PROMPTS.items()
    },
}


@pytest.mark.parametrize("messages", STRANGERS.values(), ids=STRANGERS)
def test_a_chat_is_no_write(
    messages: list[Any],
    model: Any,
    endpoint: ScriptedEndpoint,
    heard: list[WriteEvent],
    caplog: pytest.LogCaptureFixture,
) -> None:
    endpoint.play("")
    assert model.invoke(messages).content == ""
    assert heard == []
    assert [record for record in caplog.records if record.name == "hymemory_adapters"] == []
    (chat,) = endpoint.chats
    assert set(chat.body) == {"model", "messages", "chat_template_kwargs"}


# -- what is not there, and what is not used -------------------------------------------------------


def test_what_is_not_installed_has_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "langmem.summary" in [call.name for call in summary_calls()]
    assert next(call.name for call in classic_calls()) == "langchain.classic_summary"
    for package in ("langmem", "langchain", "langchain_classic"):
        monkeypatch.setitem(sys.modules, package, None)  # Python's own way to say: not importable
    assert summary_calls() == classic_calls() == ()


@pytest.mark.parametrize("name", ["no_such_package", "json.no_such_module", "json.decoder.no_such_module"])
def test_what_cannot_be_found_is_not_installed(name: str) -> None:
    assert spec_of(name) is None


USED = """
import sys
from hymemory_adapters.core.request import Request
from hymemory_adapters.langchain.calls import calls
request = Request([{"role": "user", "content": "Create a summary of the conversation above:"}] * 2)
assert [call.name for call in calls() if call.recognise(request)] == []
print(*sorted(sys.modules))
"""


def test_the_table_imports_none_of_the_packages() -> None:
    """An app without LangMem or classic memories does not pay for them at its first request."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", USED], capture_output=True, text=True, check=True)
    imported = done.stdout.split()
    assert "hymemory_adapters.langchain.classic" in imported
    assert not {"langmem", "langchain_classic", "langchain.memory", "langchain.agents"} & set(imported)
