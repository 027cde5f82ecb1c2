"""Everything that docs/PERFORMANCE.md tells of the CPU, in one go: python -m bench.cpu."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from bench.ending import ended
from bench.figures import Figure, missing, save
from bench.shapes import RANDOM_SHAPES, Announce, Subject
from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.bild import BildSettings
from bild_bench.errors import RunError, UsageError
from bild_bench.measure.environment import busy_reason, describe_environment, load_average

PARTS = ("t5-small", "t5-large", "embedded", "trained", "commands", "memory")

# Texts of each shape: a large model's are few, since each takes ten seconds by all contestants.
_TEXTS = {"t5-small": 16, "t5-large": 6}
_SOURCE_TOKENS, _TOKENS = 128, 33
# Texts of a trained pair on which single models are measured.
_STEP_TEXTS = 24


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0, or the error's after one line."""
    given = _options().parse_args(arguments)
    return ended(lambda: run(given))


def run(given: argparse.Namespace) -> Path:
    """Measure all parts asked for and write them; returns the Parquet file.

    Raises:
        RunError: the machine is busy.
        UsageError, DataError: impossible options, models or texts.
    """
    import torch

    _check(given)
    busy = busy_reason(load_average(), None, given.threads)
    if busy is not None and not given.force:
        raise RunError("machine", "load", busy.rstrip("."), "wait until it is idle, or measure all the same: --force")
    torch.set_num_threads(given.threads)
    started = datetime.now(UTC)
    environment = describe_environment("cpu") | {"ctranslate2": _version("ctranslate2")}
    environment |= {"busy": busy, "options": _told(given)}
    path = Path(given.out) / f"{started:%Y%m%dT%H%M%SZ}.parquet"
    figures: list[Figure] = []
    for part in given.only or PARTS:
        figures += _part(part, given, _announce)
        if environment["busy"] is None:
            environment["busy"] = busy_reason(None, load_average(), given.threads)
        # After every part: what is finished is kept, whatever happens to the next.
        save(path, figures, f"{started:%Y-%m-%d}", environment)
    return path


def _check(given: argparse.Namespace) -> None:
    for option in ("texts", "sweep_texts", "memory_texts"):
        if getattr(given, option) < 2:
            name = f"--{option.replace('_', '-')}"
            raise UsageError(name, getattr(given, option), "must be 2 or more", "leave it out for the default")
    if given.only is not None and "trained" in given.only and given.pair_large is None:
        raise UsageError("--only", "trained", "needs a pair", "add --pair-large, --pair-small and --data")
    # Thresholds out of range are refused here, and not after minutes of other parts.
    _settings(given)
    if (given.pair_large is None) != (given.pair_small is None):
        raise UsageError("--pair-large", given.pair_large, "needs --pair-small, and the other way round", "give both")
    if given.pair_large is not None and given.data is None:
        raise UsageError("--data", None, "the trained pair needs texts (columns source and target)", "add --data FILE")
    if (
        given.pair_large is not None
        and given.validation_data is None
        and None in (given.no_loss_at, given.one_point_at)
    ):
        fix = "add --validation-data FILE, or thresholds: --no-loss-at and --one-point-at"
        raise UsageError("--validation-data", None, "thresholds are looked for on texts that are not measured", fix)


def _part(part: str, given: argparse.Namespace, announce: Announce) -> list[Figure]:
    from bench.pairs import pair_figures
    from bench.shapes import embedded_subject, random_subject

    if part == "commands":
        from bench.commands import command_figures

        return command_figures(given.bench_dir, announce)
    if part == "memory":
        from bench.memory import memory_figures

        return memory_figures(given.memory_texts, announce)
    if part == "trained":
        return _trained(given, announce)
    if part == "embedded":
        subject = embedded_subject(2 * given.texts, announce)
        rows = [*_steps(_first(subject, _STEP_TEXTS), given, announce), *pair_figures(subject, {}, announce)]
        return rows + pair_figures(embedded_subject(2 * given.texts, announce, aligned=True), {}, announce)
    sizes: dict[str, Any] = {"count": _TEXTS[part], "length": _SOURCE_TOKENS, "tokens": _TOKENS}
    subject = random_subject(part, given.bench_dir, RANDOM_SHAPES[part], **sizes, announce=announce)
    return _steps(subject, given, announce)


