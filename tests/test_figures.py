"""The figures that people look for: difference, chrF, acceptance, latency, memory; and files that lack them."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import sacrebleu

from bild_bench import directories, results
from bild_bench.report.collect import collect
from bild_bench.report.page_data import group_data
from bild_bench.report.point import PointSummary, Summary, summary_frame
from bild_bench.report.stored import stored_points
from bild_bench.report.summary import summarise
from bild_bench.results import Experiment
from bild_bench.schema import SampleRecord, sample_frame, sample_table
from tests.made_reports import experiment, only_group
from tests.made_results import BASELINE, BILD_A, BILD_B, POINT, VANILLA_B, made_run, made_sample, two_texts

LATER = [field.name for field in fields(PointSummary) if field.default is None]


def summary_of(samples: list[SampleRecord], **run: Any) -> Summary:
    return summarise(Experiment(made_run(**run), sample_frame(sample_table(samples)), Path("nowhere")))


def hand_worked() -> list[SampleRecord]:
    return [sample for samples in two_texts().values() for sample in samples]


def test_the_hand_worked_points_further_figures() -> None:
    baseline, point = summary_of(
        hand_worked(), environment_after={"rss_peak_bytes": 5000, "gpu_peak_bytes": None}
    ).points
    # Text a scores the same, text b 400/7 for 100: half of that on average, and either text alone is an end.
    lost = 100 - 400 / 7
    assert point.quality_difference is not None
    assert point.quality_difference.value == pytest.approx(-lost / 2)
    assert (point.quality_difference.low, point.quality_difference.high) == pytest.approx((-lost, 0.0))
    assert point.quality_p_value == pytest.approx(0.5, abs=0.05)
    assert point.acceptance_pct == pytest.approx(100 * 21 / 26)  # 26 drafted, 5 discarded
    assert point.mean_accepted_length == pytest.approx(30 / 11)  # 30 tokens in 11 large calls
    assert point.tokens_per_second == pytest.approx(30 / 1.5)
    assert point.latency_p50_ms == pytest.approx(1500.0)  # of 0.5 s and 2.5 s
    assert (point.latency_p95_ms, point.latency_p99_ms, point.chrf) == (None, None, None)
    assert (baseline.peak_memory_bytes, point.peak_memory_bytes) == (5000, 5000)
    assert baseline.quality_difference is not None
    assert (baseline.quality_difference.value, baseline.quality_p_value) == (0.0, 1.0)
    assert (baseline.acceptance_pct, baseline.mean_accepted_length) == (None, 1.0)


def test_the_small_model_alone_has_no_acceptance_and_a_gpu_its_own_memory() -> None:
    alone = {"large_calls": 0, "large_tokens": 0, "drafted": 10, "discarded": 0}
    after = {"rss_peak_bytes": 5000, "gpu_peak_bytes": 70}
    point = summary_of([made_sample(BASELINE), made_sample(POINT, **alone)], environment_after=after).points[1]
    assert (point.acceptance_pct, point.mean_accepted_length) == (None, None)
    assert point.peak_memory_bytes == 70


def test_unknown_counters_and_times_leave_their_figures_unknown() -> None:
    unknown = {**BILD_B, "drafted": None, "large_calls": None, "total_seconds": None}
    samples = [*hand_worked()[:3], made_sample(POINT, **unknown)]
    point = summary_of(samples).points[1]
    assert (point.acceptance_pct, point.mean_accepted_length, point.latency_p50_ms) == (None, None, None)
    assert point.tokens_per_second == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("texts", "known"), [(19, (True, False, False)), (20, (True, True, False)), (100, (True,) * 3)]
)
def test_high_percentiles_need_texts_enough(texts: int, known: tuple[bool, ...]) -> None:
    seconds = [0.001 * number**2 for number in range(1, texts + 1)]
    samples = [
        made_sample(BASELINE, text_id=f"t{number}", text_index=number, total_seconds=each)
        for number, each in enumerate(seconds)
    ]
    [point] = summary_of(samples, points=[BASELINE]).points
    found = (point.latency_p50_ms, point.latency_p95_ms, point.latency_p99_ms)
    assert tuple(figure is not None for figure in found) == known
    for figure, percent in zip(found, (50, 95, 99), strict=True):
        assert figure is None or figure == pytest.approx(1000 * np.percentile(seconds, percent))


def test_chrf_is_sacrebleus_beside_bleu_with_its_signature() -> None:
    references = ["a man in a blue hat sells warm bread", "two dogs run over the wet sand"]
    outputs = ["a man in a blue hat sells bread", "two dogs run over wet sand"]
    samples = [
        made_sample(text_id=name, references=[reference], output_text=output)
        for name, reference, output in zip("ab", references, outputs, strict=True)
    ]
    point = summary_of(samples, metric="bleu").points[1]
    assert point.chrf is not None
    assert point.chrf.value == pytest.approx(sacrebleu.corpus_chrf(outputs, [references]).score)
    assert point.chrf.signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{sacrebleu.__version__}"


def test_the_difference_is_the_mean_over_draws_as_quality_is() -> None:
    # Draw 0 loses what draw 1 keeps: half of the loss of the hand-worked text b.
    samples = [
        made_sample(BASELINE, **VANILLA_B),
        made_sample(BASELINE, **VANILLA_B, draw=1),
        made_sample(POINT, **BILD_B),
        made_sample(POINT, **{**BILD_B, "output_text": "the cat lay down"}, draw=1),
    ]
    baseline, point = summary_of(samples).points
    assert point.quality is not None
    assert baseline.quality is not None
    assert point.quality_difference is not None
    assert point.quality_difference.value == pytest.approx(point.quality.value - baseline.quality.value)
    assert point.quality_difference.value == pytest.approx(-(100 - 400 / 7) / 2)


# --- where they are kept


def test_the_flat_table_has_a_column_for_each() -> None:
    row = summary_frame(summary_of(hand_worked(), environment_after={"rss_peak_bytes": 5000})).iloc[1]
    assert row["quality_difference"] == pytest.approx(-(100 - 400 / 7) / 2)
    assert row["quality_difference_high"] == pytest.approx(0.0)
    assert row["peak_memory_bytes"] == 5000
    assert set(LATER) - {"chrf"} | {"chrf_value", "chrf_signature"} <= set(row.index)


def test_a_summary_of_an_earlier_version_is_read_with_what_it_has(tmp_path: Path) -> None:
    made = experiment(tmp_path / "old", schema_version=1)
    path = made / results.SUMMARY
    before = stored_points(made)
    table = pq.read_table(path)
    kept = [name for name in table.column_names if not name.startswith(tuple(LATER))]
    pq.write_table(table.select(kept), path)

    found = stored_points(made)

    assert found == tuple(replace(point, **dict.fromkeys(LATER)) for point in before)
    collected = collect([tmp_path])
    assert collected.damaged == ()
    assert collected.groups[0].run.schema_version == 1


def test_the_pages_data_has_them(tmp_path: Path) -> None:
    experiment(tmp_path / "x", environment_after={"rss_peak_bytes": 597_900_000})

    data = group_data(only_group(tmp_path), bytes_for_texts=1000)

    point = data["points"][1]
    assert point["quality_difference"] == pytest.approx([-(100 - 400 / 7) / 2, -(100 - 400 / 7), 0.0])
    assert point["quality_p_value"] == pytest.approx(0.5, abs=0.05)
    assert point["acceptance_pct"] == pytest.approx(100 * 21 / 26)
    assert point["mean_accepted_length"] == pytest.approx(30 / 11)
    assert (point["tokens_per_second"], point["latency_p50_ms"]) == (pytest.approx(20.0), pytest.approx(1500.0))
    assert (point["latency_p95_ms"], point["chrf"], point["peak_memory_bytes"]) == (None, None, 597_900_000)
    assert ["peak memory", "597.9 MB"] in data["facts"]


def test_bleu_points_come_back_whole(tmp_path: Path) -> None:
    texts = {
        "a": [made_sample(BASELINE), made_sample(POINT, **BILD_A)],
        "b": [made_sample(BASELINE, **VANILLA_B), made_sample(POINT, **BILD_B)],
    }
    run = made_run(metric="bleu")
    made = experiment(tmp_path / "x", texts, metric="bleu")
    assert stored_points(made) == summarise(results.read(made)).points
    assert stored_points(made)[1].chrf is not None
    assert run.schema_version == results.read(made).run.schema_version == 2
    with directories.lock(made):
        assert pd.read_parquet(made / results.SUMMARY)["chrf_value"].notna().all()
