"""The tables of docs/ARCHITECTURES.md: every model of `tests/architectures.py` decoded, every folder of
`tests/made_folders.py` opened.

    python recipes/architectures_table.py --write   # put them into docs/ARCHITECTURES.md

The outcome is what the program does, not what anybody expected; `tests/test_architectures.py` holds the page to it.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
import transformers

from bild_bench.errors import DataError
from bild_bench.models.choice import ModelChoice, PairChoice
from bild_bench.models.pair import Pair, load_pair
from tests.architectures import ARCHITECTURES, Architecture
from tests.checkpoints import VOCABULARY, WIDTH, save_t5
from tests.forward import library_logits
from tests.forward import load as load_library
from tests.made_folders import FOLDERS, Folder
from tests.method_pairs import decode

PAGE = Path(__file__).resolve().parents[1] / "docs" / "ARCHITECTURES.md"
MODELS, FILES = "<!-- models: recipes/architectures_table.py -->", "<!-- folders: recipes/architectures_table.py -->"
END = "<!-- end of table -->"
TEXT, LENGTH = "a man reads near the house, the child runs", 12
SESSIONS = {"native": "native", "fast": "PyTorch", "reference": "transformers"}
METHODS = {"vanilla": {}, "speculative": {"gamma": 3}}
PEERS = {"hf-greedy": {}, "hf-assisted": {"assistant_tokens": 3, "assistant_confidence": 0.0}}


@cache
def models() -> str:
    """The table of architectures in Markdown."""
    rows = ["| architecture | `model_type` | sessions | peers |", "| --- | --- | --- | --- |"]
    for made in ARCHITECTURES:
        with tempfile.TemporaryDirectory() as folder:
            # The small model's head is padded to another width, as those of published pairs are.
            large, small = (
                made.save(Path(folder) / name, seed, width)
                for name, seed, width in (("large", 1, WIDTH), ("small", 2, WIDTH + 8))
            )
            rows.append(f"| {made.name} | {' | '.join(_outcome(made, large, small))} |")
    return "\n".join(rows)


def _outcome(made: Architecture, large: Path, small: Path) -> Iterator[str]:
    yield f"`{transformers.AutoConfig.from_pretrained(large).model_type}`"
    try:
        pairs = {name: _pair(large, small, kind) for kind, name in SESSIONS.items() if made.ours or kind == "reference"}
    except DataError as error:
        yield f"refused: {_line(error, large)}"
        yield "none"
        return
    expected = _greedy(large, pairs["transformers"])
    agreeing = {
        name: [mode for mode, settings in {**METHODS, **PEERS}.items() if _tokens(pair, mode, settings) == expected]
        for name, pair in pairs.items()
    }
    yield ", ".join(name for name, modes in agreeing.items() if set(METHODS) <= set(modes)) or "other tokens"
    yield ", ".join(mode for mode in PEERS if all(mode in modes for modes in agreeing.values())) or "other tokens"


def _pair(large: Path, small: Path, session: str) -> Pair:
    choice = PairChoice("made", ModelChoice(str(large)), ModelChoice(str(small)), "")
    roles = ("large", "small")
    return load_pair(choice, roles, device="cpu", session=session, library_keys=roles)


def _tokens(pair: Pair, mode: str, settings: dict[str, float]) -> tuple[int, ...]:
    return decode(pair, mode, settings, pair.limits(LENGTH), TEXT).tokens


def _greedy(folder: Path, pair: Pair) -> tuple[int, ...]:
    """The library's most probable tokens, the whole prefix anew for each, without a cache and without `generate`."""
    model, source, found = load_library(folder, "float32"), pair.tokenise(TEXT, 50).ids, [pair.special.start]
    while len(found) == 1 or (len(found) <= LENGTH and found[-1] not in pair.special.ends):
        found.append(int(library_logits(model, source, found)[-1, :VOCABULARY].argmax()))
    return tuple(found[1:])


@cache
def folders() -> str:
    """The table of folders in Markdown."""
    rows = ["| folder | outcome |", "| --- | --- |"]
    # What is converted goes into a cache of its own.
    with tempfile.TemporaryDirectory() as scratch, patch.dict(os.environ, BILD_BENCH_CACHE=f"{scratch}/cache"):
        for number, form in enumerate(FOLDERS):
            rows.append(f"| {form.what} | {_opened(form, save_t5(Path(scratch) / str(number)))} |")
    return "\n".join(rows)


def _opened(form: Folder, folder: Path) -> str:
    form.make(folder)
    told: list[str] = []
    choice = PairChoice("made", ModelChoice(str(folder)), None, "")
    try:
        load_pair(choice, ("large",), device="cpu", session="fast", announce=told.append)
    except DataError as error:
        return f"refused: {_line(error, folder)}"
    said = "; ".join(line.partition(f"{folder}: ")[2] for line in told if line.startswith("--large"))
    return f"read, and told: {said}" if said else "read"


def _line(error: DataError, folder: Path) -> str:
    field = "" if error.field == "--large" else error.field.rpartition("/")[2] + ": "
    return f"{field}{error.problem}; {error.fix}".replace(f"{folder}/", "").replace("|", "\\|")


def page(text: str) -> str:
    """The page with both tables in their places."""
    for begin, table in ((MODELS, models), (FILES, folders)):
        before, rest = text.split(begin)
        text = f"{before}{begin}\n\n{table()}\n\n{END}{rest.partition(END)[2]}"
    return text


if __name__ == "__main__":
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    made_page = page(PAGE.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(made_page, encoding="utf-8")
    else:
        print(made_page)
