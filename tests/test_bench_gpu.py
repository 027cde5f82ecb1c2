"""The bench for GPUs on a machine without one: its arithmetic by hand, its faults, and small runs on the CPU."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bench import exactness, figures, gpu, gpu_rows, kernels, pairs, shapes
from bench.exactness import Compared, compared
from bench.figures import Figure
from bench.interleave import Turn
from bench.kernels import Event
from bench.steps import LIBRARY, OURS
from bild_bench.decoding.bild import BildSettings
from bild_bench.errors import DataError
from bild_bench.measure.ceilings import Ceilings
from tests.made_benches import ROW, TINY, quiet

TINY_MT5 = {**shapes.MT5, "vocab_size": 64, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_heads": 2, "num_layers": 2}


@pytest.fixture
def pretended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """A GPU by name, whose work the CPU does, and small models; the options of a run."""
    # Whatever comes later takes longer: a busy machine's noise makes no time of zero.
    count = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(count)) ** 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA Test 9/X")
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation=True: including_emulation)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(gpu, "DEVICE", "cpu")
    monkeypatch.setattr(gpu, "_TEXTS", 2)
    monkeypatch.setattr(gpu, "_SOURCE_TOKENS", 6)
    monkeypatch.setattr(gpu, "_TOKENS", 17)
    small: dict[str, Any] = {"t5-small": TINY, "t5-large": {**TINY, "num_layers": 3}, "mt5-small": TINY_MT5}
    monkeypatch.setattr(shapes, "RANDOM_SHAPES", small)
    monkeypatch.setattr(gpu, "RANDOM_SHAPES", small)
    ceilings = Ceilings(1e9, 1e9, 8, {"large": 1e9})
    monkeypatch.setattr(gpu_rows, "measure_ceilings", lambda device, dtype, weights: ceilings)
    return ["--bench-dir", str(tmp_path / "cache"), "--out", str(tmp_path / "out")]


def written(folder: Path) -> tuple[list[Figure], dict[str, Any], str]:
    (path,) = folder.glob("out/*.parquet")
    rows, _, environment = figures.load(path)
    return rows, environment, path.name


# Without a GPU


def test_without_a_gpu_there_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu.main(["--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "sees no CUDA GPU, and nothing was measured" in printed.err
    assert not (tmp_path / "out").exists()


# Exactness


def test_rows_are_held_against_float64_by_hand() -> None:
    exact = torch.tensor([[1.0, 3.0, 2.0], [5.0, 0.0, 4.5], [0.0, 0.0, 1.0]], dtype=torch.float64)
    ours = exact.float() + torch.tensor([[0.0, 0.25, 0.0], [0.0, 0.0, 0.0], [-0.5, 0.0, 0.0]])
    found = compared(ours, exact, [1, 2, 2])
    assert found == Compared(3, (0.5,), 0.5)
    assert found + Compared(1, (0.75,), 0.125) == Compared(4, (0.5, 0.75), 0.5)


@pytest.mark.parametrize(
    ("margins", "exactly", "reached", "share"),
    [
        ((), True, True, 1.0),
        ((5e-4,), True, True, 0.75),
        ((5e-4, 0.01), True, False, 0.5),
        ((0.01,), False, None, 0.75),
    ],
)
def test_other_ids_count_against_float32_alone_and_only_beyond_a_tie(
    margins: tuple[float, ...], exactly: bool, reached: bool | None, share: float
) -> None:
    row = exactness.row_of("t5", "one token per step", Compared(4, margins, 2e-5), 2, exactly)
    assert (row.ratio, row.reached, row.texts) == (share, reached, 2)
    assert row.note.startswith(f"{4 - len(margins)} of 4 ids; largest error of a logit 2.0e-05")
    assert (row.target is None) is not exactly


# The profile


def test_a_profile_is_told_a_token() -> None:
    events = [
        Event("cudaGraphLaunch", False, 8, 0.0),
        Event("cudaLaunchKernel", False, 4, 900.0),
        Event("Memcpy DtoH (Device -> Pinned)", True, 8, 100.0),
        Event("gemv", True, 80, 300.0),
        Event("aten::mm", False, 80, 300.0),
    ]
    row = kernels.row_of("t5", events, tokens=4, seconds=0.001, allocated=2)
    assert row.ratio == pytest.approx(0.4)
    counted, first, second = row.note.split("; ")
    assert counted == "3.0 launches, 2.0 reads by the host and 0.5 allocations per token"
    assert (first, second) == ("gemv 75 %", "Memcpy DtoH (Device -> Pinned) 25 %")


def test_a_profile_without_device_work_divides_by_nothing() -> None:
    row = kernels.row_of("t5", [Event("aten::mm", False, 3, 0.0)], tokens=2, seconds=1.0, allocated=0)
    assert row.ratio == 0.0


# Rows


def test_vanilla_is_held_against_generate_and_the_limit() -> None:
    turns = {OURS: [Turn(1.0, (5, 6, 1)), Turn(3.0, (5, 6, 7))], LIBRARY: [Turn(4.0, (5, 6, 1)), Turn(4.0, (9,))]}
    over, step = gpu_rows.vanilla_rows("t5, float16", turns, 0.5, frozenset({1}), "session graphs")
    assert (over.ratio, over.target, over.note) == (2.0, None, "same tokens on 1 of 2 texts; session graphs")
    # Two timed tokens a text, half a second each.
    assert (step.ratio, step.note) == (2.0, "1000.00 ms per token, limit 500.00 ms")


def test_a_session_that_is_not_captured_says_why() -> None:
    assert gpu_rows.told({"session": "graphs", "session_not_captured": None}) == "session graphs"
    eager = {"session": "graphs-eager", "session_not_captured": "no memory"}
    assert gpu_rows.told(eager) == "session graphs-eager (no memory)"
    assert gpu_rows.told({"session": "fast"}) == "session fast"


def test_the_cpus_targets_are_not_the_gpus() -> None:
    (found,) = gpu_rows.without_targets([ROW])
    assert (found.target, found.reached, found.ratio) == (None, None, 3.0)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Tesla T4", "tesla-t4"), ("NVIDIA H200", "nvidia-h200"), ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", None)],
)
def test_a_file_has_its_gpus_name(name: str, expected: str | None) -> None:
    assert gpu.slug(name) == (expected or "nvidia-a100-sxm4-80gb-mig-1g-10gb")


def test_a_shared_gpu_is_told() -> None:
    assert gpu.shared(None) is None
    assert gpu.shared(0) is None
    assert gpu.shared(2) == "Other processes were on the GPU (2); times may be too long."


# Runs


def test_a_random_mt5_has_a_head_of_its_own(tmp_path: Path) -> None:
    subject = shapes.random_subject("m", tmp_path, TINY_MT5, count=1, length=6, tokens=3, announce=quiet)
    library = subject.pair.library["large"]
    assert library.config.model_type == "mt5"
    assert not torch.equal(library.lm_head.weight, library.shared.weight)


def test_a_run_writes_rows_of_every_part_under_the_gpus_name(
    pretended: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpu.main(["--only", "t5-large", "mt5-small", "--dtypes", "float32", "bfloat16", *pretended]) == 0
    rows, environment, name = written(tmp_path)
    assert name.startswith("gpu-nvidia-test-9-x-")
    assert environment["gpu_name"] == "NVIDIA Test 9/X"
    kinds = {(row.name, row.shape) for row in rows if row.ratio is not None}
    everywhere = {"ids of float64", "vanilla", "vanilla step", "8 tokens in a step over one", "GPU busy"}
    for shape in ("t5-large, float32", "mt5-small, float32"):
        assert {(each, shape) for each in everywhere} <= kinds
    assert ("BiLD, every draft kept", "t5-large, float32") in kinds
    exact = [row for row in rows if row.name == "ids of float64"]
    assert {row.contestant for row in exact} == set(exactness.WAYS)
    assert all(row.reached for row in exact), exact
    absent = {row.shape: row.note for row in rows if row.name == "all"}
    assert absent == dict.fromkeys(("t5-large, bfloat16", "mt5-small, bfloat16"), "this GPU has no bfloat16 arithmetic")
    printed = capsys.readouterr().out
    assert "on NVIDIA Test 9/X (driver" in printed.splitlines()[0]
    assert "float32, torch" not in printed.splitlines()[0]
    assert printed.splitlines()[-1].endswith(name)


def test_the_embedded_pair_is_swept_and_measured(
    pretended: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "_STEP_TEXTS", 2)
    monkeypatch.setattr(gpu, "_EMBEDDED_TEXTS", 2)
    monkeypatch.setattr(gpu, "_EXACT_TEXTS", 1)
    monkeypatch.setattr(pairs, "GRID", (BildSettings(1.0, 2.0),))
    assert gpu.main(["--only", "embedded", "--dtypes", "float32", *pretended]) == 0
    rows, _, _ = written(tmp_path)
    assert [row.contestant for row in rows if row.name == "BiLD"] == [
        "over transformers assisted generation",
        "over our vanilla, no loss",
        "over our vanilla, a loss of 1 at most",
    ]
    assert {row.target for row in rows if row.name != "ids of float64"} == {None}


def test_a_part_that_fails_costs_its_row_and_not_the_others(
    pretended: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(part: str, dtype: str, label: str, *_: object) -> list[Figure]:
        if part == "t5-small":
            raise DataError("model", part, "is damaged", "restore it")
        if part == "t5-large":
            raise torch.OutOfMemoryError("CUDA out of memory.\nTried to allocate")
        return [replace(ROW, shape=label)]

    monkeypatch.setattr(gpu, "_measured", measured)
    assert gpu.main(["--dtypes", "float16", *pretended]) == 0
    rows, environment, _ = written(tmp_path)
    assert [(row.shape, row.ratio) for row in rows] == [
        ("t5-small, float16", None),
        ("t5-large, float16", None),
        ("mt5-small, float16", 3.0),
        ("embedded, float16", 3.0),
    ]
    assert "is damaged" in rows[0].note
    assert rows[1].note == "OutOfMemoryError: CUDA out of memory. Tried to allocate"
    assert environment["options"] == {"only": list(gpu.PARTS), "dtypes": ["float16"], "minutes": 10.0}


def test_no_part_is_begun_when_the_time_is_over(pretended: list[str], tmp_path: Path) -> None:
    assert gpu.main(["--minutes", "-1", "--only", "t5-small", *pretended]) == 0
    rows, _, _ = written(tmp_path)
    assert {row.note for row in rows} == {"no time left: --minutes -1"}
    assert len(rows) == len(gpu.PRECISIONS)


def test_all_drafts_are_kept_at_the_bound() -> None:
    """The settings by which a window is always 7 drafts and 8 rows."""
    assert (gpu_rows.ALL_KEPT.alpha_fb, gpu_rows.ALL_KEPT.max_draft) == (0.0, 7)
    assert math.isinf(gpu_rows.ALL_KEPT.alpha_rb)
