"""`bild-bench run`: decode a task by one method and its baseline, measure it, record it."""

from __future__ import annotations

import shlex
import sys

from bild_bench.cli import options as o


def run(
    task: o.TaskOption,
    mode: o.ModesOption = "bild",
    alpha_fb: o.AlphaFbOption = None,
    alpha_rb: o.AlphaRbOption = None,
    no_rollback: o.NoRollbackOption = False,
    no_fallback: o.NoFallbackOption = False,
    stride: o.StrideOption = None,
    max_draft: o.MaxDraftOption = None,
    first: o.FirstOption = None,
    verify_tail: o.VerifyTailOption = False,
    compat: o.CompatOption = None,
    baseline: o.BaselineOption = True,
    exit_layer: o.ExitLayerOption = None,
    gamma: o.GammaOption = None,
    adaptive: o.AdaptiveOption = False,
    threshold: o.ThresholdOption = None,
    measure: o.MeasureOption = None,
    decay: o.DecayOption = False,
    min_layer: o.MinLayerOption = None,
    replace_below: o.ReplaceBelowOption = None,
    assistant_tokens: o.AssistantTokensOption = None,
    assistant_confidence: o.AssistantConfidenceOption = None,
    sample: o.SampleOption = False,
    temperature: o.TemperatureOption = None,
    top_k: o.TopKOption = None,
    top_p: o.TopPOption = None,
    draws: o.DrawsOption = 1,
    preset: o.PresetOption = None,
    aligned: o.AlignedOption = None,
    large: o.LargeOption = None,
    small: o.SmallOption = None,
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
) -> None:
    """Decode a task with one or several methods, paired with the large model alone; record texts, counters and times.

    Ctrl-C or a crash loses no finished text: the same command resumes.

    Example: bild-bench run --task iwslt17 --alpha-fb 0.5 --alpha-rb 2
    """
    options = dict(locals())
    from bild_bench.asked import asked_run
    from bild_bench.cli.console import announce, track
    from bild_bench.cli.showing import log, show
    from bild_bench.experiment import run_experiment
    from bild_bench.trackers import check_tracker

    if log_to is not None:
        check_tracker(log_to)
    command = shlex.join(["bild-bench", *sys.argv[1:]])
    request, points = asked_run(options | {"command": command})
    directory = run_experiment(request, points, announce=announce, track=track)
    show(directory, json_output)
    log(log_to, directory)
