"""Which models and folders are taken: docs/ARCHITECTURES.md says what the program does."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from bild_bench.errors import DataError
from bild_bench.models.agreement import require_agreement
from bild_bench.models.native.build import native_library
from bild_bench.models.reference import ReferenceModel
from recipes.architectures_table import PAGE, folders, models, page
from tests.architectures import ARCHITECTURES
from tests.checkpoints import VOCABULARY, WIDTH
from tests.command_line import call
from tests.forward import load as load_library
from tests.loading import load, problem_with
from tests.made_folders import FOLDERS

BY_NAME = {made.name: made for made in ARCHITECTURES}


@pytest.fixture(scope="module")
def native() -> None:
    """The page names the compiled sessions too."""
    if (problem := native_library().problem) is not None:
        pytest.skip(problem)


@pytest.mark.usefixtures("native")
def test_the_page_is_what_the_program_does() -> None:
    held = PAGE.read_text(encoding="utf-8")
    assert page(held) == held


@pytest.mark.usefixtures("native")
def test_every_architecture_runs_with_the_right_tokens_or_is_refused_for_its_reason() -> None:
    peers = "hf-greedy, hf-assisted"
    for made, row in zip(ARCHITECTURES, models().splitlines()[2:], strict=True):
        if made.refused:
            assert f"| refused: is of type {row.split('`')[1]}, " in row
            assert made.refused in row
        else:
            sessions = "native, PyTorch, transformers" if made.ours else "transformers"
            assert row.endswith(f"| {sessions} | {peers} |"), row


@pytest.mark.usefixtures("native")
def test_every_folder_is_read_or_refused_for_its_reason() -> None:
    for form, row in zip(FOLDERS, folders().splitlines()[2:], strict=True):
        if form.refused:
            assert "| refused: " in row
            assert form.refused in row
        else:
            assert "| read |" in row or "| read, and told: " in row, row


def test_all_architectures_of_the_library_are_among_them() -> None:
    from bild_bench.models.library import _text_models

    listed = {row.split("`")[1] for row in PAGE.read_text(encoding="utf-8").splitlines() if "| `" in row}
    assert set(_text_models()) <= listed


def test_a_wrong_cache_is_refused_in_every_precision_at_exit_3(tmp_path: Path) -> None:
    folder = BY_NAME["FSMT"].save(tmp_path / "fsmt", 1, WIDTH)
    for dtype in ("float64", "float32", "float16", "bfloat16"):
        message = problem_with(folder, dtype=dtype)
        assert "is of type fsmt, whose cache does not serve single tokens after a truncation: scores differ by 0." in (
            message
        )
        assert message.endswith("give another checkpoint")
    ended = call("generate", "--mode", "vanilla", "--large", folder, "the dog")
    assert (ended.code, ended.out) == (3, "")
    assert "is of type fsmt, whose cache does not serve" in ended.last_remark


@pytest.mark.parametrize("name", ["BART", "Switch Transformers", "NLLB-MoE", "T5Gemma", "LED"])
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_rounding_is_no_disagreement(name: str, dtype: str, tmp_path: Path) -> None:
    folder = BY_NAME[name].save(tmp_path, 1, WIDTH)
    assert load(folder, dtype=dtype).models["large"].model.kind == "reference"


def test_a_cache_that_is_cut_at_the_wrong_place_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ReferenceModel(load_library(BY_NAME["BART"].save(tmp_path, 1, WIDTH), "float32"), VOCABULARY, 0)
    require_agreement(model, VOCABULARY, 0, "--large", "bart")
    opened = model.session

    def shifted(source: object) -> object:
        session = opened(source)  # type: ignore[arg-type]
        monkeypatch.setattr(session, "truncate", lambda length: type(session).truncate(session, length + 1))
        return session

    monkeypatch.setattr(model, "session", shifted)
    with pytest.raises(DataError, match=r"bart.*whose cache does not serve single tokens after a truncation"):
        require_agreement(model, VOCABULARY, 0, "--large", "bart")


def test_bigbirds_sparse_attention_is_used_again_after_a_short_text(tmp_path: Path) -> None:
    folder = BY_NAME["BigBird-Pegasus, sparse attention"].save(tmp_path, 1, WIDTH)
    source = torch.randint(3, VOCABULARY, (1, 120), generator=torch.Generator().manual_seed(1))
    model = ReferenceModel(load_library(folder, "float64"), VOCABULARY, 0)
    torch.manual_seed(0)
    before = model.encode(source).states
    model.encode(source[:, :5])
    assert model.model.get_encoder().attention_type == "original_full"
    torch.manual_seed(0)
    assert torch.equal(model.encode(source).states, before)
    assert model.model.get_encoder().attention_type == "block_sparse"


def test_positions_of_both_sides_are_read_where_they_are(tmp_path: Path) -> None:
    pair = load(BY_NAME["LED"].save(tmp_path / "led", 1, WIDTH))
    assert (pair.positions.source, pair.positions.target) == (256, 128)
    assert pair.tokenise("dog " * 400, 1000).ids.shape[1] == 256
    assert pair.limits(1000).max_tokens == 128
    berts = load(BY_NAME["EncoderDecoder of two BERTs"].save(tmp_path / "berts", 1, WIDTH))
    assert (berts.positions.source, berts.positions.target) == (128, 128)
    assert berts.describe()["large"]["vocab_size"] == WIDTH
