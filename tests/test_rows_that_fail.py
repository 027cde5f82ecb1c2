"""One text's failure never leaves its row: in the warm-up, while calls are timed, in the tokenizer, in the texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bild_bench import results
from bild_bench.experiment import run_experiment
from bild_bench.models.pair import Pair
from bild_bench.plan import make_point, with_baseline
from bild_bench.report.summary import summarise
from tests.made_data import jsonl
from tests.made_experiments import request

POINTS = with_baseline([make_point("bild", {})])
# Words that only the texts that are to fail have.
LONG, ODD = "überlang", "merkwürdig"


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Encoders that cannot take one text, as local attention cannot take some lengths, and a tokenizer that cannot
    take another; returns the texts that were tokenised."""
    tokenise, encode = Pair.tokenise, Pair.encode
    seen: list[str] = []

    def tokenised(self: Pair, text: str, limit: int) -> Any:
        if ODD in text:
            raise ValueError("no such character")
        seen.append(text)
        return tokenise(self, text, limit)

    def encoded(self: Pair, key: str, source: Any) -> Any:
        if LONG in self.tokenizer.decode(source.ids[0]):
            raise RuntimeError("attention does not fit")
        return encode(self, key, source)

    monkeypatch.setattr(Pair, "tokenise", tokenised)
    monkeypatch.setattr(Pair, "encode", encoded)
    return seen


def error_of(row: Any) -> str | None:
    """Missing is NaN in a frame."""
    return row.error if isinstance(row.error, str) else None


def test_texts_that_fail_in_warm_up_and_calibration_are_passed_over(tmp_path: Path, fragile: list[str]) -> None:
    sources = [f"Das ist {LONG}.", f"Das ist {ODD}.", "Das ist gut.", f"Noch {LONG}.", "Ein Haus."]
    texts = jsonl(tmp_path / "texts.jsonl", [{"source": source, "target": "x"} for source in sources])
    found = results.read(run_experiment(request(texts, tmp_path / "out", preset="embedded", warmup=2), POINTS))

    status = {
        (int(row.text_index), row.status, row.error if row.status == "error" else None)
        for row in found.samples.itertuples()
    }
    assert status == {
        (0, "error", "RuntimeError: attention does not fit"),
        (1, "error", "ValueError: no such character"),
        (2, "ok", None),
        (3, "error", "RuntimeError: attention does not fit"),
        (4, "ok", None),
    }
    assert len(found.samples) == 10
    assert set(found.run.calibration) >= {"large", "small", "source_tokens"}


def test_where_every_text_fails_the_rows_say_so(tmp_path: Path, fragile: list[str]) -> None:
    from bild_bench.errors import RunError

    texts = jsonl(tmp_path / "texts.jsonl", [{"source": f"{LONG} {number}", "target": "x"} for number in range(3)])
    with pytest.raises(RunError, match="not one of them could be decoded"):
        run_experiment(request(texts, tmp_path / "out", preset="embedded", warmup=1), POINTS)
    found = results.read(tmp_path / "out")
    assert (len(found.samples), found.run.calibration) == (6, {})


def test_null_and_empty_cells_are_rows_with_a_status_and_a_count(tmp_path: Path) -> None:
    rows = [
        {"source": "Ein Haus.", "target": "A house."},
        {"source": None, "target": "A house."},
        {"source": "", "target": "A house."},
        {"source": "Ein Baum.", "target": None},
        {"source": "Ein Hund.", "target": ""},
        {"source": "Eine Katze.", "target": ["", "A cat.", None]},
    ]
    texts = jsonl(tmp_path / "texts.jsonl", rows)
    found = results.read(run_experiment(request(texts, tmp_path / "out", preset="embedded"), POINTS))

    vanilla = found.samples[found.samples["role"] == "baseline"]
    told = [
        (row.status, row.error if row.status == "error" else None, list(row.references)) for row in vanilla.itertuples()
    ]
    assert told == [
        ("ok", None, ["A house."]),
        ("error", "the source cell is null", ["A house."]),
        ("error", "the source text is empty", ["A house."]),
        ("ok", None, []),
        ("ok", None, [""]),
        ("ok", None, ["", "A cat."]),
    ]
    assert (found.run.data["null_sources"], found.run.data["empty_references"]) == (1, 2)
    summary = summarise(found)
    warnings = " | ".join(summary.warnings)
    assert "2 of 4 texts have no reference (null or empty): timed but not scored" in warnings
    failed = "2 failed and are left out of every figure (the first: the source cell is null): vanilla, bild fb=0.5 rb=2"
    assert failed in warnings
    quality = summary.points[0].quality
    assert quality is not None
    assert "nrefs:1|" in quality.signature


def test_source_tokens_that_the_tokenizer_does_not_know_are_counted(tmp_path: Path) -> None:
    rows = [{"source": "Ein Haus 漢字 漢.", "target": "x"}, {"source": "Ein Haus.", "target": "x"}]
    texts = jsonl(tmp_path / "texts.jsonl", rows)
    found = results.read(run_experiment(request(texts, tmp_path / "out", preset="embedded"), POINTS))
    unknown = found.run.data["unknown_source_tokens"]
    assert unknown >= 1
    assert found.run.data["texts_with_unknown"] == 1
    assert f"{unknown} source token" in " ".join(summarise(found).warnings)
