"""Whether a reconciling reply covers the facts that it was given to decide on.

A model rewords what it stores, so a fact is looked for by its words. The comparison is lenient: it is there to
find facts that were left out, not to grade wording.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

# A word, or one character of a script that is written without spaces.
_SPACELESS = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0e7f"
_UNIT = re.compile(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")

SIMILAR = 0.5
"""Share of a text's words that must stand in another for the two to speak of the same thing."""


def folded(text: str) -> str:
    """Fold case and white space: two texts that fold to the same say the same."""
    return " ".join(text.casefold().split())


def similarity(text: str, other: str) -> float:
    """Share of the words of ``text`` that stand in ``other``, from 0 to 1."""
    units, others = _UNIT.findall(text.casefold()), set(_UNIT.findall(other.casefold()))
    if not units:
        return float(folded(text) in folded(other))
    return sum(unit in others for unit in units) / len(units)


def says(text: str, other: str) -> bool:
    """Whether ``other`` carries what ``text`` says."""
    return folded(text) in folded(other) or similarity(text, other) >= SIMILAR


def uncarried(facts: Sequence[str], carriers: Iterable[str], *, credit_strangers: bool = True) -> list[int]:
    """Which facts no operation carries.

    An operation carries each fact whose words it has. One that has the words of none may have been reworded
    beyond recognition, or translated: it counts for one of the facts that are left.

    Args:
        facts: what was to be decided on.
        carriers: the texts of the operations that change something.
        credit_strangers: whether an operation that has the words of no fact counts for one.

    Returns:
        indices into ``facts``.
    """
    left = list(range(len(facts)))
    strangers = 0
    for carrier in carriers:
        carried = _carried(facts, carrier)
        strangers += not carried
        left = [index for index in left if index not in carried]
    return left[strangers:] if credit_strangers else left


def _carried(facts: Sequence[str], carrier: str) -> list[int]:
    """Which facts one operation carries: the nearest one, and others if it has what is theirs alone.

    "Likes tea" has half of the words of "Likes coffee", and does not say it.
    """
    near = [index for index, fact in enumerate(facts) if says(fact, carrier)]
    nearest = facts[max(near, key=lambda index: similarity(facts[index], carrier))] if near else ""
    units = set(_UNIT.findall(nearest.casefold()))

    def own(fact: str) -> str:
        return " ".join(unit for unit in _UNIT.findall(fact.casefold()) if unit not in units)

    return [index for index in near if not own(facts[index]) or similarity(own(facts[index]), carrier) >= SIMILAR]


def left_out(facts: Sequence[str], carriers: Sequence[str]) -> list[int]:
    """Which facts are in none of the texts that replace them, however merged and reworded.

    A fact is looked for by the words that few of the facts have: "user" and "likes", which stand in most, say nothing
    of "User likes tea".

    Returns:
        indices into ``facts``.
    """
    words = [set(_UNIT.findall(fact.casefold())) for fact in facts]
    frequency = Counter(word for each in words for word in each)
    weight = {word: 1 / frequency[word] for word in frequency}
    carried = [set(_UNIT.findall(carrier.casefold())) for carrier in carriers]

    def kept(own: set[str], fact: str) -> bool:
        if not own:
            return any(folded(fact) in folded(carrier) for carrier in carriers)
        whole = sum(weight[word] for word in own)
        return any(sum(weight[word] for word in own & others) >= SIMILAR * whole for others in carried)

    return [index for index, fact in enumerate(facts) if not kept(words[index], fact)]
