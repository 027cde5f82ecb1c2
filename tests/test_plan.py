"""Points and identities: what is decoded, and what counts as the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from bild_bench.decoding.picking import Sampling
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
    with pytest.raises(UsageError, match=rf"^{option}: 1: does not apply to --mode vanilla .*\bbild\b"):
        make_point("vanilla", {setting: 1})


def test_a_setting_that_no_mode_has_is_refused() -> None:
    with pytest.raises(UsageError, match="--beams: 4: does not apply to --mode bild"):
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


@pytest.mark.parametrize(
    ("mode", "setting", "value", "wanted"),
    [
        ("bild", "alpha_fb", "0.5", "a number"),
        ("bild", "alpha_fb", True, "a number"),
        ("bild", "max_draft", 2.0, "a whole number or None"),
        ("bild", "max_draft", True, "a whole number or None"),
        ("bild", "first", 1, "a word"),
        ("bild", "verify_tail", "yes", "True or False"),
        ("bild", "verify_tail", 1, "True or False"),
        ("speculative", "gamma", 2.5, "a whole number"),
        ("calm", "measure", ["softmax"], "a word"),
    ],
)
def test_a_value_of_another_type_is_refused(mode: str, setting: str, value: object, wanted: str) -> None:
    option = "--" + setting.replace("_", "-")
    kind = type(value).__name__
    with pytest.raises(UsageError) as refused:
        make_point(mode, {setting: value})
    expected = f"{option}: {value!r}: is of type {kind} (allowed: {wanted}); give {wanted}"
    assert str(refused.value) == expected


def test_none_is_refused_where_a_setting_needs_a_value() -> None:
    with pytest.raises(UsageError, match=r"^--alpha-rb: .*: is None \(allowed: a number\)"):
        make_point("bild", {"alpha_rb": None})


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2)])
def test_a_number_is_the_same_setting_however_it_is_written(value: float) -> None:
    point = make_point("bild", {"alpha_rb": value})
    assert point_identity(point, CONTEXT) == point_identity(make_point("bild", {}), CONTEXT)
    assert type(point.settings.alpha_rb) is float


def test_a_whole_number_of_numpy_is_a_whole_number_and_none_stays_none() -> None:
    assert type(make_point("bild", {"max_draft": np.int64(3)}).settings.max_draft) is int
    assert make_point("bild", {"max_draft": None}).settings.max_draft is None


@pytest.mark.parametrize("options", [{"temperature": "hot"}, {"top_k": 2.0}, {"top_p": True}])
def test_sampling_refuses_values_of_another_type(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="is of type"):
        Sampling(**options)
