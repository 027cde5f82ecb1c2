"""What a reader must know before believing an experiment's figures, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bild_bench.decoding.early_exit import UNTRAINED, untrained_exit
from bild_bench.measure.answered import answered_rows, empty_outputs
from bild_bench.measure.scripts import script_warning
from bild_bench.report.point_problems import doubts, slower

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.report.summary import PointSummary
    from bild_bench.results import Experiment
    from bild_bench.schema import RunRecord

_FEW_TEXTS = 30
# A share of the texts: fewer whose threads had to wait move no figure.
_LATE_TEXTS = 0.1


def caveats(experiment: Experiment, points: Sequence[PointSummary]) -> list[str]:
    """Every reason for doubt, then what is merely to be noted of the points."""
    return [*reasons_for_doubt(experiment, points), *slower(points)]


def reasons_for_doubt(experiment: Experiment, points: Sequence[PointSummary]) -> list[str]:
    """The experiment's warnings, then its points', those of one kind in one line."""
    run, samples = experiment.run, experiment.samples
    there = samples["text_id"].nunique()
    # As the table counts them: the texts that figures rest on.
    texts = max((point.texts for point in points), default=0)
    found = []
    if run.status != "complete":
        found.append(f"not complete: {there} of {run.texts} texts so far")
    busy = run.environment_after.get("busy")
    if busy is not None:
        found.append(str(busy))
    if texts < _FEW_TEXTS:
        counted = f"{texts}" if texts == there else f"{texts} of {there}"
        found.append(f"fewer than {_FEW_TEXTS} texts ({counted}): too few to tell small differences apart")
    late = run.environment_after.get("late_texts", 0)
    if late > _LATE_TEXTS * there:
        found.append(f"threads waited for a busy core in {late} of {there} texts: use --threads 1")
    found += _of_run(run)
    objective = run.models.get("large", {}).get("objective")
    if any(untrained_exit(point["method"], objective) and not point.get("lossless") for point in run.points):
        found.append(UNTRAINED)
    cut = samples.loc[samples["source_truncated"] & (samples["status"] == "ok"), "text_id"].nunique()
    if cut:
        found.append(f"{cut} of {texts} sources were cut at the source limit")
    failed = samples[samples["status"] == "error"]
    ok = samples[samples["status"] == "ok"]
    found += _of_references(run, ok)
    empty = empty_outputs(ok)["point_id"].value_counts()
    found += doubts(points, failed, {str(name): int(count) for name, count in empty.items()})
    return found


def _of_references(run: RunRecord, ok: pd.DataFrame) -> list[str]:
    """Texts that no score can rest on."""
    texts = ok.drop_duplicates("text_id")
    if texts.empty:
        return []
    unanswered = len(texts) - len(answered_rows(texts))
    if unanswered == len(texts):
        return ["every reference is empty: nothing is scored"]
    unreadable = script_warning(run.metric, texts["references"])
    found = [] if unreadable is None else [unreadable]
    if unanswered:
        have = "has" if unanswered == 1 else "have"
        found.append(f"{unanswered} of {len(texts)} texts {have} no reference (null or empty): timed but not scored")
    return found


def _of_run(run: RunRecord) -> list[str]:
    """What its record says of its texts and of the way they were timed."""
    data, found = run.data, []
    expected, total = data.get("expected"), data.get("total")
    if expected is not None and total is not None and total < expected:
        found.append(f"only {total:,} of {expected:,} texts of the {run.split} split were there, not the whole set")
    unknown = data.get("unknown_source_tokens")
    if unknown:
        found.append(
            f"{unknown:,} source token{'' if unknown == 1 else 's'} unknown to the tokenizer,"
            f" in {data.get('texts_with_unknown')} of {run.texts} texts"
        )
    column = data.get("source_column")
    if column is not None and column == data.get("target_column"):
        found.append(f"source and references are the same column ({column}): scores mean nothing")
    if run.configuration.get("warmup") == 0:
        found.append("no warm-up (--warmup 0): first calls, which are slower, are timed")
    return found