def _steps(subject: Subject, given: argparse.Namespace, announce: Announce) -> list[Figure]:
    from bench.steps import outside_figures, vanilla_figures, verification_figures
    from bench.whole import encoder_figures, whole_figures

    converted = given.bench_dir / "converted"
    rows = [
        *vanilla_figures(subject, converted, given.threads, announce),
        *verification_figures(subject, announce),
        *outside_figures(subject, "vanilla", AloneSettings(), announce),
        *encoder_figures(subject, announce),
        *whole_figures(subject, converted, given.threads, announce),
    ]
    if "small" in subject.pair.models:
        rows += outside_figures(subject, "bild", BildSettings(), announce)
    return rows


def _trained(given: argparse.Namespace, announce: Announce) -> list[Figure]:
    from bench.pairs import pair_figures
    from bench.shapes import trained_subject

    if given.pair_large is None:
        return [missing("BiLD", "trained pair", "", "no pair was given: --pair-large, --pair-small and --data")]
    rows: list[Figure] = []
    # Where both thresholds are given no text is looked at for them.
    validation = given.data if given.validation_data is None else given.validation_data
    for small in (given.pair_small, given.pair_aligned):
        if small is not None:
            models, counts = (given.pair_large, small), (given.texts, given.sweep_texts)
            subject = trained_subject(models, given.data, validation, counts, announce)
            # The large model is the same in both.
            rows += [] if rows else _steps(_first(subject, _STEP_TEXTS), given, announce)
            rows += pair_figures(subject, _settings(given), announce)
    return rows


def _first(subject: Subject, count: int) -> Subject:
    from dataclasses import replace

    return replace(subject, texts=subject.texts[:count])


def _settings(given: argparse.Namespace) -> dict[float, BildSettings]:
    asked = {0.0: given.no_loss_at, 1.0: given.one_point_at}
    return {loss: BildSettings(*found) for loss, found in asked.items() if found is not None}


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.cpu", description=__doc__)
    parser.add_argument("--threads", type=int, default=2, choices=(1, 2))
    parser.add_argument("--only", nargs="+", choices=PARTS, help="parts to measure; all by default")
    parser.add_argument("--bench-dir", type=Path, default=Path("results/bench"), help="cache of models (4 GB)")
    parser.add_argument("--out", type=Path, default=Path("results/bench"), help="folder of the Parquet file")
    parser.add_argument("--pair-large", help="a trained pair's large model: folder or hub id")
    parser.add_argument("--pair-small", help="its small model")
    parser.add_argument("--pair-aligned", help="its aligned small model, measured too")
    parser.add_argument("--data", help="texts of the trained pair, with the columns source and target")
    parser.add_argument("--validation-data", help="other texts of its kind, to look for thresholds on")
    parser.add_argument("--texts", type=int, default=1000, help="texts of each pair that are measured")
    parser.add_argument(
        "--sweep-texts", type=int, default=1000, help="validation texts that thresholds are looked for on"
    )
    parser.add_argument("--memory-texts", type=int, default=10_000, help="texts on which memory is watched")
    kinds: dict[str, Any] = {"nargs": 2, "type": float, "metavar": ("ALPHA_FB", "ALPHA_RB")}
    parser.add_argument("--no-loss-at", help="thresholds without loss, instead of a sweep", **kinds)
    parser.add_argument("--one-point-at", help="thresholds at a loss of one point, instead of a sweep", **kinds)
    parser.add_argument("--force", action="store_true", help="measure on a busy machine; the results say so")
    return parser


def _told(given: argparse.Namespace) -> dict[str, Any]:
    """The options that decide the figures; folders are nobody's business."""
    return {
        "threads": given.threads,
        "texts": given.texts,
        "sweep_texts": given.sweep_texts,
        "memory_texts": given.memory_texts,
        "only": list(given.only or PARTS),
        "no_loss_at": given.no_loss_at,
        "one_point_at": given.one_point_at,
        "forced": given.force,
    }


def _announce(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    sys.exit(main())
