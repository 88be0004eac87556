"""Build a tiny ``hy_v3`` checkpoint of random weights that a real vLLM loads and serves in seconds.

    python live/tiny_model.py build/tiny [--loop] [--suffix :opensource] [--vocabulary 120832 --fill FILE]

Needs numpy. The files are the same, byte for byte, on every machine: recorded replies depend on it.

The weights are noise, with a bias towards replies that end: under a JSON Schema the model writes a short, valid and
meaningless document. So what it proves is the protocol, never the quality of a memory.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bpe import Tokenizer
from weights import DENSE, EXPERT, EXPERTS, HEAD, HEADS, HIDDEN, KV_HEADS, LAYERS, safetensors, weights

CORPUS = Path(__file__).with_name("corpus.txt")
TRAINED = 2048
CONTEXT = 65536
FULL_VOCABULARY = 120832
"""The size of Hy-Memory's own vocabulary, which is what compiling a grammar costs by."""

PAD, BOS, EOS = "<|tiny_pad|>", "<|tiny_begin|>", "<|tiny_end|>"
SYSTEM_END, USER, ASSISTANT = "<|tiny_system_end|>", "<|tiny_user|>", "<|tiny_assistant|>"
CONTROL = (PAD, BOS, EOS, SYSTEM_END, USER, ASSISTANT)
PAIRED = ("think", "tool_calls", "tool_call", "arg_key", "arg_value", "tool_responses", "tool_response")


def tags(suffix: str) -> list[str]:
    """The added tokens that vLLM's ``hy_v3`` parsers look for in the text."""
    pairs = [f"<{slash}{name}{suffix}>" for name in PAIRED for slash in ("", "/")]
    return [*pairs, f"<tool_sep{suffix}>"]


# -- template --------------------------------------------------------------------------------------

# Behaves like Hy3's as far as that is known: no_think by default and for every unknown value.
_TEMPLATE = """\
{%- set effort = reasoning_effort if reasoning_effort is defined and reasoning_effort in ['low', 'high'] else '' -%}
{{- 'BOS' -}}
{%- for message in messages if message.role == 'system' -%}{{- message.content -}}{%- endfor -%}
{%- if tools -%}
{{- '\\nTools:\\n' -}}{%- for tool in tools -%}{{- tool | tojson ~ '\\n' -}}{%- endfor -%}
{%- endif -%}
{%- if effort -%}{{- '\\nEffort: ' ~ effort -}}{%- endif -%}
{{- 'SYSTEM_END' -}}
{%- for message in messages -%}
{%- if message.role == 'user' -%}
{{- 'USER' ~ message.content -}}
{%- elif message.role == 'assistant' -%}
{{- 'ASSISTANT<think></think>' ~ (message.content or '') ~ 'EOS' -}}
{%- elif message.role == 'tool' -%}
{{- 'USER<tool_responses><tool_response>' ~ message.content ~ '</tool_response></tool_responses>' -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- 'ASSISTANT<think>' ~ ('' if effort else '</think>') -}}{%- endif -%}
"""


def template(suffix: str) -> str:
    """The chat template, in Jinja."""
    text = _TEMPLATE
    for tag in tags(""):
        text = text.replace(tag, f"{tag[:-1]}{suffix}>")
    names = {"SYSTEM_END": SYSTEM_END, "BOS": BOS, "USER": USER, "ASSISTANT": ASSISTANT, "EOS": EOS}
    for name, token in names.items():
        text = text.replace(f"'{name}", f"'{token}")
    return text


# -- config ----------------------------------------------------------------------------------------


def config(tokenizer: Tokenizer, rows: int) -> dict[str, Any]:
    """``config.json``. vLLM reads ``expert_hidden_dim``, transformers ``moe_intermediate_size``: they are equal."""
    return {
        "architectures": ["HYV3ForCausalLM"],
        "model_type": "hy_v3",
        "torch_dtype": "bfloat16",
        "vocab_size": rows,
        "hidden_size": HIDDEN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "intermediate_size": DENSE,
        "moe_intermediate_size": EXPERT,
        "expert_hidden_dim": EXPERT,
        "num_experts": EXPERTS,
        "num_experts_per_tok": 2,
        "num_shared_experts": 1,
        "first_k_dense_replace": 1,
        "num_nextn_predict_layers": 0,
        "qk_norm": True,
        "route_norm": True,
        "router_scaling_factor": 2.8,
        "moe_router_use_sigmoid": True,
        "moe_router_enable_expert_bias": True,
        "max_position_embeddings": CONTEXT,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "attention_bias": False,
        "mlp_bias": False,
        "use_cache": True,
        **_token_ids(tokenizer),
    }


def _token_ids(tokenizer: Tokenizer) -> dict[str, int]:
    named = {"bos_token_id": BOS, "eos_token_id": EOS, "pad_token_id": PAD}
    return {name: tokenizer.vocabulary[token] for name, token in named.items()}


# -- the folder ------------------------------------------------------------------------------------


def build(
    folder: Path, *, loop: bool = False, suffix: str = "", vocabulary: int = TRAINED, fill: Path | None = None
) -> None:
    """Write the checkpoint.

    Args:
        folder: where to; made if need be.
        loop: a model that falls into the loop of white space wherever a server allows white space.
        suffix: what the tags end in, ``:opensource`` in the released Hy3.
        vocabulary: the number of tokens; beyond ``TRAINED`` it takes ``fill``.
        fill: a tiktoken file whose tokens fill the vocabulary up.
    """
    if vocabulary > TRAINED and fill is None:
        raise ValueError(f"a vocabulary of more than {TRAINED} tokens takes a tiktoken file to fill it")
    tokenizer = Tokenizer.trained(
        CORPUS.read_text(encoding="utf-8"), TRAINED, control=CONTROL, tags=tags(suffix), fill=fill, to=vocabulary
    )
    rows = len(tokenizer.vocabulary)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": BOS,
        "eos_token": EOS,
        "pad_token": PAD,
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
        **({"token_suffix": suffix} if suffix else {}),
    }
    generation = {"do_sample": True, "temperature": 0.9, "top_p": 1.0, **_token_ids(tokenizer)}
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "tokenizer.json", tokenizer.as_json())
    _write(folder / "tokenizer_config.json", json.dumps(settings, indent=1))
    _write(folder / "chat_template.jinja", template(suffix))
    _write(folder / "config.json", json.dumps(config(tokenizer, rows), indent=1))
    _write(folder / "generation_config.json", json.dumps(generation, indent=1))
    tensors = weights(tokenizer, eos=EOS, opener=f"<think{suffix}>", closer=f"</think{suffix}>", loop=loop)
    (folder / "model.safetensors").write_bytes(safetensors(tensors))


def _write(file: Path, text: str) -> None:
    file.write_bytes(text.encode())


def main(arguments: Sequence[str] | None = None) -> None:
    """Build one from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--loop", action="store_true", help="a model that loops in white space where that is allowed")
    parser.add_argument("--suffix", default="", help="what the tags end in, such as :opensource")
    parser.add_argument("--vocabulary", type=int, default=TRAINED, help=f"{FULL_VOCABULARY} is Hy-Memory's")
    parser.add_argument("--fill", type=Path, help="a tiktoken file that fills the vocabulary")
    build(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    main()
