"""The plots' second views: the paired difference from vanilla, and the oracle's share of replaced tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bild_bench.report import charts
from bild_bench.report.chart_axes import NARROW, leaving, with_bars
from bild_bench.report.chart_rows import DIFFERENCE, SCORE
from bild_bench.report.collect import Group
from tests.made_reports import experiment, grid, only_group
from tests.made_results import BASELINE, BILD_A, BILD_B, POINT, VANILLA_B, made_sample, two_texts


def _with_oracle(tmp_path: Path, *thresholds: float) -> Group:
    """Vanilla, the point, and the oracle: of ten tokens the large model chose 1, 2, … at the thresholds."""
    points = [
        {**POINT, "point_id": f"{place:016d}", "point": f"oracle below={below:g}", "method": "oracle"}
        for place, below in enumerate(thresholds, start=5)
    ]
    texts = two_texts()
    for place, point in enumerate(points, start=1):
        replaced = {"large_tokens": place, "generated": 10, "drafted": 10 - place, "discarded": 0}
        texts["a"].append(made_sample(point, **{**BILD_A, **replaced}))
        texts["b"].append(made_sample(point, **{**BILD_B, **replaced}))
    experiment(tmp_path / "x", texts, points=[BASELINE, POINT, *points])
    return only_group(tmp_path)


def _layer(spec: dict[str, Any], mark: str) -> dict[str, Any]:
    return next(layer for layer in spec["layer"] if layer.get("mark", {}).get("type") == mark)


def test_the_difference_from_vanilla_has_its_paired_interval_and_vanilla_at_zero(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    group = only_group(tmp_path)

    spec = charts.pareto(group, DIFFERENCE)

    rows = {row["label"]: row for row in spec["data"]["values"]}
    bild = rows["bild fb=0.5 rb=2"]
    # 100 and 57.14 against 100 and 100: of two texts a resample is either one twice, or both.
    assert bild["difference"] == pytest.approx(-21.43, abs=0.01)
    assert (bild["difference_low"], bild["difference_high"]) == (pytest.approx(-42.86, abs=0.01), pytest.approx(0))
    assert bild["difference_text"] == "−21.43 [−42.86, +0.00]"
    assert rows["vanilla"]["difference"] == 0
    assert spec["encoding"]["y"]["field"] == "difference"
    assert spec["encoding"]["y"]["axis"]["title"] == "ROUGE-L minus vanilla's"
    drawn = charts.svg(spec)
    assert "vanilla 100.00" in drawn
    assert "paired with vanilla on the same texts" in drawn


def test_without_a_baseline_there_is_the_score_alone(tmp_path: Path) -> None:
    experiment(tmp_path / "with")
    experiment(tmp_path / "none", {"a": [made_sample(POINT)]}, points=[POINT])

    assert charts.views(only_group(tmp_path / "with")) == (SCORE, DIFFERENCE)
    assert charts.views(only_group(tmp_path / "none")) == (SCORE,)


def test_the_oracle_is_drawn_against_the_share_of_tokens_that_it_replaced(tmp_path: Path) -> None:
    spec = charts.oracle(_with_oracle(tmp_path, 0.1, 0.2, 0.5))

    assert spec is not None
    oracle = {row["label"]: row["share"] for row in spec["data"]["values"] if row["method"] == "oracle"}
    assert oracle == pytest.approx({"oracle below=0.1": 10, "oracle below=0.2": 20, "oracle below=0.5": 30})
    # The point is there for comparison, vanilla as a line.
    assert {row["method"] for row in spec["data"]["values"]} == {"bild", "oracle"}
    line = _layer(spec, "line")
    assert line["encoding"] == {"order": {"field": "share"}, "detail": {"field": "pair"}}
    drawn = charts.svg(spec)
    for words in ("below=0.5", "tokens chosen by the large model, %", "vanilla 100.00"):
        assert words in drawn


def test_without_the_oracle_it_has_no_plot(tmp_path: Path) -> None:
    experiment(tmp_path / "x")

    assert charts.oracle(only_group(tmp_path)) is None
    assert list(charts.all_plots(only_group(tmp_path))) == ["pareto", "pareto-difference"]


def test_every_plot_of_a_sweep_with_the_oracle_is_written(tmp_path: Path) -> None:
    plots = charts.all_plots(_with_oracle(tmp_path, 0.1))

    assert list(plots) == ["pareto", "oracle", "pareto-difference", "oracle-difference"]
    assert all("</svg>" in charts.svg(spec) for spec in plots.values())


def test_every_mark_is_solid_and_the_oracle_s_is_as_large_as_others(tmp_path: Path) -> None:
    spec = charts.pareto(_with_oracle(tmp_path, 0.1))
    encoding = _layer(spec, "point")["encoding"]

    assert encoding["opacity"]["condition"] == {"param": "pick", "value": 1}
    shapes = dict(zip(encoding["shape"]["scale"]["domain"], encoding["shape"]["scale"]["range"], strict=True))
    assert shapes["oracle"].startswith("M")
    numbers = [float(part) for part in shapes["oracle"].strip("MZ").replace("L", ",").split(",")]
    assert (min(numbers), max(numbers)) == (-1, 1)


def test_a_bar_far_longer_than_the_others_runs_out_of_the_plot_and_is_told(tmp_path: Path) -> None:
    rows = [{"x_low": 1.0, "x_high": 2.0}, {"x_low": 1.0, "x_high": 2.0}, {"x_low": 0.5, "x_high": 50.0}]

    held = with_bars((1.0, 2.0), "x", rows)

    assert held == (0.5, 2.5)
    assert leaving(held, "x", rows)
    assert not leaving(held, "x", rows[:2])
    # A grid whose points are alike: bars are all that is to be seen.
    assert with_bars((-0.05, 0.05), "x", [{"x_low": -4.0, "x_high": 4.0}]) == (-4.0, 4.0)
    # Points that equal vanilla on every text have no bar, and do not make the usual one 0.
    equal, apart = {"x_low": 0.0, "x_high": 0.0}, {"x_low": -4.0, "x_high": 5.0}
    assert with_bars((0.0, 0.0), "x", [*[equal] * 5, *[apart] * 3]) == (-4.0, 4.5)
    assert "those that leave the plot are longer" in DIFFERENCE.bars_say(True)


def test_on_a_phone_titles_are_broken_and_maps_stand_below_each_other(tmp_path: Path) -> None:
    grid(tmp_path / "x", [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0), (0.9, 1.0, 3.0), (0.9, 2.0, 4.0)])
    group = only_group(tmp_path)

    spec = charts.pareto(group, SCORE, NARROW)
    maps = charts.heatmaps(group, narrow=True)

    assert spec["width"] == 286
    assert max(map(len, [*spec["title"]["text"], *spec["title"]["subtitle"]])) <= 56
    assert maps is not None
    [row] = maps["vconcat"]
    assert [part["title"]["text"] for part in row["vconcat"]] == ["ROUGE-L", "decoding speed-up", "rollback %"]


def test_a_point_that_lost_nothing_has_a_difference_of_zero_and_is_drawn(tmp_path: Path) -> None:
    texts = {"a": [made_sample(BASELINE), made_sample(POINT)], "b": [made_sample(BASELINE, **VANILLA_B)]}
    texts["b"].append(made_sample(POINT, **VANILLA_B))
    experiment(tmp_path / "x", texts)

    spec = charts.pareto(only_group(tmp_path), DIFFERENCE)

    assert [row["difference"] for row in spec["data"]["values"]] == [0, 0]
    low, high = spec["encoding"]["y"]["scale"]["domain"]
    assert low < 0 < high
