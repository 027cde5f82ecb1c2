"""`bild-bench profile`: FLOPs, memory operations, ceilings, and whether latency follows from them."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from bild_bench.checks import folder
from bild_bench.cli import options as o
from bild_bench.settings import method_settings


def profile(
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
    exit_layer: o.ExitLayerOption = None,
    gamma: o.GammaOption = None,
    adaptive: o.AdaptiveOption = False,
    threshold: o.ThresholdOption = None,
    measure: o.MeasureOption = None,
    decay: o.DecayOption = False,
    min_layer: o.MinLayerOption = None,
    replace_below: o.ReplaceBelowOption = None,
    preset: o.PresetOption = None,
    aligned: o.AlignedOption = None,
    large: o.LargeOption = None,
    small: o.SmallOption = None,
    prefix: o.PrefixOption = None,
    data: o.DataOption = None,
    split: o.SplitOption = None,
    limit: o.LimitOption = 20,
    source_column: o.SourceColumnOption = None,
    target_column: o.TargetColumnOption = None,
    device: o.DeviceOption = "auto",
    dtype: o.DtypeOption = "float32",
    threads: o.ThreadsOption = None,
    session: o.SessionOption = "auto",
    seed: o.SeedOption = 0,
    warmup: o.WarmupOption = 2,
    repeats: Annotated[
        int,
        typer.Option(
            "--repeats", help="How many times to decode each text; the median is used.", rich_help_panel="Machine"
        ),
    ] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            parser=partial(folder, "--out"),
            metavar="PATH",
            help="Directory for profile.json and the roofline plot.",
            rich_help_panel="Output",
        ),
    ] = None,
    json_output: o.JsonOption = False,
) -> None:
    """Count FLOPs and bytes per token of the large model alone and of each method, and predict latency from them.

    Half of the texts calibrate the prediction, the other half test it. Use an idle machine.

    Example: bild-bench profile --task iwslt17 --mode bild,speculative --threads 1 --out profile
    """
    options = dict(locals())
    from bild_bench.cli.console import announce, track
    from bild_bench.grid import expand, parse_words
    from bild_bench.parquet import writing
    from bild_bench.profiling import check
    from bild_bench.profiling import profile as profiled
    from bild_bench.report.profile_table import with_rates
    from bild_bench.setup import Request

    known = {"assistant_tokens": None, "assistant_confidence": None}
    settings = method_settings(options | known)
    points = expand(parse_words("--mode", mode), {name: [value] for name, value in settings.items()})
    asked = {field.name: options[field.name] for field in fields(Request) if field.name in options}
    request = Request(**asked, command=shlex.join(["bild-bench", *sys.argv[1:]]))
    check(request, points, repeats)
    if out is not None:
        # Minutes of measuring must not end at a folder that cannot be made.
        with writing(out, "--out"):
            out.mkdir(parents=True, exist_ok=True)
    found = with_rates(profiled(request, points, repeats=repeats, announce=announce, track=track))
    if out is not None:
        _write(out, found)
        announce(f"written to {out}")
    _show(found, json_output)


def _write(out: Path, found: dict[str, Any]) -> None:
    from bild_bench.parquet import writing
    from bild_bench.report import charts
    from bild_bench.report.roofline import roofline
    from bild_bench.report.table import strict_values

    spec = roofline(found)
    with writing(out, "--out"):
        (out / "profile.json").write_text(json.dumps(strict_values(found), indent=2) + "\n", encoding="utf-8")
        (out / "roofline.svg").write_text(charts.svg(spec), encoding="utf-8")
        (out / "roofline.png").write_bytes(charts.png(spec))


def _show(found: dict[str, Any], json_output: bool) -> None:
    from bild_bench.cli.console import out, print_rows
    from bild_bench.report.profile_table import (
        OPERATION_HEADINGS,
        TIME_HEADINGS,
        operation_rows,
        remarks,
        time_rows,
    )
    from bild_bench.report.table import print_lines, strict_values

    if json_output:
        typer.echo(json.dumps(strict_values(found), indent=2))
        return
    print_rows(OPERATION_HEADINGS, operation_rows(found))
    out.print()
    print_rows(TIME_HEADINGS, time_rows(found))
    out.print()
    print_lines(out, remarks(found))
