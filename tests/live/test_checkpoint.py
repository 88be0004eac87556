"""The tiny checkpoint is the same everywhere, byte for byte: recorded replies depend on it. Needs no server."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")

BUILDER = Path(__file__).resolve().parents[2] / "live" / "tiny_model.py"

CHECKPOINTS = {
    # flags, SHA-256 of the folder's files in the order of their names
    "tiny": ([], "477ef63b95143b99bc6a875afcd5f3df61ccf8d274167f4cc7e9736b4c52ea89"),
    "loop": (["--loop"], "cff2eabcd1f472aa6a87f9ffac090199d2530af95673287c76d44ee6b59c58fd"),
    "suffix": (["--suffix", ":opensource"], "857027fa04e8d7f1439a15994ef27cd53ca71c5c7599b1e7f71480efdbee890c"),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_the_checkpoint_has_not_changed(name: str, tmp_path: Path) -> None:
    flags, expected = CHECKPOINTS[name]
    subprocess.run([sys.executable, str(BUILDER), str(tmp_path), *flags], check=True)

    files = sorted(tmp_path.iterdir(), key=lambda file: file.name)
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    assert [file.name for file in files] == [
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert digest.hexdigest() == expected, "cassettes were recorded from another checkpoint: record them again"
