"""A byte-level BPE tokenizer, trained here and written as a Hugging Face ``tokenizer.json``.

Trained in plain Python rather than by the ``tokenizers`` package: that way the file is the same, byte for byte, on
every machine and with every version of that package.
"""

from __future__ import annotations

import base64
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

Pair = tuple[str, str]

# Where words end in the "ByteLevel" pre-tokenizer, near enough: a merge across such a border would never be used.
_WORD = re.compile(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\w\s]|_)+|\s+(?!\S)|\s+")


def _byte_letters() -> dict[int, str]:
    """GPT-2's alphabet: a printable character for each byte."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = (byte for byte in range(256) if byte not in printable)
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


LETTERS = _byte_letters()
_BYTES = {letter: byte for byte, letter in LETTERS.items()}


def spelled(raw: bytes) -> str:
    """Bytes as the vocabulary spells them."""
    return "".join(LETTERS[byte] for byte in raw)


def text_of(token: str) -> str:
    """The text of a vocabulary entry; half a character shows as U+FFFD."""
    return bytes(_BYTES[letter] for letter in token).decode("utf-8", "replace")


def train(text: str, count: int) -> list[Pair]:
    """Find the ``count`` merges that join the most frequent pairs; ties go to the pair that sorts last."""
    frequency = Counter(spelled(word.encode()) for word in _WORD.findall(text))
    words = [list(word) for word in frequency]
    counts = list(frequency.values())
    weight: Counter[Pair] = Counter()
    where: defaultdict[Pair, set[int]] = defaultdict(set)
    for index, word in enumerate(words):
        for pair in pairwise(word):
            weight[pair] += counts[index]
            where[pair].add(index)
    merges: list[Pair] = []
    while len(merges) < count:
        best = max(weight, key=lambda pair: (weight[pair], pair), default=None)
        if best is None or weight[best] < 1:
            raise ValueError(f"the text is used up after {len(merges)} merges")
        merges.append(best)
        for index in where.pop(best):
            for pair in pairwise(words[index]):
                weight[pair] -= counts[index]
            words[index] = _merged(words[index], best)
            for pair in pairwise(words[index]):
                weight[pair] += counts[index]
                where[pair].add(index)
        del weight[best]
    return merges


def _merged(word: Sequence[str], pair: Pair) -> list[str]:
    out: list[str] = []
    for letter in word:
        if out and (out[-1], letter) == pair:
            out[-1] += letter
        else:
            out.append(letter)
    return out


@dataclass(frozen=True)
class Tokenizer:
    """A vocabulary with its merges.

    Attributes:
        vocabulary: token -> id, in the order of the ids: control tokens, tags, bytes, merges, padding.
        merges: what the training found.
        control: tokens that are dropped from a reply's text.
        tags: added tokens that stay in it, because the server's parsers look for them there.
        padding: tokens that are never produced by encoding; they are there for the size.
    """

    vocabulary: dict[str, int]
    merges: list[Pair]
    control: Sequence[str]
    tags: Sequence[str]
    padding: frozenset[str]

    @classmethod
    def trained(
        cls, text: str, size: int, *, control: Sequence[str], tags: Sequence[str], fill: Path | None = None, to: int = 0
    ) -> Tokenizer:
        """Train on ``text`` up to ``size`` tokens; then fill up to ``to`` with those of a tiktoken file."""
        base = [*control, *tags, *(LETTERS[byte] for byte in range(256))]
        merges = train(text, size - len(base))
        vocabulary = {token: i for i, token in enumerate([*base, *(left + right for left, right in merges)])}
        own = len(vocabulary)
        if fill is not None:
            for token in _tiktoken(fill):
                if len(vocabulary) >= to:
                    break
                vocabulary.setdefault(token, len(vocabulary))
            if len(vocabulary) < to:
                raise ValueError(f"{fill} has too few tokens to fill a vocabulary of {to}")
        return cls(vocabulary, merges, control, tags, frozenset(list(vocabulary)[own:]))

    def as_json(self) -> str:
        """The content of ``tokenizer.json``."""
        added = [*((token, True) for token in self.control), *((token, False) for token in self.tags)]
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
        document: dict[str, Any] = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": self.vocabulary[token], "content": token, **flags, "special": special}
                for token, special in added
            ],
            "normalizer": None,
            "pre_tokenizer": byte_level,
            "post_processor": None,
            "decoder": byte_level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": self.vocabulary,
                "merges": [list(pair) for pair in self.merges],
            },
        }
        return json.dumps(document, ensure_ascii=False, indent=1)


def _tiktoken(file: Path) -> Iterator[str]:
    with file.open("rb") as lines:
        for line in lines:
            yield spelled(base64.b64decode(line.split()[0]))
