"""`bild-bench tune`: thresholds from validation texts, figures from test texts."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from bild_bench.cli import options as o
from bild_bench.cli import sweep_options as s

_CHOICE = "Choice"

MaxDropsOption = Annotated[
    str,
    typer.Option(
        "--max-drop",
        help="Acceptable loss against vanilla on validation texts, in points; one choice per value.",
        rich_help_panel=_CHOICE,
    ),
]
ValidationDataOption = Annotated[
    str | None,
    typer.Option("--validation-data", help="Validation texts, if they are not in --data.", rich_help_panel=_CHOICE),
]
TestDataOption = Annotated[
    str | None, typer.Option("--test-data", help="Test texts, if they are not in --data.", rich_help_panel=_CHOICE)
]
ValidationSplitOption = Annotated[
    str, typer.Option("--validation-split", help="Split on which thresholds are chosen.", rich_help_panel=_CHOICE)
]
TestSplitOption = Annotated[
    str,
    typer.Option("--test-split", help="Split on which only the chosen points are decoded.", rich_help_panel=_CHOICE),
]
ValidationLimitOption = Annotated[
    int | None,
    typer.Option("--limit", help="Use a seeded sample of this many validation texts.", rich_help_panel=_CHOICE),
]
TestLimitOption = Annotated[
    int | None,
    typer.Option("--test-limit", help="Use a seeded sample of this many test texts.", rich_help_panel=_CHOICE),
]


def tune(
    task: o.TaskOption,
    mode: s.ModesOption = "bild",
    max_drop: MaxDropsOption = "0,1",
    validation_data: ValidationDataOption = None,
    test_data: TestDataOption = None,
    validation_split: ValidationSplitOption = "validation",
    test_split: TestSplitOption = "test",
    limit: ValidationLimitOption = None,
    test_limit: TestLimitOption = None,
    alpha_fb: s.AlphaFbValues = None,
    alpha_rb: s.AlphaRbValues = None,
    max_draft: s.MaxDraftValues = None,
    first: s.FirstValues = None,
    verify_tail: o.VerifyTailOption = False,
    exit_layer: s.ExitLayerValues = None,
    gamma: s.GammaValues = None,
    adaptive: o.AdaptiveOption = False,
    threshold: s.ThresholdValues = None,
    measure: s.MeasureValues = None,
    decay: o.DecayOption = False,
    min_layer: s.MinLayerValues = None,
    replace_below: s.ReplaceBelowValues = None,
    assistant_tokens: s.AssistantTokensValues = None,
    assistant_confidence: s.AssistantConfidenceValues = None,
    preset: o.PresetOption = None,
    aligned: o.AlignedOption = None,
    large: o.LargeOption = None,
    small: o.SmallOption = None,
    prefix: o.PrefixOption = None,
    data: o.DataOption = None,
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
) -> None:
    """Choose thresholds on validation texts and report them once on test texts.

    For each --max-drop: the fastest point (decoding speed-up) whose quality on
    the validation texts is at least vanilla's minus the drop; 0 is "no loss".

    By default bild tries --alpha-fb 0.3:0.9:0.1 with --alpha-rb 1,2,3,5, and every
    other method its own default.

    Both experiments are kept, in OUT/validation and OUT/test; the same command
    resumes after an interruption.

    Example: bild-bench tune --task iwslt17 --preset flan --max-drop 0,1
    """
    options = dict(locals())
    from bild_bench.asked import asked_tune
    from bild_bench.cli.console import announce, track
    from bild_bench.cli.tuned import show

    asked = asked_tune(options | {"command": shlex.join(["bild-bench", *sys.argv[1:]])})

    from bild_bench.tuning import tune as tune_points

    sides = (asked.validation, asked.test)
    tuned = tune_points(asked.request, asked.points, asked.max_drops, *sides, announce=announce, track=track)
    show(tuned, json_output)
