from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from bild_bench.report.columns import EXIT, TOKENS, cell, told_columns
from bild_bench.report.summary import Summary, summarise
from bild_bench.report.table import print_table, render, to_json
from bild_bench.results import Experiment
from bild_bench.schema import RunRecord, SampleRecord, sample_frame, sample_table
from tests.made_results import BASELINE, POINT, made_run, made_sample, two_texts

RUN = made_run(environment={"device": "cpu", "threads": 2, "gpu_name": None})


def summary_of(samples: list[SampleRecord], run: RunRecord = RUN) -> Summary:
    return summarise(Experiment(run, sample_frame(sample_table(samples)), Path("nowhere")))


def hand_worked(run: RunRecord = RUN) -> Summary:
    return summary_of([sample for samples in two_texts().values() for sample in samples], run)


def printed(summary: Summary, run: RunRecord = RUN, width: int = 160, **options: Any) -> str:
    stream = StringIO()
    print_table(Console(file=stream, width=width, **options), summary, run)
    return stream.getvalue()


def line_of(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip().startswith(start)]


def test_a_wide_terminal_gets_one_table_with_every_figure() -> None:
    text = printed(hand_worked(), width=200)
    (headings,) = line_of(text, "point")
    shown = {
        "ROUGE-L": "78.57",
        "vs vanilla": "-21.43 [-42.86, +0.00]",
        "total speed-up": "2.00x [1.60, 4.00]",
        "decoding speed-up": "3.00x [2.50, 5.00]",
        "ms/token": "50.00",
        "tokens/s": "20",
        "p50 ms": "1500.0",
        "fallback %": "20.0",
        "low-conf %": "16.7",
        "rollback %": "10.0",
        "accepted %": "80.8",  # 21 of 26 drafts
        "accepted length": "2.73",  # 30 tokens in 11 large calls
        "by L %": "30.0",
    }
    places = [headings.index(name) for name in shown]
    assert places == sorted(places)
    (row,) = line_of(text, "bild fb=0.5 rb=2")
    cells = [cell.strip() for cell in row.strip().split("  ") if cell.strip()]
    assert cells == ["bild fb=0.5 rb=2", *shown.values()]


def test_columns_that_say_nothing_are_folded_away_and_json_keeps_them() -> None:
    samples = [made_sample(BASELINE), made_sample(POINT, fallbacks=2, cap_handovers=0, rollbacks=0)]
    summary = summary_of(samples)
    shown = told_columns(summary)
    # One text of ROUGE: no chrF, no p95; low confidence is the only reason to fall back; nothing was rolled back; who
    # is not S is L.
    folded = ("chrF", "p95 ms", "p99 ms", "low-conf %", "rollback %", "by S %", EXIT)
    assert not set(folded) & set(shown)
    assert {"quality", "vs vanilla", "fallback %", "accepted %", "by L %"} <= set(shown)
    point = to_json(summary, RUN)["points"][1]
    assert (point["low_confidence_pct"], point["rollback_pct"], point["small_share_pct"]) == (20.0, 0.0, 70.0)


def test_vanilla_alone_has_its_quality_and_times_and_no_empty_column() -> None:
    run = made_run(points=[BASELINE])
    shown = told_columns(summary_of(two_texts()["a"][:1] + two_texts()["b"][:1], run))
    assert shown == ("quality", "total speed-up", "decoding speed-up", "ms/token", "tokens/s", "p50 ms")


def test_a_share_that_is_not_the_rest_of_the_other_is_shown() -> None:
    summary = hand_worked()
    odd = replace(summary.points[1], small_share_pct=69.0)
    assert "by S %" in told_columns(replace(summary, points=(summary.points[0], odd)))
    assert "by S %" not in told_columns(summary)


def test_80_columns_get_the_same_figures_in_several_tables() -> None:
    text = printed(hand_worked(), width=80, force_terminal=True, color_system=None)
    assert max(len(line) for line in text.splitlines()) <= 80
    quality, speed, tokens = line_of(text, "bild fb=0.5 rb=2")
    assert "78.57  -21.43 [-42.86, +0.00]  2.00x [1.60, 4.00]" in quality
    assert speed.split()[3:] == ["3.00x", "[2.50,", "5.00]", "50.00", "20", "1500.0", "20.0"]
    assert tokens.split()[3:] == ["16.7", "10.0", "80.8", "2.73", "30.0"]
    assert "…" not in text


