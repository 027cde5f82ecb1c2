"""From calls and times put there by hand to a profile's figures, its table and its plot."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bild_bench.measure.call_costs import CallCosts
from bild_bench.measure.call_record import Recorded
from bild_bench.measure.ceilings import Ceilings
from bild_bench.measure.operations import DecoderCall, Shape, Stack, decoder_call, encoding
from bild_bench.plan import Point, make_point
from bild_bench.profile_figures import Bench, Taken, figures
from bild_bench.report import charts
from bild_bench.report.profile_table import operation_rows, remarks, time_rows, with_rates
from bild_bench.report.roofline import roofline

LARGE = Shape(8, Stack(2, 8, 16, False), Stack(4, 8, 16, False), 30, 4, 4)
SMALL = Shape(4, Stack(1, 4, 8, False), Stack(1, 4, 8, False), 30, 4, 4)
SHAPES = {"large": LARGE, "small": SMALL}
VANILLA, ALONE = make_point("vanilla", {}, "baseline"), make_point("small", {})
BILD = make_point("bild", {"alpha_fb": 0.5, "alpha_rb": 2.0})
# A call of L takes 8 s and 1 s for each row more, one of S 2 s, whatever the context; decoding adds 1 s and 0.5 s.
LARGE_CALLS = {context: {1: 8.0, 2: 9.0} for context in (4, 64)}
SMALL_CALLS = {context: {1: 2.0, 2: 2.0} for context in (4, 64)}
COSTS = {"large": CallCosts(5, LARGE_CALLS, LARGE_CALLS), "small": CallCosts(5, SMALL_CALLS, SMALL_CALLS)}
CEILINGS = Ceilings(1000.0, 4000.0, 1 << 20, {"large": 1000.0, "small": 2000.0})


def _calls(role: str, *rows: int) -> tuple[Recorded, ...]:
    return tuple(Recorded(role, n, (DecoderCall(n, 0, 5, n),)) for n in rows)


def _taken(point: Point, calls: tuple[Recorded, ...], encode: float, decode: float, held_out: bool) -> Taken:
    roles = [call.role for call in calls]
    counts = {f"{role}_calls": roles.count(role) for role in ("small", "large")}
    return Taken(point, 4, 5, encode, decode, calls=calls, held_out=held_out, **counts)


def _texts(bild_seconds: float = 24.0) -> list[Taken]:
    vanilla, small, both = _calls("large", 1, 1, 1, 1), _calls("small", 1, 1, 1, 1), _calls("small", 1, 1, 1)
    both += _calls("large", 3)
    return [
        *(_taken(VANILLA, vanilla, 3.0, 36.0, held_out) for held_out in (False, True)),
        *(_taken(ALONE, small, 1.0, 10.0, held_out) for held_out in (False, True)),
        _taken(BILD, both, 4.0, 999.0, False),  # its own times must not calibrate anything
        _taken(BILD, both, 4.0, bild_seconds, True),
    ]


def _profile(texts: list[Taken] | None = None) -> dict[str, Any]:
    found = figures(Bench(SHAPES, CEILINGS, COSTS), [VANILLA, ALONE, BILD], _texts() if texts is None else texts)
    return with_rates(
        {
            "texts": 2,
            "held_out_texts": 1,
            "calibration_texts": 1,
            "repeats": 1,
            "data_label": "made",
            "split": "test",
            "dtype": "float32",
            "pair": {"label": "made-up"},
            "environment": {"device": "cpu", "threads": 1, "busy": None, "cpu_model": "CPU", "gpu_name": None},
            "errors": [],
            **found,
        }
    )


def _within_limits(profile: dict[str, Any]) -> dict[str, Any]:
    """The made-up times are below the made-up limits."""
    for point in profile["points"]:
        point["timing"]["over_limit"] = 2.0
    return profile


def _point(profile: dict[str, Any], label: str) -> dict[str, Any]:
    return next(point for point in profile["points"] if point["point"] == label)


def test_operations_are_summed_by_model_and_divided_by_generated_tokens() -> None:
    parts = _point(_profile(), BILD.label)["parts"]
    small, large = decoder_call(SMALL, DecoderCall(1, 0, 5, 1)), decoder_call(LARGE, DecoderCall(3, 0, 5, 3))

    assert (parts["small"]["calls"], parts["small"]["rows"]) == (6, 6)
    assert (parts["large"]["calls"], parts["large"]["rows"]) == (2, 6)
    assert parts["large"]["rows_per_call"] == 3.0
    # Two texts of four tokens each.
    assert parts["small"]["flops_per_token"] == 6 * small.flops / 8
    assert parts["large"]["bytes_per_token"] == 2 * large.bytes / 8
    assert parts["decoding"]["flops"] == 6 * small.flops + 2 * large.flops
    assert parts["decoding"]["intensity"] == pytest.approx(
        (6 * small.flops + 2 * large.flops) / (6 * small.bytes + 2 * large.bytes)
    )


def test_encoders_stand_apart_and_in_all() -> None:
    parts = _point(_profile(), BILD.label)["parts"]
    large, small = encoding(LARGE, 5), encoding(SMALL, 5)

    assert parts["large encoder"]["flops"] == 2 * large.flops
    assert parts["small encoder"]["bytes"] == 2 * small.bytes
    assert parts["encoders"]["flops"] == 2 * (large.flops + small.flops)
    assert parts["all"]["bytes"] == parts["decoding"]["bytes"] + parts["encoders"]["bytes"]
    assert "small encoder" not in _point(_profile(), "vanilla")["parts"]


def test_a_point_is_predicted_from_single_calls_and_the_models_alone() -> None:
    timing = _point(_profile(), BILD.label)["timing"]

    # Vanilla: 36 s for four calls of 8 s, so 1 s a call; small: 0.5 s. BiLD: three of 2.5 s and one of 10 + 1 s.
    assert timing["predicted_decode_seconds"] == pytest.approx(3 * 2.5 + 11.0)
    assert timing["measured_decode_seconds"] == 24.0
    assert timing["decode_error_pct"] == pytest.approx(100 * (18.5 / 24 - 1))
    assert timing["predicted_ms_per_token"] == pytest.approx(1000 * 18.5 / 4)
    assert timing["predicted_encode_seconds"] == pytest.approx(4.0)
    assert timing["texts"] == 1


def test_the_limit_is_the_slower_of_bytes_and_flops_of_each_call() -> None:
    timing = _point(_profile(), BILD.label)["timing"]
    small, large = decoder_call(SMALL, DecoderCall(1, 0, 5, 1)), decoder_call(LARGE, DecoderCall(3, 0, 5, 3))
    least = 3 * max(small.bytes / 2000, small.flops / 4000) + max(large.bytes / 1000, large.flops / 4000)

    assert timing["limit_decode_seconds"] == pytest.approx(least)
    assert timing["over_limit"] == pytest.approx(24 / least)


def test_nothing_is_predicted_from_calls_that_took_longer_at_some_moments() -> None:
    steady, busy = (
        figures(Bench(SHAPES, CEILINGS, COSTS, drift), [VANILLA, ALONE, BILD], _texts()) for drift in (1.5, 1.6)
    )
    for found, predicted in ((steady, True), (busy, False)):
        profile = with_rates({**_profile(), **found})
        timings = [point["timing"] for point in profile["points"]]
        for part in ("decode", "encode"):
            assert [one[f"predicted_{part}_seconds"] is not None for one in timings] == [predicted] * 3
            assert [one[f"{part}_error_pct"] is not None for one in timings] == [predicted] * 3
        line = (
            "warning: not predictable: the machine was busy while calls were timed"
            " (up to 1.6 times as long at some moments as at others)"
        )
        assert (line in remarks(profile)) is not predicted
        assert ("large encoder: 3000.00 ms per text" in remarks(profile)) is not predicted
        assert time_rows(profile)[0][2] == ("9000.00" if predicted else "-")


def test_an_early_exit_reads_the_large_models_weights_and_is_not_predicted() -> None:
    early = make_point("bild-early-exit", {})
    calls = (Recorded("small", 1, (DecoderCall(1, 0, 5, 1, layers=1),)),)
    bench = Bench(SHAPES, CEILINGS, COSTS)
    texts = [*_texts(), *(_taken(early, calls, 3.0, 5.0, held_out) for held_out in (False, True))]
    found = with_rates({**figures(bench, [VANILLA, ALONE, early], texts)})
    point = _point(found, early.label)

    assert point["parts"]["small"]["flops"] == 2 * decoder_call(LARGE, DecoderCall(1, 0, 5, 1, layers=1)).flops
    assert point["timing"]["predicted_decode_seconds"] is None
    assert point["timing"]["decode_error_pct"] is None
    assert early.label not in " ".join(mark["label"] for mark in found["marks"])
    assert time_rows(found)[-1][1:4] == ["1250.00", "-", "-"]


def test_the_table_has_every_part_below_its_point() -> None:
    names = [row[0] for row in operation_rows(_profile())]

    assert names[:4] == ["vanilla", "  decoding", "    large", "  encoders"]
    assert names[-5:] == [BILD.label, "  decoding", "    small", "    large", "  encoders"]
    assert operation_rows(_profile())[-2][1:3] == ["0.25", "3.00"]
    assert time_rows(_profile())[-1][:4] == [BILD.label, "6000.00", "4625.00", "-22.9 %"]


def test_remarks_warn_of_predictions_that_miss_and_of_nothing_else() -> None:
    near = " ".join(remarks(_within_limits(_profile(_texts(bild_seconds=18.5)))))
    far = remarks(_within_limits(_profile(_texts(bild_seconds=24.0))))

    assert "warning" not in near
    assert f"more than 15 % off for {BILD.label}" in far[-1]
    busy = _profile()
    busy["environment"]["busy"] = "The machine was busy."
    assert "warning: The machine was busy." in remarks(busy)
    assert "2 decodings failed" in " ".join(remarks(_profile() | {"errors": ["a", "b"]}))


def test_an_encoder_that_was_predicted_wrongly_is_named() -> None:
    profile = _within_limits(_profile(_texts(bild_seconds=18.5)))
    _point(profile, VANILLA.label)["timing"]["encode_error_pct"] = 40.0
    (line,) = [line for line in remarks(profile) if "warning" in line]
    assert line == "warning: predicted encoding is more than 15 % off for the large model"


def test_a_time_below_its_limit_is_explained_where_the_table_shows_it() -> None:
    def warned(over_limit: float | None) -> list[str]:
        profile = _within_limits(_profile())
        _point(profile, BILD.label)["timing"]["over_limit"] = over_limit
        return [line for line in remarks(profile) if "limit" in line]

    (line,) = warned(0.6)
    assert line.startswith(f"warning: faster than the limit, which is impossible: {BILD.label}. ")
    assert "the machine was busy" in line
    assert "cache" in line
    # The table shows 0.96 as 1.0x.
    assert [warned(value) for value in (0.96, 1.0, 4.5, None)] == [[], [], [], []]
    assert len(warned(0.94)) == 1


def test_the_roofline_has_each_call_once_below_both_ceilings() -> None:
    profile = _profile()
    spec = roofline(profile)
    rows = {row["label"]: row for row in spec["data"]["values"]}

    assert list(rows) == [
        "large, 1 row",
        "small, 1 row",
        f"large, 3.0 rows: {BILD.label}",
        "large encoder",
        "small encoder",
    ]
    one = decoder_call(LARGE, DecoderCall(1, 0, 5, 1))
    assert rows["large, 1 row"]["intensity"] == pytest.approx(one.flops / one.bytes)
    assert rows["large, 1 row"]["achieved"] == pytest.approx(one.flops / 8)
    assert rows["large encoder"]["achieved"] == pytest.approx(encoding(LARGE, 5).flops / 3)
    roofs = spec["layer"][0]["data"]["values"]
    assert {row["roof"] for row in roofs} == {"memory", "large", "small"}
    for row in roofs:
        bandwidth = {"memory": 1000.0, "large": 1000.0, "small": 2000.0}[row["roof"]]
        assert row["achieved"] == pytest.approx(min(4000.0, bandwidth * row["intensity"]))


def test_the_roofline_can_be_drawn_and_names_what_it_shows() -> None:
    drawn = charts.svg(roofline(_profile()))

    for words in ("FLOPs per byte", "FLOP/s", "large, 1 row", "small encoder", f"large, 3.0 rows: {BILD.label}"):
        assert words in drawn
    assert charts.png(roofline(_profile())).startswith(b"\x89PNG\r\n\x1a\n")


def test_labels_of_marks_at_one_place_do_not_cover_one_another() -> None:
    profile = _profile()
    profile["marks"] = [{**mark, "intensity": 1.0, "achieved": 100.0} for mark in profile["marks"]]
    heights = {
        value["label"]: value["y"] for layer in roofline(profile)["layer"][2:] for value in layer["data"]["values"]
    }

    placed = sorted(heights.values())
    assert len(placed) == len(profile["marks"])
    assert all(after - before >= 14 for before, after in itertools.pairwise(placed))
