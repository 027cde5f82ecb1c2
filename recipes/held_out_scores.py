"""Quality of each point of experiments, with a 95 % bootstrap interval over texts, and paired with the first point.

python recipes/held_out_scores.py EXPERIMENT...
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from bild_bench.measure.quality import score
from bild_bench.measure.quality_intervals import paired_quality_difference, quality_interval


def main(experiments: list[str]) -> None:
    for experiment in experiments:
        samples = pd.read_parquet(Path(experiment) / "samples.parquet").sort_values("text_index", kind="stable")
        metric = pd.read_parquet(Path(experiment) / "run.parquet", columns=["metric"])["metric"].iloc[0]
        first: list[str] | None = None
        for point, rows in samples[samples["status"] == "ok"].groupby("point", sort=False):
            texts, references = list(rows["output_text"]), [list(each) for each in rows["references"]]
            found = score(metric, texts, references)
            low, high = quality_interval(metric, texts, references, seed=0)
            told = f"{found.value:.2f} [{low:.2f}, {high:.2f}]"
            if first is not None and len(first) == len(texts):
                gap, low, high = paired_quality_difference(metric, first, texts, references, seed=0)
                told += f", against the first {gap:+.2f} [{low:+.2f}, {high:+.2f}]"
            first = texts if first is None else first
            print(f"{experiment}: {point}: {metric} {told} ({len(rows)} texts; {found.signature})")


if __name__ == "__main__":
    main(sys.argv[1:])
