"""A point's derived figures, an experiment's points, and both as a flat table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bild_bench.measure.intervals import Estimate
from bild_bench.measure.quality import Score

if TYPE_CHECKING:
    import pandas as pd

_ESTIMATES = ("quality_difference", "speedup_total", "speedup_decoding", "speedup_per_token")
# How a figure of several parts spreads over columns: part -> what follows the figure's name.
_PARTS: dict[str, dict[str, str]] = {
    "quality": {"value": "_value", "metric": "_metric", "signature": "_signature"},
    "chrf": {"value": "_value", "signature": "_signature"},
    **{name: {"value": "", "low": "_low", "high": "_high"} for name in _ESTIMATES},
}
_WORDS = (
    "experiment_id",
    "point_id",
    "point",
    "method",
    "role",
    "quality_metric",
    "quality_signature",
    "chrf_signature",
)
_COUNTS = (
    *("texts", "paired_texts", "errors", "truncated", "hit_limit", "small_calls", "large_calls", "diverged_texts"),
    "peak_memory_bytes",
)


@dataclass(frozen=True, kw_only=True)
class PointSummary:
    """One point's figures; None where unknown. Percentages are of generated tokens, but for identical_pct.

    texts: texts with an ok row. errors, truncated, hit_limit: rows that failed, whose source was cut, that ended at the
    length limit. quality, over the texts that have a reference: the mean over draws of each draw's corpus score,
    quality_spread its sample standard deviation over draws (None with one draw), quality_low and quality_high the
    mean's 95 % bootstrap interval over texts. chrf: sacreBLEU's chrF beside BLEU, None beside another metric; the mean
    over draws too. quality_difference: quality minus the baseline's over the texts that both decoded, with its
    interval, and quality_p_value the p-value of the same test (`measure.intervals.centred_test`).

    Against the baseline, over paired_texts only (ok in both, same process and machine): speedup_total and
    speedup_decoding are summed baseline seconds over summed seconds, speedup_per_token is baseline decode seconds per
    generated token over the point's, length_ratio is generated tokens over the baseline's, and identical_pct is the
    share of texts whose ids equal the baseline's.

    Over all ok rows: ms_per_token is decode milliseconds per generated token; fallback_pct counts fallbacks and
    cap_handovers, low_confidence_pct fallbacks alone; small_share_pct and large_share_pct say who chose the tokens;
    average_exit_layer is the mean layer, from 1, at which a token was decided, for methods that leave early.
    tokens_per_second: generated tokens over decode seconds. latency_p50_ms, …: percentiles over texts and draws of the
    total time of one text, encoder included; p95 from 20 and p99 from 100 on. acceptance_pct: drafts that were kept, of
    those drafted (None where nothing was drafted or nothing verified). mean_accepted_length: generated tokens per large
    call, the large model's own token included.

    peak_memory_bytes: the most that the process held, up to the end of the experiment: on a GPU what torch allocated
    there, else resident. It is the same for all points of an experiment, since all of their models stay loaded.

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
    quality_difference: Estimate | None = None
    quality_p_value: float | None = None
    chrf: Score | None = None
    tokens_per_second: float | None = None
    latency_p50_ms: float | None = None
    latency_p95_ms: float | None = None
    latency_p99_ms: float | None = None
    acceptance_pct: float | None = None
    mean_accepted_length: float | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True, repr=False)
class Summary:
    """An experiment's points, in the run's order, and what a reader must know before believing them."""

    experiment_id: str
    points: tuple[PointSummary, ...]
    warnings: list[str]

    def __repr__(self) -> str:
        return f"Summary({self.experiment_id!r}, {len(self.points)} points, {len(self.warnings)} warnings)"


def summary_frame(summary: Summary) -> pd.DataFrame:
    """The summary as a flat table, one row per point: the columns of summary.parquet.

    A score x becomes x_value and x_signature, and that of quality quality_metric too; an estimate x becomes x, x_low
    and x_high.
    Counts are Int64 and figures Float64, since both can be missing.
    """
    import pandas as pd

    frame = pd.DataFrame([{"experiment_id": summary.experiment_id, **_flat(point)} for point in summary.points])
    kinds = {name: "Int64" if name in _COUNTS else "string" if name in _WORDS else "Float64" for name in frame.columns}
    return frame.astype(kinds)


def _flat(point: PointSummary) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in asdict(point).items():
        if name in _PARTS:
            flat |= {name + ending: None if value is None else value[part] for part, ending in _PARTS[name].items()}
        else:
            flat[name] = value
    return flat
