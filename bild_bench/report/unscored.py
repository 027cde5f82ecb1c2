"""What a comparison must say of texts without a reference, and of outputs without a text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bild_bench.measure.answered import answered_rows, empty_outputs
from bild_bench.measure.scripts import script_warning
from bild_bench.report.compare_points import Side

if TYPE_CHECKING:
    import pandas as pd


def unanswered(rows: pd.DataFrame, metric: str) -> list[str]:
    """Lines on the texts of these rows that no score can rest on, or none by this metric."""
    texts = rows[rows["status"] == "ok"].drop_duplicates("text_id")
    without = len(texts) - len(answered_rows(texts))
    if without == len(texts) > 0:
        return ["no text has a reference: scores mean nothing"]
    unreadable = script_warning(metric, texts["references"])
    found = [] if unreadable is None else [unreadable]
    return found + ([f"{without} of {len(texts)} texts have no reference and are not scored"] if without else [])


def empty_in_either(a: Side, b: Side) -> list[str]:
    """A line on a point's empty outputs in both sets; none where there are none."""
    counts = {}
    for name, side in (("A", a), ("B", b)):
        counts[name] = len(empty_outputs(side.rows[side.rows["point_id"] == side.point["point_id"]]))
    told = [f"{count} in {name}" for name, count in counts.items() if count]
    return [f"outputs that are empty: {', '.join(told)}"] if told else []
