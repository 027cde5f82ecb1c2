"""The options that several commands share, each in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

Dtype = Literal["float32", "float16", "bfloat16", "float64"]
SessionKind = Literal["auto", "fast", "reference"]
Metric = Literal["bleu", "rougeL", "rougeLsum"]
Writer = Literal["small", "large"]
Compat = Literal["released-code"]

_MODEL, _METHOD, _MACHINE, _DATA, _OUTPUT = "Models", "Method", "Machine", "Data", "Output"

TaskOption = Annotated[
    str, typer.Option("--task", help="iwslt17, wmt14, xsum, cnn_dm, custom, or a task file (.yaml).")
]
ModeOption = Annotated[
    str, typer.Option("--mode", help="Decoding method: vanilla, small or bild.", rich_help_panel=_METHOD)
]

AlphaFbOption = Annotated[
    float | None,
    typer.Option(
        "--alpha-fb", help="Fall back when max p_S is at most this, 0 to 1. [bild: 0.5]", rich_help_panel=_METHOD
    ),
]
AlphaRbOption = Annotated[
    float | None,
    typer.Option(
        "--alpha-rb", help="Roll back when -ln p_L exceeds this, 0 to inf. [bild: 2]", rich_help_panel=_METHOD
    ),
]
NoRollbackOption = Annotated[
    bool, typer.Option("--no-rollback", help="Never roll back (alpha-rb = inf).", rich_help_panel=_METHOD)
]
MaxDraftOption = Annotated[
    int | None,
    typer.Option("--max-draft", help="Call L after this many drafts in a row. [bild: no cap]", rich_help_panel=_METHOD),
]
FirstOption = Annotated[
    Writer | None, typer.Option("--first", help="Who writes the first token. [bild: small]", rich_help_panel=_METHOD)
]
VerifyTailOption = Annotated[
    bool, typer.Option("--verify-tail", help="Let L test the last drafts before a text ends.", rich_help_panel=_METHOD)
]
CompatOption = Annotated[
    Compat | None,
    typer.Option("--compat", help="released-code: --max-draft 10 --first large.", rich_help_panel=_METHOD),
]

PresetOption = Annotated[
    str | None, typer.Option("--preset", help="embedded, paper or flan. [embedded]", rich_help_panel=_MODEL)
]
AlignedOption = Annotated[
    bool, typer.Option("--aligned/--no-aligned", help="The preset's aligned small model.", rich_help_panel=_MODEL)
]
LargeOption = Annotated[str | None, typer.Option("--large", help="Folder or hub id.", rich_help_panel=_MODEL)]
SmallOption = Annotated[str | None, typer.Option("--small", help="Folder or hub id.", rich_help_panel=_MODEL)]
PrefixOption = Annotated[
    str | None, typer.Option("--prefix", help="Put before every source text. [the preset's]", rich_help_panel=_MODEL)
]

DataOption = Annotated[
    str | None,
    typer.Option("--data", help="embedded, hub, a folder laid out like the hub's, or a file.", rich_help_panel=_DATA),
]
SplitOption = Annotated[str | None, typer.Option("--split", help="[test]", rich_help_panel=_DATA)]
LimitOption = Annotated[
    int | None, typer.Option("--limit", help="A seeded sample of so many texts.", rich_help_panel=_DATA)
]
SourceColumnOption = Annotated[
    str | None, typer.Option("--source-column", help="Dotted for nested ones.", rich_help_panel=_DATA)
]
TargetColumnOption = Annotated[
    str | None, typer.Option("--target-column", help="Dotted for nested ones.", rich_help_panel=_DATA)
]
MetricOption = Annotated[Metric | None, typer.Option("--metric", help="[the task's]", rich_help_panel=_DATA)]

DeviceOption = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.", rich_help_panel=_MACHINE)
]
DtypeOption = Annotated[Dtype, typer.Option("--dtype", rich_help_panel=_MACHINE)]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", help="CPU threads. [torch's]", rich_help_panel=_MACHINE)
]
SessionOption = Annotated[
    SessionKind,
    typer.Option("--session", help="fast: our own T5 decoder; reference: the library's.", rich_help_panel=_MACHINE),
]
SeedOption = Annotated[int, typer.Option("--seed", rich_help_panel=_MACHINE)]
WarmupOption = Annotated[
    int, typer.Option("--warmup", help="Texts decoded first and dropped.", rich_help_panel=_MACHINE)
]

OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="This experiment's directory. [a new one in results/]", rich_help_panel=_OUTPUT),
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout.", rich_help_panel=_OUTPUT)]
BaselineOption = Annotated[
    bool,
    typer.Option(
        "--baseline/--no-baseline", help="Decode every text by vanilla too, for the speed-up.", rich_help_panel=_METHOD
    ),
]
