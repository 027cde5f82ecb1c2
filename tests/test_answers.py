"""The choices, their significance, and what a speed-up is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bild_bench.decoding.alone import AloneSettings, vanilla
from bild_bench.decoding.bild import BildSettings, bild
from bild_bench.decoding.picking import Greedy
from bild_bench.decoding.records import Decoded
from bild_bench.report.answers import (
    SpeedParts,
    answers,
    best_quality_at,
    best_within,
    sample_reader,
    significance,
    speed_parts,
    tokens_fed,
)
from bild_bench.report.cautions import COLUMNS, cautions, drift
from bild_bench.report.collect import collect
from bild_bench.report.export import say
from bild_bench.report.significance import quality_significance
from tests.made_reports import experiment, grid, only_group
from tests.made_results import BASELINE, POINT, made_sample, two_texts
from tests.tables import TableSession, limits, random_table, sessions


def test_the_fastest_point_within_a_drop_is_chosen(tmp_path: Path) -> None:
    # All three score 78.57, 21.43 below vanilla; decode seconds 1.5, 1.8 and 1.35 against 4.5.
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0), (0.9, 1.0, 0.5)])
    group = only_group(tmp_path)

    nothing_else = best_within(group, 21.0)
    assert nothing_else is not None
    assert nothing_else.label == "vanilla"
    found = best_within(group, 21.5)
    assert found is not None
    assert found.label == "bild fb=0.9 rb=1"
    assert found.speedup == pytest.approx(4.5 / 1.35)


def test_a_drop_of_zero_means_vanillas_score_or_above(tmp_path: Path) -> None:
    same = {
        text: [baseline, replace(point, output_text=baseline.output_text)]
        for text, (baseline, point) in two_texts().items()
    }
    experiment(tmp_path / "x", same)

    found = best_within(only_group(tmp_path), 0)

    assert found is not None
    assert found.label == "bild fb=0.5 rb=2"


def test_the_best_quality_at_a_speed_up_counts_that_speed_up_itself(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    group = only_group(tmp_path)

    found = best_quality_at(group, 3.0)
    assert found is not None
    assert found.label == "bild fb=0.5 rb=2"
    assert best_quality_at(group, 3.01) is None


def test_vanilla_answers_where_every_other_point_is_slower_or_loses_more(tmp_path: Path) -> None:
    # Both score 21.43 below vanilla, whose texts take 4.5 s; theirs take 1.2 s and 0.3 s times the last figure.
    grid(tmp_path / "x", [(0.5, 1.0, 11.5), (0.5, 2.0, 16.0)])

    none_within, slower = answers(only_group(tmp_path), max_drops=(1, 30), samples=sample_reader())

    for answer in (none_within, slower):
        assert answer.entry is not None
        assert answer.entry.label == "vanilla"
        assert answer.significance is None
    assert say(none_within) == (
        "fastest within 1 point of vanilla (in-sample: chosen on these texts): vanilla, 100.00; "
        "no other point keeps to that"
    )
    assert say(slower) == (
        "fastest within 30 points of vanilla (in-sample: chosen on these texts): vanilla, 100.00; "
        "the fastest other point, bild fb=0.5 rb=1, is slower: 0.97x decoding"
    )


def test_vanilla_is_the_best_quality_where_a_speed_up_of_one_will_do(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    found = best_quality_at(only_group(tmp_path), 0.9)
    assert found is not None
    assert found.label == "vanilla"


def test_each_question_has_an_answer_labelled_in_sample(tmp_path: Path) -> None:
    experiment(tmp_path / "x")

    found = answers(only_group(tmp_path), max_drops=(0, 30), min_speedup=2, samples=sample_reader())

    assert [answer.entry.label for answer in found if answer.entry is not None] == [
        "vanilla",
        *["bild fb=0.5 rb=2"] * 2,
    ]
    assert all(answer.in_sample for answer in found)
    assert "no loss" in found[0].question
    assert "30 points" in found[1].question
    assert "2x" in found[2].question


def test_predicted_and_measured_speed_up_worked_out_by_hand(tmp_path: Path) -> None:
    # L costs 0.1 + 0.01 (rows - 1), S 0.01. Vanilla: 40 calls of one row, 4 s. The point: 31 calls of S, 0.31 s; text a
    # 4 calls fed 10 + 2 tokens, 3 rows, 0.48 s; text b 7 calls fed 20 + 3, 0.7 + 0.01 (23 - 7) = 0.86 s. It took 1.5 s.
    experiment(tmp_path / "x")
    group = only_group(tmp_path)

    parts = speed_parts(group, group.entries[1], sample_reader())

    assert parts is not None
    assert parts.predicted == pytest.approx(4.0 / 1.65)
    assert parts.measured == pytest.approx(3.0)
    assert parts.small_pct == pytest.approx(100 * 0.31 / 1.5)
    assert parts.large_pct == pytest.approx(100 * 1.34 / 1.5)
    assert parts.rest_pct == pytest.approx(-10.0)


@pytest.mark.parametrize(("drift", "plausible"), [(None, True), (1.5, True), (1.6, False)])
def test_nothing_is_predicted_from_calls_that_took_longer_at_some_moments(drift: float | None, plausible: bool) -> None:
    assert SpeedParts(2.0, 2.0, 20.0, 70.0, 10.0, drift).plausible is plausible


def test_the_drift_comes_from_the_record_and_the_answer_says_so(tmp_path: Path) -> None:
    # Half of what calls cost elsewhere here: no part beyond 100 %, a rest of 45 %.
    large, small = ({"encode_seconds": 0, "rows": rows} for rows in ({"1": 0.05, "16": 0.125}, {"1": 0.005}))
    for name, found in (("steady", 1.1), ("busy", 2.5)):
        experiment(tmp_path / name, calibration={"large": large, "small": small, "drift": found})
    lines = [
        say(answers(only_group(tmp_path / name), max_drops=(30,), samples=sample_reader())[0])
        for name in ("steady", "busy")
    ]
    assert lines[0].endswith("(time in small calls 10 %, large calls 45 %, rest 45 %)")
    assert lines[1].endswith("; measured 3.00x, not predictable: the machine was busy while calls were timed")


@pytest.mark.parametrize(
    ("method", "settings"),
    [(vanilla, AloneSettings()), (bild, BildSettings(alpha_fb=0.6, alpha_rb=2.0)), (bild, BildSettings(alpha_fb=0.3))],
)
def test_tokens_fed_to_the_large_model_are_what_its_passes_got(method: Callable[..., Decoded], settings: Any) -> None:
    for seed in range(20):
        pair = sessions(random_table(seed), random_table(seed + 1000))
        decoded = method(pair, settings, limits(40), Greedy())
        written = [step._asdict() for step in decoded.trace()]

        large = pair.large
        assert isinstance(large, TableSession)
        assert tokens_fed(written, len(written)) == sum(large.passes)


def test_without_a_trace_all_that_was_written_counts_as_fed() -> None:
    assert tokens_fed(None, 12) == 12


@pytest.mark.parametrize("unknown", ["calibration", "counter", "method"])
def test_without_costs_or_counters_nothing_is_predicted(tmp_path: Path, unknown: str) -> None:
    texts = two_texts()
    changes: dict[str, Any] = {}
    if unknown == "calibration":
        changes = {"calibration": {}}
    elif unknown == "counter":
        texts = {text: [base, replace(point, small_calls=None)] for text, (base, point) in texts.items()}
    else:
        layered = {**POINT, "method": "bild-early-exit"}
        texts = {text: [base, replace(point, method="bild-early-exit")] for text, (base, point) in texts.items()}
        changes = {"points": [BASELINE, layered]}
    experiment(tmp_path / "x", texts, **changes)
    group = only_group(tmp_path / "x")

    assert speed_parts(group, group.entries[1], sample_reader()) is None


def _rows(texts: list[str], references: list[str]) -> pd.DataFrame:
    rows = [
        {"text_id": str(n), "draw": 0, "status": "ok", "output_text": text, "references": [reference]}
        for n, (text, reference) in enumerate(zip(texts, references, strict=True))
    ]
    return pd.DataFrame(rows)


WORDS = ("one", "two", "three", "four", "five", "six", "seven")
REFERENCES = [f"the number {word} is on the list of words" for word in WORDS]


@pytest.mark.parametrize("metric", ["bleu", "rougeL"])
def test_the_same_texts_are_no_difference(metric: str) -> None:
    rows = _rows(REFERENCES, REFERENCES)

    found = quality_significance(metric, 0, rows, rows, [str(n) for n in range(7)])

    assert found is not None
    assert (found.difference, found.p_value) == (0.0, 1.0)


@pytest.mark.parametrize("metric", ["bleu", "rougeL"])
def test_a_text_by_text_loss_is_significant_and_one_lucky_text_is_not(metric: str) -> None:
    base, ids = _rows(REFERENCES, REFERENCES), [str(n) for n in range(7)]
    worse = _rows([text.replace("the list of", "a row with") for text in REFERENCES], REFERENCES)
    once = _rows([REFERENCES[0].replace("list", "row"), *REFERENCES[1:]], REFERENCES)

    clear, unclear = (quality_significance(metric, 0, base, rows, ids) for rows in (worse, once))

    assert clear is not None
    assert clear.p_value is not None
    assert clear.p_value < 0.01
    assert clear.difference < -10
    assert clear.high < 0
    assert unclear is not None
    assert unclear.p_value is not None
    assert unclear.p_value > 0.05


def test_one_text_allows_no_test_and_no_text_no_figure() -> None:
    base, other = _rows(REFERENCES[:1], REFERENCES[:1]), _rows(["the list"], REFERENCES[:1])

    found = quality_significance("rougeL", 0, base, other, ["0"])

    assert found is not None
    assert found.p_value is None
    assert found.low != found.low
    assert quality_significance("rougeL", 0, base, other, ["other"]) is None


def test_significance_of_an_entry_is_against_its_own_baseline(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    group = only_group(tmp_path)

    found = significance(group, group.entries[1], sample_reader())

    assert found is not None
    assert found.texts == 2
    assert found.difference == pytest.approx(100 * (1 + 4 / 7) / 2 - 100)


def _baseline_times(seconds: list[float]) -> pd.DataFrame:
    rows = [
        {"role": "baseline", "status": "ok", "started_at": f"T{n:03d}", "decode_seconds": 10 * each, "generated": 10}
        for n, each in enumerate(seconds)
    ]
    return pd.DataFrame(rows[::-1])


def test_drift_is_the_last_third_against_the_first_whatever_the_order_of_the_rows() -> None:
    assert drift(_baseline_times([1.0] * 4 + [9.0] * 4 + [1.5] * 4)) == pytest.approx(0.5)
    assert drift(_baseline_times([1.0] * 11)) is None


def test_warnings_name_drift_throttling_missing_texts_and_what_an_experiment_says_itself(tmp_path: Path) -> None:
    texts = {
        str(n): [
            made_sample(BASELINE, text_id=str(n), text_index=n, started_at=f"T{n:02d}", decode_seconds=1.0 + n // 8),
            made_sample(POINT, text_id=str(n), text_index=n),
        ]
        for n in range(12)
    }
    hot = {"device": "cuda", "threads": 2, "gpu_throttle_reasons": "idle, hardware thermal slowdown"}
    experiment(tmp_path / "x", texts, environment=hot)

    found = "\n".join(cautions(only_group(tmp_path), sample_reader(COLUMNS)))

    assert "drift: vanilla was 100% slower" in found
    assert "throttled before the run (hardware thermal slowdown)" in found
    assert "fewer than 30 texts (12)" in found


def test_warnings_name_points_that_take_no_part_and_mixed_versions(tmp_path: Path) -> None:
    stopped = {**POINT, "point_id": "2" * 16, "point": "bild fb=0.9 rb=2"}
    texts = two_texts()
    texts["a"].append(made_sample(stopped))
    experiment(tmp_path / "one", texts, points=[BASELINE, POINT, stopped])
    experiment(tmp_path / "two", code_version="0.2.0")
    [group] = collect([tmp_path]).groups

    found = "\n".join(cautions(group, sample_reader(COLUMNS)))

    assert "bild fb=0.9 rb=2 is left out: stopped after 1 of 2 texts" in found
    assert "2 versions of bild-bench: 0.1.0, 0.2.0" in found
