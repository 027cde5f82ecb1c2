"""Everything that docs/PERFORMANCE.md asks of a GPU, in ten minutes: python -m bench.gpu."""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.ending import ended
from bench.figures import Figure, load, missing, save
from bench.shapes import RANDOM_SHAPES, Announce, Subject
from bench.table import markdown
from bild_bench.errors import BildBenchError, UsageError

# Each with the small model that it is paired with, where there is one.
RANDOM_PARTS: dict[str, str | None] = {"t5-small": None, "t5-large": "t5-small", "mt5-small": None}
PARTS = (*RANDOM_PARTS, "embedded")
DEVICE = "cuda"
PRECISIONS = ("float32", "float16", "bfloat16")

_TEXTS, _SOURCE_TOKENS, _TOKENS = 6, 128, 33
# Of the embedded pair: texts on which thresholds are looked for, then others that are measured.
_STEP_TEXTS, _EMBEDDED_TEXTS = 16, 32
_EXACT_TEXTS = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or the error's after one line; 2 without a GPU."""
    given = _options().parse_args(arguments)
    return ended(lambda: _shown(run(given)))


def _shown(path: Path) -> str:
    return f"{markdown(*load(path))}\n{path}"


def run(given: argparse.Namespace) -> Path:
    """Measure all parts asked for and write them; returns the Parquet file, which has the GPU's name in its own.

    Raises:
        UsageError: torch sees no CUDA GPU.
    """
    import torch

    from bild_bench.measure.environment import describe_environment

    if not torch.cuda.is_available():
        fix = "use a machine with a GPU and a CUDA build of torch; for the CPU: make bench"
        raise UsageError("GPU", torch.__version__, "this torch sees no CUDA GPU, and nothing was measured", fix)
    name, started = torch.cuda.get_device_name(), datetime.now(UTC)
    deadline = time.monotonic() + 60 * given.minutes
    environment = describe_environment(DEVICE) | {"gpu_name": name, "options": _told(given)}
    environment["busy"] = shared(environment["gpu_other_processes"])
    path = Path(given.out) / f"gpu-{slug(name)}-{started:%Y%m%dT%H%M%SZ}.parquet"
    figures: list[Figure] = []
    for part in given.only:
        for label, measure in units(part, given, _announce):
            late = time.monotonic() > deadline
            figures += [missing("all", label, "", f"no time left: --minutes {given.minutes:g}")] if late else measure()
            # After every unit: what is finished is kept, whatever happens to the next.
            save(path, figures, f"{started:%Y-%m-%d}", environment)
    return path


def shared(others: object) -> str | None:
    """A sentence if others compute on the GPU too; None where they do not, or nobody can say."""
    return f"Other processes were on the GPU ({others}); times may be too long." if others else None


def slug(name: str) -> str:
    """A GPU's name in a file's: no figure is ever taken for another GPU's."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def units(part: str, given: argparse.Namespace, announce: Announce) -> Iterator[tuple[str, Callable[[], list[Figure]]]]:
    """Part and precision, and what measures them; one at a time, with the float64 model shared by all precisions."""
    held: dict[str, Any] = {}
    for dtype in given.dtypes:
        label = f"{part}, {dtype}"

        def measure(dtype: str = dtype, label: str = label) -> list[Figure]:
            return guarded(label, lambda: _measured(part, dtype, label, given, held, announce))

        yield label, measure


def guarded(label: str, measure: Callable[[], list[Figure]]) -> list[Figure]:
    """The figures; where they cannot be measured, one row that says why, so that the others are not lost."""
    import torch

    try:
        return measure()
    except (BildBenchError, RuntimeError) as error:
        return [missing("all", label, "", " ".join(f"{type(error).__name__}: {error}".split())[:300])]
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _measured(
    part: str, dtype: str, label: str, given: argparse.Namespace, held: dict[str, Any], announce: Announce
) -> list[Figure]:
    import torch

    from bench.exactness import exact_model, exactness_figures
    from bench.gpu_rows import bound_figures, speed_figures, trained_figures
    from bench.kernels import profile_figure
    from bild_bench.models.special_ids import vocabulary_of

    if dtype == "bfloat16" and not torch.cuda.is_bf16_supported(including_emulation=False):
        return [missing("all", label, "", "this GPU has no bfloat16 arithmetic")]
    subject = _subject(part, dtype, label, given, announce)
    if "exact" not in held:
        announce(f"{part}: the library's model in float64 on the CPU")
        checkpoint = subject.pair.models["large"].checkpoint
        held["exact"] = exact_model(checkpoint, vocabulary_of(subject.pair.tokenizer))
    # Exactness first: the speed of wrong ids is worth nothing.
    rows = exactness_figures(subject, label, held["exact"], _EXACT_TEXTS)
    rows += [*speed_figures(_first(subject), announce), profile_figure(subject, label)]
    if part == "embedded":
        rows += trained_figures(subject, announce)
    elif "small" in subject.pair.models:
        rows += bound_figures(subject, announce)
    return rows


def _first(subject: Subject) -> Subject:
    """Fewer texts, for what is measured of single models."""
    return replace(subject, texts=subject.texts[:_STEP_TEXTS])


def _subject(part: str, dtype: str, label: str, given: argparse.Namespace, announce: Announce) -> Subject:
    from bench.shapes import embedded_subject, random_subject

    if part == "embedded":
        found = embedded_subject(2 * _EMBEDDED_TEXTS, announce, DEVICE, dtype)
    else:
        sizes: dict[str, Any] = {"count": _TEXTS, "length": _SOURCE_TOKENS, "tokens": _TOKENS}
        opened: dict[str, Any] = {"small": RANDOM_PARTS[part], "device": DEVICE, "dtype": dtype, "announce": announce}
        found = random_subject(part, given.bench_dir, RANDOM_SHAPES[part], **sizes, **opened)
    return replace(found, shape=label)


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="parts to measure")
    parser.add_argument("--dtypes", nargs="+", choices=PRECISIONS, default=list(PRECISIONS))
    parser.add_argument("--minutes", type=float, default=10.0, help="start no new part after this many minutes")
    parser.add_argument("--bench-dir", type=Path, default=Path("results/bench"), help="cache of models (5 GB)")
    parser.add_argument("--out", type=Path, default=Path("results/reference"), help="folder of the Parquet file")
    return parser


def _told(given: argparse.Namespace) -> dict[str, Any]:
    """The options that decide the figures; folders are nobody's business."""
    return {"only": list(given.only), "dtypes": list(given.dtypes), "minutes": given.minutes}


def _announce(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
