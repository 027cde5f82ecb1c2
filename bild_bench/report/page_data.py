"""What the HTML page shows of a group, as plain JSON values: the page's script draws it and computes nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bild_bench.errors import DataError
from bild_bench.measure.moments import NOT_PREDICTABLE
from bild_bench.printable import visible_values
from bild_bench.report import charts
from bild_bench.report.answers import answers, sample_reader
from bild_bench.report.cautions import Cautions, sorted_cautions
from bild_bench.report.corrections import corrections
from bild_bench.report.export import beaten
from bild_bench.report.page_charts import page_charts
from bild_bench.report.page_record import records
from bild_bench.report.page_texts import texts_of

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.measure.intervals import Estimate
    from bild_bench.report.answers import Answer, Samples
    from bild_bench.report.collect import Entry, Group
    from bild_bench.report.significance import Significance

# Two sweeps of thirty points: a page with more is read by its table and plot.
_MOST_DRILLED = 60
_FIGURES = (
    *("ms_per_token", "fallback_pct", "rollback_pct", "large_share_pct", "length_ratio", "identical_pct"),
    *("small_calls", "large_calls", "texts", "tokens_per_second", "acceptance_pct", "mean_accepted_length"),
    *("latency_p50_ms", "latency_p95_ms", "latency_p99_ms", "quality_p_value", "peak_memory_bytes"),
)


def group_data(group: Group, *, bytes_for_texts: int, **questions: Any) -> dict[str, Any]:
    """One section of the page.

    Args:
        group: from `collect`.
        questions: for `answers.answers`: max_drops, min_speedup.
        bytes_for_texts: most that the traces of its texts may take as JSON.

    Returns:
        title, heading; facts: [name, value] pairs; points: one per row of the table; charts: see `page_charts`; texts:
        see `page_texts.texts_of`; corrections: label -> figures; records: see `page_record.records`; answers; warnings,
        damaged samples among them; notes: what is to be known of the points.
    """
    samples = sample_reader()
    found_answers, cautions = _conclusions(group, samples, questions)
    drilled = _drilled(group)
    rows, lost = _rows(drilled, samples, group.text_ids)
    found = {label: corrections(frame) for label, frame in rows.items()}
    notes = cautions.notes
    if len(drilled) < len(group.entries):
        notes = [*notes, f"texts and corrections are shown of {len(drilled)} of {len(group.entries)} points"]
    texts = texts_of(rows, group.text_ids, most_bytes=bytes_for_texts)
    shown = visible_values(
        json_values(
            {
                "title": group.title,
                "heading": f"{group.run.data_label}, {group.run.split}",
                "metric": charts.metric_name(group.run.metric),
                "facts": _facts(group),
                "points": [_point(entry) for entry in group.entries],
                "charts": page_charts(group),
                "corrections": {label: asdict(figures) for label, figures in found.items() if figures is not None},
                "records": records(group),
                "answers": found_answers,
                "warnings": cautions.warnings + lost,
                "notes": notes,
            }
        )
    )
    # What a text holds is the text's own.
    return {**shown, "texts": json_values(texts)}


def json_values(value: Any) -> Any:
    """The same with nothing that strict JSON lacks: NaN becomes null, an infinity "inf" or "-inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): json_values(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(item) for item in value]
    return value


def _conclusions(group: Group, samples: Samples, questions: dict[str, Any]) -> tuple[list[dict[str, Any]], Cautions]:
    """Answers, warnings and notes; figures read from the summary stay, even if samples are damaged."""
    try:
        found = [_answer(answer) for answer in answers(group, samples=samples, **questions)]
        return found, sorted_cautions(group, samples)
    except DataError as error:
        return [], Cautions([f"neither answers nor further warnings: {error}"], [])


def _drilled(group: Group) -> list[Entry]:
    """The points whose texts are shown, in the group's order: all, or baselines of the front, the front, and others."""
    fronts = {entry.member.directory for entry in group.entries if entry.front}

    def rank(entry: Entry) -> int:
        if entry.front:
            return 0
        return 1 if entry.summary.role == "baseline" and entry.member.directory in fronts else 2

    chosen = {id(entry) for entry in sorted(group.entries, key=rank)[:_MOST_DRILLED]}
    return [entry for entry in group.entries if id(entry) in chosen]


