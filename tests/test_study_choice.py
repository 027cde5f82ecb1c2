"""Thresholds of the study, chosen on figures made by hand; and whether a fresh run agrees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bild_bench.measure.intervals import Estimate
from bild_bench.measure.quality import Score
from bild_bench.plan import Point, make_point, with_smalls
from bild_bench.report.summary import PointSummary
from study import agree
from study.agree import agreement
from study.choose import BEST, LIKE_LATENCY, NO_LOSS, SPECULATIVE, WITHIN_ONE, choose
from study.rows import Row
from study.trials import SYNOPSES, trials

NUMBERS = dict.fromkeys(PointSummary.__dataclass_fields__)


def figures(quality: float, speed: float, role: str = "point") -> PointSummary:
    known: dict[str, Any] = {
        "role": role,
        "texts": 9,
        "paired_texts": 9,
        "quality": Score("bleu", quality, "made up"),
        "speedup_decoding": Estimate(speed, speed, speed),
    }
    return PointSummary(**{**NUMBERS, **known})


def bild(alpha_fb: float, small: str = "small") -> Point:
    return with_smalls([make_point("bild", {"alpha_fb": alpha_fb})], [small])[0]


def window(gamma: int, small: str = "small") -> Point:
    return with_smalls([make_point("speculative", {"gamma": gamma})], [small])[0]


VANILLA = {make_point("vanilla", {}, "baseline"): figures(30.0, 1.0, "baseline")}


def test_each_rule_takes_its_point() -> None:
    candidates = {
        bild(0.9): figures(31.0, 1.1),
        bild(0.7): figures(30.4, 1.3),
        bild(0.5): figures(30.0, 1.4),
        bild(0.3): figures(29.0, 1.8),
        bild(0.1): figures(28.9, 2.5),
        window(3): figures(30.0, 1.2),
        window(5): figures(30.0, 1.25),
    }
    assert {one.rule: one.point for one in choose({**VANILLA, **candidates})} == {
        NO_LOSS: bild(0.5),
        WITHIN_ONE: bild(0.3),
        SPECULATIVE: window(5),
        LIKE_LATENCY: bild(0.7),
        BEST: bild(0.9),
    }


def test_speculative_decoding_is_never_chosen_as_bild() -> None:
    candidates = {bild(0.9): figures(30.5, 1.1), window(5): figures(30.0, 9.0)}
    chosen = {one.rule: one.point for one in choose({**VANILLA, **candidates})}
    assert chosen[NO_LOSS] == bild(0.9)
    assert LIKE_LATENCY not in chosen, "no point of BiLD is as fast"


def test_small_models_and_measures_are_chosen_apart() -> None:
    pair = {bild(0.5, "small"): figures(30.0, 1.5), bild(0.5, "aligned"): figures(30.0, 1.9)}
    assert [one.point.small for one in choose({**VANILLA, **pair}) if one.rule == NO_LOSS] == ["small", "aligned"]
    calm = {
        make_point("calm", {"measure": measure, "threshold": 0.5}): figures(30.0, 1.5)
        for measure in ("softmax", "state", "classifier")
    }
    measures = [one.point.settings.measure for one in choose({**VANILLA, **calm}) if one.rule == WITHIN_ONE]
    assert measures == ["softmax", "state", "classifier"]


def test_a_rule_that_no_point_fulfils_is_left_out() -> None:
    assert [one.rule for one in choose({**VANILLA, bild(0.1): figures(29.5, 2.0)})] == [WITHIN_ONE]


def test_thresholds_are_chosen_on_other_texts_than_they_are_shown_on() -> None:
    for trial in trials():
        assert trial.texts.validation != trial.texts.test
        assert trial.candidates or trial.follows
    assert SYNOPSES.metric == "rougeL"


def row(**changes: Any) -> Row:
    empty = dict.fromkeys(Row.__dataclass_fields__)
    made = Row(**{**empty, "trial": "captions", "point": "bild fb=0.5 rb=2", "method": "bild", "small": "small"})
    settled = {"rules": "", "settings": "{}", "quality": 30.0, "quality_low": 29.0, "quality_high": 31.0}
    return replace(made, **{**settled, "speedup": 1.5, "speedup_low": 1.4, "speedup_high": 1.6, **changes})


def test_a_fresh_run_agrees_within_the_intervals() -> None:
    assert agreement([row(quality=31.0, speedup=1.4)], [row()]) == (2, [])
    compared, outside = agreement([row(quality=31.01)], [row()])
    assert (compared, [(one.figure, one.value) for one in outside]) == (2, [("quality", 31.01)])


def test_a_row_that_is_missing_agrees_with_nothing() -> None:
    compared, outside = agreement([row(point="another")], [row()])
    assert compared == 2
    assert [one.value for one in outside] == [None, None]


@pytest.mark.parametrize(
    ("rules", "agree"), [("no loss", True), ("no loss; best quality", True), ("best quality", False)]
)
def test_a_chosen_row_is_compared_with_its_rules_whatever_its_thresholds(rules: str, agree: bool) -> None:
    fresh = row(point="bild fb=0.6 rb=2", rules=rules)
    assert (agreement([fresh], [row(rules="no loss")])[1] == []) == agree


def test_a_row_that_is_shown_in_any_case_is_found_though_a_fresh_run_chose_it() -> None:
    assert agreement([row(rules="no loss")], [row()]) == (2, [])


@pytest.mark.parametrize(("off", "code"), [(1, 0), (2, 1)])
def test_of_forty_figures_two_may_lie_outside_intervals_of_95_percent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], off: int, code: int
) -> None:
    rows = [row(point=f"bild fb={number}") for number in range(20)]
    # Both figures of a row that is off.
    fresh = [replace(one, quality=50.0, speedup=9.0) if n < off else one for n, one in enumerate(rows)]
    monkeypatch.setattr(agree, "load", lambda path: (fresh if path.name == "fresh" else rows, "", {}))
    assert agree.main(["fresh"]) == code
    assert f"{40 - 2 * off} of 40 figures" in capsys.readouterr().out


def test_a_baselines_speed_up_is_not_compared() -> None:
    assert agreement([row(method="vanilla")], [row(method="vanilla")]) == (1, [])
