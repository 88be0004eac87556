"""Text -> JSON value, losslessly or not at all.

A model's reply is read by a fixed list of *named normalisations*: changes that lose nothing and guess
nothing. Whatever else is wrong is a :class:`Problem`, and the model is asked again. There is no JSON
repair here: a repaired reply looks valid and holds half a fact.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from hymemory_adapters.core.problem import Problem, json_path

NORMALISATIONS = MappingProxyType(
    {
        "bom": "a byte order mark before the text was dropped",
        "think": "closed <think> blocks before the answer were dropped",
        "think_unopened": "text before a </think> that the prompt had opened was dropped",
        "fence": "one Markdown code fence around the JSON was dropped",
        "prose": "text around the one JSON value was dropped",
        "repeated": "the same JSON value stood there more than once and was taken once",
        "raw_control": "raw line breaks and tabs inside JSON strings were kept as such",
        "trailing_comma": "commas outside strings before ] or } were dropped",
        "json_in_reasoning": "the server filed the whole answer under reasoning and left content empty",
        "unwrapped": "one key around the whole valid answer was dropped",
        "integral_float": "1.0 became 1 where the schema says integer",
    }
)
"""The normalisations every host shares. A host's row may add its own (``WriteCall``)."""

MAX_CHARS = 8_000_000
MAX_DEPTH = 64