def _rows(
    entries: Sequence[Entry], samples: Samples, text_ids: Sequence[str]
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Each point's rows by label, and a line on each experiment whose samples cannot be read."""
    rows, lost = {}, {}
    for entry in entries:
        try:
            frame = samples(entry.member)
        except DataError as error:
            lost[entry.member.directory] = f"no texts of this experiment: {error}"
            continue
        mine = (frame["point_id"] == entry.summary.point_id) & frame["text_id"].isin(text_ids)
        rows[entry.label] = frame[mine]
    return rows, list(lost.values())


def _point(entry: Entry) -> dict[str, Any]:
    """A row of the table; an estimate is [value, low, high]."""
    summary = entry.summary
    quality = None if summary.quality is None else [summary.quality.value, summary.quality_low, summary.quality_high]
    return {
        "label": entry.label,
        "experiment": str(entry.member.directory),
        "method": summary.method,
        "baseline": summary.role == "baseline",
        "front": entry.front,
        "pruned": entry.pruned,
        "quality": quality,
        "quality_difference": _estimate(summary.quality_difference),
        "chrf": None if summary.chrf is None else summary.chrf.value,
        "speedup_decoding": _estimate(summary.speedup_decoding),
        "speedup_total": _estimate(summary.speedup_total),
        **{name: getattr(summary, name) for name in _FIGURES},
        "settings": [[name, str(value)] for name, value in entry.settings.items()],
    }


def _answer(answer: Answer) -> dict[str, Any]:
    """A card: the question, the figure, the point, and what stands behind it."""
    entry, asked = answer.entry, {"question": answer.question}
    if entry is None:
        return {**asked, "figure": "none", "interval": None, "label": None, "notes": ["No point does that."]}
    notes = []
    if entry.quality is not None:
        metric = charts.metric_name(entry.member.run.metric)
        notes.append(f"{metric} {entry.quality:.2f}{_against(answer.significance)}")
    if entry.summary.role == "baseline":
        why = beaten(answer).replace("x decoding", "× decoding")
        notes.append(f"{why[0].upper()}{why[1:]}.")
    parts = answer.parts
    if parts is not None and not parts.plausible:
        notes.append(f"{NOT_PREDICTABLE[0].upper()}{NOT_PREDICTABLE[1:]}.")
    elif parts is not None:
        notes.append(
            f"Predicted from its calls: {parts.predicted:.2f}×. Its time: {parts.small_pct:.0f} % small model, "
            f"{parts.large_pct:.0f} % large model, {parts.rest_pct:.0f} % the rest.".replace("-", "−")
        )
    if answer.in_sample:
        notes.append("In-sample: chosen on the texts it is measured on.")
    figure = "–" if entry.speedup is None else f"{entry.speedup:.2f}×"
    speed = entry.summary.speedup_decoding
    # One text has no interval, and the baseline's speed-up over itself no width.
    interval = f"{speed.low:.2f} – {speed.high:.2f}×" if speed is not None and speed.low < speed.high else None
    return {**asked, "figure": figure, "interval": interval, "label": entry.label, "notes": notes}


def _against(significance: Significance | None) -> str:
    """Such as ", 0.44 below the baseline [−1.02, 0.10], p = 0.120"."""
    if significance is None:
        return ""
    difference, low, high = significance.difference, significance.low, significance.high
    if difference == low == high == 0:
        # No resample can tell two equal sets of texts apart: a p-value would say nothing.
        return ", as the baseline's on every resample"
    said = f", {abs(difference):.2f} {'above' if difference >= 0 else 'below'} the baseline"
    if low < high:
        said += f" [{_signed(low)}, {_signed(high)}]"
    return said if significance.p_value is None else f"{said}, p = {significance.p_value:.3f}"


def _signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def _estimate(estimate: Estimate | None) -> list[float] | None:
    return None if estimate is None else [estimate.value, estimate.low, estimate.high]


def _facts(group: Group) -> list[list[str]]:
    """What all figures of the section rest on, in the order in which a reader asks."""
    from rich.filesize import decimal

    run = group.run
    environment = run.environment
    peaks = [entry.summary.peak_memory_bytes for entry in group.entries if entry.summary.peak_memory_bytes is not None]
    # Of a GPU run the GPU is the machine.
    machine = environment.get("gpu_name") or environment.get("cpu_model")
    facts = {
        "texts": f"{len(group.text_ids)}",
        "pair": ", ".join(dict.fromkeys(member.run.pair_label for member in group.members)),
        "machine": machine,
        "device": environment.get("device"),
        "threads": environment.get("threads"),
        "dtype": run.configuration.get("dtype"),
        "batch size": 1,
        "peak memory": decimal(max(peaks)) if peaks else None,
        "measured": (run.completed_at or run.created_at)[:10],
    }
    return [[name, str(value)] for name, value in facts.items() if value is not None]
