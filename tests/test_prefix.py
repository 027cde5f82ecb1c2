"""The prefix that a checkpoint names is put before the texts, and never dropped without a word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import bild_bench
from bild_bench.models.checkpoint import Checkpoint
from bild_bench.models.prefix import read_prefix
from tests.command_line import call
from tests.made_data import jsonl

EMBEDDED = Path(bild_bench.__file__).parent / "embedded"
TRANSLATE = "translate German to English: "
# As in the configuration of google-t5/t5-small.
T5 = {
    "task_specific_params": {
        "summarization": {"early_stopping": True, "prefix": "summarize: "},
        "translation_en_to_de": {"prefix": "translate English to German: "},
        "translation_en_to_fr": {"prefix": "translate English to French: "},
    }
}
OURS = {
    "bild_bench_prefixes": [{"kind": "translation", "prefix": "de: "}, {"kind": "summarization", "prefix": "sum: "}]
}
EITHER = {"bild_bench_prefixes": [{"kind": None, "prefix": "go: "}]}
SEVERAL = "'translate English to French: ', 'translate English to German: '"


@pytest.mark.parametrize(
    ("config", "kind", "prefix", "said"),
    [
        ({}, "translation", "", None),
        (T5, "summarization", "summarize: ", "--prefix: 'summarize: ' is put before every source, as config.json of"),
        (T5, "translation", "", f"warning: --prefix: config.json of --large names several for translation ({SEVERAL})"),
        (OURS, "translation", "de: ", "--prefix: 'de: ' is put before every source"),
        (OURS, "summarization", "sum: ", "--prefix: 'sum: ' is put before every source"),
        (EITHER, "summarization", "go: ", "--prefix: 'go: ' is put before every source"),
        ({"bild_bench_prefixes": [{"kind": None, "prefix": ""}]}, "translation", "", None),
        ({"bild_bench_prefixes": "sum: ", "task_specific_params": [1]}, "summarization", "", None),
        ({"bild_bench_prefixes": [3, {"kind": None, "prefix": 4}]}, "summarization", "", None),
    ],
)
def test_what_a_configuration_says(
    config: dict[str, Any], kind: str, prefix: str, said: str | None, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    checkpoint = Checkpoint("made", tmp_path, tmp_path, None, None, "0" * 16)
    lines: list[str] = []
    assert read_prefix(checkpoint, "--large", kind, lines.append) == prefix
    assert [line[: len(str(said))] for line in lines] == ([] if said is None else [said])


@pytest.mark.parametrize(("given", "used"), [((), TRANSLATE), (("--prefix", ""), ""), (("--prefix", "x: "), "x: ")])
def test_the_embedded_pair_by_its_folders(given: tuple[str, ...], used: str, tmp_path: Path) -> None:
    texts = jsonl(tmp_path / "texts.jsonl", [{"source": "Mein Hund mag keine Katzen.", "target": "x"}])
    pair = ("--large", EMBEDDED / "large", "--small", EMBEDDED / "small")
    out = tmp_path / "out"
    ended = call("run", "--task", "custom", "--data", texts, *pair, *given, "--warmup", "0", "--out", out)
    assert ended.code == 0
    said = f"--prefix: {TRANSLATE!r} is put before every source, as config.json of --large says"
    assert (said in ended.err) == (not given)
    recorded = json.loads(pd.read_parquet(out / "run.parquet").models[0])
    assert recorded["prefix"] == used
