"""The ceilings by a clock of our own: seconds are put there by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from bild_bench.measure import ceilings, machine
from bild_bench.measure.ceilings import Ceilings, measure_ceilings, peak_flops, read_bandwidth
from bild_bench.models.native import limits
from bild_bench.models.native.build import Native
from tests.native_models import compiled


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Any], float]], None]:
    """Makes a call take as many seconds as a function of its result says."""

    def seconds_of(function: Callable[[Any], float]) -> None:
        monkeypatch.setattr(ceilings, "_best_seconds", lambda device, call: function(call()))
        monkeypatch.setattr(limits, "native_library", lambda: Native(None))

    return seconds_of


def test_bandwidth_is_the_bytes_of_the_array_over_its_seconds(timed: Any) -> None:
    timed(lambda total: float(total) / 1000)  # an array of ones sums to its length: 1000 elements a second

    assert read_bandwidth("cpu", 4096) == pytest.approx(4000.0)


def test_peak_is_two_operations_a_multiply_add_of_the_largest_product_that_was_timed(timed: Any) -> None:
    timed(lambda product: 0.1)
    # 256: 2 x 256^3 in 0.1 s is long enough at once; no larger one is tried.
    assert peak_flops("cpu", "float32") == pytest.approx(2 * 256**3 / 0.1)

    timed(lambda product: 0.02 if product.shape[0] == 256 else 0.06)
    assert peak_flops("cpu", "float32") == pytest.approx(2 * 512**3 / 0.06)


def test_what_compiled_code_does_faster_counts(timed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    timed(lambda result: 8.0 if isinstance(result, torch.Tensor) else result)
    monkeypatch.setattr(limits, "native_reading", lambda array: lambda: 2.0)
    monkeypatch.setattr(limits, "native_products", lambda: (lambda: 0.5, 10**9))
    assert read_bandwidth("cpu", 4096) == 2048.0
    assert peak_flops("cpu", "float32") == 2e9
    # It knows no other precision.
    assert peak_flops("cpu", "bfloat16") == 2 * 256**3 / 8
    # And is not taken where it is the slower one.
    monkeypatch.setattr(limits, "native_reading", lambda array: lambda: 16.0)
    assert read_bandwidth("cpu", 4096) == 512.0


def test_compiled_code_reads_and_multiplies_what_it_says() -> None:
    library = compiled()
    ones = torch.ones(4096)
    assert library.native_read(ones.data_ptr(), 4096, 1) == 4096.0
    # Each thread does as many: twice the FLOPs.
    assert library.native_multiply(3, 2) == 2 * library.native_multiply(3, 1) > 0
    products = limits.native_products()
    assert products is not None
    assert products[0]() == products[1]
    reading = limits.native_reading(ones)
    assert reading is not None
    assert reading() == 4096.0


def test_the_product_is_in_the_dtype_that_is_measured(timed: Any) -> None:
    seen = []

    def seconds(product: torch.Tensor) -> float:
        seen.append(product.dtype)
        return 1.0

    timed(seconds)
    peak_flops("cpu", "bfloat16")
    assert seen == [torch.bfloat16]


def test_a_model_that_fits_the_caches_is_held_to_their_bandwidth_and_never_to_less_than_memorys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    speeds = {1 << 20: 20.0, 100: 90.0, 5000: 10.0}
    monkeypatch.setattr(ceilings, "read_bandwidth", lambda device, size: speeds[size])
    monkeypatch.setattr(ceilings, "peak_flops", lambda device, dtype: 7.0)

    found = measure_ceilings("cpu", "float32", {"small": 100, "large": 5000}, 1 << 20)

    assert found == Ceilings(20.0, 7.0, 1 << 20, {"small": 90.0, "large": 20.0})


def test_the_array_takes_an_eighth_of_free_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    monkeypatch.setattr(ceilings, "read_bandwidth", lambda device, size: float(sizes.append(size) or 1))
    monkeypatch.setattr(ceilings, "peak_flops", lambda device, dtype: 1.0)
    monkeypatch.setattr(machine, "available_memory", lambda: 800 << 20)

    assert measure_ceilings("cpu", "float32", {}).array_bytes == 100 << 20
    assert sizes == [100 << 20]
    monkeypatch.setattr(machine, "available_memory", lambda: None)
    assert measure_ceilings("cpu", "float32", {}).array_bytes == ceilings.ARRAY_BYTES


def test_the_least_time_is_the_slower_of_bytes_and_flops() -> None:
    found = Ceilings(10.0, 100.0, 0, {"large": 10.0, "small": 40.0})

    assert found.seconds("large", flops=100, moved=20) == 2.0
    assert found.seconds("small", flops=100, moved=20) == 1.0
    assert found.seconds("small", flops=1000, moved=20) == 10.0


def test_the_best_try_counts_and_short_calls_are_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, calls = [0.0], [0]
    # The first call warms up; the second takes 1/64 s, so that four fill a try; one try of the seven is quick.
    pace = itertools.chain([8.0, 1 / 64], [1 / 16] * 4, [1 / 32] * 4, itertools.repeat(1 / 8))

    def call() -> None:
        calls[0] += 1
        clock[0] += next(pace)

    monkeypatch.setattr(ceilings, "now", lambda device: clock[0])
    assert ceilings._best_seconds("cpu", call) == 1 / 32
    assert calls[0] == 2 + 4 * 7


def test_real_ceilings_are_finite_and_above_zero() -> None:
    found = measure_ceilings("cpu", "float32", {"large": 1 << 16}, 1 << 22)

    assert found.bandwidth > 0
    assert 0 < found.flops < float("inf")
    assert found.resident["large"] >= found.bandwidth
