"""Replies in free text for the tests: good ones, and what must take the place of nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from hymemory_adapters.core.events import WriteEvent
from tests.support.cases import LOOP
from tests.support.scripted import Say

SUMMARY = "The user's dog is `Rex` {sic}."
GOOD = {
    "as_it_is": SUMMARY,
    "thinking": f"<think>Let me see {{x}}.</think>\n{SUMMARY}",
    "thinking_unopened": f"Let me see.\n</think>\n{SUMMARY}",
    "white_space": f"\n\n {SUMMARY} \n",
}
TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "sum_up", "arguments": "{}"}}
BAD: dict[str, Say] = {
    "null": Say(None),
    "empty": Say(""),
    "blank": Say(" \n"),
    "tool_call_only": Say(None, "tool_calls", tool_calls=[TOOL_CALL]),
    "thinking_only": Say("<think>hm</think>"),
    "thinking_unclosed": Say("<think>I should sum up the steps."),
    "reasoning_only": Say(None, reasoning="I should sum up."),
    "cut": Say(SUMMARY[:10], "length"),
    "whole_but_cut": Say(SUMMARY, "length"),
    "looping": Say(f"Steps:{LOOP}", "length"),
    "content_filter": Say(SUMMARY, "content_filter"),
    "think_inside": Say(f"{SUMMARY} <think>what next</think> done"),
}
every_good = pytest.mark.parametrize("good", GOOD.values(), ids=GOOD)
every_bad = pytest.mark.parametrize("bad", BAD.values(), ids=BAD)


def talk() -> list[Any]:
    said = ("My dog is called Rex.", "Nice.", "I moved to Oslo.", "Good.")
    return [(AIMessage if i % 2 else HumanMessage)(text, id=f"m{i}") for i, text in enumerate(said)]


def told(heard: list[WriteEvent]) -> list[tuple[str, str]]:
    return [(event.call, event.outcome) for event in heard]


def lines(journal: Path) -> list[str]:
    return [json.loads(line)["call"] for line in journal.read_text().splitlines()]
