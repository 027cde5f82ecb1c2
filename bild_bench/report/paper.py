"""The published figures of BiLD's paper (Kim et al., NeurIPS 2023, arXiv 2302.07863), from paper.csv beside this file.

They were measured on other hardware with other checkpoints: marks to look at, never points of a front. "not stated"
stands where the source does not say; the denominator of its percentages is not stated either.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from bild_bench.measure.metrics import USUAL, is_bleu, tokenizer_of

NOT_STATED = "not stated"

_FILE = Path(__file__).with_name("paper.csv")


@dataclass(frozen=True, kw_only=True)
class PaperPoint:
    """One published figure or row; None where there is none.

    quality: in points of `metric`. speedup: over the paper's vanilla. aligned: whether the small model was aligned to
    the large one ("yes", "no"). fallback_pct, rollback_pct: of tokens, as published. average_layers: decoder layers a
    token (CALM). flops_ratio, memory_operations_ratio, intensity_ratio: over vanilla.
    """

    task: str
    metric: str
    split: str
    method: str
    aligned: str
    setting: str
    quality: float | None
    speedup: float | None
    fallback_pct: float | None
    rollback_pct: float | None
    average_layers: float | None
    flops_ratio: float | None
    memory_operations_ratio: float | None
    intensity_ratio: float | None
    note: str
    source_table: str
    hardware: str

    @property
    def label(self) -> str:
        """Method, alignment and setting, such as "bild aligned, no drop"."""
        return f"{self.method}{' aligned' if self.aligned == 'yes' else ''}, {self.setting}"


def metric_name(metric: str) -> str:
    """As papers write it, such as "ROUGE-L"."""
    if is_bleu(metric) and tokenizer_of(metric) != USUAL:
        return f"BLEU ({tokenizer_of(metric)})"
    return {"bleu": "BLEU", "chrf": "chrF2", "rougeL": "ROUGE-L", "rougeLsum": "ROUGE-Lsum"}.get(metric, metric)


@cache
def paper_points() -> tuple[PaperPoint, ...]:
    """Every published figure, in the file's order."""
    numbers = {field.name for field in fields(PaperPoint) if field.type == "float | None"}
    with _FILE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    values: list[dict[str, Any]] = [{n: _number(v) if n in numbers else v for n, v in row.items()} for row in rows]
    return tuple(PaperPoint(**row) for row in values)


def plotted(task: str, *, sampling: bool) -> tuple[PaperPoint, ...]:
    """Those with a quality and a speed-up on this task, of greedy search or of sampling.

    Published CALM and early-exit figures are of other large models; their settings say which.
    """
    return tuple(
        point
        for point in paper_points()
        if point.task == task
        and point.quality is not None
        and point.speedup is not None
        and point.setting.startswith("nucleus") == sampling
    )


def _number(text: str) -> float | None:
    return None if text == "" else float(text)
