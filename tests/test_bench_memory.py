"""The memory rows: their arithmetic by hand, and one short run, whose size is not tested."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench import cpu, figures, memory, table
from bench.memory import Sample, memory_rows, series
from bild_bench.models.native.build import native_library
from tests.made_benches import quiet

MB = 1_000_000


def counted(problem_at: int = 0) -> Callable[[], str | None]:
    """Decodes nothing; fails at that text."""
    done = 0

    def decode() -> str | None:
        nonlocal done
        done += 1
        return "no memory" if done == problem_at else None

    return decode


def rising(texts: int, mb: list[float]) -> list[Sample]:
    return [Sample(texts * (number + 1), round(value * MB)) for number, value in enumerate(mb)]


def test_growth_is_the_last_three_over_the_first_three_by_their_medians() -> None:
    # One sample at either end stands out, as it may; the medians are 101 and 109.
    growth, slope = memory_rows("native", rising(500, [100, 101, 150, 103, 50, 109, 110]))
    assert (growth.name, growth.contestant, growth.unit) == (memory.GROWTH, "BiLD, native session", "MB")
    assert (growth.ratio, growth.target, growth.reached) == (8.0, 5.0, False)
    assert growth.texts == 3500
    assert "resident 100.0 MB after 500 texts, 110.0 MB after 3,500" in growth.note
    assert "7 samples from 50.0 to 150.0 MB" in growth.note
    assert (slope.target, slope.reached) == (None, None)


def test_a_steady_rise_has_its_slope_for_each_thousand_texts() -> None:
    # 3 MB every 500 texts.
    growth, slope = memory_rows("fast", rising(500, [100, 103, 106, 109, 112, 115]))
    assert slope.ratio == pytest.approx(6.0)
    assert growth.ratio == 9.0


def test_memory_that_is_level_or_falls_reaches_the_target() -> None:
    level, flat = memory_rows("native", rising(500, [100.0] * 6))
    assert (level.ratio, level.reached, flat.ratio) == (0.0, True, 0.0)
    fallen, down = memory_rows("native", rising(1000, [105, 104, 103, 102, 101, 100]))
    assert (fallen.ratio, fallen.reached) == (-3.0, True)
    assert down.ratio == pytest.approx(-1.0)


def test_samples_begin_after_a_tenth_and_come_every_twentieth() -> None:
    found = series(counted(), 10_000, lambda: 7)
    assert found == [Sample(texts, 7) for texts in range(1_000, 10_001, 500)]


def test_a_text_that_fails_leaves_a_row_that_says_so() -> None:
    found = series(counted(problem_at=3), 40, lambda: 7)
    assert found == "text 3 failed: no memory"
    (row,) = memory_rows("native", found)
    assert (row.ratio, row.target, row.bound, row.note) == (None, 5.0, "at most", found)


def test_few_samples_and_systems_that_say_nothing_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--memory-texts" in memory_rows("native", rising(1, [1.0] * 5))[0].note
    monkeypatch.setattr(memory, "_STATM", tmp_path / "none")
    assert memory.resident_memory() is None
    assert "does not say" in str(series(counted(), 10, memory.resident_memory))


def test_resident_memory_holds_what_is_allocated() -> None:
    before = memory.resident_memory()
    if before is None:
        pytest.skip("no /proc here")
    held = bytearray(b"x" * (64 * MB))
    after = memory.resident_memory()
    assert after is not None
    assert after - before > 32 * MB, len(held)


def test_a_session_that_cannot_run_leaves_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BILD_BENCH_NATIVE", "0")
    monkeypatch.setattr(memory, "SESSIONS", {"native": 1})
    (row,) = memory.memory_figures(50, quiet)
    assert row.ratio is None
    assert "BILD_BENCH_NATIVE=0" in row.note


def test_a_short_run_has_rows_of_both_sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if memory.resident_memory() is None or native_library().library is None:
        pytest.skip("no /proc or no compiler here")
    monkeypatch.setattr(cpu, "load_average", lambda: 0.0)
    asked = ["--only", "memory", "--memory-texts", "50", "--threads", "1", "--out", str(tmp_path)]
    assert cpu.main(asked) == 0
    rows, _, environment = figures.load(table.newest(tmp_path))
    assert environment["options"]["memory_texts"] == 50
    expected = [(name, session) for session in ("native", "fast") for name in (memory.GROWTH, memory.SLOPE)]
    assert [(row.name, row.contestant.split()[1]) for row in rows] == expected
    for row in rows:
        assert isinstance(row.ratio, float)
        assert (row.shape, row.unit, row.low) == ("embedded", "MB", None)
        assert 9 <= row.texts <= 50
