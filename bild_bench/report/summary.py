"""The figures of an experiment, derived from its rows: quality, paired speed-up, and where the tokens came from.

Only rows with status "ok" count. A null among the rows of a sum makes the sum unknown (None), never smaller, and a
figure whose denominator is 0 is None too. Draws of one text are further rows, paired with the baseline's draw of the
same number; they are no further texts, so that intervals resample a text with all its draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bild_bench.measure.answered import answered_rows
from bild_bench.measure.intervals import Estimate
from bild_bench.measure.metrics import is_bleu
from bild_bench.measure.quality import Score, chrf, score
from bild_bench.measure.quality_intervals import mean_quality_interval
from bild_bench.report.caveats import caveats
from bild_bench.report.claims import average_exit_layer, divergence
from bild_bench.report.point import PointSummary, Summary, summary_frame
from bild_bench.report.significance import quality_significance
from bild_bench.report.speedups import speedup, speedup_per_token
from bild_bench.report.totals import count, ratio, total

__all__ = ["PointSummary", "Summary", "summarise", "summary_frame"]

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.measure.quality import Metric
    from bild_bench.results import Experiment
    from bild_bench.schema import RunRecord

# A text enters the paired figures only where the same process decoded both on the same machine.
_PAIRED_BY = ["text_id", "draw", "process_id", "machine"]

# Below this many texts and draws a percentile is little more than the slowest of them.
_LATENCIES = {"latency_p50_ms": (50, 1), "latency_p95_ms": (95, 20), "latency_p99_ms": (99, 100)}


def summarise(experiment: Experiment) -> Summary:
    """Every figure of every point of an experiment, finished or running.

    Raises:
        DataError: a recorded time is negative or not finite.
    """
    run, samples = experiment.run, experiment.samples
    baseline_id = next((point["point_id"] for point in run.points if point["role"] == "baseline"), None)
    ok = samples[samples["status"] == "ok"]
    baseline = ok[ok["point_id"] == baseline_id]
    points = tuple(
        _summarise_point(point, samples[samples["point_id"] == point["point_id"]], baseline, experiment)
        for point in run.points
    )
    return Summary(run.experiment_id, points, caveats(experiment, points))


def _summarise_point(
    point: dict[str, Any], rows: pd.DataFrame, baseline: pd.DataFrame, experiment: Experiment
) -> PointSummary:
    # A baseline that was decoded again beside later points counts once here; `baseline` holds all of it, for pairing.
    ok = rows[rows["status"] == "ok"].drop_duplicates(["text_id", "draw"])
    pairs = baseline.merge(ok, on=_PAIRED_BY, suffixes=("_base", ""))
    seed = experiment.run.seed
    generated, large_calls = total(ok["generated"]), count(ok["large_calls"])
    diverged_texts, margin = divergence(point, ok, baseline)
    return PointSummary(
        **{name: point[name] for name in ("point_id", "point", "method", "role")},
        texts=ok["text_id"].nunique(),
        paired_texts=pairs["text_id"].nunique(),
        errors=int((rows["status"] == "error").sum()),
        truncated=int(rows.drop_duplicates(["text_id", "draw"])["source_truncated"].sum()),
        hit_limit=count(ok["hit_limit"]),
        **_quality(ok, experiment),
        **_against(baseline, ok, experiment),
        **_latencies(ok),
        speedup_total=speedup(pairs, "total_seconds", seed),
        speedup_decoding=speedup(pairs, "decode_seconds", seed),
        speedup_per_token=speedup_per_token(pairs, seed),
        length_ratio=ratio(total(pairs["generated"]), total(pairs["generated_base"])),
        ms_per_token=ratio(total(ok["decode_seconds"]), generated, 1000),
        decode_seconds=total(ok["decode_seconds"]),
        total_seconds=total(ok["total_seconds"]),
        fallback_pct=ratio(total(ok["fallbacks"] + ok["cap_handovers"]), generated, 100),
        low_confidence_pct=ratio(total(ok["fallbacks"]), generated, 100),
        rollback_pct=ratio(total(ok["rollbacks"]), generated, 100),
        small_share_pct=ratio(total(ok["drafted"] - ok["discarded"]), generated, 100),
        large_share_pct=ratio(total(ok["large_tokens"]), generated, 100),
        small_calls=count(ok["small_calls"]),
        large_calls=large_calls,
        identical_pct=ratio(_identical(pairs), len(pairs), 100),
        average_exit_layer=average_exit_layer(ok),
        diverged_texts=diverged_texts,
        divergence_margin_max=margin,
        tokens_per_second=ratio(generated, total(ok["decode_seconds"])),
        acceptance_pct=_acceptance(ok, large_calls),
        mean_accepted_length=ratio(generated, large_calls),
        peak_memory_bytes=_peak_memory(experiment.run),
    )


def _identical(pairs: pd.DataFrame) -> int:
    both = zip(pairs["output_ids_base"], pairs["output_ids"], strict=True)
    return sum(np.array_equal(base, point) for base, point in both)


def _quality(ok: pd.DataFrame, experiment: Experiment) -> dict[str, Any]:
    """The point's own scores: the mean over draws, its spread and its interval."""
    ok = answered_rows(ok)
    if ok.empty:
        return {"quality": None, "quality_spread": None, "quality_low": None, "quality_high": None}
    metric = cast("Metric", experiment.run.metric)
    draws = [
        (list(rows["text_id"]), list(rows["output_text"]), [list(texts) for texts in rows["references"]])
        for _, rows in ok.groupby("draw")
    ]
    scores = [score(metric, hypotheses, references) for _, hypotheses, references in draws]
    values = [one.value for one in scores]
    low, high = mean_quality_interval(metric, draws, seed=experiment.run.seed)
    beside = [chrf(hypotheses, references) for _, hypotheses, references in draws] if is_bleu(metric) else []
    return {
        "quality": _mean(scores),
        "quality_spread": float(np.std(values, ddof=1)) if len(values) > 1 else None,
        "quality_low": low,
        "quality_high": high,
        "chrf": _mean(beside),
    }


def _mean(scores: Sequence[Score]) -> Score | None:
    return replace(scores[0], value=float(np.mean([one.value for one in scores]))) if scores else None


def _against(baseline: pd.DataFrame, ok: pd.DataFrame, experiment: Experiment) -> dict[str, Any]:
    """The paired difference of quality; for quality it does not matter in which process a text was decoded."""
    run = experiment.run
    found = quality_significance(run.metric, run.seed, baseline, ok, list(baseline["text_id"]))
    if found is None:
        return {}
    difference = Estimate(found.difference, found.low, found.high)
    return {"quality_difference": difference, "quality_p_value": found.p_value}


def _latencies(ok: pd.DataFrame) -> dict[str, Any]:
    """Percentiles of the total time of one text, in milliseconds."""
    seconds = ok["total_seconds"]
    if seconds.isna().any():
        return {}
    return {
        name: 1000 * float(np.percentile(seconds, percent))
        for name, (percent, least) in _LATENCIES.items()
        if len(seconds) >= least
    }


def _acceptance(ok: pd.DataFrame, large_calls: int | None) -> float | None:
    """The share of drafts that were kept; None where no draft was ever verified."""
    if large_calls is None or large_calls == 0:
        return None
    return ratio(total(ok["drafted"] - ok["discarded"]), total(ok["drafted"]), 100)


def _peak_memory(run: RunRecord) -> int | None:
    peaks = (run.environment_after.get(name) for name in ("gpu_peak_bytes", "rss_peak_bytes"))
    return next((int(peak) for peak in peaks if peak is not None), None)
