"""What a reader must know before believing an experiment's figures, one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bild_bench.decoding.early_exit import UNTRAINED, untrained_exit
from bild_bench.measure.answered import answered_rows, empty_outputs
from bild_bench.measure.scripts import script_warning

if TYPE_CHECKING:
    import pandas as pd

    from bild_bench.report.summary import PointSummary
    from bild_bench.results import Experiment
    from bild_bench.schema import RunRecord

_LENGTH_TOLERANCE = 0.05
_FEW_TEXTS = 30


def caveats(experiment: Experiment, points: Sequence[PointSummary]) -> list[str]:
    """The experiment's warnings, then each point's, in the run's order."""
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
    for point in points:
        problems = _of_point(point, failed)
        outputs = int(empty.get(point.point_id, 0))
        if outputs:
            problems.append(f"{outputs} of its outputs {'is' if outputs == 1 else 'are'} empty")
        found += [f"{point.point}: {problem}" for problem in problems]
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
        found.append(f"{unanswered} of {len(texts)} texts {have} no reference (null or empty): timed, and in no score")
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


def _of_point(point: PointSummary, failed: pd.DataFrame) -> list[str]:
    found = []
    if point.errors:
        first = failed.loc[failed["point_id"] == point.point_id, "error"].iloc[0]
        found.append(f"{point.errors} failed and are left out of every figure (the first: {first})")
    if point.diverged_texts and point.divergence_margin_max is not None:
        found.append(
            f"claims the baseline's tokens, yet {point.diverged_texts} of {point.texts} texts have others: largest"
            f" margin {point.divergence_margin_max:.2g} logits (rounding breaks ties; more than that is a fault)"
        )
    if point.hit_limit is not None and point.hit_limit > 0:
        found.append(f"{point.hit_limit} of the outputs ended at the length limit")
    if point.length_ratio is not None and abs(point.length_ratio - 1) > _LENGTH_TOLERANCE:
        found.append(f"outputs are {point.length_ratio:.2f} times as long as the baseline's: compare per token")
    if point.speedup_total is not None and point.speedup_total.high < 1:
        total = point.speedup_total
        found.append(f"slower than the baseline: {total.value:.2f}x, interval {total.low:.2f} to {total.high:.2f}")
    return found
