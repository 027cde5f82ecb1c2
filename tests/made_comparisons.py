"""Changed copies of the hand-worked records, for comparisons.

Unchanged the point takes 0.3 and 1.2 seconds of decoding (0.5 and 2.5 in all) where vanilla takes 1.5 and 3 (2 and 4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bild_bench.schema import SampleRecord
from tests.made_results import two_texts

Texts = dict[str, list[SampleRecord]]


def changed(text_id: str, texts: Texts | None = None, /, **changes: Any) -> Texts:
    """The hand-worked rows with the point's row of one text changed."""
    texts = two_texts() if texts is None else texts
    baseline, point = texts[text_id]
    return texts | {text_id: [baseline, replace(point, **changes)]}


def slower() -> Texts:
    """Twice the point's seconds in every text: ratios are exact in every resample too."""
    texts = changed("a", decode_seconds=0.6, total_seconds=1.0)
    return changed("b", texts, decode_seconds=2.4, total_seconds=5.0)


def worse() -> Texts:
    """ROUGE-L 80 instead of 100 for text a, and 40 instead of 57.14 for text b."""
    return changed("b", changed("a", output_text="the cat"), output_text="the")
