"""`bild-bench generate`: decode one text and show who wrote which token."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bild_bench.cli import options as o
from bild_bench.cli.settings import method_settings


def generate(
    text: Annotated[str, typer.Argument(help="The source text.")],
    task: Annotated[str, typer.Option("--task", help="Whose prefix, limits and pair.")] = "iwslt17",
    mode: o.ModeOption = "bild",
    alpha_fb: o.AlphaFbOption = None,
    alpha_rb: o.AlphaRbOption = None,
    no_rollback: o.NoRollbackOption = False,
    max_draft: o.MaxDraftOption = None,
    first: o.FirstOption = None,
    verify_tail: o.VerifyTailOption = False,
    compat: o.CompatOption = None,
    preset: o.PresetOption = None,
    aligned: o.AlignedOption = False,
    large: o.LargeOption = None,
    small: o.SmallOption = None,
    prefix: o.PrefixOption = None,
    device: o.DeviceOption = "auto",
    dtype: o.DtypeOption = "float32",
    session: o.SessionOption = "auto",
    json_output: o.JsonOption = False,
) -> None:
    """Decode one text: tokens of the small model, of the large one, and those rolled back, each marked.

    Example: bild-bench generate "Zwei Hunde laufen über eine Wiese."
    """
    settings = method_settings(
        alpha_fb=alpha_fb,
        alpha_rb=alpha_rb,
        no_rollback=no_rollback,
        max_draft=max_draft,
        first=first,
        verify_tail=verify_tail,
        compat=compat,
    )
    from bild_bench import api
    from bild_bench.cli.console import announce, out
    from bild_bench.plan import make_point
    from bild_bench.report.table import strict_values
    from bild_bench.report.trace import coloured, counted

    point = make_point(mode, settings)  # a wrong setting is told before anything is loaded
    pair = api.load_pair(
        task,
        preset=preset,
        aligned=aligned,
        large=large,
        small=small,
        prefix=prefix,
        device=device,
        dtype=dtype,
        session=session,
        roles=point.method.uses,
        announce=announce,
    )
    generated = api.generate(pair, text, mode, task=task, **settings)
    if json_output:
        typer.echo(json.dumps(strict_values(generated.as_dict()), indent=2, ensure_ascii=False))
        return
    out.print(coloured(generated.pieces, plain=out.color_system is None), soft_wrap=True)
    announce(counted(generated.counters))
