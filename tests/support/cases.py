"""Replies that no write may be made of, and replies that only look odd, both made from one good reply.

``malformed(good)`` and ``harmless(good)`` take the JSON value that is the right reply of any write call, so that
every call of every host is tried with the same kinds. The replies of public bug reports, which have a shape of
their own, are in ``open_cases.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.scripted import Say

REFUSAL = "I don't see a conversation to work on. Could you share the text (for example {user: ...}) once more?"
LOOP = "\n \n  \n" * 60


@dataclass(frozen=True)
class MalformedReply:
    """A reply that must be asked for again, and must never reach a store."""

    name: str
    text: str | None
    finish_reason: str | None = "stop"
    reasoning: str | None = None
    rule: str = "not_json"
    """The rule of the problem that it is; ``schema`` where only the call's schema refuses it."""

    def say(self) -> Say:
        """The same as an answer of the scripted endpoint."""
        return Say(self.text, self.finish_reason, self.reasoning)


@dataclass(frozen=True)
class HarmlessReply:
    """A reply that must be taken at once, and as ``value``."""

    name: str
    text: str | None
    value: Any
    normalisations: tuple[str, ...] = ()
    finish_reason: str | None = "stop"
    reasoning: str | None = None

    def say(self) -> Say:
        """The same as an answer of the scripted endpoint."""
        return Say(self.text, self.finish_reason, self.reasoning)


def malformed(good: Any) -> list[MalformedReply]:
    """Every malformed kind of a good reply (an object or an array)."""
    return [*_nothing(good), *_cut(good), *_no_json(good), *_damaged(good), *_too_much(good), *_misshapen(good)]


def harmless(good: Any) -> list[HarmlessReply]:
    """Every way to write a good reply (an object or an array) that loses nothing."""
    return [*_as_it_is(good), *_wrapped(good), *_thought_about(good), *_written_oddly(good)]


# -- malformed -------------------------------------------------------------------------------------


def _nothing(good: Any) -> Iterator[MalformedReply]:
    text = _dumps(good)
    yield MalformedReply("empty", "", rule="empty")
    yield MalformedReply("white_space", " \n\t ", rule="empty")
    yield MalformedReply("null_content", None, rule="empty")
    yield MalformedReply("bom_only", "\ufeff", rule="not_json")
    yield MalformedReply("reasoning_only", None, reasoning="The user says that they...", rule="reasoning_only")
    yield MalformedReply("reasoning_cut", "", "length", "The user says that they", "reasoning_only")
    yield MalformedReply("draft_in_reasoning", None, reasoning=f"A draft: {text} No.", rule="reasoning_only")
    yield MalformedReply("cut_json_in_reasoning", None, reasoning=text[:-1], rule="reasoning_only")
    yield MalformedReply("thinking_only", f"<think>It could be {text}</think>", rule="not_json")
    yield MalformedReply("unclosed_think", "<think>The user likes tea.", rule="thinking_only")
    yield MalformedReply("unclosed_think_with_braces", f"<think>Perhaps {{x}} or {text}", rule="thinking_only")
    yield MalformedReply("unclosed_think_suffix", f"<think:opensource>\n{text}", rule="thinking_only")
    yield MalformedReply("content_filter", None, "content_filter", rule="finish_reason")
    yield MalformedReply("content_filter_after_json", text, "content_filter", rule="finish_reason")
    yield MalformedReply("aborted", text, "abort", rule="finish_reason")


