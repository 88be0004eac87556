"""Facts: extracting them from turns that leave the short-term memory, and condensing a list that has grown too long.

LlamaIndex asks for XML tags, and reads them with a regular expression: whatever is not just so is no fact, without a
word. What is sent asks for JSON instead; only the output contract in LlamaIndex's prompt is replaced. What comes back
is written in the tags again.

Source: ``llama_index/core/memory/memory_blocks/fact.py``, 0.12.52 to 0.14.25.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hymemory_adapters.core.armour import armoured
from hymemory_adapters.core.coverage import folded, left_out
from hymemory_adapters.core.events import log, say_once
from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.request import Message, Request
from hymemory_adapters.core.schema import LIST_BOUND, Schema
from hymemory_adapters.core.tool_messages import flattened
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall

EXTRACT, CONDENSE = "llamaindex.facts", "llamaindex.condense"

_FACT = re.compile(r"<fact>(.*?)</fact>", re.DOTALL)  # LlamaIndex's own
_TAG = re.compile(r"<(?=/?fact>)")
_FACTS_MARK, _MAX_MARK = "\u2603FACTS", "\u2603MAX"
_NAMED = 20

# -- the output contract ---------------------------------------------------------------------------

_XML_EXAMPLE = re.compile(r"<facts>.*?</facts>", re.DOTALL)
_XML_EMPTY = re.compile(r"<facts>\s*</facts>")
# Before 0.14.24 the prompt that condenses offers an empty answer too, and LlamaIndex then drops every fact.
_OFFER_OF_NOTHING = re.compile(r"\n*[^\n]*<facts>\s*</facts>[^\n]*")
_XML_WORDS = re.compile(r"as a separate <fact> XML tag")
_JSON_EXAMPLE = '{"facts": ["Specific fact 1", "Specific fact 2"]}'
_EXAMPLES = frozenset({"specific fact 1", "specific fact 2"})
NOTE = f"Return ONLY the facts, as one JSON object in this exact format:\n{_JSON_EXAMPLE}"


def in_json(text: str, kind: str) -> str:
    """Ask for JSON where LlamaIndex's prompt asks for XML; any other text stays as it is."""
    text = _XML_WORDS.sub("as a separate JSON string", text)
    text = _OFFER_OF_NOTHING.sub("", text) if kind == CONDENSE else _XML_EMPTY.sub('{"facts": []}', text)
    return _XML_EXAMPLE.sub(_JSON_EXAMPLE, text)


class FactsFormat(dict[str, Any]):
    """The ``response_format`` of our own memory block, whose messages ask for JSON already.

    Attributes:
        kind: ``EXTRACT`` or ``CONDENSE``.
        existing: the facts so far.
        max_facts: how many there should be at most.
    """

    def __init__(self, kind: str, existing: Sequence[str] = (), max_facts: int | None = None) -> None:
        super().__init__(type="json_object")
        self.kind, self.existing, self.max_facts = kind, tuple(existing), max_facts


# -- recognition -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prompt:
    """One of the installed LlamaIndex's two prompts: what stands before the existing facts, and what after them.

    A template of the app's that ends as LlamaIndex's does is known by that.
    """

    kind: str
    head: str
    tail: str

    @classmethod
    def of(cls, kind: str, template: Any) -> Prompt:
        """Read a template."""
        (message,) = template.format_messages(existing_facts=_FACTS_MARK, max_facts=_MAX_MARK)
        head, _, tail = message.content.partition(_FACTS_MARK)
        return cls(kind, head, tail)

    @property
    def _opening(self) -> str:
        """The line before the existing facts."""
        return self.head[self.head.rstrip().rfind("\n") + 1 :]

    def read(self, request: Request) -> tuple[str, FactsFormat] | None:
        """Return the prompt in JSON's terms, and what it asks; ``None`` if this is not the request's prompt."""
        if not request.messages or request.roles[-1] != "user" or request.tools or request.response_format:
            return None
        text = request.text(-1)
        if not text.endswith(self.tail):
            return None
        head, opening, facts = text.removesuffix(self.tail).partition(self._opening)
        if not opening:
            return None
        asked = f"{in_json(head, self.kind)}{opening}{facts}{in_json(self.tail, self.kind)}"
        existing = [fact.strip() for fact in _FACT.findall(facts) if fact.strip()]
        return asked, FactsFormat(self.kind, existing, self._max_facts(head + opening))

    def _max_facts(self, head: str) -> int | None:
        pattern = re.escape(self.head).replace(re.escape(_MAX_MARK), r"(\d+)")
        found = re.fullmatch(pattern, head)
        return int(found[1]) if found and found.groups() else None


def facts_calls(module: Any) -> tuple[WriteCall, WriteCall]:
    """Build the two rows.

    Args:
        module: the installed ``llama_index.core.memory.memory_blocks.fact``.
    """
    prompts = (
        Prompt.of(EXTRACT, module.DEFAULT_FACT_EXTRACT_PROMPT),
        Prompt.of(CONDENSE, module.DEFAULT_FACT_CONDENSE_PROMPT),
    )
    return (
        WriteCall(
            EXTRACT,
            _recogniser(prompts[0], _extract),
            OnLost.RAISE,
            summary="extracts facts from the turns that leave the short-term memory",
            typical=EXTRACTED,
        ),
        WriteCall(
            CONDENSE,
            _recogniser(prompts[1], _condense),
            OnLost.SALVAGE,
            summary="makes one shorter list of all facts, which replaces them; lost, they stay as they are",
            typical=_condensed(0),
        ),
    )


