"""Exports: every figure, the command of every point, and no value that a strict reader refuses."""

from __future__ import annotations

import csv
import io
import json
import math
from pathlib import Path

import pytest

from bild_bench.report.answers import Answer, SpeedParts, answers, sample_reader
from bild_bench.report.collect import Collected, collect
from bild_bench.report.export import Findings, say, to_csv, to_markdown, to_strict_json
from bild_bench.report.significance import Significance
from tests.made_reports import experiment, grid, only_group
from tests.made_results import BASELINE, POINT, made_sample, two_texts


def _findings(collected: Collected) -> list[Findings]:
    return [
        Findings(answers(group, max_drops=(30,), samples=sample_reader()), ["a | warning"])
        for group in collected.groups
    ]


def test_csv_has_a_row_a_point_with_group_command_settings_and_figures(tmp_path: Path) -> None:
    experiment(tmp_path / "x", command="bild-bench run --task iwslt17")

    baseline, point = csv.DictReader(io.StringIO(to_csv(collect([tmp_path]))))

    assert (baseline["label"], baseline["role"], baseline["group"]) == ("vanilla", "baseline", "1")
    assert point["command"] == "bild-bench run --task iwslt17"
    assert json.loads(point["settings"]) == {"alpha_fb": 0.5, "alpha_rb": 2.0}
    assert float(point["speedup_decoding"]) == pytest.approx(3.0)
    assert float(point["speedup_total"]) == pytest.approx(2.0)
    assert float(point["quality_value"]) == pytest.approx(78.571, abs=0.001)
    assert (point["front"], point["pruned"], point["machine"]) == ("True", "", "m1")


def test_csv_of_nothing_has_no_rows() -> None:
    assert to_csv(Collected((), ())).strip() in ("", '""')


def test_json_is_strict_with_infinite_settings_and_intervals_of_one_text(tmp_path: Path) -> None:
    grid(tmp_path / "x", [(0.5, math.inf, 1.0)])
    experiment(tmp_path / "one", {"a": two_texts()["a"]})
    collected = collect([tmp_path])

    document = to_strict_json(collected, _findings(collected))
    read = json.loads(json.dumps(document, allow_nan=False))

    [long, short] = sorted(read["groups"], key=lambda group: -len(group["texts"]))
    assert long["points"][1]["settings"]["alpha_rb"] == "inf"
    assert long["points"][1]["front"] is True
    assert short["points"][1]["speedup_decoding"] == {"value": pytest.approx(5.0), "low": None, "high": None}
    assert long["answers"][0]["point"] == "bild fb=0.5 rb=inf"
    assert long["answers"][0]["in_sample"] is True
    assert long["warnings"] == ["a | warning"]
    assert long["points"][1]["command"] == "bild-bench run"


def test_markdown_has_a_table_marks_the_front_and_shows_the_command(tmp_path: Path) -> None:
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0)], command="bild-bench sweep --alpha-rb 1,2")
    collected = collect([tmp_path])

    lines = to_markdown(collected, _findings(collected)).splitlines()
    rows = {line.split(" | ")[1]: line for line in lines if line.startswith("|")}

    assert rows["bild fb=0.5 rb=1"].startswith("| * |")
    assert rows["bild fb=0.5 rb=2"].startswith("|  |")
    assert "3.00x [2.50, 5.00]" in rows["bild fb=0.5 rb=1"]
    assert len({line.count("|") for line in rows.values()}) == 1
    assert "    bild-bench sweep --alpha-rb 1,2" in lines
    assert any("in-sample" in line for line in lines)
    assert any("warning: a \\| warning" in line for line in lines)


def test_markdown_keeps_what_a_label_holds_from_being_markup(tmp_path: Path) -> None:
    odd = {**POINT, "point": "bild <b>|x|</b> *"}
    texts = {"a": [made_sample(BASELINE), made_sample(odd)]}
    experiment(tmp_path / "x", texts, points=[BASELINE, odd])
    collected = collect([tmp_path])

    [line] = [
        ln
        for ln in to_markdown(collected, _findings(collected)).splitlines()
        if ln.startswith("| *") and "x" in ln and "bild" in ln
    ]

    assert "bild &lt;b>\\|x\\|&lt;/b> \\*" in line


def test_damaged_files_are_named_in_every_document() -> None:
    collected = Collected((), ("results: 'x/run.parquet': damaged",))

    assert "x/run.parquet" in to_markdown(collected, [])
    assert to_strict_json(collected, []) == {"groups": [], "damaged": ["results: 'x/run.parquet': damaged"]}


def test_an_answer_reads_as_one_line(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    entry = only_group(tmp_path).entries[1]
    significance = Significance(-0.5, -1.25, 0.25, 0.2, 40, "t")
    parts = SpeedParts(2.5, 3.0, 20.0, 70.0, 10.0)

    line = say(Answer("fastest", entry, significance, parts))

    assert line == (
        "fastest (in-sample: chosen on these texts): bild fb=0.5 rb=2, 78.57 at 3.00x decoding; "
        "quality -0.50 [-1.25, +0.25] against vanilla, p = 0.200; predicted 2.50x, measured 3.00x "
        "(time in small calls 20 %, large calls 70 %, rest 10 %)"
    )
    # As a busy machine left it: small calls 2 %, large calls 1043 %, rest -945 %.
    line = say(Answer("fastest", entry, significance, SpeedParts(0.1, 3.0, 2.0, 1043.0, -945.0)))
    assert line.endswith("p = 0.200; measured 3.00x, not predictable: the machine was busy while calls were timed")
    assert say(Answer("fastest", None, None, None)) == "fastest (in-sample: chosen on these texts): none"


@pytest.mark.parametrize(
    ("parts", "plausible"),
    [
        ((20.0, 70.0, 10.0), True),
        ((30.0, 74.0, -4.0), True),
        ((30.0, 80.0, -10.0), False),
        ((2.0, 1043.0, -945.0), False),
        ((101.0, 0.0, -1.0), False),
        ((0.0, 0.0, 100.0), True),
    ],
)
def test_parts_that_do_not_add_up_are_no_prediction(parts: tuple[float, float, float], plausible: bool) -> None:
    assert SpeedParts(2.0, 2.0, *parts).plausible is plausible
