"""Alignment: a small model fine-tuned on a large one's outputs (BiLD's "model prediction alignment")."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import torch

from bild_bench.directories import lock
from bild_bench.errors import UsageError
from bild_bench.models.checkpoint import Checkpoint, find_checkpoint
from bild_bench.models.choice import ModelChoice
from bild_bench.models.library import load_model, load_tokenizer, require_encoder_decoder
from bild_bench.models.settings import check_settings
from bild_bench.models.special_ids import agree, read_special_ids, vocabulary_of
from bild_bench.parquet import writing
from bild_bench.training.calibration import Plan, cost, decode, decode_in_process, make_plan, missing
from bild_bench.training.greedy import Large, load_large
from bild_bench.training.job import (
    ALIGNMENT,
    CALIBRATION,
    RECORD,
    Calibration,
    Job,
    make_folder,
    read_record,
    refuse_another,
    write_record,
)
from bild_bench.training.objectives import check_layered, loss_weights
from bild_bench.training.processes import run_in_processes
from bild_bench.training.run import Announce, train


def align(job: Job, announce: Announce) -> dict[str, Any]:
    """Decode the job's training sources with the large model and fine-tune the small one on that, or go on with it.

    Args:
        job: with a calibration; `init` is the small model (the paper's: the pre-trained one).
        announce: a function of a module, called with one line for people.

    Returns:
        The record, as in OUT/alignment.json: asked, found (fingerprints), texts, decoding and training (the cost of
        each half: seconds, texts, source_tokens, target_tokens), command, finished.

    Raises:
        UsageError, DataError: something asked for is not there or not allowed. RunError: a half failed.
    """
    calibration = job.calibration
    if calibration is None:
        raise UsageError("--large", None, "alignment needs a large model", "add --large PATH")
    end = None if job.recipe.max_time is None else time.time() + 60 * job.recipe.max_time
    checkpoints = _checkpoints(job, calibration, announce)
    plan = make_plan(job, calibration.share, announce)
    if not (job.out / ALIGNMENT).is_file():
        make_folder(job.out, (f"{ALIGNMENT}.part",), "is not empty and holds no alignment")
    with lock(job.out, "--out"):
        _open(job, calibration, checkpoints, plan)
        _decode_missing(job, calibration, checkpoints["small"], plan, end, announce)
        _note(job, decoding=cost(job.out))
    left = None if end is None else (end - time.time()) / 60
    if missing(plan, job.out) or (left is not None and left <= 0):
        announce("stopped by --max-time; the same command resumes")
        return read_record(job.out, ALIGNMENT)
    trained = train(replace(job, recipe=replace(job.recipe, max_time=left)), announce)
    _note(job, training={"seconds": trained["seconds"], **trained["trained"]}, finished=trained["finished"])
    return read_record(job.out, ALIGNMENT)


def _checkpoints(job: Job, calibration: Calibration, announce: Announce) -> dict[str, Checkpoint]:
    """Both models, found and of one tokenizer; what would stop the second half must not wait for the first one."""
    names = {"large": calibration.large, "small": str(job.init)}
    found = {role: find_checkpoint(ModelChoice(name), f"--{role}", announce) for role, name in names.items()}
    for role, checkpoint in found.items():
        require_encoder_decoder(checkpoint, f"--{role}")
        check_settings(checkpoint, rules=role == "large")
    agree({role: load_tokenizer(checkpoint, f"--{role}") for role, checkpoint in found.items()}, names)
    return found


def _open(job: Job, calibration: Calibration, checkpoints: Mapping[str, Checkpoint], plan: Plan) -> None:
    """Begin the record, or check that the folder holds this same alignment.

    What ended before its first shard holds nothing: any alignment may begin in its place.
    """
    described = job.described()
    names = (*asdict(calibration), "sources", "source_limit", "target_limit", "seed")
    asked = {"small": job.init, **{name: described[name] for name in names}}
    found = {role: checkpoint.fingerprint for role, checkpoint in checkpoints.items()} | {"data": plan.fingerprint}
    begun = any((job.out / CALIBRATION).glob("*.parquet")) or (job.out / RECORD).is_file()
    if (job.out / ALIGNMENT).is_file() and begun:
        kept = read_record(job.out, ALIGNMENT)
        refuse_another(job.out, kept["asked"], asked)
        for name, now in found.items():
            if now != kept["found"][name]:
                problem = f"is not what it was when {job.out} was begun"
                raise UsageError(f"--{name}", asked.get(name, now), problem, "choose another --out")
        return
    with writing(job.out, "--out"):
        record = {"asked": asked, "found": found, "texts": plan.texts, "command": job.command, "finished": False}
        write_record(job.out, record, ALIGNMENT)


def _decode_missing(
    job: Job, calibration: Calibration, small: Checkpoint, plan: Plan, end: float | None, announce: Announce
) -> None:
    shards, budget = missing(plan, job.out), calibration.decode_batch
    if not shards:
        return
    announce(f"{calibration.large} has {sum(len(shard.examples) for shard in shards):,} texts to decode")
    with writing(job.out, "--out"):
        (job.out / CALIBRATION).mkdir(exist_ok=True)
    if job.recipe.threads is not None:
        torch.set_num_threads(job.recipe.threads)
    large = load_large(calibration.large, announce)
    _check_small(job, small, large)
    if job.recipe.processes == 1:
        decode(large, job, shards, budget, end)
    else:
        del large
        run_in_processes(
            decode_in_process, (job, shards, calibration.large, budget, end), min(job.recipe.processes, len(shards))
        )
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _check_small(job: Job, small: Checkpoint, large: Large) -> None:
    """Refuse what training or decoding together would refuse, before the large model's work."""
    model = load_model(small, "--small", "cpu", "float32")
    names = {"large": large.model.name_or_path, "small": small.name}
    read_special_ids({"large": large.model, "small": model}, vocabulary_of(large.tokenizer), names)
    check_layered(job.recipe.objective, model, small.name)
    if job.recipe.objective != "standard":
        loss_weights(job.recipe, model.config.num_decoder_layers)


def _note(job: Job, **fields: Any) -> None:
    with writing(job.out, "--out"):
        write_record(job.out, {**read_record(job.out, ALIGNMENT), **fields}, ALIGNMENT)
