"""Why all points take turns on every text: a machine that slows down half way through must not change a speed-up.

The machine is made up: a clock that real decoding drives, by 8 units a call of the large model and 1 of the small one,
and three times as much from half of all decodings on. So the same calls give the same times wherever this runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from bild_bench.decoding.methods import METHODS
from bild_bench.experiment import run_experiment
from bild_bench.measure.intervals import Estimate, ratio_of_sums
from bild_bench.plan import Point
from bild_bench.report.summary import summarise
from tests.made_experiments import request

TEXTS, SLOWER = 16, 3.0
_UNITS = {"large_calls": 8, "small_calls": 1}


class Machine:
    """A clock, and how many decodings it has seen; slower from `slow_from` decodings on."""

    def __init__(self, slow_from: float) -> None:
        self.time, self.decodings, self._slow_from = 0.0, 0, slow_from

    def now(self, device: str) -> float:
        return self.time

    def point(self, mode: str, role: str = "point") -> Point:
        """A point whose decoding takes this machine's time."""
        method = METHODS[mode]

        def decode(*arguments: Any) -> Any:
            decoded = method.decode(*arguments)
            units = sum(price * getattr(decoded.counters, name) for name, price in _UNITS.items())
            self.time += units * (SLOWER if self.decodings >= self._slow_from else 1.0)
            self.decodings += 1
            return decoded

        return Point(replace(method, decode=decode), method.settings(), role)


Make = Callable[[float], Machine]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Make:
    """Makes a machine and puts its clock in the place of the real one."""

    def made(slow_from: float) -> Machine:
        machine = Machine(slow_from)
        monkeypatch.setattr("bild_bench.measure.timing.now", machine.now)
        return machine

    return made


def interleaved(machine: Machine, out: Path) -> tuple[Estimate, list[float]]:
    """The speed-up as it is reported, and the order of the baseline in each text's shuffle."""
    points = [machine.point("vanilla", "baseline"), machine.point("bild")]
    experiment = results.read(run_experiment(request(None, out, limit=TEXTS), points))
    speedup = summarise(experiment).points[1].speedup_decoding
    assert speedup is not None
    samples: Any = experiment.samples
    return speedup, samples.order[samples.role == "baseline"].tolist()


def one_after_the_other(machine: Machine, out: Path) -> Estimate:
    """All texts by the baseline, then all by the point."""
    seconds = []
    for point in (machine.point("vanilla"), machine.point("bild")):
        samples: Any = results.read(run_experiment(request(None, out / point.label, limit=TEXTS), [point])).samples
        assert list(samples.text_index) == sorted(samples.text_index)
        seconds.append(samples.decode_seconds.to_numpy(dtype=float))
    return ratio_of_sums(*seconds, seed=0)


def test_a_slow_down_half_way_moves_an_interleaved_speed_up_by_less_than_its_interval_and_no_other(
    make: Make, tmp_path: Path
) -> None:
    never, half_way = float("inf"), TEXTS
    true, _ = interleaved(make(never), tmp_path / "steady")
    # In the middle of a text, where a change does most harm.
    machine = make(half_way + 1)
    measured, order = interleaved(machine, tmp_path / "interleaved")
    assert machine.decodings == 2 * TEXTS
    assert 0 < sum(order) < TEXTS, "sometimes the baseline comes first, sometimes the point"
    in_rows = one_after_the_other(make(never), tmp_path / "steady rows")
    machine = make(half_way)
    drifted = one_after_the_other(machine, tmp_path / "rows")
    assert machine.decodings == 2 * TEXTS

    # On a steady machine both ways agree, to the last digit.
    assert (in_rows.value, in_rows.low, in_rows.high) == (true.value, true.low, true.high)
    assert measured.low < true.value < measured.high
    assert abs(measured.value - true.value) < measured.high - measured.low
    # One after the other the whole slow-down is laid on the point, and the interval is none the wiser.
    assert drifted.value == pytest.approx(true.value / SLOWER, rel=1e-12)
    assert not drifted.low <= true.value <= drifted.high
    assert abs(drifted.value - true.value) > drifted.high - drifted.low


def test_the_unpaired_times_did_move(make: Make, tmp_path: Path) -> None:
    """What the pairing takes out is really there: the point's own times, against those of a steady machine."""
    seconds = []
    for name, slow_from in (("steady", float("inf")), ("slow", TEXTS)):
        machine = make(slow_from)
        points = [machine.point("vanilla", "baseline"), machine.point("bild")]
        directory = run_experiment(request(None, tmp_path / name, limit=TEXTS), points)
        samples: Any = results.read(directory).samples
        seconds.append(samples.decode_seconds[samples.role == "point"].to_numpy(dtype=float))
    steady, slow = seconds
    assert slow[: TEXTS // 2] == pytest.approx(steady[: TEXTS // 2])
    assert slow[TEXTS // 2 :] == pytest.approx(SLOWER * steady[TEXTS // 2 :])
    unpaired = ratio_of_sums(slow, steady, seed=0)
    # One text of this small model may run to the length limit, and makes the interval wide.
    assert unpaired.low > 1.1
