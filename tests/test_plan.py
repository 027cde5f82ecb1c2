"""Points and identities: what is decoded, and what counts as the same."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bild_bench.errors import UsageError
from bild_bench.plan import code_version, identity, keys_of, make_point, point_identity, with_baseline

CONTEXT: dict[str, Any] = {
    "data": "xsum",
    "limits": [1024, 128],
    "dtype": "float32",
    "device": "cpu",
    "models": {"large": "aaaa", "small": "bbbb"},
}


def test_settings_that_are_not_given_take_the_methods_defaults() -> None:
    point = make_point("bild", {"alpha_fb": 0.0})
    assert point.label == "bild fb=0 rb=2"
    assert point.settings.alpha_fb == 0.0
    assert point.role == "point"


def test_a_label_holds_nothing_but_what_is_set() -> None:
    assert make_point("vanilla", {}).label == "vanilla"
    settings = {"alpha_rb": math.inf, "max_draft": 10, "first": "large", "verify_tail": True}
    assert make_point("bild", settings).label == "bild fb=0.5 rb=never cap=10 first=large tail"


@pytest.mark.parametrize("setting", ["alpha_fb", "max_draft", "verify_tail"])
def test_a_setting_that_means_nothing_to_the_mode_is_refused(setting: str) -> None:
    option = "--" + setting.replace("_", "-")
    with pytest.raises(UsageError, match=rf"^{option}: 1: means nothing to --mode vanilla .*\bbild\b"):
        make_point("vanilla", {setting: 1})


def test_a_setting_that_no_mode_has_is_refused() -> None:
    with pytest.raises(UsageError, match="--beams: 4: means nothing to --mode bild"):
        make_point("bild", {"beams": 4})


def test_the_baseline_is_vanilla_in_front_and_only_once() -> None:
    points = with_baseline([make_point("vanilla", {}), make_point("bild", {}), make_point("small", {})])
    assert [(point.method.name, point.role) for point in points] == [
        ("vanilla", "baseline"),
        ("bild", "point"),
        ("small", "point"),
    ]


def test_only_the_models_that_a_point_uses_are_asked_for() -> None:
    assert keys_of([make_point("small", {})]) == ("small",)
    assert keys_of([make_point("vanilla", {})]) == ("large",)
    assert keys_of([make_point("small", {}), make_point("vanilla", {})]) == ("large", "small")


def test_an_identity_is_16_hex_digits_and_does_not_depend_on_the_order_of_names() -> None:
    one, other = identity(a=1, b={"c": 2, "d": 3}), identity(b={"d": 3, "c": 2}, a=1)
    assert one == other
    assert len(one) == 16
    assert int(one, 16) >= 0


@pytest.mark.parametrize(
    "change", [{"data": "cnn_dm"}, {"limits": [1024, 64]}, {"dtype": "float16"}, {"device": "cuda"}, {"extra": 1}]
)
def test_a_points_identity_changes_with_all_that_points_share(change: dict[str, Any]) -> None:
    point = make_point("bild", {})
    assert point_identity(point, CONTEXT) != point_identity(point, CONTEXT | change)


def test_a_points_identity_changes_with_method_and_settings() -> None:
    points = [
        make_point("bild", {}),
        make_point("bild", {"alpha_fb": 0.0}),
        make_point("bild", {"alpha_rb": 0.0}),
        make_point("bild", {"alpha_rb": math.inf}),
        make_point("bild", {"first": "large"}),
        make_point("vanilla", {}),
        make_point("small", {}),
    ]
    assert len({point_identity(point, CONTEXT) for point in points}) == len(points)
    assert point_identity(points[0], CONTEXT) == point_identity(make_point("bild", {"alpha_fb": 0.5}), CONTEXT)


def test_another_small_model_is_no_other_baseline() -> None:
    other = CONTEXT | {"models": {"large": "aaaa", "small": "cccc"}}
    for mode, differs in (("vanilla", False), ("small", True), ("bild", True)):
        point = make_point(mode, {})
        assert (point_identity(point, CONTEXT) != point_identity(point, other)) is differs
    assert CONTEXT["models"] == {"large": "aaaa", "small": "bbbb"}


def test_the_role_is_no_part_of_a_points_identity() -> None:
    # Ids and counters of a baseline may be reused for the same method as a point.
    baseline, point = make_point("vanilla", {}, "baseline"), make_point("vanilla", {})
    assert point_identity(baseline, CONTEXT) == point_identity(point, CONTEXT)


def test_other_code_is_another_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = make_point("bild", {})
    before = point_identity(point, CONTEXT)
    assert code_version().startswith("0.")
    monkeypatch.setattr("bild_bench.plan.code_version", lambda: "0.1.0+other")
    assert point_identity(point, CONTEXT) != before