_OPEN = re.compile(r"[{\[]")
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]"]', re.DOTALL)
_THINK = re.compile(r"\s*<(think(?:ing)?(?::[\w.-]+)?)>(.*?)</\1>\s*", re.DOTALL | re.IGNORECASE)
_THINK_TAG = re.compile(r"<think(?:ing)?(?::[\w.-]+)?>", re.IGNORECASE)
_THINK_OPEN = re.compile(rf"\s*{_THINK_TAG.pattern}", re.IGNORECASE)
_THINK_CLOSE = re.compile(r"</think(?:ing)?(?::[\w.-]+)?>", re.IGNORECASE)
# The look-aheads keep a run of marks whole: matching a long one by halves is quadratic work.
_FENCE_ONLY = re.compile(r"\s*(?:`{3,}(?!`)|~{3,}(?!~))[\w+-]*\s*(?:(?:`{3,}|~{3,})\s*)?")
# A comma right after an opening bracket trails nothing: "[,]" stays as it is, which is no JSON.
_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*"|[{\[]\s*,)|,(?=\s*[}\]])', re.DOTALL)
_SUSPECT = re.compile("\\\\u(?:0000|[dD][89a-fA-F])|[\x00\ud800-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reply:
    """What one request brought back.

    Attributes:
        text: the message's ``content``; ``None`` where the server sent none.
        reasoning: the message's ``reasoning`` (``reasoning_content`` on older servers).
        finish_reason: the server's; ``None`` where it sent none.
        tokens_in: prompt tokens by the server's count.
        tokens_out: completion tokens by the server's count.
        tool_calls: the message's tool calls, as OpenAI's dictionaries.
        completion: the whole answer as the openai client gave it, for hosts that pass more of it on.
    """

    text: str | None
    reasoning: str | None = None
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tool_calls: tuple[dict[str, Any], ...] = ()
    completion: Any = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a text brought: a value and how it was come by, or problems."""

    value: Any = None
    problems: tuple[Problem, ...] = ()
    normalisations: tuple[str, ...] = ()


class _UnreadableError(ValueError):
    def __init__(self, problem: Problem) -> None:
        self.problem = problem


def read_json(text: str | None) -> Reading:
    """Read the one JSON object or array in a reply.

    Returns:
        a reading with the value and the names of the normalisations it took, or with problems. Cut
        text, more than one value, duplicate keys, NaN, lone surrogates, NUL, bad escapes and numbers
        beyond Python's limits are problems.
    """
    if (value := _plain_value(text or "")) is not None:
        return Reading(value)
    used: list[str] = []
    try:
        body = _without_thinking(_checked(text), used, json_follows=True)
        spans, outside = _values_in(body)
        value = _one_value([_parsed(span, used) for span in spans], used)
    except _UnreadableError as error:
        return Reading(problems=(error.problem,))
    if outside.strip():
        used.append("fence" if _FENCE_ONLY.fullmatch(outside) else "prose")
    return Reading(value, normalisations=tuple(dict.fromkeys(used)))


def read_text(text: str | None) -> Reading:
    """Read a free-text reply: think blocks gone, and something left."""
    used: list[str] = []
    try:
        body = _without_thinking(_checked(text), used, json_follows=False).strip()
        if not body:
            raise _UnreadableError(Problem("empty", "only thinking came back, and no answer"))
        if "\x00" in body or _SURROGATE.search(body):
            raise _UnreadableError(Problem("bad_character", "a NUL or half a surrogate pair stands in the text"))
    except _UnreadableError as error:
        return Reading(problems=(error.problem,))
    return Reading(body, normalisations=tuple(used))


def is_looping(text: str) -> bool:
    """Whether a cut reply only went round in circles: white space, or one tail over and over."""
    tail = text[-200:]
    if len(tail) < 200:
        return False
    if sum(map(str.isspace, tail)) > len(tail) // 2:
        return True
    tail = text[-600:]
    # A text repeats with period p when it equals itself shifted by p; four rounds are a loop.
    return any(tail[p:] == tail[:-p] for p in range(1, len(tail) // 4 + 1))


def _plain_value(text: str) -> Any:
    """Read a text that is one JSON value and nothing else; ``None`` if that is not plain to see.

    Most replies are. The careful way would come to the same value, and take four times as long.
    """
    body = text.strip()
    brackets = body.count("{") + body.count("[")
    if body[:1] not in ("{", "[") or brackets > MAX_DEPTH or len(body) > MAX_CHARS or _SUSPECT.search(body):
        return None
    try:
        return _STRICT.decode(body)
    except (ValueError, RecursionError):
        return None


def _checked(text: str | None) -> str:
    if text is None or not text.strip():
        raise _UnreadableError(Problem("empty", "the reply is empty"))
    if len(text) > MAX_CHARS:
        raise _UnreadableError(Problem("too_long", f"the reply is longer than {MAX_CHARS:,} characters"))
    return text


def _without_thinking(text: str, used: list[str], *, json_follows: bool) -> str:
    if text.startswith("\ufeff"):
        text = text[1:]
        used.append("bom")
    position = 0
    while block := _THINK.match(text, position):
        position = block.end()
        used.append("think")
    text = text[position:]
    if _THINK_OPEN.match(text):
        raise _UnreadableError(Problem("thinking_only", "a <think> block was opened and never closed"))
    # A </think> may stand inside a JSON string, even of a reply that was cut: only a closer before the
    # first bracket ends a block that the prompt had opened.
    first_bracket = _OPEN.search(text) if json_follows else None
    before = first_bracket.start() if first_bracket else len(text)
    closers = list(_THINK_CLOSE.finditer(text, 0, before))
    if closers and not json_follows and _THINK_TAG.search(text, 0, closers[-1].start()):
        # Dropping what is before it would drop the answer, and hosts cut out such blocks wherever they stand.
        raise _UnreadableError(Problem("think_inside", "a <think> block stands inside the text: leave it out"))
    if closers:
        text = text[closers[-1].end() :]
        used.append("think_unopened")
    return text


def _values_in(text: str) -> tuple[list[str], str]:
    """Find the top-level bracketed spans in one pass; return them and the text outside of them."""
    spans: list[str] = []
    outside: list[str] = []
    position = 0
    while opening := _OPEN.search(text, position):
        outside.append(text[position : opening.start()])
        position = _end_of_value(text, opening.start())
        spans.append(text[opening.start() : position])
    outside.append(text[position:])
    if not spans:
        raise _UnreadableError(Problem("not_json", "there is no JSON object or array in the reply"))
    return spans, "".join(outside)


def _end_of_value(text: str, start: int) -> int:
    depth = 0
    for token in _TOKEN.finditer(text, start):
        match token.group():
            case "{" | "[":
                depth += 1
                if depth > MAX_DEPTH:
                    raise _UnreadableError(Problem("too_deep", f"brackets are nested over {MAX_DEPTH} deep"))
            case "}" | "]":
                depth -= 1
                if depth == 0:
                    return token.end()
            case '"':  # a string that never ends: the token pattern would have taken a whole one
                break
    raise _UnreadableError(Problem("truncated", "the JSON ends in the middle: a string or bracket is never closed"))


def _parsed(span: str, used: list[str]) -> Any:
    try:
        value = _STRICT.decode(span)
    except json.JSONDecodeError as error:
        value = _parsed_leniently(span, error, used)
    except (ValueError, RecursionError) as error:
        raise _unreadable_value(error) from None
    if _SUSPECT.search(span):
        _check_characters(value)
    return value


def _parsed_leniently(span: str, error: json.JSONDecodeError, used: list[str]) -> Any:
    """Try again with the lossless changes of the table, the least first."""
    without_commas = _COMMA.sub(r"\1", span)
    for text, decoder, names in (
        (span, _RAW_CONTROL, ("raw_control",)),
        (without_commas, _STRICT, ("trailing_comma",)),
        (without_commas, _RAW_CONTROL, ("trailing_comma", "raw_control")),
    ):
        try:
            value = decoder.decode(text)
        except json.JSONDecodeError:
            continue
        except (ValueError, RecursionError) as other:
            raise _unreadable_value(other) from None
        used.extend(names)
        return value
    where = f"line {error.lineno} column {error.colno}"
    raise _UnreadableError(Problem("not_json", f"not valid JSON: {error.msg} at {where}")) from None


def _unreadable_value(error: Exception) -> _UnreadableError:
    if isinstance(error, _UnreadableError):
        return error
    return _UnreadableError(Problem("not_json", "a number has more digits than can be read"))


def _one_value(values: list[Any], used: list[str]) -> Any:
    first = values[0]
    if any(json.dumps(value) != json.dumps(first) for value in values[1:]):
        message = f"{len(values)} different JSON values stand in the reply: return exactly one"
        raise _UnreadableError(Problem("ambiguous", message))
    if len(values) > 1:
        used.append("repeated")
    return first


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _UnreadableError(Problem("duplicate_key", "a JSON object has the same key twice"))
    return value


def _no_constant(name: str) -> float:
    raise _UnreadableError(Problem("not_json", f"{name} is no JSON value"))


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise _UnreadableError(Problem("not_json", "a number is too large to be read"))
    return number


def _decoder(*, strict: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        strict=strict, object_pairs_hook=_unique_keys, parse_constant=_no_constant, parse_float=_finite
    )


_STRICT = _decoder(strict=True)
_RAW_CONTROL = _decoder(strict=False)


def _check_characters(value: Any) -> None:
    for path, string in strings_in(value):
        if "\x00" in string or _SURROGATE.search(string):
            message = "a NUL or half a surrogate pair stands in the text"
            where = json_path(part if isinstance(part, int) else "" for part in path)  # keys may be the model's words
            raise _UnreadableError(Problem("bad_character", message, where))


Path = tuple[str | int, ...]


def strings_in(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Yield every string in a JSON value, keys too, with where it stands."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from strings_in(item, (*path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield path, key
            yield from strings_in(item, (*path, key))


Normalise = Callable[[Any], Any]
"""A declared change of a value: returns the same object where there is nothing to change."""
