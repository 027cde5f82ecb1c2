"""Times by a clock of our own: every second below was put there by hand, as a power of two so that sums are exact."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.methods import Method
from bild_bench.decoding.records import Counters, Decoded, Limits
from bild_bench.measure import timing
from bild_bench.measure.timing import Outcome, calibrate, time_text
from bild_bench.plan import Point

LIMITS = Limits(max_tokens=8, start_id=3, end_ids=frozenset({1}))
ENCODE, OPEN, DECODE = {"large": 1.0, "small": 0.25}, 0.125, 4.0
DONE = Decoded((5, 1), Counters(generated=2), False, ())


class Clock:
    """Stands still until something takes time."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self, device: str) -> float:
        assert device == "cpu"
        return self.seconds


class FakePair:
    """A pair whose encoders and sessions take the seconds above, and that remembers what it was asked for."""

    device = "cpu"

    def __init__(self, clock: Clock, broken: tuple[str, ...] = ()) -> None:
        self.clock, self.broken = clock, broken
        self.models = {"large": None, "small": None}
        self.encoded: list[str] = []
        self.opened: list[tuple[str, str]] = []

    def using(self, models: dict[str, str]) -> FakePair:
        return self

    def limits(self, max_tokens: int) -> Limits:
        return Limits(max_tokens, 0, frozenset({1}))

    def encode(self, role: str, source: Any) -> str:
        self.encoded.append(role)
        self.clock.seconds += ENCODE[role]
        if role in self.broken:
            raise RuntimeError(f"no memory\nfor {role}")
        return f"{source} by {role}"

    def session(self, role: str, encoded: str, limits: Limits) -> str:
        assert limits is LIMITS
        self.opened.append((role, encoded))
        self.clock.seconds += OPEN
        return role


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(timing, "now", made.now)
    return made


def point(clock: Clock, *uses: str, decode: Callable[..., Decoded] | None = None) -> Point:
    def four_seconds(*arguments: Any) -> Decoded:
        clock.seconds += DECODE
        return DONE

    return Point(Method("+".join(uses), uses, AloneSettings, four_seconds if decode is None else decode), object())


def times(pair: Any, points: Sequence[Point]) -> list[Outcome]:
    source: Any = "text"
    return time_text(pair, source, points, LIMITS)


def failing(error: BaseException) -> Callable[..., Decoded]:
    def decode(*arguments: Any) -> Decoded:
        raise error

    return decode


def test_a_shared_encoding_is_made_once_and_added_to_every_point_that_uses_the_model(clock: Clock) -> None:
    pair = FakePair(clock)
    points = [point(clock, "small"), point(clock, "large", "small"), point(clock, "large")]
    outcomes = times(pair, points)
    assert pair.encoded == ["large", "small"]
    assert [outcome.encode_seconds for outcome in outcomes] == [0.25, 1.25, 1.0]
    # Opening a session belongs to decoding: 4 s and 1/8 s a model.
    assert [outcome.decode_seconds for outcome in outcomes] == [4.125, 4.25, 4.125]
    assert [outcome.decoded for outcome in outcomes] == [DONE, DONE, DONE]
    assert [(outcome.point, outcome.order) for outcome in outcomes] == [(p, n) for n, p in enumerate(points)]
    assert pair.opened == [
        ("small", "text by small"),
        ("large", "text by large"),
        ("small", "text by small"),
        ("large", "text by large"),
    ]


def test_a_model_that_no_point_uses_is_not_run(clock: Clock) -> None:
    pair = FakePair(clock)
    times(pair, [point(clock, "small")])
    assert pair.encoded == ["small"]


def test_an_error_ends_one_point_and_leaves_it_without_any_time(clock: Clock) -> None:
    points = [point(clock, "large"), point(clock, "small", decode=failing(ValueError("bad\n  scores")))]
    points.append(point(clock, "small"))
    before, failed, after = times(FakePair(clock), points)
    assert failed.error == "ValueError: bad scores"
    assert (failed.decoded, failed.encode_seconds, failed.decode_seconds) == (None, None, None)
    assert (before.error, before.decode_seconds) == (None, 4.125)
    assert (after.error, after.encode_seconds, after.decode_seconds) == (None, 0.25, 4.125)


