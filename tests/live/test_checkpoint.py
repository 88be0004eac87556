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
    "tiny": ([], "b7c15853015b78adb9242322f7f2ea36152697f06f77de36486812da52bbbf45"),
    "loop": (["--loop"], "2dcc063dcab158cbacb8cb25fa80a6dc70e045a05d56ed3167ac4f17a20dcc4e"),
    "suffix": (["--suffix", ":opensource"], "79353ce89d3991d3ff45e9aa53d75eb4356bd481101d1869104edb9691fe3374"),
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
