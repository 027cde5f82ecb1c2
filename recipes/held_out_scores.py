"""Quality of each point of experiments, with a 95 % bootstrap interval over texts.

python recipes/held_out_scores.py EXPERIMENT...
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from bild_bench.measure.quality import score
from bild_bench.measure.quality_intervals import quality_interval


def main(experiments: list[str]) -> None:
    for experiment in experiments:
        samples = pd.read_parquet(Path(experiment) / "samples.parquet")
        metric = pd.read_parquet(Path(experiment) / "run.parquet", columns=["metric"])["metric"].iloc[0]
        for point, rows in samples[samples["status"] == "ok"].groupby("point", sort=False):
            texts, references = list(rows["output_text"]), [list(each) for each in rows["references"]]
            found = score(metric, texts, references)
            low, high = quality_interval(metric, texts, references, seed=0)
            told = f"{found.value:.2f} [{low:.2f}, {high:.2f}]"
            print(f"{experiment}: {point}: {metric} {told} ({len(rows)} texts; {found.signature})")


if __name__ == "__main__":
    main(sys.argv[1:])