def test_an_encoders_error_fails_the_points_that_need_it_and_no_other(clock: Clock) -> None:
    points = [point(clock, "large"), point(clock, "large", "small"), point(clock, "small")]
    outcomes = times(FakePair(clock, broken=("large",)), points)
    assert [outcome.error for outcome in outcomes] == ["RuntimeError: no memory for large"] * 2 + [None]
    assert [outcome.encode_seconds for outcome in outcomes] == [None, None, 0.25]
    assert [outcome.decode_seconds for outcome in outcomes] == [None, None, 4.125]


@pytest.fixture
def garbage_collection() -> Iterator[None]:
    before = gc.isenabled()
    gc.enable()
    yield
    gc.enable() if before else gc.disable()


@pytest.mark.usefixtures("garbage_collection")
@pytest.mark.parametrize("error", [None, ValueError("x"), KeyboardInterrupt()])
def test_no_garbage_is_collected_while_a_text_is_timed(clock: Clock, error: BaseException | None) -> None:
    seen = []

    def decode(*arguments: Any) -> Decoded:
        seen.append(gc.isenabled())
        if error is not None:
            raise error
        return DONE

    try:
        times(FakePair(clock), [point(clock, "small", decode=decode)])
    except KeyboardInterrupt:
        assert isinstance(error, KeyboardInterrupt)
    assert seen == [False]
    assert gc.isenabled()


@pytest.mark.usefixtures("garbage_collection")
def test_garbage_collection_that_was_off_stays_off(clock: Clock) -> None:
    gc.disable()
    times(FakePair(clock), [point(clock, "small")])
    assert not gc.isenabled()


class CountingSession:
    """A call takes as many seconds as it has rows; the first call of each size takes 1000 more."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.length = clock, 0
        self.calls: list[tuple[int, int]] = []

    def extend(self, tokens: list[int]) -> Any:
        assert set(tokens) == {LIMITS.start_id}
        cold = (self.length, len(tokens)) not in self.calls
        self.calls.append((self.length, len(tokens)))
        self.length += len(tokens)
        self.clock.seconds += len(tokens) + 1000 * cold

        def max_prob() -> None:
            self.clock.seconds += 0.5

        return SimpleNamespace(max_prob=max_prob)

    def truncate(self, length: int) -> None:
        self.length = length


def test_calibration_takes_the_median_of_warm_calls_behind_sixteen_tokens(clock: Clock) -> None:
    pair: Any = FakePair(clock)
    sessions = {role: CountingSession(clock) for role in ENCODE}
    pair.session = lambda role, encoded, limits: sessions[role]
    source: Any = SimpleNamespace(ids=SimpleNamespace(shape=(1, 23)))
    found = calibrate(pair, source, LIMITS, repeats=3)
    # A call of n rows: n seconds, and half a second to read them.
    assert found == {
        "source_tokens": 23,
        "context_tokens": 16,
        "repeats": 3,
        "large": {"encode_seconds": 1.0, "rows": {"1": 1.5, "2": 2.5, "4": 4.5, "8": 8.5, "16": 16.5}},
        "small": {"encode_seconds": 0.25, "rows": {"1": 1.5}},
    }
    assert sessions["small"].calls == [(0, 16), *[(16, 1)] * 4]
    assert {length for length, _ in sessions["large"].calls[1:]} == {16}


def test_calibration_keeps_within_a_short_table_of_positions(clock: Clock) -> None:
    pair: Any = FakePair(clock)
    pair.limits = lambda max_tokens: Limits(min(max_tokens, 12), 0, frozenset({1}))
    sessions = {role: CountingSession(clock) for role in ENCODE}
    pair.session = lambda role, encoded, limits: sessions[role]
    source: Any = SimpleNamespace(ids=SimpleNamespace(shape=(1, 23)))
    found = calibrate(pair, source, LIMITS, repeats=3)
    assert (found["context_tokens"], list(found["large"]["rows"])) == (6, ["1", "2", "4"])
    assert max(length + rows for length, rows in sessions["large"].calls) == 10


def test_calibration_measures_only_the_models_that_are_there(clock: Clock) -> None:
    pair: Any = FakePair(clock)
    pair.models = {"small": None}
    pair.session = lambda role, encoded, limits: CountingSession(clock)
    source: Any = SimpleNamespace(ids=SimpleNamespace(shape=(1, 5)))
    assert "large" not in calibrate(pair, source, LIMITS)


def test_a_median_is_not_moved_by_one_slow_call(clock: Clock) -> None:
    seconds = iter([9.0, 1.0, 50.0, 2.0])  # the first is the warm-up

    def call() -> None:
        clock.seconds += next(seconds)

    assert timing._median_seconds("cpu", 3, call) == 2.0
