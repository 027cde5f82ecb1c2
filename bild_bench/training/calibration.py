"""The decoding half of an alignment: a large model's greedy texts on the training sources, stored in shards.

A shard is decoded as a whole, in batches that hold no text of another one, and moved into place once it is complete. So
the files depend neither on where a run was broken off nor on how many processes shared the shards.

A text does not depend on its batch mates, save for rounding: padding is masked and adds exactly nothing, but sums of
another shape round otherwise (about 1e-6 of a score in float32), and where the large model's two best tokens are that
close, another batch size, thread count or device may take the other one.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from bild_bench.data import Example
from bild_bench.errors import DataError
from bild_bench.parquet import load_table, save_table, writing
from bild_bench.training.greedy import Large, greedy, load_large
from bild_bench.training.job import ALIGNMENT, CALIBRATION, Job, read_record
from bild_bench.training.progress import tracked
from bild_bench.training.texts import Encoded, Learned, Source, encode_sources, fitting, read_examples, sizes_of

SHARD = 512
# Enough to see a validation loss fall; the large model decodes them all.
MOST_VALIDATION = 1000
_TIMES = "times.jsonl"
_SCHEMA = pa.schema(
    {
        "task": pa.int32(),
        "id": pa.string(),
        "source": pa.string(),
        "source_tokens": pa.int32(),
        "target": pa.string(),
        "target_ids": pa.list_(pa.int32()),
        "cut": pa.bool_(),
    }
)


@dataclass(frozen=True)
class Shard:
    """Texts that are decoded and stored together.

    Args:
        name: of its file.
        task: number of their source in the job, from 1.
        examples: at most `SHARD`, in an order drawn by the seed: short and long ones in each.
    """

    name: str
    task: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Plan:
    """All texts that an alignment needs.

    Args:
        shards: in the order in which they are decoded, validation texts first.
        texts: of each source: label, fingerprint, train, validation (counts) and dropped; see `texts.Learned`.
        fingerprint: 16 hex digits over all that is to be decoded, and its order.
    """

    shards: tuple[Shard, ...]
    texts: tuple[dict[str, Any], ...]
    fingerprint: str


def make_plan(job: Job, share: float, announce: Callable[[str], None]) -> Plan:
    """Read the job's texts and draw those to be decoded: a share of the training texts, at most 1,000 for validation.

    Raises:
        UsageError, DataError: see `texts.read_examples`.
    """
    shards: list[Shard] = []
    texts = []
    for task, source in enumerate(job.sources, 1):
        read = read_examples(source, job.recipe.seed, announce)
        counts = {
            "validation": min(MOST_VALIDATION, len(read.validation)),
            "train": max(1, round(share * len(read.train))),
        }
        for kind, count in counts.items():
            drawn = random.Random(f"{job.recipe.seed} {task} {kind}").sample(getattr(read, kind), count)
            for number, start in enumerate(range(0, count, SHARD)):
                name = f"{_stem(task, kind)}-{number:06}.parquet"
                shards.append(Shard(name, task, tuple(drawn[start : start + SHARD])))
        texts.append({"label": read.label, "fingerprint": read.fingerprint, **counts, "dropped": read.dropped})
    ids = "".join(example.id for shard in shards for example in shard.examples)
    return Plan(tuple(shards), tuple(texts), sha256(ids.encode()).hexdigest()[:16])


def missing(plan: Plan, out: Path) -> list[Shard]:
    """Shards that are not there yet."""
    return [shard for shard in plan.shards if not (out / CALIBRATION / shard.name).is_file()]


def decode(large: Large, job: Job, shards: Sequence[Shard], budget: int, end: float | None) -> None:
    """Decode shards and store them; of several processes, each takes its own.

    Args:
        budget: see `job.Calibration`.
        end: time of day after which no further shard is begun, in seconds since 1970; None for no limit.

    Raises:
        RunError: the disk is full. UsageError: it cannot be written to.
    """
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    begun = time.time()
    for shard in tracked("decoding", shards[rank::world], show=rank == 0):
        if end is not None and time.time() >= end:
            return
        table = _decoded(large, job, shard, budget)
        with writing(job.out, "--out"):
            save_table(job.out / CALIBRATION / shard.name, table)
            with (job.out / CALIBRATION / _TIMES).open("a", encoding="utf-8") as log:
                # The line end comes first: what a killed process left of its line must not spoil the next one.
                log.write("\n" + json.dumps([begun, time.time()]))
        begun = time.time()


def decode_in_process(job: Job, shards: Sequence[Shard], name: str, budget: int, end: float | None) -> None:
    """`decode`, in a process that has still to load the large model of this name."""
    if job.recipe.threads is not None:
        torch.set_num_threads(job.recipe.threads)
    decode(load_large(name, _silent), job, shards, budget, end)


def cost(out: Path) -> dict[str, float]:
    """What the stored texts took: seconds in which a process was decoding, texts, source_tokens, target_tokens, and
    how many texts were cut at the length limit.

    The time of a shard that a kill cut short is not in it.

    Raises:
        DataError: a shard is damaged.
    """
    found = {"seconds": _elapsed(out), "texts": 0, "source_tokens": 0, "target_tokens": 0, "cut": 0}
    for path in sorted((out / CALIBRATION).glob("*.parquet")):
        for row in load_table(path, _SCHEMA, ["source_tokens", "target_ids", "cut"]).to_pylist():
            found["texts"] += 1
            found["source_tokens"] += row["source_tokens"]
            found["target_tokens"] += len(row["target_ids"])
            found["cut"] += row["cut"]
    return found


def read_calibrated(job: Job, model: Any, tokenizer: Any) -> list[Learned]:
    """The stored texts, ready to train on: targets are the large model's own ids, never its text encoded anew.

    A text that was cut is no target: it is most often a loop (docs/DECISIONS.md).

    Args:
        model: the small one; it may have fewer positions than the large one.
        tokenizer: of both.

    Raises:
        DataError: a shard is damaged or missing, or every text of a task was cut.
    """
    record, found = read_record(job.out, ALIGNMENT), []
    for task, source in enumerate(job.sources, 1):
        sizes = fitting(_sizes(job, source), model)
        texts, counts = {}, record["texts"][task - 1]
        for kind in ("train", "validation"):
            stored = list(_read(job.out, _stem(task, kind), source.prefix, tokenizer, sizes))
            if len(stored) != counts[kind]:
                problem = f"holds {len(stored):,} of {counts[kind]:,} {kind} texts"
                raise DataError("--out", str(job.out / CALIBRATION), problem, "run the same align command again")
            texts[kind] = tuple(text for text, cut in stored if not cut)
            if not texts[kind]:
                problem = f"reached the length limit on all {len(stored):,} {kind} texts of {source.task.name}"
                fix = "give a trained model, or raise --target-limit"
                raise DataError("--large", record["asked"]["large"], problem, fix)
        found.append(Learned(source, counts["label"], counts["fingerprint"], **texts, dropped=counts["dropped"]))
    return found


def _read(out: Path, stem: str, prefix: str, tokenizer: Any, sizes: tuple[int, int]) -> Iterator[tuple[Encoded, bool]]:
    """Each text, and whether it was cut."""
    for path in sorted((out / CALIBRATION).glob(f"{stem}-*.parquet")):
        rows = load_table(path, _SCHEMA).to_pylist()
        sources = encode_sources([row["source"] for row in rows], prefix, tokenizer, sizes[0])
        yield from (
            (Encoded(tuple(ids), tuple(row["target_ids"][: sizes[1]])), row["cut"])
            for ids, row in zip(sources, rows, strict=True)
        )


def _decoded(large: Large, job: Job, shard: Shard, budget: int) -> pa.Table:
    source = job.sources[shard.task - 1]
    sizes = fitting(_sizes(job, source), large.model)
    sources = encode_sources([text.source for text in shard.examples], source.prefix, large.tokenizer, sizes[0])
    targets = greedy(large, sources, sizes[1], budget)
    return pa.Table.from_pylist(
        [
            {
                "task": shard.task,
                "id": text.id,
                "source": text.source,
                "source_tokens": len(ids),
                "target": large.text(target),
                "target_ids": target,
                "cut": target[-1] not in large.ends,
            }
            for text, ids, target in zip(shard.examples, sources, targets, strict=True)
        ],
        schema=_SCHEMA,
    )


def _elapsed(out: Path) -> float:
    """Seconds in which at least one process was decoding, over all calls."""
    spans = []
    path = out / CALIBRATION / _TIMES
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            spans.append(tuple(json.loads(line)))
        except ValueError:
            # The last words of a killed process.
            continue
    total, until = 0.0, 0.0
    for begun, ended in sorted(spans):
        total += max(0.0, ended - max(begun, until))
        until = max(until, ended)
    return total


def _sizes(job: Job, source: Source) -> tuple[int, int]:
    return sizes_of(source.task, (job.recipe.source_limit, job.recipe.target_limit))


def _stem(task: int, kind: str) -> str:
    return f"{task}-{kind}"


def _silent(line: str) -> None:
    pass
