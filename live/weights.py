"""The weights of the tiny checkpoint: noise, with a bias towards replies that end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
from bpe import Tokenizer, text_of

Array = np.ndarray[Any, Any]

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD, EXPERTS, DENSE, EXPERT = 64, 2, 4, 2, 32, 4, 128, 64

# Directions of the hidden state that the embeddings write and the head reads; the rest is noise.
ALWAYS, AFTER_QUOTE, AFTER_THINK, AFTER_NEWLINE, AFTER_JSON = range(5)

_CONSTANT = 3.0
_RMS = float(np.sqrt((_CONSTANT**2 + (HIDDEN - 2) * 0.25) / HIDDEN))
"""About what the final norm divides by; so a head weight of ``x * _RMS / y`` adds x where a direction holds y."""


def liking(token: str, tokenizer: Tokenizer, eos: str, closer: str) -> float:
    """How likely a token is wherever the grammar allows it: what lets a document end after a few words."""
    if token in tokenizer.control or token in tokenizer.tags:
        return {eos: 3.0, closer: -12.0}.get(token, -30.0)
    text = text_of(token)
    if text == "\n":
        return 9.0  # ends thinking; kept down after JSON punctuation, unless the model is to loop
    if "\ufffd" in text or any(ord(letter) < 32 for letter in text):
        return -12.0
    if not text.strip():
        return -3.0 if text == " " else -6.0
    if text.startswith('"'):
        return 6.5 if text == '"' else 7.5 if "]" in text or "}" in text else 5.0
    if '"' in text:
        return -6.0 if text.count('"') > 1 else 4.0
    if text in ("]", "}"):
        return 2.5
    if text in (",", "{", "[", ":"):
        return 1.0
    if text.strip().isalpha() and text[0] == " " and len(text) > 3:
        return 3.0
    return 1.0 if text.strip().isalnum() else -2.0


def weights(tokenizer: Tokenizer, *, eos: str, opener: str, closer: str, loop: bool) -> dict[str, Array]:
    """Every tensor of the checkpoint, under the names that vLLM's ``hy_v3`` loader knows.

    Args:
        tokenizer: whose tokens the model writes.
        eos: the token that ends a reply.
        opener: the tag that starts thinking.
        closer: the tag that ends it.
        loop: leave the model to write line breaks after line breaks.
    """
    rows = len(tokenizer.vocabulary)
    # RandomState's stream is frozen for good, and uniform numbers take no function of the C library.
    stream = np.random.RandomState(0)

    def noise(*shape: int, spread: float = 0.05) -> Array:
        return ((stream.random_sample(shape) - 0.5) * (spread * 3.4641016)).astype(np.float32)

    embedding, head = noise(rows, HIDDEN, spread=0.5), noise(rows, HIDDEN, spread=0.25)
    own = {token: i for token, i in tokenizer.vocabulary.items() if token not in tokenizer.padding}
    liked = {i: liking(token, tokenizer, eos, closer) for token, i in own.items()}
    texts = {i: text_of(token) for token, i in own.items() if token not in {*tokenizer.control, *tokenizer.tags}}
    _bias(embedding, head, liked, texts, eos=own[eos], opener=own[opener], closer=own[closer], loop=loop)
    tensors = {"model.embed_tokens.weight": embedding, "lm_head.weight": head, "model.norm.weight": _ones(HIDDEN)}
    for layer in range(LAYERS):
        tensors |= {f"model.layers.{layer}.{name}": value for name, value in _layer(noise, dense=layer == 0).items()}
    return tensors


def _bias(
    embedding: Array,
    head: Array,
    liked: dict[int, float],
    texts: dict[int, str],
    *,
    eos: int,
    opener: int,
    closer: int,
    loop: bool,
) -> None:
    quoting = [i for i, text in texts.items() if '"' in text]
    punctuation = [i for i, text in texts.items() if text[-1] in '{[,:]}"\n0123456789']
    newline = next(i for i, text in texts.items() if text == "\n")

    embedding[:, ALWAYS], head[:, ALWAYS] = _CONSTANT, -30.0 * _RMS / _CONSTANT
    head[list(liked), ALWAYS] = np.array(list(liked.values()), np.float32) * _RMS / _CONSTANT

    embedding[:, AFTER_QUOTE] = head[:, AFTER_QUOTE] = 0.0
    embedding[quoting, AFTER_QUOTE] = 3.0
    head[quoting, AFTER_QUOTE] = -12.0 * _RMS / 3.0  # no empty strings

    embedding[[opener, closer], AFTER_THINK] = 4.0
    head[eos, AFTER_THINK] = -3.0  # no reply that ends where it starts

    head[:, [AFTER_NEWLINE, AFTER_JSON]] = 0.0
    embedding[newline, AFTER_NEWLINE] = 4.0
    head[closer, AFTER_NEWLINE] = 24.0 * _RMS / 4.0  # thinking ends after a line

    embedding[:, AFTER_JSON] = 0.0
    embedding[punctuation, AFTER_JSON] = 4.0
    if not loop:
        head[newline, AFTER_JSON] = -24.0 * _RMS / 4.0


def _layer(noise: Callable[..., Array], *, dense: bool) -> dict[str, Array]:
    tensors = {
        "input_layernorm.weight": _ones(HIDDEN),
        "post_attention_layernorm.weight": _ones(HIDDEN),
        "self_attn.q_proj.weight": noise(HEADS * HEAD, HIDDEN),
        "self_attn.k_proj.weight": noise(KV_HEADS * HEAD, HIDDEN),
        "self_attn.v_proj.weight": noise(KV_HEADS * HEAD, HIDDEN),
        "self_attn.o_proj.weight": noise(HIDDEN, HEADS * HEAD, spread=0.04),
        "self_attn.q_norm.weight": _ones(HEAD),
        "self_attn.k_norm.weight": _ones(HEAD),
    }
    blocks = {"mlp.": DENSE}
    if not dense:
        tensors["mlp.router.gate.weight"] = noise(EXPERTS, HIDDEN)
        tensors["mlp.expert_bias"] = np.zeros(EXPERTS, np.float32)
        blocks = {f"mlp.{name}.": EXPERT for name in ("shared_mlp", *(f"experts.{i}" for i in range(EXPERTS)))}
    for block, width in blocks.items():
        tensors[f"{block}gate_proj.weight"] = noise(width, HIDDEN)
        tensors[f"{block}up_proj.weight"] = noise(width, HIDDEN)
        tensors[f"{block}down_proj.weight"] = noise(HIDDEN, width)
    return tensors


def _ones(width: int) -> Array:
    return np.ones(width, np.float32)


def safetensors(tensors: dict[str, Array]) -> bytes:
    """The tensors as a safetensors file: bfloat16, but for what routes, which stays float32."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    parts: list[bytes] = []
    start = 0
    for name in sorted(tensors):
        single = "expert_bias" in name or "router.gate" in name
        raw = tensors[name].astype("<f4").tobytes() if single else _bfloat16(tensors[name])
        offsets = [start, start + len(raw)]
        header[name] = {"dtype": "F32" if single else "BF16", "shape": tensors[name].shape, "data_offsets": offsets}
        parts.append(raw)
        start += len(raw)
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + b"".join(parts)


def _bfloat16(tensor: Array) -> bytes:
    bits = tensor.astype("<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2").tobytes()  # to nearest, ties to even