def test_a_long_label_is_folded_at_80_columns_and_cuts_no_figure() -> None:
    summary = hand_worked()
    label = "bild fb=0.35 rb=2.5 max_draft=10 start=large verify_tail temperature=0.7"
    points = tuple(replace(point, point=label) for point in summary.points)
    text = printed(replace(summary, points=points), width=80, force_terminal=True, color_system=None)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "3.00x [2.50, 5.00]" in text
    assert "…" not in text
    assert "verify_tail" in text


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_gets_more_tables_each_with_every_point_and_whole_figures(width: int) -> None:
    summary = hand_worked()
    text = printed(summary, width=width, force_terminal=True, color_system=None)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    tables = len(line_of(text, "point"))
    assert tables > 2
    assert len(line_of(text, "vanilla")) == len([line for line in line_of(text, "bild") if "warning" not in line])
    assert len(line_of(text, "vanilla")) == tables
    for figure in ("78.57", "2.00x [1.60, 4.00]", "3.00x [2.50, 5.00]", "50.00", "20.0", "16.7", "10.0", "30.0"):
        assert figure in text


def test_what_is_piped_has_whole_lines() -> None:
    summary = replace(hand_worked(), warnings=["word " * 40 + "end"])
    lines = printed(summary, width=60).splitlines()
    assert "warning: " + "word " * 40 + "end" in lines
    quality = summary.points[0].quality
    assert quality is not None
    assert quality.signature in lines


def test_it_reads_the_same_without_colour_and_has_no_control_codes() -> None:
    summary = hand_worked()
    plain = printed(summary, color_system=None)
    assert "\x1b" not in plain
    assert printed(summary, no_color=True, force_terminal=True).count("2.00x [1.60, 4.00]") == 1


def test_an_unknown_figure_is_a_dash_and_a_known_zero_a_zero() -> None:
    samples = [made_sample(BASELINE), made_sample(POINT, rollbacks=0, fallbacks=None, total_seconds=None)]
    (row,) = line_of(printed(summary_of(samples)), "bild")
    assert row.split()[3:] == ["100.00", "+0.00", "-", "5.00x", "30.00", "33", "-", "77.8", "2.50", "30.0"]
    point = summary_of(samples).points[1]
    assert [cell(name, point) for name in ("fallback %", "low-conf %", "rollback %")] == ["-", "-", "0.0"]


def test_the_caption_says_what_was_measured_on_what() -> None:
    text = printed(hand_worked())
    assert "2 texts of embedded/iwslt17 (test), pair embedded, cpu, float32, 2 threads" in text
    assert "95 % interval" in text
    assert "rougeL|" in text.replace("\n", "")


def test_the_caption_names_the_gpu_and_leaves_out_what_is_unknown() -> None:
    run = made_run(environment={"device": "cuda", "gpu_name": "NVIDIA T4"}, configuration={})
    text = printed(hand_worked(run), run)
    assert "pair embedded, cuda, NVIDIA T4\n" in "\n".join(line.rstrip() for line in text.splitlines()) + "\n"
    assert "None" not in text


def test_square_brackets_in_labels_are_not_markup() -> None:
    run = made_run(data_label="custom/[bold]x.csv")
    summary = hand_worked(run)
    points = tuple(replace(point, point="[red]p") for point in summary.points)
    text = printed(replace(summary, points=points, warnings=["[red]p: odd"]), run, width=200)
    assert "custom/[bold]x.csv" in text
    assert len(line_of(text, "[red]p")) == 2
    assert "warning: [red]p: odd" in text


def test_warnings_stand_below_the_table() -> None:
    summary = hand_worked()
    text = printed(summary)
    assert summary.warnings
    for warning in summary.warnings:
        assert text.index(f"warning: {warning}") > text.index("bild fb=0.5 rb=2")


def test_render_takes_the_columns_asked_for() -> None:
    table = render(hand_worked(), RUN, TOKENS, note=False)
    assert [str(column.header) for column in table.columns] == ["point", *TOKENS]
    assert table.caption is None


def test_json_is_strict_and_complete() -> None:
    run = made_run(points=[BASELINE, {**POINT, "settings": {"alpha_fb": 0.0, "alpha_rb": float("inf")}}])
    summary = summary_of(two_texts()["a"], run)  # one text: its intervals are NaN
    text = json.dumps(to_json(summary, run), allow_nan=False)
    loaded = json.loads(text)
    point = loaded["points"][1]
    assert point["speedup_total"] == {"value": 4.0, "low": None, "high": None}
    assert point["quality"]["metric"] == "rougeL"
    assert loaded["run"]["points"][1]["settings"] == {"alpha_fb": 0.0, "alpha_rb": "inf"}
    assert loaded["run"]["experiment_id"] == "e1"
    assert loaded["warnings"] == summary.warnings
    assert "texts_expected" not in loaded["run"]


@pytest.mark.parametrize("unknown", ["quality", "speedup_total", "fallback_pct", "small_calls"])
def test_json_says_null_where_a_figure_is_unknown(unknown: str) -> None:
    summary = hand_worked()
    changed = replace(summary.points[1], **{unknown: None})
    assert to_json(replace(summary, points=(changed,)), RUN)["points"][0][unknown] is None
