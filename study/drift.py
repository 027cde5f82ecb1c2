"""How much a speed-up differs from run to run: trials measured again, later and with models opened anew.

A bootstrap over texts cannot see this: a model's place in memory, and what else the machine does, are the same for all
texts of a run. Measured again is a part of the texts, and the measurements are compared on just these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from study.rows import Row

if TYPE_CHECKING:
    from bild_bench.results import Experiment

# Further measurements of each trial, and texts of each.
AGAIN, TEXTS = 2, 100
# Speed-ups of a row -> the seconds that they are ratios of.
SECONDS = {"speedup": "decode_seconds", "total_speedup": "total_seconds"}
# The 97.5th percentile of Student's t with twelve degrees of freedom: six trials, three measurements of each.
_T = 2.179


def speedups(experiment: Experiment, seconds: str, texts: set[str]) -> dict[str, float]:
    """Point id -> the baseline's summed seconds over the point's, on these texts; points with an error are left out."""
    samples = experiment.samples
    samples = samples[samples["text_id"].isin(texts)]
    wanted = samples.groupby("point_id")["status"].transform(lambda status: (status == "ok").all())
    sums = samples[wanted].groupby("point_id")[seconds].sum()
    baseline = next(point["point_id"] for point in experiment.run.points if point["role"] == "baseline")
    return {point: float(sums[baseline] / sums[point]) for point in sums.index if point != baseline}


def run_to_run(measured: Sequence[Sequence[Experiment]]) -> dict[str, float]:
    """Of each speed-up the standard deviation of its logarithm between runs, pooled over all trials.

    Rows of a trial share their baseline, so they err together: a trial's variance is the mean over its rows, and
    counts once.

    Args:
        measured: for each trial its measurements, the whole one and those on a part of its texts.
    """
    return {
        name: math.sqrt(_mean([_variance(runs, seconds) for runs in measured])) for name, seconds in SECONDS.items()
    }


def _variance(runs: Sequence[Experiment], seconds: str) -> float | None:
    texts = set.intersection(*(set(run.samples["text_id"]) for run in runs))
    found = [speedups(run, seconds, texts) for run in runs]
    shared = sorted(set.intersection(*(set(one) for one in found)))
    if not shared:
        return None
    logs = np.log([[one[point] for point in shared] for one in found])
    return float(logs.var(axis=0, ddof=1).mean())


def _mean(variances: Sequence[float | None]) -> float:
    known = [value for value in variances if value is not None]
    return sum(known) / len(known) if known else math.nan


def widened(row: Row, deviation: Mapping[str, float]) -> Row:
    """The row, its speed-ups' intervals such that another run on this machine is expected within them.

    Two runs both differ from their mean, hence twice the variance; on the logarithm it is added to the interval over
    texts, in quadrature.
    """
    changed = {}
    for name, sigma in deviation.items():
        value, low, high = (getattr(row, name + end) for end in ("", "_low", "_high"))
        if value is None or low is None or high is None or row.method == "vanilla" or math.isnan(sigma):
            continue
        between = _T * math.sqrt(2) * sigma
        changed[f"{name}_low"] = value * math.exp(-math.hypot(math.log(value / low), between))
        changed[f"{name}_high"] = value * math.exp(math.hypot(math.log(high / value), between))
    return replace(row, **changed)
