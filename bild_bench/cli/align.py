"""`bild-bench align`: fine-tune a small model on a large one's outputs, so that L rolls fewer of its drafts back."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from bild_bench.cli import training_options as t
from bild_bench.cli.options import JsonOption, SeedOption, SourceColumnOption, TargetColumnOption

_MODELS = "Models"

LargeOption = Annotated[
    str, typer.Option("--large", help="Generates the targets: folder or hub id.", rich_help_panel=_MODELS)
]
SmallOption = Annotated[
    str,
    typer.Option(
        "--small",
        help="Small model to start from: folder or hub id. In the paper: pre-trained, not fine-tuned.",
        rich_help_panel=_MODELS,
    ),
]
ShareOption = Annotated[
    float,
    typer.Option(
        "--share", help="Share of the training texts to use, as a seeded sample, such as 0.2.", rich_help_panel=_MODELS
    ),
]
DecodeBatchOption = Annotated[
    int,
    typer.Option(
        "--decode-batch",
        help="Tokens per batch when the large model decodes: padded sources plus the target limit of each text.",
        rich_help_panel=_MODELS,
    ),
]


def align(
    task: t.TasksOption,
    large: LargeOption,
    small: SmallOption,
    share: ShareOption = 1.0,
    decode_batch: DecodeBatchOption = 8192,
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
    """Decode the training sources greedily with a large model and fine-tune a small one on its outputs.

    Outputs that reach the length limit are kept in the folder but not trained on.
    The validation targets (at most 1,000 per task) are the large model's too.

    Ctrl-C or a crash loses nothing: the same command resumes, in decoding and in training.

    Example: bild-bench align --task xsum --large models/large --small google/t5-v1_1-small
    """
    options = dict(locals())
    sources = t.sources_of(options)
    from bild_bench.cli.console import announce
    from bild_bench.training.align import align as run_alignment
    from bild_bench.training.defaults import choose_recipe
    from bild_bench.training.job import Calibration, Job

    chosen = choose_recipe([source.task.name for source in sources], False, options)
    job = Job(
        sources,
        chosen.recipe,
        t.default_out(sources, "aligned", Path(small).name) if out is None else out,
        init=small,
        notes=chosen.notes,
        command=shlex.join(["bild-bench", *sys.argv[1:]]),
        calibration=Calibration(large, share, decode_batch),
    )
    with t.own_hints():
        record = run_alignment(job, announce)
    _show(job.out, record, json_output)


def _show(out: Path, record: dict[str, Any], json_output: bool) -> None:
    """The record as JSON, or the cost of each half as a table."""
    if json_output:
        typer.echo(json.dumps({"out": str(out), **record}, indent=2))
        return
    from bild_bench.cli.console import print_rows

    rows = []
    for half in ("decoding", "training"):
        cost = record.get(half, {})
        counts = [f"{cost[name]:,}" if name in cost else "-" for name in ("texts", "source_tokens", "target_tokens")]
        rows.append([half, *counts, f"{cost['seconds']:,.1f}" if cost else "-"])
    print_rows(["half", "texts", "source tokens", "target tokens", "seconds"], rows)
    state = "finished" if record["finished"] else "not finished: the same command resumes"
    typer.echo(
        f"{out}: {record['decoding']['cut']:,} texts reached the length limit and are not used as targets; {state}"
    )
