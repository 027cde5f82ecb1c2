"""The published figures are there, and say what is not stated."""

from __future__ import annotations

import pytest

from bild_bench.report.paper import NOT_STATED, PaperPoint, metric_name, paper_points, plotted


def _find(**wanted: str) -> PaperPoint:
    [found] = [p for p in paper_points() if all(getattr(p, name) == value for name, value in wanted.items())]
    return found


@pytest.mark.parametrize(
    ("task", "aligned", "setting", "quality", "speedup"),
    [
        ("iwslt17", "no", "no drop", 40.33, 1.43),
        ("iwslt17", "yes", "about one point lower", 39.13, 1.78),
        ("wmt14", "yes", "no drop", 31.26, 1.47),
        ("xsum", "no", "about one point lower", 34.02, 1.72),
        ("cnn_dm", "yes", "about one point lower", 40.96, 2.12),
    ],
)
def test_figures_of_bild(task: str, aligned: str, setting: str, quality: float, speedup: float) -> None:
    point = _find(task=task, method="bild", aligned=aligned, setting=setting)

    assert (point.quality, point.speedup) == (quality, speedup)


def test_rates_beside_speculative_decoding() -> None:
    speculative, bild = (
        _find(task="xsum", method="speculative"),
        _find(task="xsum", method="bild", aligned="no", setting="no drop"),
    )

    assert (speculative.fallback_pct, speculative.rollback_pct) == (36.84, 24.24)
    assert (bild.fallback_pct, bild.rollback_pct) == (32.33, 6.41)


def test_the_profile_and_calms_layers_are_kept() -> None:
    profile = _find(task="cnn_dm", setting="profile over vanilla")
    layers = {point.speedup: point.average_layers for point in paper_points() if point.method == "calm"}

    assert (profile.flops_ratio, profile.memory_operations_ratio, profile.intensity_ratio) == (1.11, 0.22, 4.96)
    assert layers == {1.05: 8.9, 1.18: 5.2, 1.25: 3.6}


def test_what_the_sources_do_not_state_is_said_and_the_hardware_is_one_t4() -> None:
    assert {point.split for point in paper_points()} == {NOT_STATED}
    assert {point.source_table for point in paper_points()} == {NOT_STATED}
    assert {point.hardware for point in paper_points()} == {"one NVIDIA T4, batch 1"}


def test_only_complete_points_of_the_same_kind_of_search_are_plotted() -> None:
    greedy, drawn = plotted("iwslt17", sampling=False), plotted("iwslt17", sampling=True)

    assert {point.quality for point in drawn} == {39.72, 39.26, 38.27}
    assert 40.33 in {point.quality for point in greedy}
    assert not {"nucleus p=0.8"} & {point.setting for point in greedy}
    assert all(point.quality is not None and point.speedup is not None for point in greedy + drawn)
    assert plotted("custom", sampling=False) == ()


def test_labels_and_metric_names_read_as_in_papers() -> None:
    assert _find(task="wmt14", aligned="yes", setting="no drop").label == "bild aligned, no drop"
    assert [metric_name(name) for name in ("bleu", "rougeL", "chrf")] == ["BLEU", "ROUGE-L", "chrF2"]
