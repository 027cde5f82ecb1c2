"""The bench's parts on small models; no time is tested."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest

from bench import pairs, shapes, steps, whole
from bench.baselines import ctranslate2_greedy, library_greedy, our_vanilla, same_tokens
from bench.interleave import Turn
from bild_bench.decoding.alone import AloneSettings
from bild_bench.decoding.bild import BildSettings
from tests.made_benches import TINY, quiet


@pytest.fixture
def quickening(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which whatever comes later takes longer: a busy machine's noise fails no test."""
    count = itertools.count()
    monkeypatch.setattr("time.perf_counter", lambda: float(next(count)) ** 2)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> shapes.Subject:
    folder = tmp_path_factory.mktemp("bench")
    return shapes.random_subject("tiny", folder, TINY, count=2, length=6, tokens=5, announce=quiet)


@pytest.fixture(scope="module")
def embedded() -> shapes.Subject:
    return shapes.embedded_subject(4, quiet)


def test_a_random_checkpoint_is_made_once(tmp_path: Path) -> None:
    folder = shapes.random_checkpoint(tmp_path / "tiny", TINY)
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert shapes.random_checkpoint(folder, TINY) == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before


def test_nobody_may_leave_out_rows_of_a_random_shapes_head(tiny: shapes.Subject) -> None:
    assert steps.shape_of_large(tiny).vocabulary == TINY["vocab_size"]


def test_random_texts_are_known_ids_with_the_end_token_last() -> None:
    texts = shapes.random_texts(3, 6, 64, seed=0)
    assert texts == shapes.random_texts(3, 6, 64, seed=0)
    assert len(set(texts)) == 3
    for text in texts:
        assert len(text.ids) == 6
        assert text.ids[-1] == shapes.END
        assert all(shapes.UNKNOWN < token < 64 for token in text.ids[:-1])


def test_with_random_weights_everyone_writes_as_many_tokens_and_the_same_ones(tiny: shapes.Subject) -> None:
    for text in tiny.texts:
        ours, library = our_vanilla(tiny)(text).tokens, library_greedy(tiny)(text).tokens
        assert len(ours) == tiny.tokens
        assert ours == library


def test_ctranslate2_writes_the_same_tokens(tiny: shapes.Subject, embedded: shapes.Subject, tmp_path: Path) -> None:
    pytest.importorskip("ctranslate2", reason="an optional yardstick")
    for subject in (tiny, embedded):
        contestant = ctranslate2_greedy(subject, tmp_path, 1, "float32", quiet)
        assert not isinstance(contestant, str), contestant
        found = {"ctranslate2": [], "ours": []}  # type: dict[str, list[Turn]]
        for text in subject.texts:
            found["ctranslate2"].append(contestant(text))
            found["ours"].append(our_vanilla(subject)(text))
        assert same_tokens(found, "ours", subject.ends) == {"ctranslate2": len(subject.texts)}
        assert not subject.fixed or len(found["ctranslate2"][0].tokens) == subject.tokens


@pytest.mark.usefixtures("quickening")
def test_without_ctranslate2_its_rows_say_why(
    tiny: shapes.Subject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    rows = steps.vanilla_figures(tiny, tmp_path, 1, quiet)
    assert [row.contestant for row in rows if row.ratio is None] == [
        "over CTranslate2 float32",
        "over CTranslate2 int8",
    ]
    assert all("not installed" in row.note for row in rows if row.ratio is None)
    assert all(row.ratio > 0 for row in rows if row.ratio is not None)
    assert rows[0].note == "same tokens on 2 of 2 texts"


@pytest.mark.usefixtures("quickening")
def test_steps_and_the_time_outside_are_measured_on_a_small_shape(tiny: shapes.Subject) -> None:
    rows = steps.verification_figures(tiny, quiet)
    assert [row.contestant for row in rows] == [steps.OURS, "transformers' modules", "of machine's limit"]
    assert all(row.ratio is not None and row.ratio > 0 for row in rows)
    (outside,) = steps.outside_figures(tiny, "vanilla", AloneSettings(), quiet)
    assert (outside.unit, outside.texts) == ("share", 2)
    assert outside.ratio is not None
    assert 0 < outside.ratio < 1


def test_a_trained_pair_is_swept_and_measured_on_other_texts(
    embedded: shapes.Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything_by_the_large_model = BildSettings(1.0, 2.0)
    monkeypatch.setattr(pairs, "GRID", (everything_by_the_large_model,))
    rows = pairs.pair_figures(embedded, {}, quiet)
    assert [row.contestant for row in rows] == [
        "over transformers assisted generation",
        "over our vanilla, no loss",
        "over our vanilla, a loss of 1 at most",
    ]
    assert not {text.ids for text in embedded.texts} & {text.ids for text in embedded.validation}
    for row in rows:
        # The text's own large model at every token: vanilla's BLEU, on the two texts that were not swept.
        assert row.texts == 2
        left, right = row.note.partition("BLEU ")[2].partition(" (")[0].split(" against ")
        assert left == right


def test_settings_that_are_given_are_not_looked_for(embedded: shapes.Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "_swept", None)
    given = {0.0: BildSettings(0.9, 1.0), 1.0: BildSettings(0.5, 2.0)}
    rows = pairs.pair_figures(embedded, given, quiet)
    assert [row.note.partition(";")[0] for row in rows[1:]] == ["fb=0.9 rb=1", "fb=0.5 rb=2"]


@pytest.mark.usefixtures("quickening")
def test_whole_texts_and_encoders_are_measured_on_a_small_shape(tiny: shapes.Subject, tmp_path: Path) -> None:
    rows = whole.whole_figures(tiny, tmp_path, 1, quiet)
    assert [row.contestant for row in rows] == ["over transformers generate", "over CTranslate2 float32"]
    assert rows[0].note.startswith("same tokens on 2 of 2 texts; ")
    rows = whole.encoder_figures(tiny, quiet)
    assert [row.contestant for row in rows] == ["over transformers' encoder", "of machine's limit"]
    assert rows[0].note.startswith("6 source tokens; ")
    assert all(row.ratio is not None and row.ratio > 0 for row in rows)


def test_a_whole_text_is_the_same_whoever_encodes(tiny: shapes.Subject, embedded: shapes.Subject) -> None:
    for subject in (tiny, embedded):
        for text in subject.texts:
            ours, library = whole.ours(subject)(text).tokens, whole.library(subject)(text).tokens
            assert same_tokens({"ours": [Turn(0, ours)], "its": [Turn(0, library)]}, "ours", subject.ends) == {"its": 1}
