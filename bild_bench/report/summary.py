"""The figures of an experiment, derived from its rows: quality, paired speed-up, and where the tokens came from.

Only rows with status "ok" count. A null among the rows of a sum makes the sum unknown (None), never smaller, and a
figure whose denominator is 0 is None too. Draws of one text are further rows, paired with the baseline's draw of the
same number; they are no further texts, so that intervals resample a text with all its draws.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bild_bench.measure.answered import answered_rows
from bild_bench.measure.intervals import Estimate, percentile_interval, ratio_of_sums, resampled_sums
from bild_bench.measure.quality import Score, score
from bild_bench.measure.quality_intervals import mean_quality_interval
from bild_bench.report.caveats import caveats
from bild_bench.report.claims import average_exit_layer, divergence

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.measure.intervals import Floats
    from bild_bench.measure.quality import Metric
    from bild_bench.results import Experiment

# A text enters the paired figures only where the same process decoded both on the same machine.
_PAIRED_BY = ["text_id", "draw", "process_id", "machine"]

_LEVEL, _RESAMPLES = 0.95, 2000

_ESTIMATES = ("speedup_total", "speedup_decoding", "speedup_per_token")
# How a figure of several parts spreads over columns: part -> what follows the figure's name.
_PARTS: dict[str, dict[str, str]] = {
    "quality": {"value": "_value", "metric": "_metric", "signature": "_signature"},
    **{name: {"value": "", "low": "_low", "high": "_high"} for name in _ESTIMATES},
}
_WORDS = ("experiment_id", "point_id", "point", "method", "role", "quality_metric", "quality_signature")
_COUNTS = ("texts", "paired_texts", "errors", "truncated", "hit_limit", "small_calls", "large_calls", "diverged_texts")


@dataclass(frozen=True, kw_only=True)
class PointSummary:
    """One point's figures; None where unknown. Percentages are of generated tokens, but for identical_pct.

    texts: texts with an ok row. errors, truncated, hit_limit: rows that failed, whose source was cut, that ended at the
    length limit. quality, over the texts that have a reference: the mean over draws of each draw's corpus score,
    quality_spread its sample standard deviation over draws (None with one draw), quality_low and quality_high the
    mean's 95 % bootstrap interval over texts.

    Against the baseline, over paired_texts only (ok in both, same process and machine): speedup_total and
    speedup_decoding are summed baseline seconds over summed seconds, speedup_per_token is baseline decode seconds a
    generated token over the point's, length_ratio is generated tokens over the baseline's, and identical_pct is the
    share of texts whose ids equal the baseline's.

    Over all ok rows: ms_per_token is decode milliseconds per generated token; fallback_pct counts fallbacks and
    cap_handovers, low_confidence_pct fallbacks alone; small_share_pct and large_share_pct say who chose the tokens;
    average_exit_layer is the mean layer, from 1, at which a token was decided, for methods that leave early.

    For a point that claims the baseline's tokens: diverged_texts have others, and divergence_margin_max is the most by
    which the large model prefers the baseline's token where one first differs, in logits (None: none differs).
    """

    point_id: str
    point: str
    method: str
    role: str
    texts: int
    paired_texts: int
    errors: int
    truncated: int
    hit_limit: int | None
    quality: Score | None
    quality_spread: float | None
    quality_low: float | None
    quality_high: float | None
    speedup_total: Estimate | None
    speedup_decoding: Estimate | None
    speedup_per_token: Estimate | None
    length_ratio: float | None
    ms_per_token: float | None
    decode_seconds: float | None
    total_seconds: float | None
    fallback_pct: float | None
    low_confidence_pct: float | None
    rollback_pct: float | None
    small_share_pct: float | None
    large_share_pct: float | None
    small_calls: int | None
    large_calls: int | None
    identical_pct: float | None
    average_exit_layer: float | None
    diverged_texts: int | None
    divergence_margin_max: float | None


@dataclass(frozen=True)
class Summary:
    """An experiment's points, in the run's order, and what a reader must know before believing them."""

    experiment_id: str
    points: tuple[PointSummary, ...]
    warnings: list[str]


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


def summary_frame(summary: Summary) -> pd.DataFrame:
    """The summary as a flat table, one row per point: the columns of summary.parquet.

    A score becomes quality_value, quality_metric and quality_signature; an estimate x becomes x, x_low and x_high.
    Counts are Int64 and figures Float64, since both can be missing.
    """
    import pandas as pd

    frame = pd.DataFrame([{"experiment_id": summary.experiment_id, **_flat(point)} for point in summary.points])
    kinds = {name: "Int64" if name in _COUNTS else "string" if name in _WORDS else "Float64" for name in frame.columns}
    return frame.astype(kinds)


def _summarise_point(
    point: dict[str, Any], rows: pd.DataFrame, baseline: pd.DataFrame, experiment: Experiment
) -> PointSummary:
    # A baseline that was decoded again beside later points counts once here; `baseline` holds all of it, for pairing.
    ok = rows[rows["status"] == "ok"].drop_duplicates(["text_id", "draw"])
    pairs = baseline.merge(ok, on=_PAIRED_BY, suffixes=("_base", ""))
    seed = experiment.run.seed
    quality, spread, low, high = _quality(ok, experiment)
    generated = _total(ok["generated"])
    diverged_texts, margin = divergence(point, ok, baseline)
    return PointSummary(
        **{name: point[name] for name in ("point_id", "point", "method", "role")},
        texts=ok["text_id"].nunique(),
        paired_texts=pairs["text_id"].nunique(),
        errors=int((rows["status"] == "error").sum()),
        truncated=int(rows.drop_duplicates(["text_id", "draw"])["source_truncated"].sum()),
        hit_limit=_count(ok["hit_limit"]),
        quality=quality,
        quality_spread=spread,
        quality_low=low,
        quality_high=high,
        speedup_total=_speedup(pairs, "total_seconds", seed),
        speedup_decoding=_speedup(pairs, "decode_seconds", seed),
        speedup_per_token=_speedup_per_token(pairs, seed),
        length_ratio=_ratio(_total(pairs["generated"]), _total(pairs["generated_base"])),
        ms_per_token=_ratio(_total(ok["decode_seconds"]), generated, 1000),
        decode_seconds=_total(ok["decode_seconds"]),
        total_seconds=_total(ok["total_seconds"]),
        fallback_pct=_ratio(_total(ok["fallbacks"] + ok["cap_handovers"]), generated, 100),
        low_confidence_pct=_ratio(_total(ok["fallbacks"]), generated, 100),
        rollback_pct=_ratio(_total(ok["rollbacks"]), generated, 100),
        small_share_pct=_ratio(_total(ok["drafted"] - ok["discarded"]), generated, 100),
        large_share_pct=_ratio(_total(ok["large_tokens"]), generated, 100),
        small_calls=_count(ok["small_calls"]),
        large_calls=_count(ok["large_calls"]),
        identical_pct=_ratio(_identical(pairs), len(pairs), 100),
        average_exit_layer=average_exit_layer(ok),
        diverged_texts=diverged_texts,
        divergence_margin_max=margin,
    )


def _total(values: pd.Series) -> float | None:
    """The sum, or None where there is nothing to sum or something in it is unknown."""
    return None if values.empty or values.isna().any() else float(values.sum())


def _count(values: pd.Series) -> int | None:
    total = _total(values)
    return None if total is None else int(total)


def _ratio(numerator: float | None, denominator: float | None, scale: float = 1) -> float | None:
    if numerator is None or denominator is None or denominator == 0:
        return None
    return scale * numerator / denominator


def _identical(pairs: pd.DataFrame) -> int:
    both = zip(pairs["output_ids_base"], pairs["output_ids"], strict=True)
    return sum(np.array_equal(base, point) for base, point in both)


def _quality(ok: pd.DataFrame, experiment: Experiment) -> tuple[Score | None, float | None, float | None, float | None]:
    """Score, spread over draws, and the interval's ends."""
    ok = answered_rows(ok)
    if ok.empty:
        return None, None, None, None
    metric = cast("Metric", experiment.run.metric)
    draws = [
        (list(rows["text_id"]), list(rows["output_text"]), [list(texts) for texts in rows["references"]])
        for _, rows in ok.groupby("draw")
    ]
    scores = [score(metric, hypotheses, references) for _, hypotheses, references in draws]
    values = [one.value for one in scores]
    low, high = mean_quality_interval(metric, draws, seed=experiment.run.seed)
    spread = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return replace(scores[0], value=float(np.mean(values))), spread, low, high


