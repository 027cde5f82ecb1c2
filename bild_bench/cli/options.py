"""The options that several commands share, each in one place."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from bild_bench.checks import folder
from bild_bench.errors import UsageError

Dtype = Literal["float32", "float16", "bfloat16", "float64"]
SessionKind = Literal["auto", "native", "graphs", "fast", "reference"]
Metric = Literal["bleu", "rougeL", "rougeLsum"]
Writer = Literal["small", "large"]
Compat = Literal["released-code"]

Tracker = Literal["wandb", "mlflow", "trackio"]

Measure = Literal["softmax", "state", "classifier"]

_MODEL, _METHOD, _MACHINE, _DATA, _OUTPUT = "Models", "Method", "Machine", "Data", "Output"
_RIVALS, _SAMPLING = "Other methods", "Sampling"

TaskOption = Annotated[
    str, typer.Option("--task", help="iwslt17, wmt14, xsum, cnn_dm, custom, or the path of a task file (.yaml).")
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
        "--alpha-fb",
        help="Fall back when the small model's top probability is at most this, 0 to 1. \\[bild: 0.5]",
        rich_help_panel=_METHOD,
    ),
]
AlphaRbOption = Annotated[
    float | None,
    typer.Option(
        "--alpha-rb",
        help="Roll back when -ln p of a draft under the large model exceeds this, 0 to inf. \\[bild: 2]",
        rich_help_panel=_METHOD,
    ),
]
NoRollbackOption = Annotated[
    bool, typer.Option("--no-rollback", help="Never roll back; the same as --alpha-rb inf.", rich_help_panel=_METHOD)
]
MaxDraftOption = Annotated[
    int | None,
    typer.Option(
        "--max-draft",
        help="Call the large model after this many drafts in a row. \\[bild: no cap]",
        rich_help_panel=_METHOD,
    ),
]
FirstOption = Annotated[
    Writer | None,
    typer.Option("--first", help="Which model generates the first token. \\[bild: small]", rich_help_panel=_METHOD),
]
VerifyTailOption = Annotated[
    bool,
    typer.Option(
        "--verify-tail", help="Let the large model check the last drafts before a text ends.", rich_help_panel=_METHOD
    ),
]
CompatOption = Annotated[
    Compat | None,
    typer.Option(
        "--compat",
        help="released-code: as in the paper's published code (--max-draft 10 --first large).",
        rich_help_panel=_METHOD,
    ),
]

PresetOption = Annotated[
    str | None, typer.Option("--preset", help="embedded, paper or flan. \\[embedded]", rich_help_panel=_MODEL)
]
AlignedOption = Annotated[
    bool | None,
    typer.Option(
        "--aligned/--no-aligned",
        help="Use the preset's aligned small model. \\[embedded: yes]",
        rich_help_panel=_MODEL,
    ),
]
LargeOption = Annotated[
    str | None, typer.Option("--large", help="Large model: folder or hub id.", rich_help_panel=_MODEL)
]
SmallOption = Annotated[
    str | None, typer.Option("--small", help="Small model: folder or hub id.", rich_help_panel=_MODEL)
]
PrefixOption = Annotated[
    str | None,
    typer.Option(
        "--prefix", help="Text put before every source. \\[the preset's or checkpoint's]", rich_help_panel=_MODEL
    ),
]

DataOption = Annotated[
    str | None,
    typer.Option("--data", help="embedded, hub, a folder laid out like the hub's, or a file.", rich_help_panel=_DATA),
]
SplitOption = Annotated[str | None, typer.Option("--split", help="Split to decode. \\[test]", rich_help_panel=_DATA)]
LimitOption = Annotated[
    int | None, typer.Option("--limit", help="Use a seeded sample of this many texts.", rich_help_panel=_DATA)
]
SourceColumnOption = Annotated[
    str | None,
    typer.Option(
        "--source-column", help="Column of the source text; nested: a.b. \\[the task's]", rich_help_panel=_DATA
    ),
]
TargetColumnOption = Annotated[
    str | None,
    typer.Option("--target-column", help="Column of the reference; nested: a.b. \\[the task's]", rich_help_panel=_DATA),
]
MetricOption = Annotated[
    Metric | None, typer.Option("--metric", help="Quality metric. \\[the task's]", rich_help_panel=_DATA)
]
BleuTokenizeOption = Annotated[
    str | None,
    typer.Option(
        "--bleu-tokenize",
        help="BLEU's tokenizer: 13a, intl, zh, ja-mecab, ko-mecab, flores200 or char. \\[13a]",
        rich_help_panel=_DATA,
    ),
]

DeviceOption = Annotated[
    str, typer.Option("--device", help="auto, cpu, cuda, cuda:N or mps.", rich_help_panel=_MACHINE)
]
DtypeOption = Annotated[Dtype, typer.Option("--dtype", help="Precision of both models.", rich_help_panel=_MACHINE)]


def _threads(text: str | int) -> int | None:
    """None for auto."""
    if text == "auto":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError("--threads", text, "must be auto or a whole number", "leave it out for auto") from None


ThreadsOption = Annotated[
    int | None,
    typer.Option(
        "--threads",
        parser=_threads,
        metavar="<auto|int>",
        help="CPU threads; auto takes the count with which the models are fastest. \\[auto]",
        rich_help_panel=_MACHINE,
    ),
]
SessionOption = Annotated[
    SessionKind,
    typer.Option(
        "--session",
        help="Our own T5: native (compiled), graphs (CUDA) or fast (PyTorch); reference: transformers' modules.",
        rich_help_panel=_MACHINE,
    ),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of everything random.", rich_help_panel=_MACHINE)]
WarmupOption = Annotated[int, typer.Option("--warmup", help="Untimed warm-up texts.", rich_help_panel=_MACHINE)]

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
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.", rich_help_panel=_OUTPUT)]
LogToOption = Annotated[
    Tracker | None,
    typer.Option(
        "--log-to",
        help="Log summary and HTML page to wandb, mlflow or trackio; wandb offline unless WANDB_MODE is set.",
        rich_help_panel=_OUTPUT,
    ),
]
BaselineOption = Annotated[
    bool,
    typer.Option(
        "--baseline/--no-baseline",
        help="Also decode every text with the large model alone, for paired speed-ups.",
        rich_help_panel=_METHOD,
    ),
]

NoFallbackOption = Annotated[
    bool,
    typer.Option(
        "--no-fallback",
        help="Never fall back; call the large model every --stride drafts (ablation).",
        rich_help_panel=_METHOD,
    ),
]
StrideOption = Annotated[
    int | None,
    typer.Option(
        "--stride", help="With --no-fallback: drafts between two calls of the large model.", rich_help_panel=_METHOD
    ),
]
ExitLayerOption = Annotated[
    int | None,
    typer.Option(
        "--exit-layer", help="bild-early-exit: decoder layers that form the small model. \\[1]", rich_help_panel=_RIVALS
    ),
]
GammaOption = Annotated[
    int | None, typer.Option("--gamma", help="speculative: drafts per window. \\[5]", rich_help_panel=_RIVALS)
]
AdaptiveOption = Annotated[
    bool,
    typer.Option(
        "--adaptive",
        help="speculative: window grows by 2 if all drafts are accepted, else shrinks by 1.",
        rich_help_panel=_RIVALS,
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        help="calm: confidence threshold (lambda); 1 never exits early, 0 always. \\[0.9]",
        rich_help_panel=_RIVALS,
    ),
]
MeasureOption = Annotated[
    Measure | None, typer.Option("--measure", help="calm: confidence measure. \\[softmax]", rich_help_panel=_RIVALS)
]
DecayOption = Annotated[
    bool, typer.Option("--decay", help="calm: let the threshold decay over the text.", rich_help_panel=_RIVALS)
]
MinLayerOption = Annotated[
    int | None,
    typer.Option("--min-layer", help="calm: first layer at which a token may exit.", rich_help_panel=_RIVALS),
]
ReplaceBelowOption = Annotated[
    float | None,
    typer.Option(
        "--replace-below",
        help="oracle: replace a small-model token if its large-model probability is below this. \\[0.1]",
        rich_help_panel=_RIVALS,
    ),
]
AssistantTokensOption = Annotated[
    int | None,
    typer.Option("--assistant-tokens", help="hf-assisted: drafts per round. \\[20]", rich_help_panel=_RIVALS),
]
AssistantConfidenceOption = Annotated[
    float | None,
    typer.Option(
        "--assistant-confidence",
        help="hf-assisted: stop drafting below this confidence. \\[0.4]",
        rich_help_panel=_RIVALS,
    ),
]

SampleOption = Annotated[
    bool,
    typer.Option(
        "--sample",
        help="Sample tokens, in the baseline too; implied by the next three options.",
        rich_help_panel=_SAMPLING,
    ),
]
TemperatureOption = Annotated[
    float | None, typer.Option("--temperature", help="Sampling temperature. \\[1]", rich_help_panel=_SAMPLING)
]
TopKOption = Annotated[
    int | None,
    typer.Option("--top-k", help="Sample from the k most probable tokens. \\[all]", rich_help_panel=_SAMPLING),
]
TopPOption = Annotated[
    float | None, typer.Option("--top-p", help="Nucleus sampling; the paper uses 0.8. \\[1]", rich_help_panel=_SAMPLING)
]
DrawsOption = Annotated[
    int, typer.Option("--draws", help="How many times to decode each text.", rich_help_panel=_SAMPLING)
]
