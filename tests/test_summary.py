from __future__ import annotations

from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from bild_bench.measure.intervals import Estimate
from bild_bench.report.summary import PointSummary, Summary, summarise, summary_frame
from bild_bench.results import Experiment
from bild_bench.schema import SampleRecord, sample_frame, sample_table
from tests.made_results import BASELINE, BILD_B, POINT, VANILLA_B, failed_sample, made_run, made_sample, two_texts


def hand_worked() -> list[SampleRecord]:
    return [sample for samples in two_texts().values() for sample in samples]


def summary_of(samples: list[SampleRecord], **run: Any) -> Summary:
    return summarise(Experiment(made_run(**run), sample_frame(sample_table(samples)), Path("nowhere")))


def point_of(samples: list[SampleRecord], **run: Any) -> PointSummary:
    return summary_of(samples, **run).points[-1]


# --- the two texts worked out by hand: seconds 2.0 and 4.0 against 0.5 and 2.5, tokens 10 and 30 against 10 and 20


def test_every_figure_of_the_hand_worked_point() -> None:
    point = point_of(hand_worked())
    assert (point.point_id, point.point, point.method, point.role) == ("1" * 16, "bild fb=0.5 rb=2", "bild", "point")
    assert (point.texts, point.paired_texts, point.errors, point.truncated, point.hit_limit) == (2, 2, 0, 0, 0)
    assert point.speedup_total is not None
    assert point.speedup_total.value == pytest.approx(6.0 / 3.0)  # the mean of ratios would be (4 + 1.6) / 2 = 2.8
    assert point.speedup_decoding is not None
    assert point.speedup_decoding.value == pytest.approx(4.5 / 1.5)
    assert point.speedup_per_token is not None
    assert point.speedup_per_token.value == pytest.approx((4.5 / 40) / (1.5 / 30))
    assert point.length_ratio == pytest.approx(30 / 40)
    assert point.ms_per_token == pytest.approx(50.0)  # 1.5 s for 30 tokens
    assert (point.decode_seconds, point.total_seconds) == pytest.approx((1.5, 3.0))
    assert point.fallback_pct == pytest.approx(20.0)  # (5 fallbacks + 1 cap) of 30
    assert point.low_confidence_pct == pytest.approx(100 * 5 / 30)
    assert point.rollback_pct == pytest.approx(10.0)  # 3 of 30
    assert point.small_share_pct == pytest.approx(70.0)  # 26 drafted, 5 discarded
    assert point.large_share_pct == pytest.approx(30.0)
    assert (point.small_calls, point.large_calls) == (31, 11)
    assert point.identical_pct == pytest.approx(50.0)


def test_the_intervals_of_two_texts_span_each_text_alone() -> None:
    # Of four equally likely resamples one has text a twice and one text b twice: they are the 95 % interval's ends.
    point = point_of(hand_worked())
    assert point.speedup_total == Estimate(*map(pytest.approx, (2.0, 4.0 / 2.5, 2.0 / 0.5)))
    assert point.speedup_decoding == Estimate(*map(pytest.approx, (3.0, 3.0 / 1.2, 1.5 / 0.3)))
    b_alone, a_alone = (3.0 / 30) / (1.2 / 20), (1.5 / 10) / (0.3 / 10)
    assert point.speedup_per_token == Estimate(*map(pytest.approx, (2.25, b_alone, a_alone)))


def test_the_baseline_is_compared_with_itself() -> None:
    baseline = summary_of(hand_worked()).points[0]
    assert baseline.role == "baseline"
    for estimate in (baseline.speedup_total, baseline.speedup_decoding, baseline.speedup_per_token):
        assert estimate == Estimate(*[pytest.approx(1.0)] * 3)
    assert (baseline.length_ratio, baseline.identical_pct) == (1.0, 100.0)
    assert baseline.ms_per_token == pytest.approx(112.5)  # 4.5 s for 40 tokens
    assert (baseline.fallback_pct, baseline.small_share_pct, baseline.large_share_pct) == (0.0, 0.0, 100.0)


