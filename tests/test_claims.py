"""The report's figures of early exits and of claims, worked out by hand: summary, table, warnings, record."""

from __future__ import annotations

import math
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console

from bild_bench.plan import make_point
from bild_bench.report.columns import EXIT, SPEED, TOKENS
from bild_bench.report.summary import PointSummary, Summary, summarise, summary_frame
from bild_bench.report.table import print_table, render, to_json
from bild_bench.results import Experiment
from bild_bench.schema import SampleRecord, sample_frame, sample_table
from tests.made_results import BASELINE, POINT, failed_sample, made_run, made_sample

CLAIMING = {**POINT, "point": "speculative gamma=5", "lossless": True}
RUN = made_run(points=[{**BASELINE, "lossless": True}, CLAIMING])


def summary_of(samples: list[SampleRecord], run: Any = RUN) -> Summary:
    return summarise(Experiment(run, sample_frame(sample_table(samples)), Path("nowhere")))


def point_of(samples: list[SampleRecord], run: Any = RUN) -> PointSummary:
    return summary_of(samples, run).points[-1]


def texts(*changes: dict[str, Any], point: dict[str, Any] = CLAIMING) -> list[SampleRecord]:
    """A text for each change of the point's row, with the baseline's."""
    found = []
    for number, change in enumerate(changes):
        where = {"text_id": f"t{number}", "text_index": number}
        found += [made_sample(BASELINE, **where), made_sample(point, **{**where, **change})]
    return found


SAME: dict[str, Any] = {}
TIE = {"diverged_at": 4, "divergence_margin": 0.000004}
FAULT = {"diverged_at": 0, "divergence_margin": 2.5}


# --- divergence


def test_texts_that_differ_are_counted_with_the_largest_margin() -> None:
    point = point_of(texts(SAME, TIE, FAULT, SAME))
    assert (point.diverged_texts, point.divergence_margin_max) == (2, 2.5)


def test_none_differs() -> None:
    summary = summary_of(texts(SAME, SAME))
    assert (summary.points[1].diverged_texts, summary.points[1].divergence_margin_max) == (0, None)
    assert not [warning for warning in summary.warnings if "should reproduce" in warning]


def test_an_infinite_margin_is_the_largest() -> None:
    summary = summary_of(texts(FAULT, {"diverged_at": 3, "divergence_margin": math.inf}))
    assert summary.points[1].divergence_margin_max == math.inf
    assert to_json(summary, RUN)["points"][1]["divergence_margin_max"] == "inf"


def test_who_claims_nothing_is_not_said_to_agree() -> None:
    run = made_run(points=[BASELINE, {**POINT, "lossless": False}])
    point = point_of(texts(SAME, point=POINT), run)
    assert (point.diverged_texts, point.divergence_margin_max) == (None, None)


def test_without_a_baseline_or_an_ok_row_nothing_was_compared() -> None:
    alone = point_of([made_sample(CLAIMING)], made_run(points=[CLAIMING]))
    assert (alone.diverged_texts, alone.divergence_margin_max) == (None, None)
    failed = point_of([made_sample(BASELINE), failed_sample(CLAIMING)])
    assert (failed.diverged_texts, failed.divergence_margin_max) == (None, None)


def test_a_warning_names_count_and_largest_margin() -> None:
    found = [line for line in summary_of(texts(SAME, TIE, TIE)).warnings if "should reproduce" in line]
    assert len(found) == 1
    assert found[0].startswith(
        "speculative gamma=5: should reproduce the baseline's tokens, but 2 of 3 texts have others"
    )
    assert "largest margin 4e-06 logits" in found[0]
    (fault,) = [line for line in summary_of(texts(FAULT)).warnings if "should reproduce" in line]
    assert "largest margin 2.5 logits" in fault


# --- exit layers


