"""`bild-bench sweep`: many points of one or several methods on the same texts, interleaved."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import typer

from bild_bench.cli import options as o
from bild_bench.cli import sweep_options as so
from bild_bench.errors import UsageError


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
    aligned: o.AlignedOption = None,
    large: o.LargeOption = None,
    small: so.SmallsOption = None,
    prefix: o.PrefixOption = None,
    data: o.DataOption = None,
    split: o.SplitOption = None,
    limit: o.LimitOption = None,
    source_column: o.SourceColumnOption = None,
    target_column: o.TargetColumnOption = None,
    metric: o.MetricOption = None,
    bleu_tokenize: o.BleuTokenizeOption = None,
    device: o.DeviceOption = "auto",
    dtype: o.DtypeOption = "float32",
    threads: o.ThreadsOption = None,
    session: o.SessionOption = "auto",
    seed: o.SeedOption = 0,
    warmup: o.WarmupOption = 2,
    out: o.OutOption = None,
    json_output: o.JsonOption = False,
    log_to: o.LogToOption = None,
    *,
    context: typer.Context,
) -> None:
    """Decode a task with every combination of settings, each paired with the large model alone.

    All points decode one text before the next begins, so a front with intervals exists early and drift affects all
    points alike. Ctrl-C or a crash loses no finished text: the same command resumes.

    Example: bild-bench sweep --task iwslt17 --alpha-fb 0.3:0.9:0.1 --alpha-rb 1,2,3,5
    """
    options = dict(locals())
    del options["context"]
    from bild_bench.asked import asked_sweep
    from bild_bench.cli.console import announce, track
    from bild_bench.cli.live import Front
    from bild_bench.cli.showing import log, show, show_plan
    from bild_bench.experiment import estimate, run_experiment
    from bild_bench.next_commands import after_sweep
    from bild_bench.setup import choose
    from bild_bench.trackers import check_tracker

    if not task:
        raise UsageError("--task", "", "is missing (allowed: a task's name or file)", "see bild-bench tasks")
    if log_to is not None:
        check_tracker(log_to)
    request, points = asked_sweep(options | {"command": _command(context, options)})
    if dry_run:
        show_plan(points, *estimate(request, points, announce), json_output)
        return
    directory = run_experiment(request, points, announce=announce, track=track, observe=Front().observe)
    task_of = choose(request, points)[0]
    show(
        directory,
        json_output,
        lambda found, summary: after_sweep(
            directory, request, points, summary.points, task_of, str(found.run.data.get("data"))
        ),
    )
    log(log_to, directory)


def _command(context: typer.Context, options: dict[str, Any]) -> str:
    """The command line with what --config says spelled out, so that the record stands without the file."""
    given, words = iter(sys.argv[1:]), ["bild-bench"]
    for word in given:
        if word == "--config":
            next(given)
        elif not word.startswith("--config="):
            words.append(word)
    from_file = context.default_map or {}
    for parameter in context.command.params:
        name = str(parameter.name)
        source = context.get_parameter_source(name)
        if source is not None and source.name == "DEFAULT_MAP" and options[name] is not False:
            words += [parameter.opts[0]] if options[name] is True else [parameter.opts[0], from_file[name]]
    return shlex.join(words)
