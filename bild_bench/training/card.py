"""The model card that lies beside trained weights: what it learned from, how, and how far it came."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bild_bench import __version__
from bild_bench.training.job import Job


def model_card(job: Job, model: Any, record: Mapping[str, Any]) -> str:
    """Markdown.

    Args:
        record: the run's, with history, seconds, texts and trained; of an alignment also its record as "alignment".
    """
    return "\n".join(_lines(job, model, record)) + "\n"


def _lines(job: Job, model: Any, record: Mapping[str, Any]) -> Iterator[str]:
    millions = sum(tensor.numel() for tensor in model.parameters()) / 1e6
    yield f"# {job.out.name}"
    yield ""
    start = f"from {job.init}" if job.init is not None else f"from random weights (size {job.size})"
    yield f"{type(model).__name__}, {millions:.2f} million parameters, trained {start} with bild-bench {__version__}."
    yield ""
    yield "## Data"
    yield ""
    yield "| texts | training | validation | weight | prefix | terms |"
    yield "|---|---|---|---|---|---|"
    for source, told in zip(job.sources, record["texts"], strict=True):
        cells = (told["label"], f"{told['train']:,}", f"{told['validation']:,}", f"{source.weight:g}")
        yield f"| {' | '.join(map(_cell, (*cells, f'`{source.prefix}`', source.task.licence_note)))} |"
    yield ""
    if "alignment" in record:
        yield from _alignment(record["alignment"], record["trained"], record["seconds"])
        yield ""
    yield "## Training"
    yield ""
    yield f"Objective: {job.recipe.objective}. {record['seconds'] / 60:.1f} minutes in all."
    yield ""
    yield "| step | loss | validation loss |"
    yield "|---|---|---|"
    yield from _losses(record["history"])
    yield ""
    if job.command:
        yield f"Command: `{job.command}`"
        yield ""
    if job.notes:
        yield "Where settings come from:"
        yield ""
        yield from (f"- {field}: {source}" for field, source in job.notes)
        yield ""
    yield "All settings:"
    yield ""
    yield "```json"
    yield json.dumps(asdict(job.recipe), indent=2)
    yield "```"


def _alignment(told: Mapping[str, Any], trained: Mapping[str, int], seconds: float) -> Iterator[str]:
    large, small, share = (told["asked"][name] for name in ("large", "small", "share"))
    decoding = told["decoding"]
    yield "## Alignment"
    yield ""
    yield (
        f"The targets are not references but greedy outputs of {large} (fingerprint {told['found']['large']}) on "
        f"{100 * share:g} % of the training sources. Started from {small} (fingerprint {told['found']['small']}). "
        f"{decoding['cut']:,} of the {decoding['texts']:,} texts reached the length limit and are not used as targets."
    )
    yield ""
    yield "| half | texts | source tokens | target tokens | minutes |"
    yield "|---|---|---|---|---|"
    for half, costs, spent in (("decoding", decoding, decoding["seconds"]), ("training", trained, seconds)):
        cells = [f"{costs[name]:,}" for name in ("texts", "source_tokens", "target_tokens")]
        yield f"| {' | '.join((half, *cells, f'{spent / 60:.1f}'))} |"


def _losses(history: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    latest = ""
    for entry in history:
        if "loss" in entry:
            latest = f"{float(entry['loss']):.3f}"
        if "eval_loss" in entry:
            yield f"| {entry['step']:,} | {latest} | {float(entry['eval_loss']):.4f} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