def test_rouge_of_the_hand_worked_texts() -> None:
    baseline, point = summary_of(hand_worked()).points
    assert baseline.quality is not None
    assert baseline.quality.value == pytest.approx(100.0)
    # Text b, "the cat sat" for "the cat lay down": 2 words in common of 3 and of 4, so F1 = 2*2/(3+4).
    assert point.quality is not None
    assert point.quality.value == pytest.approx((100 + 100 * 4 / 7) / 2)
    assert (point.quality_low, point.quality_high) == pytest.approx((100 * 4 / 7, 100.0))
    assert "rouge-score" in point.quality.signature


def test_bleu_is_sacrebleus_over_the_ok_rows_with_its_signature() -> None:
    words = ["a man in a blue hat sells warm bread", "two dogs run over the wet sand"]
    outputs = ["a man in a blue hat sells bread", "two dogs run over wet sand"]
    samples = [
        made_sample(text_id=name, references=[reference], output_text=output)
        for name, reference, output in zip("ab", words, outputs, strict=True)
    ]
    point = point_of([*samples, failed_sample(text_id="c")], metric="bleu")
    assert point.quality is not None
    assert point.quality.value == pytest.approx(sacrebleu.corpus_bleu(outputs, [words]).score)
    assert "tok:13a" in point.quality.signature
    assert point.quality_low is not None
    assert point.quality_high is not None
    assert point.quality_low <= point.quality.value <= point.quality_high


# --- pairing


@pytest.mark.parametrize("apart", [{"process_id": "p2"}, {"machine": "m2"}, {"draw": 1}])
def test_only_rows_of_the_same_process_machine_and_draw_are_paired(apart: dict[str, Any]) -> None:
    samples = hand_worked()
    samples[3] = made_sample(POINT, **BILD_B, **apart)
    point = point_of(samples)
    assert (point.texts, point.paired_texts) == (2, 1)
    assert point.speedup_total is not None
    assert point.speedup_total.value == pytest.approx(4.0)
    assert np.isnan([point.speedup_total.low, point.speedup_total.high]).all()
    assert point.length_ratio == 1.0
    assert point.identical_pct == 100.0
    assert point.ms_per_token == pytest.approx(50.0)  # not a paired figure: both rows count


@pytest.mark.parametrize("failed", [0, 1], ids=["the baseline failed", "the point failed"])
def test_a_text_that_failed_on_either_side_is_in_no_paired_figure(failed: int) -> None:
    samples = hand_worked()
    samples[failed] = failed_sample([BASELINE, POINT][failed])
    point = point_of(samples)
    assert point.paired_texts == 1
    assert point.speedup_total is not None
    assert point.speedup_total.value == pytest.approx(4.0 / 2.5)
    assert point.length_ratio == pytest.approx(20 / 30)
    assert point.identical_pct == 0.0


def test_a_failed_text_is_counted_as_an_error_and_in_nothing_else() -> None:
    alone, beside = hand_worked()[3], [hand_worked()[3], failed_sample(text_id="a")]
    point = point_of(beside, metric="bleu")
    assert (point.texts, point.errors) == (1, 1)
    reference = point_of([alone], metric="bleu")
    assert asdict(replace(point, errors=0)) == asdict(reference)


def test_each_draw_is_a_row_and_is_paired_with_the_baselines_draw_of_its_number() -> None:
    draws = [
        made_sample(role_of, draw=draw, total_seconds=seconds)
        for draw, times in enumerate([(2.0, 1.0), (6.0, 1.0)])
        for role_of, seconds in zip([BASELINE, POINT], times, strict=True)
    ]
    point = point_of(draws)
    assert (point.texts, point.paired_texts) == (1, 1)
    assert point.speedup_total is not None
    assert point.speedup_total.value == pytest.approx(8.0 / 2.0)


def test_without_a_baseline_nothing_is_compared() -> None:
    (point,) = summary_of([made_sample()], points=[POINT]).points
    assert (point.speedup_total, point.speedup_decoding, point.speedup_per_token) == (None, None, None)
    assert (point.length_ratio, point.identical_pct) == (None, None)
    assert point.ms_per_token == pytest.approx(30.0)


# --- unknown is not zero


def test_a_null_counter_makes_its_figures_unknown_and_leaves_the_others() -> None:
    samples = hand_worked()
    samples[3] = made_sample(POINT, **{**BILD_B, "cap_handovers": None, "small_calls": None, "rollbacks": 0})
    point = point_of(samples)
    assert (point.fallback_pct, point.small_calls) == (None, None)
    assert point.low_confidence_pct == pytest.approx(100 * 5 / 30)
    assert point.rollback_pct == pytest.approx(100 * 1 / 30)
    assert point.large_calls == 11


