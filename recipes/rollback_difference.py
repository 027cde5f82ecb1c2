"""Fall-backs and rollbacks per 100 generated tokens of an experiment's points, and how far each differs from the first.

    python recipes/rollback_difference.py EXPERIMENT

for an experiment of one method with the same thresholds and several small models (`sweep --small one,other`).
Intervals are 95 % bootstraps over texts, of differences over the same texts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from bild_bench.measure.intervals import percentile_interval, resampled_sums

_RESAMPLES = 10_000


def main(experiment: str) -> None:
    samples = pd.read_parquet(Path(experiment) / "samples.parquet")
    samples = samples[(samples["role"] == "point") & (samples["status"] == "ok")]
    samples = samples.assign(handovers=samples["fallbacks"] + samples["cap_handovers"])
    for counter, name in (("handovers", "fallback %"), ("rollbacks", "rollback %")):
        wide = samples.pivot(index="text_id", columns="point", values=[counter, "generated"]).dropna()
        points = list(dict.fromkeys(samples["point"]))
        columns = np.column_stack([wide[kind][point] for point in points for kind in (counter, "generated")])
        sums = resampled_sums(columns, seed=0, resamples=_RESAMPLES)
        rates, whole = 100 * sums[:, ::2] / sums[:, 1::2], columns.sum(0)
        for number, point in enumerate(points):
            value = 100 * whole[2 * number] / whole[2 * number + 1]
            difference = value - 100 * whole[0] / whole[1]
            told = "{:.2f} [{:.2f}, {:.2f}]".format(
                value, *percentile_interval(rates[:, number], texts=len(wide), level=0.95)
            )
            against = percentile_interval(rates[:, number] - rates[:, 0], texts=len(wide), level=0.95)
            extra = (
                "" if number == 0 else f"; against the first {difference:+.2f} [{against[0]:+.2f}, {against[1]:+.2f}]"
            )
            print(f"{name}, {point}: {told}{extra} ({len(wide)} texts)")


if __name__ == "__main__":
    main(sys.argv[1])
