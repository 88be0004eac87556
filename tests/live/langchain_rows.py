"""LangMem's rows of the live tests and the cassettes: its own functions ask, and say what they are to be asked with.

What is not here: a repair, which needs a reply that does not validate first, and the optimizers, which make several
requests and quote the one in the next under ids that are new each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock
from uuid import UUID

from langgraph.store.memory import InMemoryStore
from langmem import create_memory_manager, create_memory_store_manager, create_thread_extractor
from langmem.knowledge import extraction
from langmem.short_term import summarize_messages

from hymemory_adapters.core.tools import Tools
from hymemory_adapters.core.write_call import OnLost
from hymemory_adapters.langchain import ChatHyMemory
from hymemory_adapters.langchain.calls import calls
from hymemory_adapters.langchain.prompts import Notes, typical
from hymemory_adapters.langchain.trustcall import _any_value
from tests.langchain.host import words
from tests.live.row import KNOWN, Messages, Row

_EXISTING = [(f"memory-{number}", "Memory", {"content": text}) for number, text in enumerate(KNOWN[:4])]
_SAID = re.compile(r"Human Message =+\n\n(.*?)(?:\n</session_|</conversation>$)", re.DOTALL)
_SUMMED_UP = re.compile(r"(?<=Human: ).*(?=\nAI: )")

_CONVERSATIONS = 4
"""About one text: a reply may be that there is nothing to remember, and noise often says so."""

Run = Callable[[Any, str], Any]


def rows() -> dict[str, Row]:
    """The calls that are answered in JSON."""
    memory, thread = ({"name": name} for name in ("Memory", "SummarizeThread"))
    return {
        "langmem.extract": _row(
            "langmem.extract",
            lambda llm, text: _manage(llm, text, []),
            item_keys=frozenset({"content"}),
            value=lambda made: {"tool_calls": [{**memory, "arguments": each.content.model_dump()} for each in made]},
        ),
        "langmem.update": _row(
            "langmem.update",
            lambda llm, text: _manage(llm, text, _EXISTING),
            quiet=True,
            items=lambda value: list(value["tool_calls"]),
            item_keys=frozenset({"name", "arguments"}),
            value=lambda made: {"tool_calls": [{**memory, "arguments": each} for each in _new(made)]},
        ),
        "langmem.thread": _row(
            "langmem.thread",
            lambda llm, text: create_thread_extractor(llm).invoke({"messages": _user(text)}),
            item_keys=frozenset({"title", "summary"}),
            value=lambda made: {"tool_calls": [{**thread, "arguments": made.model_dump()}]},
        ),
    }


def text_rows() -> dict[str, Row]:
    """The calls that are answered in free text."""
    found = {"langmem.summary": Row("langmem.summary", _provider, _short_term, _in_words)}
    if (prompt := typical().get("langchain.summary")) is not None:
        (asked,) = prompt
        (call,) = (call for call in calls() if call.name == "langchain.summary")
        found["langchain.summary"] = Row(
            "langchain.summary",
            _provider,
            lambda text: [{**asked, "content": _SUMMED_UP.sub(lambda _: text, asked["content"], count=1)}],
            _in_words,
            keeps=lambda text: (text,) if call.on_lost is OnLost.SALVAGE else (),
        )
    return found


def _row(call: str, run: Run, *, items: Any = None, **more: Any) -> Row:
    """A row whose request the host makes: what it asks a model that sends nothing is what it asks any."""

    def asked(text: str) -> Any:
        notes = Notes()
        _try(run, notes, text)
        return notes.asked_for[call][0]

    def ask(llm: Any, messages: Messages) -> Any:
        found = _SAID.search(messages[-1]["content"])
        assert found
        with _the_same_ids():
            return run(llm, found[1])

    tools = Tools.of(asked(""))
    assert tools
    if call == "langmem.thread":
        tools = Tools(tools.functions, at_least=1, at_most=1)  # it asks for any number, and takes one
    return Row(
        call,
        _provider,
        lambda text: [*asked(text).messages],
        ask,
        items=items or (lambda value: [each["arguments"] for each in value["tool_calls"]]),
        tools=Tools(tuple(map(_any_value, tools.functions)), tools.at_least, tools.at_most),
        **more,
    )


def _try(run: Run, notes: Notes, text: str) -> None:
    try:
        with _the_same_ids():
            run(notes, text)
    except IndexError:  # a thread extractor that nothing is answered
        assert notes.asked_for


@contextmanager
def _the_same_ids() -> Iterator[None]:
    """LangMem gives each session an id of its own: what is recorded today is played tomorrow."""
    count = iter(range(1000))
    ids = SimpleNamespace(uuid4=lambda: UUID(int=next(count)))
    with mock.patch.object(extraction, "uuid", ids):
        yield


def _manage(llm: Any, text: str, existing: list[Any]) -> Any:
    return create_memory_manager(llm).invoke({"messages": _user(text), "existing": existing})


def _new(made: list[Any]) -> list[Any]:
    """The memories that were none of the existing ones."""
    old = {name for name, _, _ in _EXISTING}
    return [each.content.model_dump() for each in made if each.id not in old]


def _user(text: str) -> Messages:
    return [{"role": "user", "content": text}]


def _short_term(text: str) -> Messages:
    from langchain_core.messages import AIMessage, HumanMessage

    notes = Notes()
    said = [HumanMessage(text, id="1"), AIMessage("Noted.", id="2"), HumanMessage("Very well.", id="3")]
    limits = {"max_tokens": 2, "max_summary_tokens": 1, "token_counter": len}  # messages, for tokens
    summarize_messages(said, running_summary=None, model=notes, **limits)
    return [*notes.asked_for["langmem.summary"][0].messages]  # type: ignore[list-item]


def _in_words(llm: Any, asked: Messages) -> str:
    return str(llm.invoke(asked).content)


def _provider(settings: Mapping[str, Any]) -> ChatHyMemory:
    return ChatHyMemory(**settings)


class ManagerStore:
    """A store manager with a namespace a conversation: within one, it would ask for changes of what noise wrote."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._llm = _provider(settings)
        self._store = InMemoryStore(index={"dims": 32, "embed": words})
        self._conversations = 0

    def write(self, text: str) -> list[str]:
        """Have the manager write about a text; return what it put into the store."""
        return [written for _ in range(_CONVERSATIONS) for written in self._converse(text)]

    def _converse(self, text: str) -> list[str]:
        self._conversations += 1
        namespace = ("memories", f"conversation-{self._conversations}")
        manager = create_memory_store_manager(self._llm, namespace=namespace, store=self._store)
        return [put["value"]["content"]["content"] for put in manager.invoke({"messages": _user(text)})]

    def stored(self) -> list[str]:
        """Every text in the store."""
        return [item.value["content"]["content"] for item in self._store.search(("memories",), limit=10_000)]

    def found(self, text: str) -> list[str]:
        """What a search finds."""
        return [item.value["content"]["content"] for item in self._store.search(("memories",), query=text, limit=100)]


def stores() -> dict[str, Any]:
    """LangMem end to end."""
    return {"langmem": ManagerStore}
