"""The options of `sweep` that take several values where `run` takes one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

_GRID, _PLAN = "Grid: 0.3:0.9:0.1, 3:10 or 1,2,5", "Plan"

ModesOption = Annotated[
    str, typer.Option("--mode", help="Methods, such as bild,speculative,calm.", rich_help_panel=_GRID)
]
AlphaFbValues = Annotated[str | None, typer.Option("--alpha-fb", help="bild, bild-early-exit.", rich_help_panel=_GRID)]
AlphaRbValues = Annotated[
    str | None, typer.Option("--alpha-rb", help="bild, bild-early-exit; inf: never.", rich_help_panel=_GRID)
]
MaxDraftValues = Annotated[
    str | None, typer.Option("--max-draft", help="bild, bild-early-exit.", rich_help_panel=_GRID)
]
FirstValues = Annotated[str | None, typer.Option("--first", help="small,large.", rich_help_panel=_GRID)]
ExitLayerValues = Annotated[str | None, typer.Option("--exit-layer", help="bild-early-exit.", rich_help_panel=_GRID)]
GammaValues = Annotated[str | None, typer.Option("--gamma", help="speculative.", rich_help_panel=_GRID)]
ThresholdValues = Annotated[str | None, typer.Option("--threshold", help="calm.", rich_help_panel=_GRID)]
MeasureValues = Annotated[
    str | None, typer.Option("--measure", help="calm: softmax,state,classifier.", rich_help_panel=_GRID)
]
MinLayerValues = Annotated[str | None, typer.Option("--min-layer", help="calm.", rich_help_panel=_GRID)]
ReplaceBelowValues = Annotated[str | None, typer.Option("--replace-below", help="oracle.", rich_help_panel=_GRID)]
AssistantTokensValues = Annotated[
    str | None, typer.Option("--assistant-tokens", help="hf-assisted.", rich_help_panel=_GRID)
]
AssistantConfidenceValues = Annotated[
    str | None, typer.Option("--assistant-confidence", help="hf-assisted.", rich_help_panel=_GRID)
]
SmallsOption = Annotated[
    str | None, typer.Option("--small", help="Small models, such as path/a,path/b.", rich_help_panel=_GRID)
]


def _take_defaults(context: typer.Context, path: Path | None) -> Path | None:
    """What the file says becomes the command's defaults: read as flags are, and flags win over it."""
    if path is not None:
        from bild_bench.experiment_file import read_experiment_file

        names = {option[2:]: parameter.name for parameter in context.command.params for option in parameter.opts}
        asked = read_experiment_file(path, names.keys() - {"config", "dry-run"})
        context.default_map = {str(names[name]): text for name, text in asked.items()}
    return path


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A YAML file of these options; flags win over it.",
        is_eager=True,
        callback=_take_defaults,
        rich_help_panel=_PLAN,
    ),
]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Print the points and a time estimate, and stop.", rich_help_panel=_PLAN)
]
BudgetOption = Annotated[
    str | None,
    typer.Option("--budget", help="Stop in time with balanced data, such as 20m.", rich_help_panel=_PLAN),
]
PruneOption = Annotated[
    bool, typer.Option("--prune", help="Drop points that cannot reach the front any more.", rich_help_panel=_PLAN)
]
ExtendOption = Annotated[
    Path | None,
    typer.Option("--extend", help="Take over what may be kept of an earlier sweep's directory.", rich_help_panel=_PLAN),
]