def test_a_null_time_makes_the_speed_unknown() -> None:
    samples = hand_worked()
    samples[3] = made_sample(POINT, **{**BILD_B, "decode_seconds": None})
    point = point_of(samples)
    assert (point.speedup_decoding, point.speedup_per_token, point.ms_per_token) == (None, None, None)
    assert point.speedup_total is not None


def test_a_denominator_of_zero_gives_no_figure() -> None:
    nothing = {"generated": 0, "total_seconds": 0.0, "decode_seconds": 0.0}
    point = point_of([made_sample(BASELINE), made_sample(POINT, **nothing)])
    assert (point.ms_per_token, point.fallback_pct, point.large_share_pct) == (None, None, None)
    assert (point.speedup_total, point.speedup_decoding, point.speedup_per_token) == (None, None, None)
    assert point.length_ratio == 0.0


def test_a_point_without_an_ok_row_has_no_figures() -> None:
    point = point_of([made_sample(BASELINE), failed_sample(POINT)])
    assert (point.texts, point.errors) == (0, 1)
    known = {field.name for field in fields(point) if getattr(point, field.name) is not None}
    counts = {"texts", "paired_texts", "errors", "truncated"}
    assert known == {"point_id", "point", "method", "role"} | counts


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.floats(0.01, 100)] * 2, *[st.integers(1, 100)] * 2), min_size=1, max_size=8),
    st.integers(0, 5),
)
def test_the_speed_ups_agree_with_each_other(rows: list[tuple[float, float, int, int]], seed: int) -> None:
    samples = []
    for i, (base, seconds, base_tokens, tokens) in enumerate(rows):
        where = {"text_id": f"t{i}", "text_index": i}
        samples.append(made_sample(BASELINE, **where, generated=base_tokens, decode_seconds=base, total_seconds=base))
        samples.append(made_sample(POINT, **where, generated=tokens, decode_seconds=seconds, total_seconds=seconds))
    baseline, point = summary_of(samples, seed=seed).points
    assert point.speedup_total == point.speedup_decoding or len(rows) == 1
    assert point.speedup_total is not None
    assert point.speedup_per_token is not None
    assert point.length_ratio is not None
    assert point.speedup_per_token.value == pytest.approx(point.speedup_total.value * point.length_ratio)
    assert baseline.ms_per_token is not None
    assert point.ms_per_token is not None
    assert point.speedup_per_token.value == pytest.approx(baseline.ms_per_token / point.ms_per_token)


# --- the flat table


def test_the_frame_is_flat_and_keeps_unknown_apart_from_zero(tmp_path: Path) -> None:
    samples = hand_worked()
    samples[2] = made_sample(BASELINE, **{**VANILLA_B, "rollbacks": None})
    summary_frame(summary_of(samples)).to_parquet(tmp_path / "summary.parquet")
    frame = pd.read_parquet(tmp_path / "summary.parquet")
    assert frame["experiment_id"].tolist() == ["e1", "e1"]
    assert frame["point"].tolist() == ["vanilla", "bild fb=0.5 rb=2"]
    assert frame["quality_value"].tolist() == pytest.approx([100.0, (100 + 400 / 7) / 2])
    assert frame["quality_metric"].tolist() == ["rougeL", "rougeL"]
    assert frame["speedup_total"].tolist() == pytest.approx([1.0, 2.0])
    assert frame["speedup_total_low"].tolist() == pytest.approx([1.0, 1.6])
    assert frame["speedup_total_high"].tolist() == pytest.approx([1.0, 4.0])
    assert frame["fallback_pct"].tolist() == pytest.approx([0.0, 20.0])
    assert frame["rollback_pct"].isna().tolist() == [True, False]
    assert frame["large_calls"].tolist() == [40, 11]
    assert not [name for name in frame.columns if isinstance(frame[name].iloc[0], dict)]


def test_the_frame_has_the_same_columns_and_types_when_nothing_is_known() -> None:
    known, unknown = summary_frame(summary_of(hand_worked())), summary_frame(summary_of([failed_sample()]))
    assert known.dtypes.to_dict() == unknown.dtypes.to_dict()
    assert unknown["speedup_total_low"].isna().all()
    assert unknown["quality_signature"].isna().all()
