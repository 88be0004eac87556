"""One row of the live tests: a write call, or a store, and how the host is made to write."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hymemory_adapters.core.tool_messages import told
from hymemory_adapters.core.tools import Tools

Messages = list[dict[str, Any]]

DAY = "2026-11-30"
"""What a host's prompts are told that the day is: what is recorded today is played tomorrow."""
TALK = "I moved to Pune, and I drink black coffee every morning."
FACTS = ("Moved to Pune", "Drinks black coffee every morning")
KNOWN = tuple(f"Note {number}: {text}" for number in range(4) for text in ("Lives in Oslo", "Likes tea", "Has a dog"))

OF_FORM_NO_SCHEMA_CAN_SAY = frozenset(
    {"left_out", "same_id", "wrong_id", "blank", "too_many", "unknown_id", "patch", "twice"}
)
"""Problems that a model which writes noise may have with a reply that obeys its schema."""


@dataclass(frozen=True)
class Row:
    """One write call, and how to make the host's request for it.

    Attributes:
        call: its name, as events carry it.
        provider: builds the host's LLM from settings; it has the package's ``Writer`` as ``writer``.
        messages: the host's messages about a text.
        ask: has the host's LLM do the request; returns what the host gets.
        items: the list in a reply's value that the host reads; ``None`` where the reply is free text.
        item_keys: what the host reads in each item of it; none where an item is a string.
        keeps: texts that the host gets although the call is lost; none where it gets an exception.
        quiet: whether nothing is what the host gets when the call is lost: no exception, and no items. A reply names
            an id then, which noise does not hit.
        value: the reply's value, from what the host gets.
        tools: the tools of the call, which are told behind the host's system message; ``None`` where it has none.
    """

    call: str
    provider: Callable[[Mapping[str, Any]], Any]
    messages: Callable[[str], Messages]
    ask: Callable[[Any, Messages], Any]
    items: Callable[[Any], list[Any]] | None = None
    item_keys: frozenset[str] = frozenset()
    keeps: Callable[[str], Sequence[str]] = lambda text: ()
    quiet: bool = False
    value: Callable[[Any], Any] = json.loads
    tools: Tools | None = None

    @property
    def host(self) -> str:
        """The host's name; LangMem is one of LangChain's packages."""
        name = self.call.partition(".")[0]
        return "langchain" if name == "langmem" else name

    def sent(self, text: str) -> Messages:
        """The messages that go out for a text: the host's own, and behind its system message what tools there are."""
        own = self.messages(text)
        if self.tools is None:
            return own
        sent = [dict(message) for message in told(own, self.tools)]
        assert sent[0]["content"].startswith(own[0]["content"])
        assert sent[1:] == own[1:]
        return sent


class Store(Protocol):
    """One memory of a host, with a store of its own."""

    def write(self, text: str) -> list[str]:
        """Have the host write about a text; return what it says it stored."""

    def stored(self) -> list[str]:
        """Every text in the store."""

    def found(self, text: str) -> list[str]:
        """What the host's search finds."""
