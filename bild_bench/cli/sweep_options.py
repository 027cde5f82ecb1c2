"""The options of `sweep` that take several values where `run` takes one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from bild_bench.checks import folder

_GRID, _PLAN = "Grid: 0.3:0.9:0.1, 3:10 or 1,2,5", "Plan"

ModesOption = Annotated[str, typer.Option("--mode", help="Methods, separated by commas.", rich_help_panel=_GRID)]
AlphaFbValues = Annotated[
    str | None,
    typer.Option("--alpha-fb", help="Fallback thresholds of bild and bild-early-exit.", rich_help_panel=_GRID),
]
AlphaRbValues = Annotated[
    str | None,
    typer.Option(
        "--alpha-rb", help="Rollback thresholds of bild and bild-early-exit; inf: never.", rich_help_panel=_GRID
    ),
]
MaxDraftValues = Annotated[
    str | None,
    typer.Option("--max-draft", help="Longest runs of drafts of bild and bild-early-exit.", rich_help_panel=_GRID),
]
FirstValues = Annotated[
    str | None,
    typer.Option("--first", help="bild: which model generates the first token: small,large.", rich_help_panel=_GRID),
]
ExitLayerValues = Annotated[
    str | None,
    typer.Option(
        "--exit-layer", help="bild-early-exit: decoder layers that form the small model.", rich_help_panel=_GRID
    ),
]
GammaValues = Annotated[
    str | None, typer.Option("--gamma", help="speculative: drafts per window.", rich_help_panel=_GRID)
]
ThresholdValues = Annotated[
    str | None, typer.Option("--threshold", help="calm: confidence thresholds (lambda).", rich_help_panel=_GRID)
]
MeasureValues = Annotated[
    str | None,
    typer.Option("--measure", help="calm: confidence measures: softmax,state,classifier.", rich_help_panel=_GRID),
]
MinLayerValues = Annotated[
    str | None, typer.Option("--min-layer", help="calm: first layer at which a token may exit.", rich_help_panel=_GRID)
]
ReplaceBelowValues = Annotated[
    str | None,
    typer.Option(
        "--replace-below",
        help="oracle: large-model probability below which a token is replaced.",
        rich_help_panel=_GRID,
    ),
]
AssistantTokensValues = Annotated[
    str | None, typer.Option("--assistant-tokens", help="hf-assisted: drafts per round.", rich_help_panel=_GRID)
]
AssistantConfidenceValues = Annotated[
    str | None,
    typer.Option(
        "--assistant-confidence", help="hf-assisted: stop drafting below this confidence.", rich_help_panel=_GRID
    ),
]
SmallsOption = Annotated[
    str | None, typer.Option("--small", help="Small models, separated by commas: path/a,path/b.", rich_help_panel=_GRID)
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
        parser=partial(folder, "--config", kind="file"),
        metavar="PATH",
        help="YAML file with these options; flags override it.",
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
    typer.Option(
        "--budget", help="Time limit, such as 20m; every point then has the same texts.", rich_help_panel=_PLAN
    ),
]
PruneOption = Annotated[
    bool, typer.Option("--prune", help="Drop points that can no longer reach the Pareto front.", rich_help_panel=_PLAN)
]
ExtendOption = Annotated[
    Path | None,
    typer.Option(
        "--extend",
        parser=partial(folder, "--extend"),
        metavar="PATH",
        help="Reuse the results of an earlier sweep (its directory) where they still apply.",
        rich_help_panel=_PLAN,
    ),
]
