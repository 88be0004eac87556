"""What it takes to read and validate a reply: ``judge``, which every reply goes through, with the contract of its call.

Compared with ``json.loads`` on the same text, which is all that a provider without validation does. Three contracts:
that of Mem0's additive call (flat items); that of its update call (each item one of four forms, told apart by a
``const``, with an id out of as many as there are items, and every fact looked for in the operations); and a made-up
nested one (every tenth item begins a new group, with lists in it). The package's lists end at 200 items, a longer one
was perhaps cut: for 1,000 the same item schema with a larger bound is used; an update of 1,000 does not happen. A reply
of which the last item is wrong is the dear case: the problems are looked for after the check has failed.

CPU time: it is nothing but computing.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any

from contenders import FORMAT, messages
from endpoint import Endpoint
from figures import Budget, Row
from mem0.configs import prompts

from hymemory_adapters.core.reply import Reply
from hymemory_adapters.core.request import Request
from hymemory_adapters.core.schema import Schema
from hymemory_adapters.core.write_call import Contract, judge
from hymemory_adapters.mem0.calls import ADDITIVE, calls
from hymemory_adapters.mem0.update import update_call

BUDGETS_MS = {3: 0.5, 100: 10.0}
VERBS = ("likes", "dislikes", "bought", "sold", "visits", "teaches", "learns", "paints", "repairs", "plays", "misses")
THINGS = ("tea", "chess", "violins", "tulips", "trains", "maps", "cheese", "novels", "pottery", "bees", "films", "rain")
PLACES = (
    "Pune",
    "Oslo",
    "Lima",
    "Kyoto",
    "Accra",
    "Quito",
    "Perth",
    "Hanoi",
    "Tunis",
    "Turku",
    "Ghent",
    "Bam",
    "Porto",
)
_numbers = count()


def _fact() -> str:
    """A fact that was not there before; it has no more in common with another than facts about one user have."""
    number = next(_numbers)
    verb, thing, place = (words[number % len(words)] for words in (VERBS, THINGS, PLACES))
    return f"{verb} {thing} from {place} number {number}"


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


@lru_cache
def _additive_contract(size: int) -> Contract:
    asked = Request(messages(), response_format=FORMAT)
    contract = next(found for call in calls() if (found := call.recognise(asked)) is not None)
    full = copy.deepcopy(dict(ADDITIVE.full))
    full["properties"]["memory"]["maxItems"] = max(200, size + 1)
    return replace(contract, schema=Schema(full))


def _additive(size: int) -> tuple[Contract, Any]:
    items = [
        {"id": str(number), "text": _fact(), "attributed_to": "user", "linked_memory_ids": ["1", "3"]}
        for number in range(size)
    ]
    return _additive_contract(size), {"memory": items}


def _update(size: int) -> tuple[Contract, Any]:
    facts = [_fact() for _ in range(size)]
    memories = [{"id": str(number), "text": _fact()} for number in range(size)]
    asked = [{"role": "user", "content": prompts.get_update_memory_messages(memories, facts)}]
    contract = update_call(prompts).recognise(Request(asked, response_format=FORMAT))
    assert contract is not None
    items = []
    for number, (fact, memory) in enumerate(zip(facts, memories, strict=True)):
        change = {"event": "UPDATE", "id": memory["id"], "old_memory": memory["text"]}
        items.append({"text": fact, **({"event": "ADD", "id": str(size + number)} if number % 2 else change)})
    return contract, {"memory": items}


def _nested_contract() -> Contract:
    text = {"type": "string", "minLength": 1}
    entity = _object({"name": text, "kind": {"enum": ["person", "place", "thing"]}})
    fact = _object({"text": text, "score": {"type": "number"}, "entities": {"type": "array", "items": entity}})
    group = _object({"topic": text, "facts": {"type": "array", "items": fact, "maxItems": 200}})
    return Contract(Schema(_object({"groups": {"type": "array", "items": group, "maxItems": 200}})))


NESTED = _nested_contract()


def _nested(size: int) -> tuple[Contract, Any]:
    facts = [{"text": _fact(), "score": 0.5, "entities": [{"name": "Pune", "kind": "place"}]} for _ in range(size)]
    return NESTED, {"groups": [{"topic": "moving", "facts": facts[at : at + 10]} for at in range(0, size, 10)]}


Make = Callable[[int], tuple[Contract, Any]]
CASES: dict[str, tuple[Make, tuple[int, ...]]] = {
    "additive": (_additive, (3, 100, 1000)),
    "update": (_update, (3, 100)),
    "nested": (_nested, (3, 100, 1000)),
}


def _spoilt(value: Any) -> Any:
    """The same reply with a key in its last item that does not belong there."""
    (items,) = value.values()
    last = items[-1]
    last.get("facts", [last])[-1]["strange"] = 1
    return value


def measure(_: Endpoint, *, quick: bool) -> list[Row]:
    """Every contract at every size; a wrong reply at 100 items."""
    rows = []
    for name, (make, sizes) in CASES.items():
        rows += [_row(f"{name}, {size:,} items", make, size, quick=quick) for size in sizes]
        rows.append(_row(f"{name}, 100 items, the last one wrong", make, 100, quick=quick, wrong=True))
    return rows


def _row(name: str, make: Make, size: int, *, quick: bool, wrong: bool = False) -> Row:
    rounds, calls = (2, 1) if quick else (40, max(1, 50 // size))
    mine, plain, length = [], [], 0
    make(size)[0].schema.problems(None)  # type: ignore[union-attr] (builds the validator)
    for _ in range(rounds):
        # Each reply is another, as in life: what is remembered of one must not make the next one cheap.
        made = [make(size) for _ in range(calls)]
        texts = [json.dumps(_spoilt(value) if wrong else value) for _, value in made]
        pairs = [(Reply(text), contract) for text, (contract, _) in zip(texts, made, strict=True)]
        verdicts, taken = _timed(judge, pairs)
        if any(wrong != bool(verdict.problems) or verdict.undecided for verdict in verdicts):
            raise SystemExit(f"the benchmark's own reply is not judged as it should be: {verdicts}")
        mine.append(taken)
        plain.append(_timed(json.loads, [(text,) for text in texts])[1])
        length = len(texts[0])
    limit = None if wrong else BUDGETS_MS.get(size)
    return Row(
        section="Reading and validating a reply, CPU time",
        name=name,
        unit="ms",
        values=mine,
        against="json.loads",
        base=plain,
        budgets=(Budget("median", limit),) if limit else (),
        more={"kB": f"{length / 1000:.1f}"},
    )


def _timed(do: Callable[..., Any], calls: list[tuple[Any, ...]]) -> tuple[list[Any], float]:
    """The results, and the milliseconds of one call."""
    before = time.process_time()
    results = [do(*call) for call in calls]
    return results, (time.process_time() - before) * 1000 / len(calls)
