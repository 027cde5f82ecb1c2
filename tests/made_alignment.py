"""A pair of tiny models and texts for the tests of `align`, and the command that aligns them."""

from __future__ import annotations

import random
from pathlib import Path

from tests.checkpoints import WORDS, save_t5
from tests.made_data import jsonl

HELD_OUT, TARGET_LIMIT = 40, 12


def make_pair(folder: Path) -> Path:
    """L and S in a folder; of this L about half of the texts end before the limit."""
    save_t5(folder / "large", gated=True, tied=False, seed=2)
    save_t5(folder / "small", gated=True, tied=False, seed=5, d_model=16, num_layers=1, num_decoder_layers=1)
    return folder


def make_texts(path: Path, count: int, seed: int = 0) -> Path:
    """Sources of 1 to 9 words, all with the same reference."""
    drawn = random.Random(seed)
    rows = [{"source": " ".join(drawn.choices(WORDS, k=drawn.randint(1, 9))), "target": "a dog"} for _ in range(count)]
    return jsonl(path, rows)


def command(models: Path, data: Path, out: Path, *more: str) -> tuple[str, ...]:
    """`align`, quick and on one thread."""
    return (
        *("align", "--task", "custom", "--large", str(models / "large"), "--small", str(models / "small")),
        *("--data", str(data), "--hold-out", str(HELD_OUT), "--prefix", "near: "),
        *("--source-limit", "16", "--target-limit", str(TARGET_LIMIT), "--decode-batch", "600"),
        *("--steps", "30", "--every", "5", "--batch-texts", "8", "--rate", "0.02", "--warmup", "0"),
        *("--threads", "1", "--out", str(out), *more),
    )
