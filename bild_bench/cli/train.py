"""`bild-bench train`: fine-tune a checkpoint, or train a new model, for the methods that are measured here."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bild_bench.cli import training_options as t
from bild_bench.cli.options import JsonOption, SeedOption, SourceColumnOption, TargetColumnOption

_START = "Model"

ObjectiveOption = Annotated[
    t.Objective, typer.Option("--objective", help="Training objective; see above.", rich_help_panel=_START)
]
ExitLayerOption = Annotated[
    int | None,
    typer.Option(
        "--exit-layer", help="early-exit: decoder layers of the small model (k). \\[1]", rich_help_panel=_START
    ),
]
InitOption = Annotated[
    str | None, typer.Option("--init", help="Checkpoint to fine-tune: folder or hub id.", rich_help_panel=_START)
]
SizeOption = Annotated[
    str | None,
    typer.Option(
        "--size", help="Size of a new T5: little, big, t5-small, t5-base or t5-large.", rich_help_panel=_START
    ),
]
TokenizerOption = Annotated[
    str | None, typer.Option("--tokenizer", help="Tokenizer of a new model: folder or hub id.", rich_help_panel=_START)
]
VocabSizeOption = Annotated[
    int | None,
    typer.Option("--vocab-size", min=64, help="Train a tokenizer of this many pieces.", rich_help_panel=_START),
]


def train(
    task: t.TasksOption,
    objective: ObjectiveOption = "standard",
    exit_layer: ExitLayerOption = None,
    init: InitOption = None,
    size: SizeOption = None,
    tokenizer: TokenizerOption = None,
    vocab_size: VocabSizeOption = None,
    data: t.DatasOption = None,
    prefix: t.PrefixesOption = None,
    weight: t.WeightsOption = None,
    validation_data: t.ValidationsOption = None,
    hold_out: t.HoldOutOption = 0,
    source_column: SourceColumnOption = None,
    target_column: TargetColumnOption = None,
    limit: t.LimitOption = None,
    source_limit: t.SourceLimitOption = None,
    target_limit: t.TargetLimitOption = None,
    epochs: t.EpochsOption = None,
    steps: t.StepsOption = None,
    batch_texts: t.BatchTextsOption = None,
    batch_tokens: t.BatchTokensOption = None,
    accumulate: t.AccumulateOption = None,
    optimizer: t.OptimizerOption = None,
    rate: t.RateOption = None,
    scale_rate: t.ScaleRateOption = None,
    schedule: t.ScheduleOption = None,
    warmup: t.WarmupOption = None,
    weight_decay: t.DecayOption = None,
    clip: t.ClipOption = None,
    dropout: t.DropoutOption = None,
    precision: t.PrecisionOption = None,
    every: t.EveryOption = None,
    patience: t.PatienceOption = None,
    max_time: t.MaxTimeOption = None,
    seed: SeedOption = 0,
    threads: t.ThreadsOption = None,
    processes: t.ProcessesOption = None,
    out: t.OutOption = None,
    json_output: JsonOption = False,
) -> None:
    """Fine-tune a checkpoint (--init) or train a new model (--size).

    Objectives: standard: cross-entropy; early-exit: loss at layer k and at the
    last, for --mode bild-early-exit; calm: loss at all layers, weighted by depth,
    for --mode calm; calm-classifier: CALM's learned exit, on a trained model.

    With --init, a task of the paper is trained with the paper's settings; the
    model card names the source of every setting.

    Ctrl-C or a crash loses nothing: the same command resumes.

    Example: bild-bench train --task xsum --init google/t5-v1_1-small
    """
    options = dict(locals())
    sources = t.sources_of(options)
    from bild_bench.cli.console import announce
    from bild_bench.training.defaults import choose_recipe
    from bild_bench.training.job import Job
    from bild_bench.training.run import train as run_training

    chosen = choose_recipe([source.task.name for source in sources], init is None, options)
    start = size if init is None else Path(init).name
    job = Job(
        sources,
        chosen.recipe,
        t.default_out(sources, objective, start) if out is None else out,
        **{name: options[name] for name in ("init", "size", "tokenizer", "vocab_size")},
        notes=chosen.notes,
        command=shlex.join(["bild-bench", *sys.argv[1:]]),
    )
    with t.own_hints():
        record = run_training(job, announce)
    _show(job.out, record, json_output)


def _show(out: Path, record: dict[str, Any], json_output: bool) -> None:
    """The run's record as JSON, or in words."""
    if json_output:
        typer.echo(json.dumps({"out": str(out), **record}, indent=2))
        return
    losses = [entry for entry in record["history"] if "eval_loss" in entry]
    told = f"validation loss {losses[-1]['eval_loss']:.4f} at step {losses[-1]['step']:,}" if losses else "no step made"
    state = "finished" if record["finished"] else "not finished: the same command resumes"
    typer.echo(f"{out}: {told}; {record['seconds'] / 60:.1f} minutes; {state}")
