"""What the plots show; each specification is drawn, since only that shows that it is one."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest

from bild_bench.report import charts
from bild_bench.report.collect import Group
from tests.made_reports import experiment, grid, only_group
from tests.made_results import BASELINE, BILD_A, BILD_B, POINT, VANILLA_B, made_sample, two_texts

GRID = [(0.5, 1.0, 1.0), (0.5, 2.0, 2.0), (0.9, 1.0, 3.0), (0.9, math.inf, 4.0)]


def _values(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """Every datum of a specification, of its layers and parts too."""
    found = list(spec.get("data", {}).get("values", []))
    for name in ("layer", "vconcat", "hconcat"):
        for part in spec.get(name, []):
            found += _values(part)
    return found


def _with_small(tmp_path: Path, output: str) -> Group:
    """Vanilla, the point and the small model alone, which writes this for text b."""
    small = {**POINT, "point_id": "5" * 16, "point": "small", "method": "small", "settings": {}}
    texts = two_texts()
    texts["a"].append(made_sample(small, **{**BILD_A, "output_text": output}))
    texts["b"].append(made_sample(small, **{**BILD_B, "output_text": output}))
    experiment(tmp_path / "x", texts, points=[BASELINE, POINT, small])
    return only_group(tmp_path)


def test_every_point_is_there_with_its_figures_intervals_and_thresholds(tmp_path: Path) -> None:
    experiment(tmp_path / "x")

    spec = charts.pareto(only_group(tmp_path))
    rows = {row["label"]: row for row in spec["data"]["values"]}

    assert rows["vanilla"]["speedup"] == 1.0
    bild = rows["bild fb=0.5 rb=2"]
    assert (bild["short"], bild["method"], bild["front"]) == ("fb=0.5 rb=2", "bild", True)
    assert bild["quality"] == pytest.approx(78.571, abs=0.001)
    # Of two texts a resample is either one, twice: 0.3 and 1.2 s against 1.5 and 3 s.
    assert (bild["speedup_low"], bild["speedup_high"]) == (pytest.approx(2.5), pytest.approx(5.0))
    assert bild["speedup_text"] == "3.00x [2.50, 5.00]"


def test_the_plot_can_be_drawn_and_names_what_it_shows(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    spec = charts.pareto(only_group(tmp_path))

    drawn = charts.svg(spec)

    for words in (
        "embedded/iwslt17 (test)",
        "ROUGE-L",
        "decoding speed-up over vanilla",
        "vanilla 100.00",
        "fb=0.5 rb=2",
    ):
        assert words in drawn
    assert charts.png(spec).startswith(b"\x89PNG\r\n\x1a\n")


def test_published_points_stand_only_on_plots_of_the_real_data_set(tmp_path: Path) -> None:
    experiment(tmp_path / "ours", data_label="embedded/iwslt17")
    experiment(tmp_path / "real", data_label="iwslt17")

    ours, real = charts.pareto(only_group(tmp_path / "ours")), charts.pareto(only_group(tmp_path / "real"))

    assert not [row for row in _values(ours) if row.get("method") == "published"]
    published = [row for row in _values(real) if row.get("method") == "published"]
    assert {"published: bild aligned, no drop", "published: speculative, unaligned"} <= {r["label"] for r in published}
    assert {(row["metric"], row["split"], row["front"]) for row in published} == {("BLEU", "not stated", False)}
    assert "split not stated" in " ".join(real["title"]["subtitle"])
    assert "published" not in " ".join(ours["title"]["subtitle"])
    assert "published" in charts.svg(real)


def test_a_sampled_run_is_shown_beside_the_published_sampled_points(tmp_path: Path) -> None:
    drawn = {"dtype": "float32", "sampling": {"top_p": 0.8}}
    experiment(tmp_path / "x", data_label="xsum", task="xsum", configuration=drawn)

    rows = [row for row in _values(charts.pareto(only_group(tmp_path))) if row.get("method") == "published"]

    assert {row["quality"] for row in rows} == {34.34, 34.04, 33.10}


def test_the_small_model_is_a_line_where_it_is_near_and_words_where_it_would_flatten_the_plot(tmp_path: Path) -> None:
    near = charts.pareto(_with_small(tmp_path / "near", "the cat sat"))
    far = charts.pareto(_with_small(tmp_path / "far", "nothing of it"))

    assert [row["name"] for row in _values(near) if "name" in row] == ["vanilla 100.00", "small 78.57"]
    assert "beyond the plot" not in " ".join(near["title"]["subtitle"])
    assert [row["name"] for row in _values(far) if "name" in row] == ["vanilla 100.00"]
    assert "beyond the plot: small alone, 0.00 at 3.00x" in far["title"]["subtitle"]
    assert "small" not in {row["label"] for row in far["data"]["values"]}


def test_a_small_model_of_many_experiments_is_one_line_and_one_remark(tmp_path: Path) -> None:
    small = {**POINT, "point_id": "5" * 16, "point": "small", "method": "small", "settings": {}}
    texts = two_texts()
    texts["a"].append(made_sample(small, **{**BILD_A, "output_text": "nothing of it"}))
    texts["b"].append(made_sample(small, **{**BILD_B, "output_text": "nothing of it"}))
    for number in range(3):
        experiment(tmp_path / f"e{number}", texts, points=[BASELINE, POINT, small])

    spec = charts.pareto(only_group(tmp_path))

    assert len([row for row in _values(spec) if "name" in row]) == 1
    assert ["small" in line for line in spec["title"]["subtitle"]].count(True) == 1


def test_beside_a_mark_stand_its_settings_whatever_tells_experiments_apart(tmp_path: Path) -> None:
    for name in ("one", "two"):
        experiment(tmp_path / name)

    rows = charts.pareto(only_group(tmp_path))["data"]["values"]

    assert {row["label"] for row in rows} == {
        *("vanilla (one)", "vanilla (two)"),
        *("bild fb=0.5 rb=2 (one)", "bild fb=0.5 rb=2 (two)"),
    }
    assert {row["short"] for row in rows if row["method"] == "bild"} == {"fb=0.5 rb=2"}


def test_published_figures_of_calm_are_only_on_plots_of_calm(tmp_path: Path) -> None:
    calm = {**POINT, "point": "calm 0.9", "method": "calm", "settings": {}}
    texts = {"a": [made_sample(BASELINE), made_sample(calm, **BILD_A)]}
    experiment(tmp_path / "bild", {"a": two_texts()["a"]}, data_label="iwslt17")
    experiment(tmp_path / "calm", texts, points=[BASELINE, calm], data_label="iwslt17")

    without, with_calm = (_values(charts.pareto(only_group(tmp_path / name))) for name in ("bild", "calm"))

    assert 35.03 not in {row.get("quality") for row in without}
    assert 35.03 in {row.get("quality") for row in with_calm}


def test_a_single_text_is_drawn_without_intervals(tmp_path: Path) -> None:
    experiment(tmp_path / "x", {"a": two_texts()["a"]})

    spec = charts.pareto(only_group(tmp_path))

    assert {row["speedup_low"] for row in spec["data"]["values"] if not row["baseline"]} == {None}
    json.dumps(spec, allow_nan=False)
    assert "</svg>" in charts.svg(spec)


def test_points_without_a_baseline_have_no_place_and_the_plot_still_draws(tmp_path: Path) -> None:
    texts = {"a": [made_sample(POINT, **BILD_A)], "b": [made_sample(POINT, **BILD_B)]}
    experiment(tmp_path / "x", texts, points=[POINT])

    spec = charts.pareto(only_group(tmp_path))

    assert spec["data"]["values"] == []
    assert "</svg>" in charts.svg(spec)


def test_heat_maps_show_three_figures_over_both_thresholds(tmp_path: Path) -> None:
    grid(tmp_path / "x", GRID)

    spec = charts.heatmaps(only_group(tmp_path))

    assert spec is not None
    [row] = spec["vconcat"]
    assert [part["title"]["text"] for part in row["hconcat"]] == ["ROUGE-L", "decoding speed-up", "rollback %"]
    speeds = {(cell["alpha_fb"], cell["alpha_rb"]): cell["figure"] for cell in _values(row["hconcat"][1])}
    # 4.5 s over 1.2 s for text b and 0.3 s, or two, three, four times that, for text a.
    expected = {("0.5", "1"): 3.0, ("0.5", "2"): 2.5, ("0.9", "1"): 4.5 / 2.1, ("0.9", "∞"): 1.875}
    assert speeds == pytest.approx(expected)
    assert row["hconcat"][0]["encoding"]["y"]["sort"] == ["∞", "2", "1"]
    assert "</svg>" in charts.svg(spec)
    json.dumps(spec, allow_nan=False)


@pytest.mark.parametrize("cells", [GRID[:1], GRID[:2], [(0.5, 1.0, 1.0), (0.9, 1.0, 1.0)]])
def test_without_two_values_of_each_threshold_there_is_no_heat_map(
    tmp_path: Path, cells: list[tuple[float, float, float]]
) -> None:
    grid(tmp_path / "x", cells)

    assert charts.heatmaps(only_group(tmp_path)) is None


def test_settings_that_differ_make_heat_maps_of_their_own_named_by_what_differs(tmp_path: Path) -> None:
    texts = {"a": [made_sample(BASELINE)], "b": [made_sample(BASELINE, **VANILLA_B)]}
    points = []
    for number, (cap, fb, rb) in enumerate(itertools.product((None, 10), (0.5, 0.9), (1.0, 2.0)), start=1):
        settings = {"alpha_fb": fb, "alpha_rb": rb, "max_draft": cap, "first": "small"}
        point = {**POINT, "point_id": f"{number:016d}", "point": f"bild {number}", "settings": settings}
        points.append(point)
        texts["a"].append(made_sample(point, **BILD_A))
        texts["b"].append(made_sample(point, **BILD_B))
    experiment(tmp_path / "x", texts, points=[BASELINE, *points])

    spec = charts.heatmaps(only_group(tmp_path))

    assert spec is not None
    assert [row["title"]["text"] for row in spec["vconcat"]] == ["bild, max draft None", "bild, max draft 10"]


def test_the_theme_is_for_the_ground_that_it_stands_on(tmp_path: Path) -> None:
    experiment(tmp_path / "x")
    spec = charts.pareto(only_group(tmp_path))

    light, dark = charts.themed(spec), charts.themed(spec, dark=True)

    assert light["background"] == "#FFFFFF"
    assert dark["background"] != light["background"]
    assert dark["config"]["title"]["color"] != light["config"]["title"]["color"]
    assert "config" not in spec
