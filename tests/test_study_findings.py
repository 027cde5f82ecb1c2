"""What the study found, claim by claim, on rows made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from study.findings import SETS, findings_table
from study.operations import Operations
from study.rows import Row, load
from tests.test_study_choice import row

ROOT = Path(__file__).resolve().parents[1]
ZERO = dict.fromkeys(Operations.__dataclass_fields__)


def found(rows: list[Row], operations: list[Operations] | None = None) -> dict[str, str]:
    """Claim -> the figures beside it."""
    lines = findings_table(rows, operations or []).splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return {claim: figures for _, claim, _, figures in cells}


def point(method: str, small: str, rules: str, speedup: float, difference: float, **changes: Any) -> Row:
    settled = {"difference": difference, "difference_low": difference - 1, "difference_high": difference + 1}
    settled |= {"metric": "bleu", "speedup_low": speedup - 0.5, "speedup_high": speedup + 0.5}
    return row(method=method, small=small, rules=rules, speedup=speedup, **{**settled, **changes})


def told(rows: list[Row], claim: str) -> str:
    return next(figures for name, figures in found(rows).items() if claim in name)


def test_a_claim_that_no_row_speaks_to_is_told_without_figures() -> None:
    assert set(found([]).values()) == {""}


def test_bild_stands_beside_speculative_decoding_with_the_same_small_model() -> None:
    rows = [
        point("bild", "aligned", "no loss; best quality", 2.5, -0.25, rollback_pct=0.5),
        point("speculative", "aligned", "speculative", 1.5, 0.0, rollback_pct=15.0),
        point("bild", "small", "no loss", 1.4, -0.5, rollback_pct=0.5),
        point("speculative", "small", "speculative", 9.0, 0.0, trial="nucleus"),
    ]
    bild, rival = "2.50x [2.00, 3.00], BLEU -0.25 [-1.25, +0.75]", "speculative 1.50x [1.00, 2.00], no loss"
    assert told(rows, "quality, BiLD is faster") == f"captions, aligned: {bild}; {rival}"
    assert told(rows, "rolls back") == "captions: 15.0 % of tokens; BiLD 0.5 %"
    assert told(rows, "without loss") == f"captions, no loss on validation: {bild}"


def test_alignment_is_told_at_equal_thresholds_and_strides() -> None:
    thresholds = json.dumps({"alpha_fb": 0.5, "alpha_rb": 2.0, "max_draft": None})
    stride = json.dumps({"alpha_fb": 0.0, "alpha_rb": 2.0, "max_draft": 5})
    rows = [
        point("bild", "small", "", 1.0, 0.0, settings=thresholds, fallback_pct=30.0),
        point("bild", "aligned", "", 1.0, 0.0, settings=thresholds, fallback_pct=10.0),
        point("bild", "small", "", 1.0, 0.0, settings=stride, rollback_pct=9.0),
    ]
    assert told(rows, "alignment") == "captions, fallbacks at equal thresholds: 30.0 % of tokens; aligned 10.0 %"


def test_an_ablation_stands_at_the_quality_of_the_whole_method_or_at_its_best() -> None:
    whole = point("bild", "aligned", "within 1 point", 3.0, -0.9, quality=39.0)
    near = point("bild", "aligned", "", 2.0, -0.5, quality=39.5, point="bild fb=0.7 rb=never")
    fast = point("bild", "aligned", "", 4.0, -2.0, quality=38.0, point="bild fb=0.3 rb=never")
    beside = "whole method 3.00x [2.50, 3.50], BLEU -0.90 [-1.90, +0.10]"
    line = f"captions: 2.00x [1.50, 2.50], BLEU -0.50 [-1.50, +0.50]; {beside}"
    assert told([whole, near, fast], "without rollback") == line
    assert told([whole, fast], "without rollback").startswith("captions: 4.00x [3.50, 4.50], BLEU -2.00 ")


def test_early_exit_and_calm_are_compared_where_both_are_twice_as_fast() -> None:
    rows = [
        point("bild-early-exit", "", "", 2.1, 0.0, trial="early-exit", quality=42.0, point="exit 1"),
        point("bild-early-exit", "", "", 1.9, 0.0, trial="early-exit", quality=43.0, point="exit 2"),
        point("calm", "", "", 3.0, 0.0, trial="calm", quality=38.0, point="calm 1"),
        point("calm", "", "", 2.0, 0.0, trial="calm", quality=40.0, point="calm 2"),
    ]
    first, second = told(rows, "early exit").split("<br>")
    assert first.startswith("BiLD by early exit, best at 2x or faster: BLEU 42.00")
    assert second.startswith("CALM, best at 2x or faster: BLEU 40.00")
    assert told(rows[1:2], "early exit") == ""


def test_the_oracle_tells_the_least_share_that_loses_half_a_point_at_most() -> None:
    shares = {10.0: -0.6, 17.0: -0.5, 30.0: 0.0}
    rows = [point("oracle", "small", "", 1.0, loss, large_share_pct=share) for share, loss in shares.items()]
    assert told(rows, "few tokens") == "captions, not aligned: 17 % of tokens, BLEU -0.50 [-1.50, +0.50]"


def test_operations_are_told_as_the_range_over_the_chosen_points() -> None:
    made = [
        Operations(**{**ZERO, "trial": "captions", "rules": rules, "flops_ratio": flops, "bytes_ratio": moved})
        for rules, flops, moved in (("no loss", 0.9, 0.5), ("within 1 point", 0.8, 0.5), ("", 9.0, 9.0))
    ]
    assert found([], made)["BiLD does slightly more arithmetic and moves far fewer bytes"] == (
        "captions: FLOPs 0.80x to 0.90x of vanilla's, bytes 0.50x"
    )


def test_the_pages_answer_is_what_the_rows_say() -> None:
    """docs/STUDY.md, "Answer": more than twice as fast, and the intervals of the loss include zero."""
    rows = load(ROOT / "results" / "reference" / "study.parquet")[0]
    chosen = [one for one in rows if (one.method, one.small) == ("bild", "aligned") and "no loss" in one.rules]
    chosen = [one for one in chosen if one.trial in SETS]
    assert {one.trial for one in chosen} == set(SETS)
    for one in chosen:
        assert (one.speedup_low or 0.0) > 2
        assert (one.difference_low or 0.0) < 0 < (one.difference_high or 0.0)
