"""Ranges and lists on the command line, and the points that they make."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bild_bench.errors import UsageError
from bild_bench.grid import expand, parse_duration, parse_numbers, parse_words
from bild_bench.plan import make_point


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.5", [0.5]),
        ("0.3:0.9:0.1", [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        ("0:1:0.3", [0.0, 0.3, 0.6, 0.9]),
        ("0.1:0.3:0.05", [0.1, 0.15, 0.2, 0.25, 0.3]),
        ("3:5", [3.0, 4.0, 5.0]),
        ("0.5:2", [0.5, 1.5]),
        ("2:2", [2.0]),
        ("1,2,3,inf", [1.0, 2.0, 3.0, math.inf]),
        ("5,1, 2:4 ,1", [5.0, 1.0, 2.0, 3.0, 4.0]),
        ("0.5,0.50,5e-1", [0.5]),
        ("0", [0.0]),
        ("1e-3", [0.001]),
    ],
)
def test_ranges_and_lists_are_the_numbers_that_a_person_would_write(text: str, numbers: list[float]) -> None:
    # Compared exactly: 0.1 + 0.2 and 0.9 - 1 ulp are other floats than 0.3 and 0.9.
    assert parse_numbers("--alpha-fb", text, whole=False) == numbers


@given(first=st.integers(-500, 500), step=st.integers(1, 60), steps=st.integers(0, 60), places=st.integers(0, 6))
def test_a_range_ends_with_its_end_and_each_number_is_the_nearest_float(
    first: int, step: int, steps: int, places: int
) -> None:
    hundredths = [Decimal(first + step * number).scaleb(-places) for number in range(steps + 1)]
    text = f"{hundredths[0]:f}:{hundredths[-1]:f}:{Decimal(step).scaleb(-places):f}"
    assert parse_numbers("--x", text, whole=False) == [float(f"{number:f}") for number in hundredths]


def test_whole_numbers_are_ints() -> None:
    numbers = parse_numbers("--gamma", "3:6,10,2.0", whole=True)
    assert numbers == [3, 4, 5, 6, 10, 2]
    assert {type(number) for number in numbers} == {int}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "'' is not a usable number"),
        ("a", "'a' is not a usable number"),
        ("1,,2", "'' is not a usable number"),
        ("1,2,", "'' is not a usable number"),
        ("nan", "'nan' is not a usable number"),
        ("snan", "'snan' is not a usable number"),
        ("1e999", "'1e999' is not a usable number"),
        ("0:1e999999", "'1e999999' is not a usable number"),
        ("0.3:", "'' is not a usable number"),
        ("0,3:0,9", None),
        ("1:2:3:4", "is not a range"),
        ("0.9:0.3:0.1", "is not a range"),
        ("0.3:0.9:-0.1", "is not a range"),
        ("0.3:0.9:0", "is not a range"),
        ("0:1:1e-999999", "is not a range"),
        ("0:inf", "is not a range"),
        ("-inf:0", "is not a range"),
        ("0:1:inf", "is not a range"),
        ("0:1:0.001", "has more values than 1000"),
        ("0:1e300", "has more values than 1000"),
    ],
)
def test_what_is_no_number_or_range_is_refused_in_one_line(text: str, problem: str | None) -> None:
    if problem is None:  # German decimals: three fine parts, of which the middle one runs backwards.
        problem = "is not a range"
    with pytest.raises(UsageError) as refused:
        parse_numbers("--alpha-fb", text, whole=False)
    assert str(refused.value).startswith(f"--alpha-fb: {text!r}: ")
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_thousand_values_are_not_too_many() -> None:
    assert len(parse_numbers("--x", "0:0.999:0.001", whole=False)) == 1000


@pytest.mark.parametrize("text", ["2.5", "1,2,inf", "3:5:0.5"])
def test_fractions_are_refused_where_only_whole_numbers_make_sense(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--gamma: .*: must be whole numbers \(allowed: .*\); leave the fractions"):
        parse_numbers("--gamma", text, whole=True)


def test_words_are_taken_once_each_in_their_order() -> None:
    assert parse_words("--mode", "bild, small,bild") == ["bild", "small"]
    for text in ("", ",", "a,,b", "a, "):
        with pytest.raises(UsageError, match=r"^--mode: .*: has an empty name in it"):
            parse_words("--mode", text)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("20m", 1200), ("1.5h", 5400), ("2", 120), ("0.5", 30), ("0.1s", 0.1)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration("--budget", text) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize("text", ["", "m", "0", "0s", "-1m", "nan", "inf", "20 minutes", "1d", "1e999h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--budget: .*: must be a duration \(allowed: 90s, 20m, 1\.5h\)"):
        parse_duration("--budget", text)


def labels(modes: list[str], values: dict[str, list[Any]]) -> list[str]:
    return [point.label for point in expand(modes, values)]


def test_each_mode_takes_every_combination_of_the_settings_that_it_knows() -> None:
    values = {"gamma": [3, 5], "alpha_fb": [0.0, 0.5], "alpha_rb": [1.0, math.inf]}
    assert labels(["bild", "small", "speculative"], values) == [
        "bild fb=0 rb=1",
        "bild fb=0 rb=never",
        "bild fb=0.5 rb=1",
        "bild fb=0.5 rb=never",
        "small",
        "speculative gamma=3",
        "speculative gamma=5",
    ]


def test_settings_that_are_not_given_take_their_defaults() -> None:
    assert expand(["bild"], {}) == [make_point("bild", {"alpha_fb": 0.5, "alpha_rb": 2.0})]


def test_one_point_is_one_point_however_often_it_is_asked_for() -> None:
    assert labels(["bild", "small", "bild"], {"alpha_fb": [0.5, 0.9, 0.5]}) == [
        "bild fb=0.5 rb=2",
        "bild fb=0.9 rb=2",
        "small",
    ]


@given(
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=1, unique=True),
    st.lists(st.sampled_from([0.0, 1.0, math.inf]), min_size=1, unique=True),
    st.lists(st.integers(1, 9), min_size=1, unique=True),
)
def test_as_many_points_as_combinations(fallbacks: list[float], rollbacks: list[float], windows: list[int]) -> None:
    points = expand(["bild", "speculative"], {"alpha_rb": rollbacks, "alpha_fb": fallbacks, "gamma": windows})
    assert len(set(points)) == len(points) == len(fallbacks) * len(rollbacks) + len(windows)
    bild = {(p.settings.alpha_fb, p.settings.alpha_rb) for p in points if p.method.name == "bild"}
    assert bild == {(fallback, rollback) for fallback in fallbacks for rollback in rollbacks}


def test_a_setting_that_none_of_the_modes_knows_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^--gamma: 3: does not apply to --mode bild,small \(allowed with: speculat"):
        expand(["bild", "small"], {"gamma": [3]})
    with pytest.raises(UsageError, match=r"^--alpha-fb: \[0\.1, 0\.2\]: does not apply to --mode small"):
        expand(["small"], {"alpha_fb": [0.1, 0.2]})


def test_a_value_out_of_range_and_an_unknown_mode_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^--alpha-fb: 1\.5: must be a number from 0 to 1"):
        expand(["bild"], {"alpha_fb": [0.5, 1.5]})
    with pytest.raises(UsageError, match=r"^--mode: 'bidl': not known .*did you mean 'bild'"):
        expand(["bidl"], {})
