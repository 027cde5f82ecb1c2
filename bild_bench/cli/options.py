"""The options that several commands share, each in one place."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from bild_bench.checks import folder

Dtype = Literal["float32", "float16", "bfloat16", "float64"]
SessionKind = Literal["auto", "native", "graphs", "fast", "reference"]
Metric = Literal["bleu", "rougeL", "rougeLsum"]
Writer = Literal["small", "large"]
Compat = Literal["released-code"]

Measure = Literal["softmax", "state", "classifier"]

_MODEL, _METHOD, _MACHINE, _DATA, _OUTPUT = "Models", "Method", "Machine", "Data", "Output"
_RIVALS, _SAMPLING = "Other methods", "Sampling"

TaskOption = Annotated[
    str, typer.Option("--task", help="iwslt17, wmt14, xsum, cnn_dm, custom, or a task file (.yaml).")
]
ModesOption = Annotated[
    str,
    typer.Option(
        "--mode",
        help="vanilla, small, bild, speculative, calm, bild-early-exit, oracle, hf-greedy, hf-assisted; several: a,b.",
        rich_help_panel=_METHOD,
    ),
]
ModeOption = Annotated[
    str,
    typer.Option(
        "--mode",
        help="vanilla, small, bild, speculative, calm, bild-early-exit, oracle, hf-greedy or hf-assisted.",
        rich_help_panel=_METHOD,
    ),
]

AlphaFbOption = Annotated[
    float | None,
    typer.Option(
        "--alpha-fb", help="Fall back when max p_S is at most this, 0 to 1. \\[bild: 0.5]", rich_help_panel=_METHOD
    ),
]
AlphaRbOption = Annotated[
    float | None,
    typer.Option(
        "--alpha-rb", help="Roll back when -ln p_L exceeds this, 0 to inf. \\[bild: 2]", rich_help_panel=_METHOD
    ),
]
NoRollbackOption = Annotated[
    bool, typer.Option("--no-rollback", help="Never roll back (alpha-rb = inf).", rich_help_panel=_METHOD)
]
MaxDraftOption = Annotated[
    int | None,
    typer.Option(
        "--max-draft", help="Call L after this many drafts in a row. \\[bild: no cap]", rich_help_panel=_METHOD
    ),
]
FirstOption = Annotated[
    Writer | None, typer.Option("--first", help="Who writes the first token. \\[bild: small]", rich_help_panel=_METHOD)
]
VerifyTailOption = Annotated[
    bool, typer.Option("--verify-tail", help="Let L test the last drafts before a text ends.", rich_help_panel=_METHOD)
]
CompatOption = Annotated[
    Compat | None,
    typer.Option("--compat", help="released-code: --max-draft 10 --first large.", rich_help_panel=_METHOD),
]

PresetOption = Annotated[
    str | None, typer.Option("--preset", help="embedded, paper or flan. \\[embedded]", rich_help_panel=_MODEL)
]
AlignedOption = Annotated[
    bool, typer.Option("--aligned/--no-aligned", help="The preset's aligned small model.", rich_help_panel=_MODEL)
]
LargeOption = Annotated[str | None, typer.Option("--large", help="Folder or hub id.", rich_help_panel=_MODEL)]
SmallOption = Annotated[str | None, typer.Option("--small", help="Folder or hub id.", rich_help_panel=_MODEL)]
PrefixOption = Annotated[
    str | None, typer.Option("--prefix", help="Put before every source text. \\[the preset's]", rich_help_panel=_MODEL)
]

DataOption = Annotated[
    str | None,
    typer.Option("--data", help="embedded, hub, a folder laid out like the hub's, or a file.", rich_help_panel=_DATA),
]
SplitOption = Annotated[str | None, typer.Option("--split", help="\\[test]", rich_help_panel=_DATA)]
LimitOption = Annotated[
    int | None, typer.Option("--limit", help="A seeded sample of so many texts.", rich_help_panel=_DATA)
]
SourceColumnOption = Annotated[
    str | None, typer.Option("--source-column", help="Dotted for nested ones.", rich_help_panel=_DATA)
]
TargetColumnOption = Annotated[
    str | None, typer.Option("--target-column", help="Dotted for nested ones.", rich_help_panel=_DATA)
]
MetricOption = Annotated[Metric | None, typer.Option("--metric", help="\\[the task's]", rich_help_panel=_DATA)]

DeviceOption = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.", rich_help_panel=_MACHINE)
]
DtypeOption = Annotated[Dtype, typer.Option("--dtype", rich_help_panel=_MACHINE)]
ThreadsOption = Annotated[
    int | None, typer.Option("--threads", help="CPU threads. \\[torch's]", rich_help_panel=_MACHINE)
]
SessionOption = Annotated[
    SessionKind,
    typer.Option(
        "--session",
        help="Our own T5, native (compiled), graphs (CUDA) or fast (PyTorch), or reference: the library's.",
        rich_help_panel=_MACHINE,
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", rich_help_panel=_MACHINE)]
WarmupOption = Annotated[
    int, typer.Option("--warmup", help="Texts decoded first and dropped.", rich_help_panel=_MACHINE)
]

OutOption = Annotated[
    Path | None,
    typer.Option(
        "--out",
        # Not the library's own reading, which takes an empty text for the current directory.
        parser=partial(folder, "--out"),
        metavar="PATH",
        help="This experiment's directory. \\[a new one in results/]",
        rich_help_panel=_OUTPUT,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON on stdout.", rich_help_panel=_OUTPUT)]
BaselineOption = Annotated[
    bool,
    typer.Option(
        "--baseline/--no-baseline", help="Decode every text by vanilla too, for the speed-up.", rich_help_panel=_METHOD
    ),
]

NoFallbackOption = Annotated[
    bool,
    typer.Option("--no-fallback", help="Never fall back; hand over every --stride drafts.", rich_help_panel=_METHOD),
]
StrideOption = Annotated[
    int | None, typer.Option("--stride", help="Drafts between hand-overs, with --no-fallback.", rich_help_panel=_METHOD)
]
ExitLayerOption = Annotated[
    int | None,
    typer.Option("--exit-layer", help="bild-early-exit: layers of the small model. \\[1]", rich_help_panel=_RIVALS),
]
GammaOption = Annotated[
    int | None, typer.Option("--gamma", help="speculative: drafts in a window. \\[5]", rich_help_panel=_RIVALS)
]
AdaptiveOption = Annotated[
    bool, typer.Option("--adaptive", help="speculative: window +2 if all are kept, else -1.", rich_help_panel=_RIVALS)
]
ThresholdOption = Annotated[
    float | None,
    typer.Option("--threshold", help="calm: lambda; 1 never exits, 0 always. \\[0.9]", rich_help_panel=_RIVALS),
]
MeasureOption = Annotated[
    Measure | None, typer.Option("--measure", help="calm: confidence. \\[softmax]", rich_help_panel=_RIVALS)
]
DecayOption = Annotated[bool, typer.Option("--decay", help="calm: a decaying threshold.", rich_help_panel=_RIVALS)]
MinLayerOption = Annotated[
    int | None, typer.Option("--min-layer", help="calm: first layer that may be left.", rich_help_panel=_RIVALS)
]
ReplaceBelowOption = Annotated[
    float | None,
    typer.Option(
        "--replace-below", help="oracle: replace S's token where p_L is below. \\[0.1]", rich_help_panel=_RIVALS
    ),
]
AssistantTokensOption = Annotated[
    int | None, typer.Option("--assistant-tokens", help="hf-assisted: drafts a round. \\[20]", rich_help_panel=_RIVALS)
]
AssistantConfidenceOption = Annotated[
    float | None,
    typer.Option("--assistant-confidence", help="hf-assisted: stop drafting below. \\[0.4]", rich_help_panel=_RIVALS),
]

SampleOption = Annotated[
    bool,
    typer.Option(
        "--sample", help="Draw tokens, the baseline's too; implied by the next three.", rich_help_panel=_SAMPLING
    ),
]
TemperatureOption = Annotated[float | None, typer.Option("--temperature", help="\\[1]", rich_help_panel=_SAMPLING)]
TopKOption = Annotated[int | None, typer.Option("--top-k", help="\\[all]", rich_help_panel=_SAMPLING)]
TopPOption = Annotated[
    float | None, typer.Option("--top-p", help="Nucleus; the paper's is 0.8. \\[1]", rich_help_panel=_SAMPLING)
]
DrawsOption = Annotated[int, typer.Option("--draws", help="Decode each text so often.", rich_help_panel=_SAMPLING)]
