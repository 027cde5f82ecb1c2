"""Several draws of each text, by hand: draws are further rows and no further texts."""

from __future__ import annotations

import math
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from bild_bench.measure.intervals import Estimate
from bild_bench.measure.quality import METRICS, Metric, score
from bild_bench.measure.quality_intervals import mean_quality_interval, quality_interval
from bild_bench.report.summary import PointSummary, Summary, summarise, summary_frame
from bild_bench.report.table import print_table, to_json
from bild_bench.results import Experiment
from bild_bench.schema import RunRecord, SampleRecord, sample_frame, sample_table
from tests.made_results import BASELINE, POINT, failed_sample, made_run, made_sample

REFERENCES = {"a": "the cat sat", "b": "the dog ran far"}
# ROUGE-L of each draw's output: 100 and 2*2/(2+3) = 80; 100 and 2*2/(2+4) = 66.7; 100 twice and nothing.
OUTPUTS = {
    "a": ["the cat sat", "the cat", "the cat sat"],
    "b": ["the dog", "the dog ran far", "elephants"],
}
SCORES = {"a": [100, 80, 100], "b": [200 / 3, 100, 0]}
MEANS = [250 / 3, 90, 50]  # of each draw


def row(role: dict[str, Any], text: str, draw: int, **changes: Any) -> SampleRecord:
    where = {"text_id": text, "text_index": "ab".index(text), "references": [REFERENCES[text]], "draw": draw}
    return made_sample(role, **{**where, **changes})


def drawn() -> list[SampleRecord]:
    """Vanilla always takes 3 s for 10 tokens; the point 1 s for text a and 2 s for b, but 3 s in b's last draw."""
    times = {"a": [1.0, 1.0, 1.0], "b": [2.0, 2.0, 3.0]}
    samples = []
    for text in "ab":
        for draw in range(3):
            took = {"total_seconds": times[text][draw], "decode_seconds": times[text][draw]}
            samples += [
                row(BASELINE, text, draw, output_text=REFERENCES[text], total_seconds=3.0, decode_seconds=3.0),
                row(POINT, text, draw, output_text=OUTPUTS[text][draw], **took),
            ]
    return samples


def run(**changes: Any) -> RunRecord:
    return made_run(**{"configuration": {"dtype": "float32", "draws": 3}, **changes})


def summary_of(samples: list[SampleRecord], **changes: Any) -> Summary:
    return summarise(Experiment(run(**changes), sample_frame(sample_table(samples)), Path("nowhere")))


def point_of(samples: list[SampleRecord], **changes: Any) -> PointSummary:
    return summary_of(samples, **changes).points[-1]


def test_quality_is_the_mean_over_draws_with_their_standard_deviation() -> None:
    point = point_of(drawn())
    assert point.quality is not None
    mean = sum(MEANS) / 3
    assert point.quality.value == pytest.approx(mean)
    # By the textbook formula, with n - 1.
    assert point.quality_spread == pytest.approx(math.sqrt(sum((value - mean) ** 2 for value in MEANS) / 2))
    assert point.texts == 2


def test_bleu_is_that_of_each_draws_corpus_and_not_of_all_rows_together() -> None:
    point = point_of(drawn(), metric="bleu")
    corpora = [
        score("bleu", [OUTPUTS["a"][draw], OUTPUTS["b"][draw]], [[text] for text in REFERENCES.values()]).value
        for draw in range(3)
    ]
    assert point.quality is not None
    assert point.quality.value == pytest.approx(sum(corpora) / 3)
    pooled = score("bleu", [*OUTPUTS["a"], *OUTPUTS["b"]], [["the cat sat"]] * 3 + [["the dog ran far"]] * 3).value
    assert abs(pooled - point.quality.value) > 1


def test_one_draw_has_no_spread() -> None:
    point = point_of([sample for sample in drawn() if sample.draw == 0])
    assert point.quality is not None
    assert point.quality.value == pytest.approx(MEANS[0])
    assert point.quality_spread is None


