"""`bild-bench tune`: thresholds from validation texts, figures from test texts."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Annotated, Any

import typer

from bild_bench.cli import options as o
from bild_bench.cli import sweep_options as s

# Tried where nothing else is said, by the methods that know them.
_USUAL = {"alpha_fb": "0.3:0.9:0.1", "alpha_rb": "1,2,3,5"}

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
    from bild_bench.cli.console import announce, track
    from bild_bench.cli.tuned import show
    from bild_bench.grid import expand, parse_numbers, parse_words
    from bild_bench.held_out import Texts
    from bild_bench.setup import Request

    modes = parse_words("--mode", mode)
    points = expand(modes, _values(modes, options))
    drops = [float(drop) for drop in parse_numbers("--max-drop", max_drop, whole=False)]
    validation = Texts(data if validation_data is None else validation_data, validation_split, limit)
    test = Texts(data if test_data is None else test_data, test_split, test_limit)
    own = {"data", "limit"}
    asked = {field.name: options[field.name] for field in fields(Request) if field.name in options.keys() - own}
    request = Request(**asked, command=shlex.join(["bild-bench", *sys.argv[1:]]))

    from bild_bench.tuning import tune as tune_points

    tuned = tune_points(request, points, drops, validation, test, announce=announce, track=track)
    show(tuned, json_output)


def _values(modes: Sequence[str], options: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values to try for each setting: those given, and the usual ones of settings that some mode knows."""
    from bild_bench.cli.grid_settings import grid_values
    from bild_bench.decoding.methods import find_method

    known = {field.name for mode in modes for field in fields(find_method(mode).settings)}
    usual = {name: text for name, text in _USUAL.items() if name in known and options[name] is None}
    return grid_values({**options, **usual})