def test_the_average_exit_layer_is_over_tokens_of_all_texts() -> None:
    # 6 tokens at layer 1, 3 at 2, 1 at 4: (6 + 6 + 4) / 10. The mean of the texts' means would be (1.25 + 3) / 2.
    samples = texts({"exit_layers": [6, 2, 0, 0]}, {"exit_layers": [0, 1, 0, 1]})
    assert point_of(samples).average_exit_layer == pytest.approx(1.6)
    assert summary_of(samples).points[0].average_exit_layer is None


def test_a_text_that_does_not_tell_makes_it_unknown() -> None:
    assert point_of(texts({"exit_layers": [6, 2]}, {"exit_layers": None})).average_exit_layer is None
    assert point_of(texts({"exit_layers": [0, 0]})).average_exit_layer is None
    failed = [*texts({"exit_layers": [6, 2]}), failed_sample(CLAIMING, text_id="t9")]
    assert point_of(failed).average_exit_layer == pytest.approx(1.25)


def printed(summary: Summary, width: int) -> str:
    stream = StringIO()
    print_table(Console(file=stream, width=width), summary, RUN)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 200])
def test_the_table_has_the_column_only_when_some_point_tells(width: int) -> None:
    told = summary_of(texts({"exit_layers": [6, 2, 0, 0]}, {"exit_layers": [0, 1, 0, 1]}))
    text = printed(told, width)
    assert text.count(EXIT) == 1
    rows = [line.split() for line in text.splitlines() if line.startswith(("vanilla", "speculative"))]
    assert [row[-1] for row in rows[-2:]] == ["-", "1.60"]
    assert max(len(line) for line in text.splitlines() if "warning" not in line) <= width
    assert EXIT not in printed(summary_of(texts(SAME, SAME)), width)
    assert [column.header for column in render(told, RUN, note=False).columns][-1] == EXIT
    headings = [column.header for column in render(told, RUN, SPEED + TOKENS, note=False).columns]
    assert EXIT not in headings


# --- where they are kept


def test_the_flat_table_has_the_columns_with_their_types(tmp_path: Path) -> None:
    samples = texts({**TIE, "exit_layers": [2, 2]}, {"exit_layers": [4, 0]})
    summary_frame(summary_of(samples)).to_parquet(tmp_path / "summary.parquet")
    frame = pd.read_parquet(tmp_path / "summary.parquet")
    assert frame["average_exit_layer"].isna().tolist() == [True, False]
    assert frame["average_exit_layer"].iloc[1] == pytest.approx(1.25)
    assert frame["diverged_texts"].iloc[1] == 1
    assert frame["divergence_margin_max"].iloc[1] == pytest.approx(0.000004)
    assert (str(frame["diverged_texts"].dtype), str(frame["average_exit_layer"].dtype)) == ("Int64", "Float64")


def test_a_real_run_records_what_is_claimed_and_found(tmp_path: Path) -> None:
    from bild_bench import results
    from bild_bench.decoding.picking import Sampling
    from bild_bench.experiment import run_experiment
    from bild_bench.plan import with_baseline
    from bild_bench.setup import Request

    points = with_baseline([make_point("speculative", {}), make_point("calm", {"threshold": 0.5})])
    greedy = Request("iwslt17", data="embedded", limit=2, warmup=0, threads=1, dtype="float64", out=tmp_path / "greedy")
    experiment = results.read(run_experiment(greedy, points))
    assert [point["lossless"] for point in experiment.run.points] == [True, True, False]
    baseline, speculative, calm = summarise(experiment).points
    assert (baseline.diverged_texts, speculative.diverged_texts, calm.diverged_texts) == (0, 0, None)
    assert calm.average_exit_layer is not None
    assert calm.average_exit_layer >= 1
    assert speculative.average_exit_layer is None
    drawn = Request(
        "iwslt17", data="embedded", limit=1, warmup=0, threads=1, out=tmp_path / "drawn", sampling=Sampling(1.0)
    )
    experiment = results.read(run_experiment(drawn, points))
    assert [point["lossless"] for point in experiment.run.points] == [False] * 3
