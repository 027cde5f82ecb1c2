"""The score of each text's first sentence, taken as it stands for a summary; and an experiment's points beside it.

python recipes/first_sentence.py TEXTS.jsonl [--experiment DIR] [--source-column NAME] [--target-column NAME]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd
from sentencex import segment

from bild_bench.measure.quality import score
from bild_bench.measure.quality_intervals import paired_quality_difference, quality_interval


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--experiment", type=Path)
    parser.add_argument("--source-column", default="source")
    parser.add_argument("--target-column", default="target")
    given = parser.parse_args()
    texts = pd.read_json(given.texts, lines=True)
    firsts = [_first_sentence(text) for text in texts[given.source_column]]
    references = [[reference] for reference in texts[given.target_column]]
    found = score("rougeL", firsts, references)
    low, high = quality_interval("rougeL", firsts, references, seed=0)
    print(f"first sentence: rougeL {found.value:.2f} [{low:.2f}, {high:.2f}] ({len(texts)} texts; {found.signature})")
    if given.experiment is not None:
        _leads(given.experiment)


def _leads(experiment: Path) -> None:
    samples = pd.read_parquet(experiment / "samples.parquet")
    for point, rows in samples[samples["status"] == "ok"].groupby("point", sort=False):
        firsts, references = (
            [_first_sentence(text) for text in rows["source"]],
            [list(each) for each in rows["references"]],
        )
        lead, low, high = paired_quality_difference("rougeL", firsts, list(rows["output_text"]), references, seed=0)
        print(f"{experiment}: {point} over the first sentence: rougeL {lead:+.2f} [{low:+.2f}, {high:+.2f}], paired")


def _first_sentence(text: str) -> str:
    return next((sentence.strip() for sentence in segment("en", text) if sentence.strip()), "")


if __name__ == "__main__":
    main()
