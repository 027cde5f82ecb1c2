"""Splits a set of sentence pairs that comes without validation and test texts.

    python recipes/hold_out_tatoeba.py TRAIN.parquet FOLDER

writes FOLDER/train.parquet, FOLDER/validation.jsonl and FOLDER/test.jsonl. A pair's place is a matter of its English
side alone, so that no sentence is trained on in one translation and tested in another.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pandas as pd

_SHARES = 50  # one in fifty English sentences for validation, and one for testing


def place(target: str) -> str:
    """ "train", "validation" or "test"."""
    share = int(hashlib.sha256(target.casefold().encode()).hexdigest(), 16) % _SHARES
    return {0: "validation", 1: "test"}.get(share, "train")


def main(source: Path, folder: Path) -> None:
    pairs = pd.read_parquet(source)
    places = pairs["target"].map(place)
    folder.mkdir(parents=True, exist_ok=True)
    pairs[places == "train"].to_parquet(folder / "train.parquet", index=False)
    for name in ("validation", "test"):
        # One translation of each sentence: the others would only be the same question again.
        held = pairs[places == name].drop_duplicates("target")
        held.to_json(folder / f"{name}.jsonl", orient="records", lines=True, force_ascii=False)
    print({name: int((places == name).sum()) for name in ("train", "validation", "test")})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