Render = Callable[[Sequence[str]], str]
_Contracts = Callable[[FactsFormat, Sequence[Message], Render], Contract]


def _recogniser(prompt: Prompt, contract: _Contracts) -> Callable[[Request], Contract | None]:
    def recognise(request: Request) -> Contract | None:
        if isinstance(request.response_format, FactsFormat):
            ours = request.response_format
            return contract(ours, readable(request.messages), as_json) if ours.kind == prompt.kind else None
        read = prompt.read(request)
        if read is None:
            return None
        asked, wanted = read
        *before, last = request.messages
        return contract(wanted, [*readable(before), {**last, "content": asked}], as_tags)

    return recognise


def readable(messages: Sequence[Message]) -> list[Message]:
    """Write turns as the model can read them: tool calls and their results as text, and no images."""
    return flattened([_in_words(message) for message in messages], text=True)


def _in_words(message: Message) -> Message:
    parts = message.get("content")
    if not isinstance(parts, list):
        return message
    if any(part.get("type") != "text" for part in parts):
        say_once("llamaindex:parts", "llamaindex: Hy-Memory reads text only: images and files leave no facts")
    words = [str(part["text"]) if part.get("type") == "text" else f"[{part.get('type')}]" for part in parts]
    return {**message, "content": "\n".join(words)}


# -- what the reply must be ------------------------------------------------------------------------


def _schema(name: str, **bounds: int) -> Schema:
    facts = {"type": "array", "items": {"type": "string", "minLength": 1}, **bounds}
    value = {"type": "object", "properties": {"facts": facts}, "required": ["facts"], "additionalProperties": False}
    return Schema(value, name=name)


EXTRACTED = _schema("llamaindex_facts", maxItems=LIST_BOUND)


def _condensed(existing: int) -> Schema:
    # Not max_facts: the grammar would close the list there, whatever else was to be kept.
    bound = LIST_BOUND * (existing // LIST_BOUND + 1)
    return _schema("llamaindex_condense", minItems=1, maxItems=bound)


def _extract(_: FactsFormat, messages: Sequence[Message], render: Render) -> Contract:
    return Contract(
        schema=EXTRACTED,
        check=_no_facts,
        render=lambda value: render(unique(value["facts"])),
        messages=messages,
    )


def _condense(wanted: FactsFormat, messages: Sequence[Message], render: Render) -> Contract:
    existing, most = wanted.existing, wanted.max_facts

    def undecided(value: Any) -> list[Problem]:
        facts = value["facts"]
        problems = []
        if most is not None and len(facts) > most:
            message = f"there are {len(facts)} facts, more than {most}: merge them"
            problems.append(Problem("too_many", message, "$.facts"))
        if gone := left_out(existing, facts):
            which = ", ".join(str(index + 1) for index in gone[:_NAMED]) + (", ..." if len(gone) > _NAMED else "")
            message = f"existing facts are left out (counted from 1: {which}): merge them, or keep them as they are"
            problems.append(Problem("left_out", message, "$.facts"))
        return problems

    def rendered(value: Any) -> str:
        facts = unique(value["facts"])
        if gone := left_out(existing, facts):
            log.warning(
                "%s: %d of %d facts are gone from the condensed list, which the model was asked about; a larger "
                "max_facts keeps more",
                CONDENSE,
                len(gone),
                len(existing),
            )
        return render(facts)

    return Contract(
        schema=_condensed(len(existing)),
        check=_no_facts,
        undecided=undecided,
        render=rendered,
        fallback=lambda _: {"facts": list(existing)},
        messages=messages,
    )


def _no_facts(value: Any) -> list[Problem]:
    """What is in the list and is no fact."""
    problems = []
    for index, fact in enumerate(value["facts"]):
        where = json_path(("facts", index))
        if not fact.strip():
            problems.append(Problem("blank", "must not be blank", where))
        elif folded(fact) in _EXAMPLES:
            problems.append(Problem("example", "is the example of the prompt, and no fact", where))
    return problems


def unique(facts: Sequence[str], known: Sequence[str] = ()) -> list[str]:
    """Leave out what stands there twice, or in ``known``, but for case and white space."""
    seen = {folded(fact) for fact in known}
    found = []
    for fact in facts:
        if folded(fact) not in seen:
            seen.add(folded(fact))
            found.append(fact)
    return found


def as_json(facts: Sequence[str]) -> str:
    """Write facts for our own memory block."""
    return armoured({"facts": list(facts)})


def as_tags(facts: Sequence[str]) -> str:
    """Write facts so that LlamaIndex's parser finds them all: its own tags in them are changed."""
    lines = "".join(f"  <fact>{_TAG.sub('&lt;', fact)}</fact>\n" for fact in facts)
    return f"<facts>\n{lines}</facts>"
