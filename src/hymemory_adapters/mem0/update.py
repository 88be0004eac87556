"""Mem0's update call (0.1 and 1.x): new facts against old memories.

Mem0 swallows every exception of this call, so a lost one is salvaged: every fact is added, nothing is changed
or deleted.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Any

from hymemory_adapters.core.coverage import SIMILAR, Text, says, similarity, uncarried
from hymemory_adapters.core.problem import Problem, json_path
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import LIST_BOUND, Schema
from hymemory_adapters.core.write_call import Contract, OnLost, WriteCall


@dataclass(frozen=True)
class Offer:
    """What one update request puts before the model: the facts, and the memories by the ids it shows."""

    facts: tuple[Text, ...]
    memories: dict[str, Text]

    @cached_property
    def new(self) -> tuple[Text, ...]:
        """The facts that no listed memory says already: same text after folding case and white space."""
        said = {memory.folded for memory in self.memories.values()}
        return tuple(fact for fact in self.facts if fact.folded not in said)

    @cached_property
    def uncarried(self) -> Callable[..., list[Text]]:
        """Which new facts none of these texts carries; asked more than once about one reply."""

        @lru_cache(maxsize=4)
        def found(changing: tuple[str, ...], *, credit_strangers: bool) -> list[Text]:
            return [self.new[i] for i in uncarried(self.new, changing, credit_strangers=credit_strangers)]

        return found


def update_call(prompts: Any) -> WriteCall:
    """Build the row, with the anchors of the installed Mem0's prompt builder."""
    read_offer = partial(_read_offer, _Anchors.of(prompts.get_update_memory_messages))

    def recognise(request: Request) -> Contract | None:
        json_object = (request.response_format or {}).get("type") == "json_object"
        offer = read_offer(request.text(0)) if json_object and request.roles == ("user",) else None
        if offer is None:
            return None
        return Contract(
            schema=_schema(len(offer.memories)),
            check=partial(_problems, offer),
            undecided=partial(_undecided, offer),
            normalise=(("id_as_string", _ids_as_strings),),
            fallback=partial(_salvaged, offer),
        )

    return WriteCall(
        "mem0.update",
        recognise,
        OnLost.SALVAGE,
        summary="decides for each new fact whether it is added, changes an old memory or deletes one",
        typical=_schema(2),
    )


# -- what the request offers -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Anchors:
    """The text that the builder puts around memories and facts; both are one-line Python literals."""

    before_memories: str
    between: str
    between_without_memories: str
    after: str

    @classmethod
    def of(cls, builder: Any) -> _Anchors:
        prompt, memories, facts = "\x00P", "\x00M", "\x00F"
        full = builder(memories, facts, prompt)
        empty = builder([], facts, prompt)
        return cls(
            before_memories=full.partition(prompt)[2].partition(memories)[0],
            between=full.partition(memories)[2].partition(facts)[0],
            between_without_memories=empty.partition(prompt)[2].partition(facts)[0],
            after=full.partition(facts)[2],
        )


def _read_offer(anchors: _Anchors, prompt: str) -> Offer | None:
    """Read facts and memories from the end of the prompt, where the user's own text does not reach."""
    if not prompt.endswith(anchors.after):
        return None
    # Both literals are one line, so the last line break before the end starts the facts' line.
    head, _, line = prompt.removesuffix(anchors.after).rpartition("\n")
    indent = anchors.between.rpartition("\n")[2]
    facts = _literal(line.removeprefix(indent))
    head = f"{head}\n{indent}"
    if not isinstance(facts, list):
        return None
    if head.endswith(anchors.between_without_memories):
        return Offer(tuple(map(Text, facts)), {})
    if not head.endswith(anchors.between):
        return None
    memories = _literal(head.removesuffix(anchors.between).rpartition(anchors.before_memories)[2])
    if not isinstance(memories, list) or not all(isinstance(m, dict) and {"id", "text"} <= set(m) for m in memories):
        return None
    return Offer(tuple(map(Text, facts)), {str(m["id"]): Text(m["text"]) for m in memories})


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


# -- what the reply must be ------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _schema(memories: int) -> Schema:
    """The schema for that many listed memories, whose ids Mem0 shows as "0", "1", ..."""
    return Schema(_reply(memories, wire=False), wire=_reply(memories, wire=True), name="mem0_update")