def test_intervals_resample_a_text_with_all_its_draws() -> None:
    # Two texts have four equally likely resamples: a twice and b twice are the interval's ends.
    point = point_of(drawn())
    means = sorted(sum(values) / 3 for values in SCORES.values())
    assert (point.quality_low, point.quality_high) == pytest.approx(tuple(means))
    assert point.speedup_total == Estimate(*map(pytest.approx, (18 / 10, 9 / 7, 9 / 3)))
    assert point.speedup_decoding == point.speedup_total
    assert point.speedup_per_token == Estimate(*map(pytest.approx, (18 / 10, 9 / 7, 9 / 3)))


def test_draws_of_one_text_give_no_interval() -> None:
    point = point_of([sample for sample in drawn() if sample.text_id == "b"])
    assert point.quality_spread is not None
    assert point.speedup_total is not None
    assert point.speedup_per_token is not None
    found = [point.quality_low, point.quality_high, point.speedup_total.low, point.speedup_per_token.high]
    assert all(value is not None and math.isnan(value) for value in found)


def test_a_draw_that_lacks_a_text_is_scored_over_those_it_has() -> None:
    samples = [sample for sample in drawn() if (sample.text_id, sample.draw, sample.role) != ("b", 2, "point")]
    where = {"text_id": "b", "text_index": 1, "references": [REFERENCES["b"]], "draw": 2}
    point = point_of([*samples, failed_sample(POINT, **where)])
    assert point.quality is not None
    assert point.quality.value == pytest.approx((MEANS[0] + MEANS[1] + 100) / 3)
    assert (point.texts, point.errors) == (2, 1)
    # A resample of text b alone has nothing in the last draw.
    assert point.quality_low is not None
    assert math.isnan(point.quality_low)


TEXTS = st.lists(st.sampled_from(["the cat", "the cat sat", "a dog ran far", ""]), min_size=3, max_size=3)


@settings(max_examples=25, deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(METRICS), st.integers(0, 100))
def test_equal_draws_have_the_interval_of_one(
    outputs: list[str], references: list[str], metric: Metric, seed: int
) -> None:
    alone = quality_interval(metric, outputs, [[text] for text in references], seed=seed, resamples=50)
    draw = (["x", "y", "z"], outputs, [[text] for text in references])
    assert mean_quality_interval(metric, [draw] * 4, seed=seed, resamples=50) == pytest.approx(alone)


def test_the_table_shows_the_mean_and_its_spread_and_says_so() -> None:
    assert "74.4 ± 21.4" in printed(summary_of(drawn()))
    text = printed(summary_of(drawn()))
    assert "100.0 ± 0.0" in text, "the baseline was drawn too"
    assert "quality: mean ± standard deviation over draws" in text
    assert "3 draws per text" in text


def printed(summary: Summary) -> str:
    stream = StringIO()
    print_table(Console(file=stream, width=160), summary, run())
    return stream.getvalue()


def test_the_table_of_one_draw_shows_no_spread() -> None:
    stream = StringIO()
    one = made_run()
    print_table(Console(file=stream, width=160), summary_of([made_sample(BASELINE), made_sample()]), one)
    assert "±" not in stream.getvalue()
    assert "draws" not in stream.getvalue()


def test_files_hold_the_spread(tmp_path: Path) -> None:
    several, one = summary_of(drawn()), summary_of([sample for sample in drawn() if sample.draw == 0])
    summary_frame(several).to_parquet(tmp_path / "summary.parquet")
    frame = pd.read_parquet(tmp_path / "summary.parquet")
    assert frame["quality_spread"].tolist() == pytest.approx([0.0, several.points[1].quality_spread])
    assert summary_frame(one)["quality_spread"].isna().all()
    assert summary_frame(one).dtypes.to_dict() == summary_frame(several).dtypes.to_dict()
    points = to_json(several, run())["points"]
    assert points[1]["quality_spread"] == several.points[1].quality_spread
