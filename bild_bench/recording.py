"""From what was measured to the records that are kept: a run's, and one per text and point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bild_bench.data import Example
from bild_bench.measure.environment import describe_environment, machine_fingerprint
from bild_bench.measure.timing import Outcome
from bild_bench.models.pair import Source
from bild_bench.models.pieces import pieces_of
from bild_bench.plan import Point, code_version, identity, point_identity
from bild_bench.remarks import unknown_tokens
from bild_bench.schema import SCHEMA_VERSION, RunRecord, SampleRecord
from bild_bench.setup import Setup


def run_record(setup: Setup) -> RunRecord:
    """The record of an experiment that is about to start."""
    request, task, examples, pair = setup.request, setup.task, setup.examples, setup.pair
    environment = describe_environment(pair.device) | {"threads_timed": _timed(setup)}
    machine = machine_fingerprint(environment)
    ids = point_ids(setup)
    texts = [example.id for example in examples.examples]
    return RunRecord(
        experiment_id=identity(
            points=list(ids.values()),
            texts=texts,
            seed=request.seed,
            warmup=request.warmup,
            draws=request.draws,
            machine=machine,
            metric=task.metric,
        ),
        schema_version=SCHEMA_VERSION,
        status="running",
        created_at=utc_now(),
        completed_at=None,
        task=task.name,
        data_label=examples.label,
        split=examples.split,
        metric=task.metric,
        pair_label=pair.label,
        texts=len(texts),
        seed=request.seed,
        command=request.command,
        code_version=code_version(),
        machine=machine,
        configuration=_configuration(setup),
        points=[_described(point, point_id, setup) for point, point_id in ids.items()],
        models=pair.describe(),
        data=_data(setup),
        environment=environment,
        environment_after={},
        calibration={},
        texts_expected=texts,
    )


def _timed(setup: Setup) -> dict[str, float] | None:
    if setup.threads_timed is None:
        return None
    return {str(count): round(milliseconds, 3) for count, milliseconds in setup.threads_timed.items()}


@dataclass(frozen=True)
class Pass:
    """One text taken through all points once.

    Args:
        example: the text.
        source: its tokens; None where it was not tokenised.
        draw: 0 for greedy search; the number of the draw where tokens are drawn.
        process: an id of this process: only rows of one process are paired.
        started: when it was begun.
    """

    example: Example
    source: Source | None
    draw: int
    process: str
    started: str


def sample_record(outcome: Outcome, taken: Pass, run: RunRecord, setup: Setup, point_id: str) -> SampleRecord:
    """One text decoded by one point.

    Args:
        outcome: from `time_text`, or an error of ours.
        taken: the text and the circumstances.
        run: the experiment it belongs to.
        setup: for the tokenizer.
        point_id: of the outcome's point.
    """
    example, source, divergence = taken.example, taken.source, outcome.divergence
    decoded, encode, decode = outcome.decoded, outcome.encode_seconds, outcome.decode_seconds
    measured: dict[str, Any] = {}
    if decoded is not None and encode is not None and decode is not None:
        trace = decoded.trace()
        measured = {
            "output_ids": decoded.tokens,
            "output_text": setup.pair.text(decoded.tokens),
            "encode_seconds": encode,
            "decode_seconds": decode,
            "total_seconds": encode + decode,
            "trace": trace,
            "pieces": pieces_of(setup.pair, trace),
            "exit_layers": decoded.exit_layers,
            "diverged_at": None if divergence is None else divergence.position,
            "divergence_margin": None if divergence is None else divergence.margin,
            "hit_limit": decoded.hit_limit,
            **decoded.counters.as_dict(),
        }
    return SampleRecord(
        experiment_id=run.experiment_id,
        point_id=point_id,
        point=outcome.point.label,
        method=outcome.point.method.name,
        role=outcome.point.role,
        text_index=example.index,
        text_id=example.id,
        draw=taken.draw,
        order=outcome.order,
        process_id=taken.process,
        machine=run.machine,
        started_at=taken.started,
        source=example.source,
        references=example.references,
        status="ok" if outcome.error is None else "error",
        error=outcome.error,
        source_truncated=source is not None and source.truncated,
        source_tokens=None if source is None else int(source.ids.shape[1]),
        **measured,
    )


def point_ids(setup: Setup) -> dict[Point, str]:
    """Each point's identity; see `plan.point_identity`."""
    pair, sampling = setup.pair, setup.request.sampling
    context: Mapping[str, Any] = {
        "data": setup.examples.label,
        "split": setup.examples.split,
        "limits": [setup.task.source_limit, setup.task.target_limit],
        "prefix": pair.prefix,
        "dtype": pair.dtype,
        "device": pair.device.partition(":")[0],
        "sessions": sorted({loaded.model.kind for loaded in pair.models.values()}),
        "rules": pair.rules.applied,
        "sampling": None if sampling is None else asdict(sampling) | {"seed": setup.request.seed},
        "models": {key: loaded.checkpoint.fingerprint for key, loaded in pair.models.items()},
    }
    return {point: point_identity(point, context) for point in setup.points}


def utc_now() -> str:
    """ISO 8601, UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _described(point: Point, point_id: str, setup: Setup) -> dict[str, Any]:
    return {
        "point_id": point_id,
        "point": point.label,
        "method": point.method.name,
        "role": point.role,
        "models": point.models,
        "lossless": setup.request.sampling is None and point.method.lossless(point.settings),
        "settings": asdict(point.settings),
    }


def _data(setup: Setup) -> dict[str, Any]:
    examples = setup.examples
    unanswered = sum(not example.answered for example in examples.examples)
    return {
        "fingerprint": examples.fingerprint,
        "total": examples.total,
        "expected": examples.expected,
        "empty_references": unanswered,
        "null_sources": sum(example.null_source for example in examples.examples),
        **_unknown(setup),
        **examples.origin,
    }


def _unknown(setup: Setup) -> dict[str, int]:
    """Source tokens that the tokenizer does not know, and in how many texts; counted before any is decoded."""
    counts = []
    for example in setup.examples.examples:
        try:
            counts.append(unknown_tokens(setup.pair, setup.pair.tokenise(example.source, setup.task.source_limit)))
        # What cannot be tokenised is that text's failure, told in its row.
        except Exception:
            continue
    return {"unknown_source_tokens": sum(counts), "texts_with_unknown": sum(count > 0 for count in counts)}


def _configuration(setup: Setup) -> dict[str, Any]:
    asked = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(setup.request).items()}
    used = {
        "device": setup.pair.device,
        "source_limit": setup.task.source_limit,
        "target_limit": setup.limits.max_tokens,
    }
    return asked | used