def _cut(good: Any) -> Iterator[MalformedReply]:
    text = _dumps(good)
    opened = next(i for i, character in enumerate(text) if character == '"') + 1 if '"' in text else 1
    points = {"after_bracket": 1, "in_first_string": opened, "half": len(text) // 2, "last_bracket": len(text) - 1}
    for name, point in points.items():
        for finish_reason in ("stop", "length", None):
            yield MalformedReply(f"cut_{name}_{finish_reason}", text[:point], finish_reason, rule="truncated")
    yield MalformedReply("cut_in_fence", f"```json\n{text[:-1]}\n```", rule="truncated")
    yield MalformedReply("cut_after_think", f"<think>So {{a}}.</think>{text[:-1]}", rule="truncated")
    yield MalformedReply("cut_then_prose", f"{text[:-1]}\nThat is all.", rule="truncated")
    # The server says that it was cut: then more may have been meant, however whole it looks.
    yield MalformedReply("whole_but_length", text, "length", rule="truncated")
    yield MalformedReply("white_space_loop", text[:opened] + '":' + LOOP, "length", rule="looping")
    yield MalformedReply("phrase_loop", text[:opened] + "and tea " * 200, "length", rule="looping")


def _no_json(good: Any) -> Iterator[MalformedReply]:
    yield MalformedReply("refusal", REFUSAL)
    yield MalformedReply("prose", "The user now prefers slow films.")
    yield MalformedReply("prose_in_braces", "{Hey, thanks! How can I help?\n### Inner Monologue: first time user!\n}")
    yield MalformedReply("markdown_list", '1. **what**: tea\n2. **entities**: ["tea"]', rule="schema")
    for name, text in {"number": "42", "string": '"Likes tea"', "true": "true", "null": "null"}.items():
        yield MalformedReply(name, text)
    yield MalformedReply("ellipsis", "[...]")
    yield MalformedReply("set_braces", '{"Likes tea", "Has a cat"}')
    yield MalformedReply("yaml", "memory:\n  - text: Likes tea")
    yield MalformedReply("xml", "<memory><text>Likes tea</text></memory>")


def _damaged(good: Any) -> Iterator[MalformedReply]:
    damages = {
        "bad_u_escape": "\\u12G4",
        "short_u_escape": "\\u12",
        "bad_backslash": "r(\\d+)",
        "windows_path": "C:\\Users\\new",
        "unescaped_quote": ' says "hi" and',
        "hex_escape": "\\x41",
    }
    for name, damage in damages.items():
        yield MalformedReply(name, _damaged_string(good, damage))
    # One quote too many: every string after it is turned inside out, and the last one never ends.
    yield MalformedReply("mixed_quote", _damaged_string(good, ' sagt \u201ebis morgen" beim'), rule="truncated")
    for name, character in {"lone_surrogate": "\\ud83d", "low_surrogate": "\\ude80", "nul_escape": "\\u0000"}.items():
        yield MalformedReply(name, _damaged_string(good, character), rule="bad_character")
    yield MalformedReply("raw_nul", _damaged_string(good, "\x00"), rule="bad_character")
    text = _dumps(good)
    body = text[1:]
    extra = '"extra": ' if text[0] == "{" else ""
    yield MalformedReply("single_quotes", text.replace('"', "'"))
    yield MalformedReply("curly_quotes", text.replace('"', "\u201c"))
    yield MalformedReply("python_none", _with_first(text, f"{extra}None"))
    yield MalformedReply("python_true", _with_first(text, f"{extra}True"))
    yield MalformedReply("nan", _with_first(text, f"{extra}NaN"))
    yield MalformedReply("infinity", _with_first(text, f"{extra}-Infinity"))
    yield MalformedReply("number_too_large", _with_first(text, f"{extra}1e999"))
    yield MalformedReply("number_too_long", _with_first(text, extra + "9" * 5000))
    twice = '"a": 1, "a": 1' if extra else '{"a": 1, "a": 2}'
    yield MalformedReply("duplicate_key", _with_first(text, twice), rule="duplicate_key")
    yield MalformedReply("comment", text[0] + " // the memories\n" + body)
    yield MalformedReply("stray_token", text[0] + "\nth\n" + body)
    yield MalformedReply("two_commas", _with_first(text, f"{extra}1,"))
    yield MalformedReply("wrong_closer", text[:-1] + ("]" if extra else "}"))


def _too_much(good: Any) -> Iterator[MalformedReply]:
    text, other = _dumps(good), _dumps(_reworded(good))
    yield MalformedReply("trailing_prose_with_braces", f"{text}\n\nI left {{x}} out.")
    yield MalformedReply("leading_prose_with_braces", f"From {{user}} I read:\n{text}")
    yield MalformedReply("two_values", f"{text}\n{other}", rule="ambiguous")
    yield MalformedReply("two_fences", f"```json\n{text}\n```\nor\n```json\n{other}\n```", rule="ambiguous")
    yield MalformedReply("draft_before_unopened_think", f"{other} is wrong.</think>{text}", rule="ambiguous")
    yield MalformedReply("then_an_empty_list", f"{text}\nLeft out: []", rule="ambiguous")
    yield MalformedReply("too_deep", "[" * 100 + "]" * 100, rule="too_deep")
    yield MalformedReply("too_deep_and_cut", '{"a":' * 20_000, rule="too_deep")


def _misshapen(good: Any) -> Iterator[MalformedReply]:
    """Valid JSON of another shape: only a schema that names its keys and allows no other refuses it."""
    if isinstance(good, dict):
        lists = [value for value in good.values() if isinstance(value, list)]
        yield MalformedReply("bare_list", _dumps(lists[0] if lists else [good]), rule="schema")
        yield MalformedReply("empty_object", "{}", rule="schema")
        yield MalformedReply("unknown_key", _dumps({**good, "status": "idle"}), rule="schema")
        for key in good:
            yield MalformedReply(f"null_{key}", _dumps({**good, key: None}), rule="schema")
    else:
        yield MalformedReply("bare_object", '{"a": 1}', rule="schema")
    yield MalformedReply("list_around", _dumps([good]), rule="schema")
    yield MalformedReply("other_key", '{"current_status": "idle"}', rule="schema")
    yield MalformedReply("wrapper_with_two_keys", _dumps({"result": good, "note": "done"}), rule="schema")
    yield MalformedReply("wrapped_twice", _dumps({"a": {"b": good}}), rule="schema")
    yield MalformedReply("json_in_a_string", _dumps({"result": _dumps(good)}), rule="schema")


# -- harmless --------------------------------------------------------------------------------------


def _as_it_is(good: Any) -> Iterator[HarmlessReply]:
    text = _dumps(good)
    yield HarmlessReply("plain", text, good)
    yield HarmlessReply("no_finish_reason", text, good, finish_reason=None)
    yield HarmlessReply("white_space_around", f"\n \t{text}\r\n", good)
    yield HarmlessReply("pretty", json.dumps(good, indent=2), good)
    yield HarmlessReply("compact", json.dumps(good, separators=(",", ":")), good)
    yield HarmlessReply("with_reasoning_beside", text, good, reasoning="They like tea, so {x}.")


def _wrapped(good: Any) -> Iterator[HarmlessReply]:
    text = _dumps(good)
    fences = {
        "fence": f"```json\n{text}\n```",
        "fence_without_newline": f"```json{text}```",
        "fence_without_language": f"```\n{text}\n```\n",
        "fence_capitals": f"```JSON\n{text}\n```",
        "fence_unclosed": f"```json\n{text}",
        "fence_only_closed": f"{text}\n```",
        "fence_of_tildes": f"~~~json\n{text}\n~~~",
        "fence_of_four": f"````json\n{text}\n````",
    }
    for name, fenced in fences.items():
        yield HarmlessReply(name, fenced, good, ("fence",))
    proses = {
        "prose_before": f"Here is the JSON:\n{text}",
        "prose_after": f"{text}\nThat is all I found.",
        "prose_and_fence": f"Sure!\n```json\n{text}\n```\nAnything else?",
        "role_marker": f"<|im_start|>assistant\n{text}<|im_end|>",
    }
    for name, prose in proses.items():
        yield HarmlessReply(name, prose, good, ("prose",))
    yield HarmlessReply("bom", f"\ufeff{text}", good, ("bom",))
    yield HarmlessReply("bom_and_fence", f"\ufeff```json\n{text}\n```", good, ("bom", "fence"))
    yield HarmlessReply("same_value_twice", f"{text}\n{json.dumps(good, indent=1)}", good, ("repeated",))
    yield HarmlessReply("same_value_in_two_fences", f"```\n{text}\n```\n```\n{text}\n```", good, ("repeated", "prose"))
    yield HarmlessReply("wrapper_key", _dumps({"Model": good}), good, ("unwrapped",))
    yield HarmlessReply(
        "wrapper_key_in_fence", f"```json\n{_dumps({'Model': good})}\n```", good, ("fence", "unwrapped")
    )


def _thought_about(good: Any) -> Iterator[HarmlessReply]:
    text = _dumps(good)
    thoughts = {
        "think": f"<think>They like tea.</think>{text}",
        "think_with_braces": f"<think>Perhaps {{x}} or {_dumps(_reworded(good))}?</think>\n\n{text}",
        "think_suffix": f"<think:opensource>hm</think:opensource>{text}",
        "thinking_tag": f"<thinking>hm</thinking>\n{text}",
        "think_capitals": f"<THINK>hm</THINK>{text}",
        "think_empty": f"<think></think>\n{text}",
        "think_twice": f"<think>hm</think><think>[yes]</think>{text}",
    }
    for name, thought in thoughts.items():
        yield HarmlessReply(name, thought, good, ("think",))
    fenced = f"```json\n{text}\n```"
    yield HarmlessReply("think_and_fence", f"<think>a {{b}}</think>\n{fenced}", good, ("think", "fence"))
    yield HarmlessReply("think_and_prose", f"<think>a</think>Here it is: {text}", good, ("think", "prose"))
    yield HarmlessReply("think_unopened", f"They like tea.\n</think>\n{text}", good, ("think_unopened",))
    yield HarmlessReply("think_unopened_fence", f"Tea.</think>{fenced}", good, ("think_unopened", "fence"))
    for name, content in {"content_null": None, "content_empty": "", "content_blank": "\n"}.items():
        yield HarmlessReply(f"json_in_reasoning_{name}", content, good, ("json_in_reasoning",), reasoning=text)


def _written_oddly(good: Any) -> Iterator[HarmlessReply]:
    text = _dumps(good)
    yield HarmlessReply("trailing_comma", f"{text[:-1]} , {text[-1]}", good, ("trailing_comma",))
    if "]" in text[:-1] and "[]" not in text:
        yield HarmlessReply("trailing_comma_inside", text.replace("]", ",\n]"), good, ("trailing_comma",))
    for name, character in {"raw_newline": "\n", "raw_tab": "\t", "raw_crlf": "\r\n"}.items():
        if any(_strings(good)):
            yield HarmlessReply(name, _damaged_string(good, character), _with_text(good, character), ("raw_control",))
    floats = _mapped(good, lambda leaf: float(leaf) if type(leaf) is int else leaf)
    if _dumps(floats) != text:
        yield HarmlessReply("integral_floats", _dumps(floats), good, ("integral_float",))


# -- how they are made -----------------------------------------------------------------------------

_MARK = "\u2603MARK"


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _with_first(text: str, member: str) -> str:
    """Put a member in front of the others of the outermost object or array."""
    rest = text[1:]
    return text[0] + member + (", " if rest.strip()[0] not in "]}" else "") + rest


def _damaged_string(good: Any, damage: str) -> str:
    """Put raw text at the end of the longest string of the reply."""
    return _dumps(_with_text(good, _MARK)).replace(_MARK, damage)


def _with_text(good: Any, more: str) -> Any:
    """Append to the longest string of a value; a value without strings gets one."""
    longest = max(_strings(good), key=len, default=None)
    if longest is None:
        return [*good, more] if isinstance(good, list) else {**good, "extra": more}
    seen: list[str] = []

    def change(leaf: Any) -> Any:
        if leaf == longest and not seen:
            seen.append(leaf)
            return leaf + more
        return leaf

    return _mapped(good, change)


def _reworded(good: Any) -> Any:
    """Another value of the same shape."""
    return _with_text(good, " no more")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _strings(item)


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """Change every leaf that is no key."""
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    return change(value)
