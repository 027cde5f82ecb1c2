"""The score of each text's first sentence, taken as it stands for a summary.

python recipes/first_sentence.py TEXTS.jsonl [SOURCE_COLUMN TARGET_COLUMN]
"""

from __future__ import annotations

import sys

import pandas as pd
from sentencex import segment

from bild_bench.measure.quality import score
from bild_bench.measure.quality_intervals import quality_interval


def main(path: str, source: str = "source", target: str = "target") -> None:
    texts = pd.read_json(path, lines=True)
    firsts = [next(sentence.strip() for sentence in segment("en", text) if sentence.strip()) for text in texts[source]]
    references = [[reference] for reference in texts[target]]
    found = score("rougeL", firsts, references)
    low, high = quality_interval("rougeL", firsts, references, seed=0)
    print(f"first sentence: rougeL {found.value:.2f} [{low:.2f}, {high:.2f}] ({len(texts)} texts; {found.signature})")


if __name__ == "__main__":
    main(*sys.argv[1:])
