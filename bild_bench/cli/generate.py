"""`bild-bench generate`: decode one text and show which model generated each token."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bild_bench.cli import options as o
from bild_bench.errors import UsageError
from bild_bench.settings import method_settings, sampling_of


def generate(
    text: Annotated[str, typer.Argument(help="The source text; - reads it from stdin.")],
    task: Annotated[str, typer.Option("--task", help="Task that sets prefix, limits and pair.")] = "iwslt17",
    mode: o.ModeOption = "bild",
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
    assistant_tokens: o.AssistantTokensOption = None,
    assistant_confidence: o.AssistantConfidenceOption = None,
    sample: o.SampleOption = False,
    temperature: o.TemperatureOption = None,
    top_k: o.TopKOption = None,
    top_p: o.TopPOption = None,
    preset: o.PresetOption = None,
    aligned: o.AlignedOption = None,
    large: o.LargeOption = None,
    small: o.SmallOption = None,
    prefix: o.PrefixOption = None,
    seed: o.SeedOption = 0,
    device: o.DeviceOption = "auto",
    dtype: o.DtypeOption = "float32",
    threads: o.ThreadsOption = None,
    session: o.SessionOption = "auto",
    json_output: o.JsonOption = False,
) -> None:
    """Decode one text and mark which model generated each token, and which tokens were rolled back.

    Example: bild-bench generate "Ein einfaches Werkzeug zum Verwalten von Bildern."
    """
    options = dict(locals())
    text = _from_stdin() if text == "-" else text
    from bild_bench import api
    from bild_bench.cli.console import announce, out
    from bild_bench.plan import check_sampling, library_keys_of, make_point
    from bild_bench.report.table import strict_values
    from bild_bench.report.trace import coloured, counted

    settings, sampling = method_settings(options), sampling_of(options)
    point = make_point(mode, settings)  # a wrong setting is told before anything is loaded
    if sampling is not None:
        check_sampling([point])
    pair = api.load_pair(
        task,
        preset=preset,
        aligned=aligned,
        large=large,
        small=small,
        prefix=prefix,
        device=device,
        dtype=dtype,
        threads=threads,
        session=session,
        roles=point.method.uses,
        library_roles=library_keys_of([point]),
        announce=announce,
    )
    generated = api.generate(pair, text, mode, task=task, sampling=sampling, seed=seed, **settings)
    for line in generated.remarks:
        announce(line)
    if json_output:
        typer.echo(json.dumps(strict_values(generated.as_dict()), indent=2, ensure_ascii=False))
        return
    if generated.pieces:
        out.print(coloured(generated.pieces, plain=out.color_system is None), soft_wrap=True)
    else:
        out.print(generated.text, markup=False, highlight=False, soft_wrap=True)
    announce(counted(generated.counters))


def _from_stdin() -> str:
    """What stdin holds, as one text; the line break at its end is not part of it.

    Raises:
        UsageError: it holds nothing, or bytes that are not UTF-8.
    """
    import sys

    try:
        text = sys.stdin.read().rstrip("\n") if sys.stdin is not None else ""
    except UnicodeDecodeError:
        raise UsageError("TEXT", "-", "stdin is not UTF-8 text", "convert it first") from None
    if not text.strip():
        raise UsageError("TEXT", "-", "stdin holds no text", "pipe a text into it, or give one as an argument")
    return text