def _reply(memories: int, *, wire: bool) -> dict[str, Any]:
    # Mem0 ignores an ADD's id, and reads old_memory only to report it: the wire asks for both, as the prompt
    # does, and a reply without them is not refused.
    text = {"type": "string", "minLength": 1}
    ids = {"type": "string", "enum": [str(index) for index in range(memories)]}

    def operation(event: str, identity: dict[str, Any], **more: Any) -> dict[str, Any]:
        needed = ["text", "event"] if event == "ADD" and not wire else ["id", "text", "event"]
        return {
            "type": "object",
            "properties": {"id": identity, "text": text, "event": {"const": event}, **more},
            "required": [*needed, *(more if wire else ())],
            "additionalProperties": False,
        }

    operations = [operation("ADD", {"type": "string"} if wire else {})]
    if memories:
        operations += [
            operation("UPDATE", ids, old_memory={"type": "string"}),
            operation("DELETE", ids),
            operation("NONE", ids),
        ]
    if not wire:
        # Models copy the key into every item; beside an ADD or DELETE it means nothing to Mem0.
        for item in operations:
            item["properties"]["old_memory"] = {"type": ["string", "null"]}
    return {
        "type": "object",
        "properties": {"memory": {"type": "array", "items": {"anyOf": operations}, "maxItems": LIST_BOUND}},
        "required": ["memory"],
        "additionalProperties": False,
    }


def _ids_as_strings(value: Any) -> Any:
    """Mem0 looks memories up by string: 0 can only mean "0"."""
    if not isinstance(value, dict) or not isinstance(value.get("memory"), list):
        return value
    items = [
        {**item, "id": str(item["id"])} if isinstance(item, dict) and type(item.get("id")) is int else item
        for item in value["memory"]
    ]
    same = all(new is old for new, old in zip(items, value["memory"], strict=True))
    return value if same else {**value, "memory": items}


def _problems(offer: Offer, value: Any) -> list[Problem]:
    operations = value["memory"]
    found = _misdirected(offer, operations)
    changing = [item["text"] for item in operations if item["event"] != "NONE"]
    if not found and changing:
        found = [_left_out(offer, fact) for fact in _omitted(offer, operations)]
    return found


def _misdirected(offer: Offer, operations: Sequence[Any]) -> list[Problem]:
    """Operations that would change the wrong memory, or one memory twice."""
    found: list[Problem] = []
    seen: set[str] = set()
    for index, item in enumerate(operations):
        here = partial(json_path, ("memory", index, "id"))
        if not item["text"].strip():
            found.append(Problem("blank", "must not be blank", json_path(("memory", index, "text"))))
        if item["event"] == "ADD":
            continue
        if item["id"] in seen:
            found.append(Problem("same_id", "one memory has two operations: decide on one", here()))
        seen.add(item["id"])
        meant = item.get("old_memory") if item["event"] == "UPDATE" else item["text"]
        if item["event"] != "NONE" and meant and _means_another(offer, item["id"], meant):
            found.append(Problem("wrong_id", "the memory with this id is not the one the operation quotes", here()))
    return found


def _means_another(offer: Offer, identity: str, meant: str) -> bool:
    """Whether an operation quotes another memory than the one whose id it has."""
    meant, own = Text(meant), offer.memories[identity]
    if meant.folded == own.folded:
        return False
    others = [text for key, text in offer.memories.items() if key != identity]
    if any(meant.folded == other.folded for other in others):
        return True
    closest = max((similarity(meant, other) for other in others), default=0.0)
    return closest >= SIMILAR and closest > similarity(meant, own)


def _omitted(offer: Offer, operations: Sequence[Any]) -> list[str]:
    """New facts that no operation speaks of at all."""
    as_it_is = [Text(item["text"]) for item in operations if item["event"] == "NONE"]
    return [fact for fact in _uncarried(offer, operations) if not any(says(fact, memory) for memory in as_it_is)]


def _uncarried(offer: Offer, operations: Sequence[Any], *, credit_strangers: bool = True) -> list[Text]:
    changing = tuple(item["text"] for item in operations if item["event"] != "NONE")
    return offer.uncarried(changing, credit_strangers=credit_strangers)


def _undecided(offer: Offer, value: Any) -> list[Problem]:
    """New facts that the reply leaves out of the memory, by saying NONE or nothing at all."""
    return [_left_out(offer, fact) for fact in _uncarried(offer, value["memory"])]


def _left_out(offer: Offer, fact: str) -> Problem:
    number = f"new fact {offer.facts.index(fact) + 1} of {len(offer.facts)}"
    return Problem("left_out", f"{number} is left out: ADD it, or UPDATE or DELETE what it changes", "$.memory")


def _salvaged(offer: Offer, fitting: Any) -> dict[str, Any]:
    """Add what would be lost, and keep the decisions of a reply that only left something out."""
    kept = [] if fitting is None or _misdirected(offer, fitting["memory"]) else list(fitting["memory"])
    # Which fact a stranger stands for is not known: one too many is better than one lost. But each once.
    facts: dict[str, str] = {}
    for fact in _uncarried(offer, kept, credit_strangers=False):
        facts.setdefault(fact.folded, fact)
    first = len(offer.memories) + len(kept)
    return {
        "memory": [
            *kept,
            *({"id": str(first + i), "text": fact, "event": "ADD"} for i, fact in enumerate(facts.values())),
        ]
    }
