"""Puts trained models into bild_bench/embedded, their weights in half precision.

    python recipes/pack_embedded.py FOLDER

FOLDER holds the models large, small and aligned, as `bild-bench train` and `bild-bench align` left them.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from bild_bench.models.checkpoint import find_checkpoint
from bild_bench.models.choice import ModelChoice
from bild_bench.models.library import load_model, load_tokenizer
from bild_bench.models.prefix import PREFIXES_KEY
from bild_bench.training.saving import save_model

# What recipes/embedded_pair.sh trained them with.
PREFIXES = [
    {"kind": "summarization", "prefix": "summarize: "},
    {"kind": "translation", "prefix": "translate German to English: "},
]
EMBEDDED = Path(__file__).resolve().parents[1] / "bild_bench" / "embedded"


def main(trained: Path) -> None:
    for role in ("large", "small", "aligned"):
        checkpoint = find_checkpoint(ModelChoice(str(trained / role)), f"--{role}", print)
        model = load_model(checkpoint, f"--{role}", "cpu", "float32")
        setattr(model.config, PREFIXES_KEY, PREFIXES)
        part = EMBEDDED / f"{role}.part"
        shutil.rmtree(part, ignore_errors=True)
        save_model(model, load_tokenizer(checkpoint, f"--{role}"), part, "float16")
        # Only what is whole takes the old one's place.
        shutil.rmtree(EMBEDDED / role, ignore_errors=True)
        part.rename(EMBEDDED / role)
        size = sum(file.stat().st_size for file in (EMBEDDED / role).iterdir())
        millions = sum(tensor.numel() for tensor in model.parameters()) / 1e6
        print(f"{role}: {millions:.2f} M parameters, {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