def _speedup(pairs: pd.DataFrame, seconds: str, seed: int) -> Estimate | None:
    columns = [f"{seconds}_base", seconds]
    if _ratio(_total(pairs[columns[0]]), _total(pairs[columns[1]])) is None:
        return None
    base, point = _by_text(pairs, columns).T
    return ratio_of_sums(base, point, seed=seed, resamples=_RESAMPLES, level=_LEVEL)


def _speedup_per_token(pairs: pd.DataFrame, seed: int) -> Estimate | None:
    """Four sums in one draw: resampling the two lengths apart from the times would widen the interval."""
    columns = ["decode_seconds_base", "generated_base", "decode_seconds", "generated"]
    totals = [_total(pairs[name]) for name in columns]
    value = _ratio(_ratio(totals[0], totals[1]), _ratio(totals[2], totals[3]))
    if value is None:
        return None
    figures = _by_text(pairs, columns)
    sums = resampled_sums(figures, seed=seed, resamples=_RESAMPLES)
    with np.errstate(divide="ignore", invalid="ignore"):
        resampled = (sums[:, 0] / sums[:, 1]) / (sums[:, 2] / sums[:, 3])
    return Estimate(value, *percentile_interval(resampled, texts=len(figures), level=_LEVEL))


def _by_text(pairs: pd.DataFrame, columns: list[str]) -> Floats:
    """Each text's sums over its draws, shape (texts, columns)."""
    return pairs.groupby("text_id", sort=False)[columns].sum().to_numpy(dtype=np.float64)


def _flat(point: PointSummary) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in asdict(point).items():
        if name in _PARTS:
            flat |= {name + ending: None if value is None else value[part] for part, ending in _PARTS[name].items()}
        else:
            flat[name] = value
    return flat
