"""`bild-bench sweep`: many points of one or several methods on the same texts, interleaved."""

from __future__ import annotations

import shlex
import sys
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import typer

from bild_bench.cli import options as o
from bild_bench.cli import sweep_options as so
from bild_bench.cli.settings import sampling_of
from bild_bench.errors import UsageError

if TYPE_CHECKING:
    from bild_bench.plan import Point
    from bild_bench.setup import Request

_NUMBERS = ("alpha_fb", "alpha_rb", "threshold", "replace_below", "assistant_confidence")
_WHOLE = ("max_draft", "exit_layer", "gamma", "min_layer", "assistant_tokens")
_WORDS = ("first", "measure")
_FLAGS = ("verify_tail", "adaptive", "decay")


def sweep(
    task: o.TaskOption = "",
    mode: so.ModesOption = "bild",
    alpha_fb: so.AlphaFbValues = None,
    alpha_rb: so.AlphaRbValues = None,
    max_draft: so.MaxDraftValues = None,
    first: so.FirstValues = None,
    verify_tail: o.VerifyTailOption = False,
    exit_layer: so.ExitLayerValues = None,
    gamma: so.GammaValues = None,
    adaptive: o.AdaptiveOption = False,
    threshold: so.ThresholdValues = None,
    measure: so.MeasureValues = None,
    decay: o.DecayOption = False,
    min_layer: so.MinLayerValues = None,
    replace_below: so.ReplaceBelowValues = None,
    assistant_tokens: so.AssistantTokensValues = None,
    assistant_confidence: so.AssistantConfidenceValues = None,
    config: so.ConfigOption = None,
    dry_run: so.DryRunOption = False,
    budget: so.BudgetOption = None,
    prune: so.PruneOption = False,
    extend: so.ExtendOption = None,
    sample: o.SampleOption = False,
    temperature: o.TemperatureOption = None,
    top_k: o.TopKOption = None,
    top_p: o.TopPOption = None,
    draws: o.DrawsOption = 1,
    preset: o.PresetOption = None,
    aligned: o.AlignedOption = False,
    large: o.LargeOption = None,
    small: so.SmallsOption = None,
    prefix: o.PrefixOption = None,
    data: o.DataOption = None,
    split: o.SplitOption = None,
    limit: o.LimitOption = None,
    source_column: o.SourceColumnOption = None,
    target_column: o.TargetColumnOption = None,
    metric: o.MetricOption = None,
    device: o.DeviceOption = "auto",
    dtype: o.DtypeOption = "float32",
    threads: o.ThreadsOption = None,
    session: o.SessionOption = "auto",
    seed: o.SeedOption = 0,
    warmup: o.WarmupOption = 2,
    out: o.OutOption = None,
    json_output: o.JsonOption = False,
    *,
    context: typer.Context,
) -> None:
    """Decode a task by every combination of settings, paired with the large model alone, text by text.

    Every text is decoded by all points before the next one, so a front with intervals exists early and drift hits all
    points alike. Ctrl-C or a crash loses nothing that is finished: the same command goes on where it stopped.

    Example: bild-bench sweep --task iwslt17 --alpha-fb 0.3:0.9:0.1 --alpha-rb 1,2,3,5
    """
    options = dict(locals())
    del options["context"]
    from bild_bench.cli.console import announce, track
    from bild_bench.cli.live import Front
    from bild_bench.cli.showing import show
    from bild_bench.experiment import estimate, run_experiment

    options = _with_file(options, context)
    request, points = _asked(options)
    if options["dry_run"]:
        texts, seconds = estimate(request, points, announce)
        for point in points:
            typer.echo(point.label)
        typer.echo(f"{len(points)} points, the baseline among them; {texts} texts; about {seconds / 60:.1f} min")
        return
    directory = run_experiment(request, points, announce=announce, track=track, observe=Front().observe)
    show(directory, bool(options["json_output"]))


def _with_file(options: dict[str, Any], context: typer.Context) -> dict[str, Any]:
    """The options, with those of --config where a flag was not given."""
    if options["config"] is not None:
        from bild_bench.experiment_file import read_experiment_file

        asked = read_experiment_file(options["config"], options.keys() - {"config", "dry_run"})
        by_flag = {name for name in options if _from_command_line(context, name)}
        options |= {name: value for name, value in asked.items() if name not in by_flag}
    if not options["task"]:
        raise UsageError("--task", "", "is missing (allowed: a task's name or file)", "see bild-bench tasks")
    return options


def _from_command_line(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _asked(options: dict[str, Any]) -> tuple[Request, list[Point]]:
    from pathlib import Path

    from bild_bench.grid import expand, parse_duration, parse_words
    from bild_bench.models.choice import names_of
    from bild_bench.plan import with_baseline, with_smalls
    from bild_bench.setup import Request

    points = expand(parse_words("--mode", str(options["mode"])), _values(options))
    smalls = () if options["small"] is None else tuple(parse_words("--small", str(options["small"])))
    given = {field.name: options[field.name] for field in fields(Request) if field.name in options}
    if len(smalls) > 1:
        points = with_smalls(points, names_of(smalls))
        given |= {"small": None, "smalls": smalls}
    given["budget"] = None if options["budget"] is None else parse_duration("--budget", str(options["budget"]))
    given |= {name: Path(options[name]) for name in ("out", "extend") if options[name] is not None}
    command = shlex.join(["bild-bench", *sys.argv[1:]])
    return Request(**given, sampling=sampling_of(options), command=command), with_baseline(points)


def _values(options: dict[str, Any]) -> dict[str, list[Any]]:
    """Setting -> the values to try, for the settings that were given."""
    from bild_bench.grid import parse_numbers, parse_words

    values: dict[str, list[Any]] = {}
    for name in (*_NUMBERS, *_WHOLE):
        if options[name] is not None:
            values[name] = list(parse_numbers(_option(name), str(options[name]), name in _WHOLE))
    values |= {name: parse_words(_option(name), str(options[name])) for name in _WORDS if options[name] is not None}
    return values | {name: [True] for name in _FLAGS if options[name]}


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
