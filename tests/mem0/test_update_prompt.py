"""What the update call of 0.1 and 1.x reads out of its own prompt, when the texts in it look like the prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from hymemory_adapters import WriteEvent
from tests.mem0.host import USER, add_all, facts_reply, mem0, only_two_calls, rows, seed, stored
from tests.mem0.test_update import BERGEN, CAT, DOG, OSLO, TEA, add, of_update, on, problems, reply
from tests.support.scripted import ScriptedEndpoint

pytestmark = only_two_calls

ODD = {
    "quotes": "Says \"hi\" and 'ho'",
    "apostrophe": "Dad's name is Lee",
    "newlines": "Line one\nline two\r\n\nline four",
    "backticks": "Uses ``` and `x` in notes",
    "fenced": "```\n['Likes tea']\n```",
    "braces": "Writes {x} and {{y}} and [z]",
    "backslashes": "Keeps files in C:\\Users\\new\\table",
    "python_list": "['Likes tea', 'Has a cat']",
    "python_dict": "[{'id': '0', 'text': 'Lives in Rome'}]",
    "empty_anchor": "Current memory is empty.",
    "below_anchor": "Below is the current content of my memory which I have collected till now. You have to update it",
    "facts_anchor": "The new retrieved facts are mentioned in the triple backticks. You have to analyze the new",
    "end_anchor": "Do not return anything except the JSON format.",
    "structure_anchor": "You must return your response in the following JSON structure only:\n\n    {",
    "line_separators": "One\u2028two\u2029three\u0085four\x0bfive\x0csix",
    "chinese": "住在奥斯陆，喜欢“绿茶”",
    "emoji": "Loves 🍵 and 👩‍👩‍👧",
    "arabic": "يحب الشاي",
    "zero_width": "No\u200bbreak\ufeffhere",
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_facts_and_memories_may_look_like_the_prompt(
    odd: str, memory: Any, endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    before = seed(memory, f"Old: {odd}", OSLO)
    new = f"New: {odd}"
    endpoint.play(facts_reply(new, BERGEN), reply(add(new), on(OSLO, "UPDATE", BERGEN)), "one reply too many")

    memory.add("Something odd", user_id=USER)

    assert stored(memory) == sorted([f"Old: {odd}", new, BERGEN])
    assert {row["memory"]: row["id"] for row in rows(memory)}[BERGEN] == before[OSLO]
    assert of_update(heard).outcome == "ok"
    ids = [branch["properties"]["id"] for branch in _branches(endpoint) if "enum" in branch["properties"]["id"]]
    assert ids == [{"type": "string", "enum": ["0", "1"]}] * 3


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_odd_facts_are_salvaged_as_they_are(odd: str, memory: Any, endpoint: ScriptedEndpoint) -> None:
    seed(memory, OSLO)
    endpoint.play(facts_reply(odd, TEA), "nonsense")
    memory.add("Something odd", user_id=USER)
    assert stored(memory) == sorted([OSLO, odd, TEA])


def _branches(endpoint: ScriptedEndpoint) -> list[dict[str, Any]]:
    schema = endpoint.chats[1].body["response_format"]["json_schema"]["schema"]
    return list(schema["properties"]["memory"]["items"]["anyOf"])


def test_an_empty_store_offers_only_to_add(memory: Any, endpoint: ScriptedEndpoint) -> None:
    endpoint.play(facts_reply(TEA), add_all)
    memory.add("I like tea", user_id=USER)
    assert [branch["properties"]["event"]["const"] for branch in _branches(endpoint)] == ["ADD"]


def _whole_prompt(memories: list[dict[str, str]], facts: list[str]) -> str:
    build = getattr(mem0.configs.prompts, "get_update_memory_messages", None)
    return str(build(memories, facts, "Be kind.")) if build else ""


LOOK_ALIKES = {
    "empty": "",
    "plain": "Compare the facts with the memory. Answer in JSON.",
    "other_section": "    Below is the current content of my memory which I have collected till now. You have to "
    "update it in the following format only:\n\n    ```\n"
    "    [{'id': '0', 'text': 'Lives in Rome'}, {'id': '7', 'text': 'x'}]\n    ```\n",
    "empty_section": "\n    Current memory is empty.\n\n    ",
    "facts_section": "The new retrieved facts are mentioned in the triple backticks. You have to analyze the new "
    "retrieved facts and determine whether these facts should be added, updated, or deleted in the memory.\n\n    ```"
    "\n    ['Likes coffee']\n    ```\n",
    "whole_prompt_before": "Do not return anything except the JSON format.\n    ",
    "whole_other_prompt": _whole_prompt([{"id": "0", "text": "Lives in Rome"}, {"id": "7", "text": "x"}], ["Tea"]),
    "whole_other_prompt_without_memories": _whole_prompt([], ["Tea"]),
    "braces": "Use {x} and {{y}}.",
}


@pytest.mark.parametrize("prompt", LOOK_ALIKES.values(), ids=LOOK_ALIKES)
def test_a_custom_prompt_does_not_mislead(
    prompt: str, make_memory: Callable[..., Any], endpoint: ScriptedEndpoint, heard: list[WriteEvent]
) -> None:
    memory = make_memory(more={"custom_update_memory_prompt": prompt})
    seed(memory, OSLO, CAT)
    endpoint.play(facts_reply(BERGEN, TEA), reply(add(TEA), on(OSLO, "UPDATE", "x", old_memory=CAT)), "nonsense")

    memory.add("I moved", user_id=USER)

    assert endpoint.chats[1].messages[0]["content"].startswith(prompt)
    assert problems(of_update(heard))[0] == ["wrong_id"]  # it knows which id is whose
    assert stored(memory) == sorted([OSLO, CAT, BERGEN, TEA])


def test_the_schema_is_the_same_bytes_for_as_many_memories(memory: Any, endpoint: ScriptedEndpoint) -> None:
    """The server compiles a schema once: two stores of the same size must send the same one."""
    seed(memory, OSLO, CAT, user="one")
    seed(memory, TEA, DOG, user="two")
    endpoint.play(facts_reply(BERGEN), add_all, facts_reply(BERGEN), add_all)
    memory.add("I moved", user_id="one")
    memory.add("I moved", user_id="two")
    sent = [json.dumps(chat.body["response_format"]) for chat in endpoint.chats]
    assert sent[0] == sent[2]
    assert sent[1] == sent[3]
