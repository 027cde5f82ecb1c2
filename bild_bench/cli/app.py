"""The commands by name; each lives in a file of its own and imports what is heavy only when it runs."""

from __future__ import annotations

from typing import Annotated

import typer

from bild_bench import __version__
from bild_bench.cli.align import align
from bild_bench.cli.compare import compare
from bild_bench.cli.doctor import doctor
from bild_bench.cli.generate import generate
from bild_bench.cli.past import list_past
from bild_bench.cli.presets import presets
from bild_bench.cli.profile import profile
from bild_bench.cli.report import report
from bild_bench.cli.run import run
from bild_bench.cli.sweep import sweep
from bild_bench.cli.tasks import tasks
from bild_bench.cli.train import train
from bild_bench.cli.tune import tune

app = typer.Typer(
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Measure Big/Little decoding: quality against latency, reproducibly.",
    epilog="With any command: --quiet prints results and errors only, --debug the traceback of an error.",
)
app.command("run")(run)
app.command("sweep")(sweep)
app.command("tune")(tune)
app.command("report")(report)
app.command("compare")(compare)
app.command("list")(list_past)
app.command("profile")(profile)
app.command("train")(train)
app.command("align")(align)
app.command("generate")(generate)
app.command("tasks")(tasks)
app.command("presets")(presets)
app.command("doctor")(doctor)


def _version(show: bool) -> None:
    if show:
        typer.echo(f"bild-bench {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Measure Big/Little decoding: quality against latency, reproducibly."""
