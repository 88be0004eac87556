"""Whether a reconciling reply covers the facts that it was given to decide on.

A model rewords what it stores, so a fact is looked for by its words. The comparison is lenient: it is there to
find facts that were left out, not to grade wording.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain

# A word, or one character of a script that is written without spaces.
_SPACELESS = r"\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0e7f"
_UNIT = re.compile(rf"[{_SPACELESS}]|[^\W_{_SPACELESS}]+")

SIMILAR = 0.5
"""Share of a text's words that must stand in another for the two to speak of the same thing."""


class Text(str):
    """A text whose words are read once, however often it is compared.

    Every function here takes any string. Who compares one text with many hands in this: a reply of a hundred operations
    on a hundred facts is ten thousand comparisons.
    """

    @cached_property
    def folded(self) -> str:
        """Its case and white space folded."""
        return " ".join(self.casefold().split())

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Its words, in order."""
        return tuple(_UNIT.findall(self.casefold()))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Its words, each once."""
        return frozenset(self.units)


def _read(text: str) -> Text:
    return text if isinstance(text, Text) else Text(text)


def folded(text: str) -> str:
    """Fold case and white space: two texts that fold to the same say the same."""
    return _read(text).folded


def similarity(text: str, other: str) -> float:
    """Share of the words of ``text`` that stand in ``other``, from 0 to 1."""
    text, other = _read(text), _read(other)
    if not text.units:
        return float(text.folded in other.folded)
    return sum(map(other.vocabulary.__contains__, text.units)) / len(text.units)


def says(text: str, other: str) -> bool:
    """Whether ``other`` carries what ``text`` says."""
    text, other = _read(text), _read(other)
    return text.folded in other.folded or similarity(text, other) >= SIMILAR


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
    offered = _Facts(facts)
    left = set(range(len(facts)))
    strangers = 0
    for carrier in map(_read, carriers):
        near = offered.near(carrier)
        strangers += not near
        left -= offered.carried(carrier, near, left)
    return sorted(left)[strangers if credit_strangers else 0 :]


class _Facts:
    """Facts, and which of them hold a word: an operation is compared with those alone that share one with it."""

    def __init__(self, facts: Iterable[str]) -> None:
        self._facts = [_read(fact) for fact in facts]
        self._folded = [fact.folded for fact in self._facts]
        self._needed = [SIMILAR * len(fact.units) for fact in self._facts]
        self._holding: defaultdict[str, list[int]] = defaultdict(list)
        for index, fact in enumerate(self._facts):
            for unit in fact.units:  # a fact that has a word twice stands there twice
                self._holding[unit].append(index)

    def near(self, carrier: Text) -> dict[int, float]:
        """Which facts an operation says, one or the other way, and the share of their words that it has."""
        needed, facts, holding, whole = self._needed, self._facts, self._holding, carrier.folded
        shared = Counter(chain.from_iterable([holding[unit] for unit in carrier.vocabulary if unit in holding]))
        near = {index: n / len(facts[index].units) for index, n in shared.items() if n >= needed[index]}
        for index in [index for index, text in enumerate(self._folded) if text in whole]:
            # Whole, and yet no share: a part of a word, or a fact without words.
            near.setdefault(index, 0.0 if facts[index].units else 1.0)
        return near

    def carried(self, carrier: Text, near: dict[int, float], among: set[int]) -> set[int]:
        """Which facts of ``among`` an operation carries: the nearest one, and others if it has what is theirs alone.

        "Likes tea" has half of the words of "Likes coffee", and does not say it.
        """
        if not near:
            return set()
        nearest = self._facts[min(near, key=lambda index: (-near[index], index))].vocabulary
        said = carrier.vocabulary.__contains__
        found = set()
        for index in near.keys() & among:
            rest = [unit for unit in self._facts[index].units if unit not in nearest]
            if sum(map(said, rest)) >= SIMILAR * len(rest):
                found.add(index)
        return found


def left_out(facts: Sequence[str], carriers: Sequence[str]) -> list[int]:
    """Which facts are in none of the texts that replace them, however merged and reworded.

    A fact is looked for by the words that few of the facts have: "user" and "likes", which stand in most, say nothing
    of "User likes tea".

    Returns:
        indices into ``facts``.
    """
    words = [Text(fact).vocabulary for fact in facts]
    frequency = Counter(word for each in words for word in each)
    weight = {word: 1 / frequency[word] for word in frequency}
    carried = [Text(carrier).vocabulary for carrier in carriers]

    def kept(own: frozenset[str], fact: str) -> bool:
        if not own:
            return any(folded(fact) in folded(carrier) for carrier in carriers)
        whole = sum(weight[word] for word in own)
        return any(sum(weight[word] for word in own & others) >= SIMILAR * whole for others in carried)

    return [index for index, fact in enumerate(facts) if not kept(words[index], fact)]
