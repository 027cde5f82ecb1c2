"""What `tune` found, as one table for people and as JSON for programs."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer

from bild_bench.cli.console import announce, announce_next, out

if TYPE_CHECKING:
    from rich.table import Table

    from bild_bench.measure.intervals import Estimate
    from bild_bench.report.summary import PointSummary
    from bild_bench.tuning import Choice, Tuned


def show(tuned: Tuned, json_output: bool) -> None:
    """Print what was chosen and how it did, and say where both experiments are."""
    from bild_bench.report.table import print_lines

    if json_output:
        # Flushed at once: the command-line library ends quietly (code 1) where nobody reads any more.
        typer.echo(json.dumps(as_json(tuned), indent=2, allow_nan=False))
    else:
        out.print(table(tuned))
        out.print()
        print_lines(out, remarks(tuned))
    announce(f"written to {tuned.directory}/validation and {tuned.directory}/test")
    announce_next(tuned.following)


def row_name(max_drop: float) -> str:
    """What was asked for, and on which texts: what is no loss there may be one on the test texts."""
    if max_drop == 0:
        return "no loss on validation"
    return f"within {max_drop:g} {'point' if max_drop == 1 else 'points'} on validation"


def table(tuned: Tuned) -> Table:
    """A column for vanilla and for each choice; the figures on either texts below each other, to fit 80 columns."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from bild_bench.report.paper import metric_name

    metric = metric_name(tuned.test.experiment.run.metric)
    choices = tuned.choices
    before, after = tuned.validation.baseline, tuned.test.baseline
    lines = [
        ("thresholds", "", [choice.point.label for choice in choices]),
        (f"chosen on {tuned.validation.experiment.run.split}", "", [""] * len(choices)),
        (f"  {metric}", _quality(before), [_quality(choice.on_validation) for choice in choices]),
        ("  decoding speed-up", "", [_times(choice.on_validation.speedup_decoding) for choice in choices]),
        (f"reported on {tuned.test.experiment.run.split}", "", [""] * len(choices)),
        (f"  {metric}", _quality(after), [_quality(choice.on_test) for choice in choices]),
        ("  against vanilla", "", [_difference(choice) for choice in choices]),
        ("  decoding speed-up", "", [_times(choice.on_test.speedup_decoding) for choice in choices]),
        ("  total speed-up", "", [_times(choice.on_test.speedup_total) for choice in choices]),
    ]
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    drawn.add_column("", no_wrap=True)
    for name in ("vanilla", *(row_name(choice.max_drop) for choice in choices)):
        drawn.add_column(name, justify="right", overflow="fold")
    for label, vanilla, cells in lines:
        # Text and not str: rich takes square brackets in a str for markup.
        drawn.add_row(*(Text(cell) for cell in (label, vanilla, *cells)))
    return drawn


def remarks(tuned: Tuned) -> list[str]:
    """What must be said below the table, one line each: what was measured, what did not hold, and the warnings."""
    from bild_bench.report.table import caption_of

    lines = [
        f"chosen on {caption_of(tuned.validation.summary, tuned.validation.experiment.run).splitlines()[0]}",
        f"reported on {caption_of(tuned.test.summary, tuned.test.experiment.run)}",
        "against vanilla: quality on the same texts, [95 % interval of the paired bootstrap over texts]",
        "only the test figures are unbiased: a point looks better on the texts that it was chosen on",
    ]
    missed = "vanilla: no point of the grid comes that close to it on the validation texts"
    lines += [f"{row_name(drop)}: {missed}" for drop in tuned.missed]
    for choice in tuned.choices:
        speed = choice.on_test.speedup_decoding
        if choice.held is False and choice.difference is not None:
            lines.append(
                f"{row_name(choice.max_drop)}: {-choice.difference.difference:.2f} points below vanilla on the test"
                " texts, more than was allowed on the validation texts"
            )
        if choice.slower is not None:
            lines.append(
                f"{row_name(choice.max_drop)}: vanilla: the fastest point of the grid within it, {choice.slower.point},"
                f" is slower: {_times(choice.slower.speedup_decoding)} on the validation texts"
            )
        elif speed is not None and speed.value < 1:
            lines.append(f"{row_name(choice.max_drop)}: slower than vanilla on the test texts: take vanilla")
    return lines + [f"warning: {warning}" for warning in tuned.warnings]


def as_json(tuned: Tuned) -> dict[str, Any]:
    """Strict JSON values: a row for each drop (its choice null where no point qualified), then both experiments."""
    from bild_bench.report.table import strict_values, to_json

    rows = [_row(choice) for choice in tuned.choices]
    rows += [{"row": row_name(drop), "max_drop": drop, "point": None} for drop in tuned.missed]
    sides = {"validation": tuned.validation, "test": tuned.test}
    experiments = {
        name: to_json(side.summary, side.experiment.run) | {"directory": str(side.experiment.directory)}
        for name, side in sides.items()
    }
    return {
        "directory": str(tuned.directory),
        "rows": strict_values(rows),
        "vanilla": {name: strict_values(asdict(side.baseline)) for name, side in sides.items()},
        "shared_texts": tuned.shared_texts,
        "warnings": list(tuned.warnings),
        "next": [asdict(following) for following in tuned.following],
        **experiments,
    }


def _row(choice: Choice) -> dict[str, Any]:
    return {
        "row": row_name(choice.max_drop),
        "max_drop": choice.max_drop,
        "point": choice.point.label,
        "method": choice.point.method.name,
        "settings": asdict(choice.point.settings),
        "chosen_on": asdict(choice.on_validation),
        "reported_on": asdict(choice.on_test),
        "difference": None if choice.difference is None else asdict(choice.difference),
        "held": choice.held,
        "slower": None if choice.slower is None else choice.slower.point,
    }


def _quality(point: PointSummary) -> str:
    return "-" if point.quality is None else f"{point.quality.value:.2f}"


def _difference(choice: Choice) -> str:
    found = choice.difference
    if found is None:
        return "-"
    # NaN, the interval of a single text, is not below anything.
    interval = f" [{found.low:+.2f}, {found.high:+.2f}]" if found.low <= found.high else ""
    return f"{found.difference:+.2f}{interval}"


def _times(speed: Estimate | None) -> str:
    if speed is None:
        return "-"
    interval = f" [{speed.low:.2f}, {speed.high:.2f}]" if speed.low <= speed.high else ""
    return f"{speed.value:.2f}x{interval}"
