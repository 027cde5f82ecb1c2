"""One training run, from its job to finished weights; the same call goes on where a killed one stopped."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from bild_bench.directories import lock
from bild_bench.errors import DataError
from bild_bench.training.batches import Batches, BatchSize, training_batches, validation_batches
from bild_bench.training.calibration import read_calibrated
from bild_bench.training.callbacks import CHECKPOINTS, last_checkpoint, remove_unfinished
from bild_bench.training.classifier import ExitClassifier, summed_classifier_loss
from bild_bench.training.job import ALIGNMENT, Job, open_folder, prepare_folder, read_record, write_record
from bild_bench.training.objectives import loss_weights, summed_loss
from bild_bench.training.processes import run_in_processes
from bild_bench.training.saving import save_finished
from bild_bench.training.starting import fingerprints, make_tokenizer, start
from bild_bench.training.texts import Learned, Source, fitting, read_source, sizes_of

Announce = Callable[[str], None]


def train(job: Job, announce: Announce) -> dict[str, Any]:
    """Train a model, or go on with it; what is finished already is left alone.

    Args:
        announce: a function of a module (other processes must find it), called with one line for people.

    Returns:
        The run's record, as in OUT/training.json: asked, command, texts, history, seconds, finished.

    Raises:
        UsageError, DataError: something asked for is not there or not allowed. RunError: training failed.
    """
    found = fingerprints(job, announce)
    prepare_folder(job)
    with lock(job.out, "--out"):
        open_folder(job, found)
        if read_record(job.out)["finished"]:
            announce(f"{job.out} is finished already")
        else:
            remove_unfinished(job.out / CHECKPOINTS)
            make_tokenizer(job, announce)
            if job.recipe.processes == 1:
                work(job, announce)
            else:
                run_in_processes(work, (job, announce), job.recipe.processes)
        return read_record(job.out)


def work(job: Job, announce: Announce) -> None:
    """What each process of a run does; the first of them saves."""
    from bild_bench.training.trainer import fit

    began = time.monotonic()
    first = os.environ.get("RANK", "0") == "0"
    tell = announce if first else _silent
    if first:
        _note_start(job)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    if job.recipe.threads is not None:
        torch.set_num_threads(job.recipe.threads)
    model, tokenizer = start(job, tell)
    if job.calibration is None:
        parts = [_read(job, source, model, tokenizer, tell) for source in job.sources]
    else:
        parts = read_calibrated(job, model, tokenizer)
    if first:
        _keep_texts(job, parts)
    training, validation = _batches(job, parts, tokenizer.pad_token_id, model.config.decoder_start_token_id)
    trained, summed = _objective(job, model)
    tell(_extent(job, training, parts))
    history, stopped = fit(trained, summed, training, validation, job.recipe, job.out)
    if first:
        record = read_record(job.out)
        del record["began"]
        record |= {"history": history, "seconds": record.get("seconds", 0.0) + time.monotonic() - began}
        record["trained"] = _trained(job, history, training)
        alignment = {} if job.calibration is None else {"alignment": read_record(job.out, ALIGNMENT)}
        save_finished(job, trained, model, tokenizer, record | alignment)
        write_record(job.out, {**record, "finished": not stopped})


def _note_start(job: Job) -> None:
    """Note when this call began, and the seconds of a killed one before it, up to its newest checkpoint."""
    record, newest = read_record(job.out), last_checkpoint(job.out / CHECKPOINTS)
    if "began" in record and newest is not None:
        # A checkpoint's folder changes last when it is marked as whole.
        record["seconds"] = record.get("seconds", 0.0) + max(0.0, newest.stat().st_mtime - record["began"])
    write_record(job.out, {**record, "began": time.time()})


def _read(job: Job, source: Source, model: Any, tokenizer: Any, tell: Announce) -> Learned:
    """A source's texts, no longer than the model has positions for."""
    sizes = sizes_of(source.task, (job.recipe.source_limit, job.recipe.target_limit))
    return read_source(source, tokenizer, fitting(sizes, model), job.recipe.seed, tell)


def _keep_texts(job: Job, parts: Sequence[Learned]) -> None:
    """Note what is learned from.

    Raises:
        DataError: the run began with other texts.
    """
    record, told = read_record(job.out), [_described(part) for part in parts]
    for source, was, now in zip(job.sources, record.get("texts", told), told, strict=True):
        if was != now:
            fix = "put the old ones back, or choose another --out"
            raise DataError("--data", source.data, f"the texts have changed since {job.out} was begun", fix)
    write_record(job.out, {**record, "texts": told})


def _batches(job: Job, parts: Sequence[Learned], pad: int, start_id: int) -> tuple[Batches, dict[str, Batches]]:
    """Training batches in the order of the steps, and validation batches by part."""
    recipe = job.recipe
    size = BatchSize(recipe.batch_texts, recipe.batch_tokens)
    shared = recipe.processes * recipe.accumulate
    count = None if recipe.steps is None else recipe.steps * shared
    weighted = [(part.train, part.source.weight) for part in parts]
    rows = training_batches(weighted, size, recipe.epochs, count, recipe.seed)
    # Whole steps only: a last one of fewer batches would leave a process without any.
    rows = (rows * -(-shared // len(rows)))[: max(shared, len(rows) // shared * shared)]
    texts = [text for part in parts for text in part.train]
    validation = {
        str(number): Batches(part.validation, validation_batches(part.validation, size), pad, start_id)
        for number, part in enumerate(parts, 1)
    }
    return Batches(texts, rows, pad, start_id), validation


def _extent(job: Job, training: Batches, parts: Sequence[Learned]) -> str:
    """Such as "5,000 steps of 2 batches over 29,000 texts, 20.3 epochs"."""
    shared = job.recipe.processes * job.recipe.accumulate
    steps = len(training) // shared
    texts = sum(len(part.train) for part in parts)
    epochs = training.texts / sum(max(1, round(part.source.weight * len(part.train))) for part in parts)
    return (
        f"{steps:,} step{'s' * (steps != 1)} of {shared} batch{'es' * (shared != 1)} over {texts:,} texts, "
        f"{epochs:.1f} epochs"
    )


def _objective(job: Job, model: Any) -> tuple[nn.Module, Callable[[Any, Tensor], Tensor]]:
    """What is trained, and its loss."""
    if job.recipe.objective == "calm-classifier":
        return ExitClassifier(model), summed_classifier_loss
    weights = loss_weights(job.recipe, model.config.num_decoder_layers if job.recipe.objective != "standard" else 1)
    # T5's decoder reads a configuration of its own.
    decoder = model.get_decoder().config
    decoder.use_cache, decoder.output_hidden_states = False, len(weights) > 1
    return model.train(), partial(summed_loss, model, weights=weights)


def _trained(job: Job, history: Sequence[Mapping[str, Any]], training: Batches) -> dict[str, int]:
    """Steps made, and what was learned from in them."""
    steps = max((int(entry["step"]) for entry in history), default=0)
    return {"steps": steps, **training.seen(steps * job.recipe.accumulate * job.recipe.processes)}


def _described(part: Learned) -> dict[str, Any]:
    sizes = {"train": len(part.train), "validation": len(part.validation), "dropped": part.dropped}
    return {"label": part.label, "fingerprint": part.fingerprint, **sizes}


def _silent(line: str) -> None:
    pass
