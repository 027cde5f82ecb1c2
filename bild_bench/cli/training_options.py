"""The options that `train` and `align` share, and what they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bild_bench.checks import folder
from bild_bench.errors import DataError, UsageError

if TYPE_CHECKING:
    from bild_bench.training.texts import Source

Objective = Literal["standard", "early-exit", "calm", "calm-classifier"]
Optimizer = Literal["adafactor", "adamw"]
Schedule = Literal["constant", "constant_with_warmup", "linear", "cosine", "inverse_sqrt"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]

_DATA, _STEPS, _RATE, _RUN = "Data", "Length and batches", "Optimizer", "Run"
_OURS = "a default of the task's"

TasksOption = Annotated[str, typer.Option("--task", help="One task, or several to train on, separated by commas.")]
DatasOption = Annotated[
    list[str] | None,
    typer.Option("--data", help="hub or a path; once, or once per task. \\[hub]", rich_help_panel=_DATA),
]
PrefixesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--prefix",
        help="Text put before every source; once, or once per task (required for several tasks).",
        rich_help_panel=_DATA,
    ),
]
WeightsOption = Annotated[
    list[float] | None,
    typer.Option(
        "--weight", help="Share of a task's texts used per epoch; once per task. \\[1]", rich_help_panel=_DATA
    ),
]
ValidationsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--validation-data",
        help="Validation file of a task whose --data has no validation split; once per task.",
        rich_help_panel=_DATA,
    ),
]
HoldOutOption = Annotated[
    int,
    typer.Option("--hold-out", min=0, help="Set this many training texts aside for validation.", rich_help_panel=_DATA),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", help="Use a seeded sample of this many texts per task.", rich_help_panel=_DATA)
]
SourceLimitOption = Annotated[
    int | None,
    typer.Option("--source-limit", help="Maximum source length in tokens. \\[the task's]", rich_help_panel=_DATA),
]
TargetLimitOption = Annotated[
    int | None,
    typer.Option("--target-limit", help="Maximum target length in tokens. \\[the task's]", rich_help_panel=_DATA),
]
EpochsOption = Annotated[
    float | None, typer.Option("--epochs", help="Length of training; instead of --steps.", rich_help_panel=_STEPS)
]
StepsOption = Annotated[
    int | None, typer.Option("--steps", help="Length of training; instead of --epochs.", rich_help_panel=_STEPS)
]
BatchTextsOption = Annotated[int | None, typer.Option("--batch-texts", help="Texts per batch.", rich_help_panel=_STEPS)]
BatchTokensOption = Annotated[
    int | None,
    typer.Option(
        "--batch-tokens", help="Source and target tokens per batch, padding included.", rich_help_panel=_STEPS
    ),
]
AccumulateOption = Annotated[
    int | None, typer.Option("--accumulate", help="Batches per optimizer step.", rich_help_panel=_STEPS)
]
OptimizerOption = Annotated[Optimizer | None, typer.Option("--optimizer", help="Optimizer.", rich_help_panel=_RATE)]
RateOption = Annotated[float | None, typer.Option("--rate", help="Learning rate.", rich_help_panel=_RATE)]
ScaleRateOption = Annotated[
    bool | None,
    typer.Option(
        "--scale-rate/--no-scale-rate", help="Scale the rate by each tensor's RMS (Adafactor).", rich_help_panel=_RATE
    ),
]
ScheduleOption = Annotated[
    Schedule | None, typer.Option("--schedule", help="Learning-rate schedule.", rich_help_panel=_RATE)
]
WarmupOption = Annotated[
    int | None, typer.Option("--warmup", help="Warm-up steps of the schedule.", rich_help_panel=_RATE)
]
DecayOption = Annotated[float | None, typer.Option("--weight-decay", help="Weight decay.", rich_help_panel=_RATE)]
ClipOption = Annotated[float | None, typer.Option("--clip", help="Clip gradients to this norm.", rich_help_panel=_RATE)]
DropoutOption = Annotated[
    float | None, typer.Option("--dropout", help="Dropout rate. \\[the model's]", rich_help_panel=_RATE)
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option(
        "--precision",
        help="Precision of matrix products. \\[auto: bfloat16 on a GPU that has it]",
        rich_help_panel=_RUN,
    ),
]
EveryOption = Annotated[int | None, typer.Option("--every", help="Steps between checkpoints.", rich_help_panel=_RUN)]
PatienceOption = Annotated[
    int | None,
    typer.Option(
        "--patience", help="Stop after this many checkpoints without improvement; keep the best.", rich_help_panel=_RUN
    ),
]
MaxTimeOption = Annotated[
    float | None,
    typer.Option("--max-time", help="Stop after this many minutes; the same command resumes.", rich_help_panel=_RUN),
]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", help="CPU threads per process. \\[torch's]", rich_help_panel=_RUN)
]
ProcessesOption = Annotated[
    int | None,
    typer.Option(
        "--processes",
        help="Processes that share the batches; on a CPU one thread per process is fastest. \\[1]",
        rich_help_panel=_RUN,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        parser=partial(folder, "--out"),
        metavar="PATH",
        help="The model's folder. \\[models/NAME]",
        rich_help_panel=_RUN,
    ),
]


def sources_of(options: Mapping[str, Any]) -> tuple[Source, ...]:
    """The texts that are asked for.

    Args:
        options: the command's, by parameter name.

    Raises:
        UsageError: a list of another length than the tasks', several tasks without prefixes, or a value out of range.
    """
    from bild_bench.tasks import load_task
    from bild_bench.training.texts import Source

    # One task may come several times, with other data each time.
    columns = {name: options[name] for name in ("source_column", "target_column")}
    tasks = [load_task(name.strip(), **columns) for name in options["task"].split(",")]
    if len(tasks) > 1 and options["prefix"] is None:
        fix = 'give one each: --prefix "translate German to English: " --prefix "summarize: "'
        raise UsageError("--prefix", None, "several tasks in one model are told apart by their prefixes", fix)
    lists = {
        "data": _each("--data", options["data"], len(tasks), "hub"),
        "prefix": _each("--prefix", options["prefix"], len(tasks), ""),
        "weight": _each("--weight", options["weight"], len(tasks), 1.0),
        "validation": _each("--validation-data", options["validation_data"], len(tasks), None),
    }
    shared = {"limit": options["limit"], "hold_out": options["hold_out"]}
    return tuple(
        Source(task=task, **{name: values[number] for name, values in lists.items()}, **shared)
        for number, task in enumerate(tasks)
    )


def default_out(sources: Sequence[Source], objective: str, start: str | None) -> Path:
    """The model's folder where none is named: in models/, whatever the tasks and their files are called."""
    from bild_bench.whole_files import file_name

    return Path("models") / file_name(f"{'+'.join(source.task.name for source in sources)}-{objective}-{start}")


@contextmanager
def own_hints() -> Iterator[None]:
    """Replace the hint of an error that names a preset: training has none."""
    try:
        yield
    except DataError as error:
        if "--preset" not in error.fix:
            raise
        option = error.field if error.field.startswith("--") else "--data"
        fix = f"give a local copy: {option} PATH"
        raise DataError(error.field, error.value, error.problem, fix) from error


def _each(option: str, given: Sequence[Any] | None, count: int, default: Any) -> list[Any]:
    if not given:
        return [default] * count
    if len(given) not in (1, count):
        raise UsageError(
            option, list(given), f"must be given once, or {count} times for {count} tasks", "check the list"
        )
    return list(given) * (count if len(given) == 1 else 1)
