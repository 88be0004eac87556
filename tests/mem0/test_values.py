"""What a memory says arrives in the store character by character, whatever it looks like."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.mem0.host import MAJOR, USER, add_all, additive_reply, facts_reply, seed, stored, update_reply, writes
from tests.support.scripted import ScriptedEndpoint

TEXTS = {
    "braces": "Writes {x}, {{y}} and }{ in templates",
    "brackets": "Uses [[wiki]] links and ] alone",
    "backticks": "Runs `ls` and ```bash blocks",
    "fence": '```json\n{"memory": []}\n```',
    "fence_end": "Ends with ```",
    "fence_start": "```json",
    "think": "Writes <think>why</think> in notes",
    "think_open": "Writes <think> and never closes it",
    "think_close": "Writes </think> alone",
    "tags": "Uses <b>bold</b> & <br/> and a < b > c",
    "word_json": "Stores json, JSON and jsonl in data.json",
    "json_value": '{"memory": [{"id": "0", "text": "x", "event": "DELETE"}], "facts": ["y"]}',
    "delete": "a\x7fb",
    "control": "tab\there, newline\nthere, \r\n and \x01\x1f",
    "quotes": "Says \"hi\", 'ho' and “ha” „he“ «hu»",
    "backslashes": "C:\\Users\\new\\table \\u0041 \\n \\\\ \\",
    "comma": "Likes pizza, pasta,]",
    "comment": "Uses // and /* c */ and # hash",
    "template": "%s %(x)s {0} $x ${y}",
    "numbers": "1e999 NaN -Infinity 007",
    "chinese": "我叫小明，住在“奥斯陆”，喜欢绿茶。",
    "japanese": "猫が好きです（ミロ）",
    "arabic": "أحب الشاي",
    "emoji": "🍵👩‍👩‍👧🇳🇴",
    "combining": "e\u0301 and \u00e9 are two",
    "separators": "a\u2028b\u2029c\u0085d\xa0e",
    "bom": "\ufeffwith a BOM\ufeff",
    "private": "\ue000 \U0010fffd \ufffd",
    "space_around": "  two spaces around  ",
    "very_long": "Likes tea. " * 900,
    "cut_looking": '{"facts": ["Lives in Utre',
    "role_markers": "<|im_start|>user\nHi<|im_end|>",
    "prompt_echo": "## Existing Memories\n[]\n\n# Output:",
}


def put(memory: Any, endpoint: ScriptedEndpoint, text: str) -> None:
    endpoint.play(*writes(text), "one reply too many")
    memory.add("Remember this", user_id=USER)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_is_stored_as_it_is(text: str, memory: Any, endpoint: ScriptedEndpoint) -> None:
    put(memory, endpoint, text)
    assert stored(memory) == [text]
    assert len(endpoint.chats) == len(writes(""))


@pytest.mark.skipif(MAJOR >= 2, reason="Mem0 2.x only adds")
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_replaces_a_memory_as_it_is(text: str, memory: Any, endpoint: ScriptedEndpoint) -> None:
    seed(memory, "Lives in Oslo")
    update = {"id": "0", "text": text, "event": "UPDATE", "old_memory": "Lives in Oslo"}
    endpoint.play(facts_reply(text), update_reply(update), "one reply too many")
    memory.add("Remember this", user_id=USER)
    assert stored(memory) == [text]
    assert len(endpoint.chats) == 2


ATOMS = ["{", "}", "`", "```", "<", ">", "<think>", "</think>", "json", "JSON", "j", "\x7f", "\\", "\\u0041", '"', "'"]
ATOMS += ["\n", "\t", " ", ",", "]", "[", ":", "//", "```json\n", "茶", "🍵", "é", "\u2028", "a", "1", "\ufeff", "\\n"]
ATOMIC = st.lists(st.sampled_from(ATOMS), min_size=1, max_size=12).map("".join).filter(str.strip)
ANY = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40)

few = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


@few
@given(texts=st.lists(ATOMIC | ANY.filter(str.strip), min_size=1, max_size=4, unique_by=lambda t: " ".join(t.split())))
def test_any_texts_are_stored_as_they_are(
    texts: list[str], make_memory: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    memory = make_memory()
    endpoint.play(*writes(*texts), "one reply too many")
    memory.add("Remember this", user_id=USER)
    assert stored(memory) == sorted(texts)
    assert len(endpoint.chats) == len(writes(""))


@few
@given(text=ATOMIC, ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_how_the_model_escapes_does_not_matter(
    text: str, ascii_only: bool, indent: int | None, make_memory: Callable[..., Any], endpoint: ScriptedEndpoint
) -> None:
    memory = make_memory()
    reply = additive_reply(text) if MAJOR >= 2 else facts_reply(text)
    written = json.dumps(json.loads(reply), ensure_ascii=ascii_only, indent=indent)
    endpoint.play(f"<think>Is it {{x}}?</think>\n```json\n{written}\n```", add_all)
    memory.add("Remember this", user_id=USER)
    assert stored(memory) == [text]
