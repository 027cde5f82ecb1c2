"""FLOPs held to torch's own counter on the library's modules; bytes and the rest worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from torch.utils.flop_counter import FlopCounterMode

from bild_bench.errors import DataError
from bild_bench.measure.operations import (
    BART_TYPES,
    T5_TYPES,
    DecoderCall,
    Shape,
    Stack,
    Work,
    decoder_call,
    encoding,
    shape_of,
)
from bild_bench.models.fast import FastModel
from bild_bench.models.reference import ReferenceModel
from tests.checkpoints import VOCABULARY, save_mt5, save_t5
from tests.forward import SOURCE, load

# Wide and short: two layers of the encoder and three of the decoder, so that one cannot stand for the other.
_T5 = {
    "vocab_size": 96,
    "d_model": 32,
    "d_kv": 12,
    "d_ff": 48,
    "num_heads": 4,
    "num_layers": 2,
    "num_decoder_layers": 3,
}
_BART = {
    "vocab_size": 96,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 40,
    "max_position_embeddings": 128,
}
_LENGTHS = (0, 1, 7, 30)


def _library_model(kind: str, **shape: Any) -> Any:
    given = {**(_T5 if kind in T5_TYPES else _BART), **shape}
    special = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0, "bos_token_id": 2}
    if kind == "marian":
        given["decoder_vocab_size"] = given["vocab_size"]
    config = transformers.AutoConfig.for_model(kind, **given, **special)
    model = transformers.AutoModelForSeq2SeqLM.from_config(config, attn_implementation="eager")
    return model.requires_grad_(False).eval()


def _counted(call: Callable[[], Any]) -> int:
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


def _shape(config: Any, vocabulary: int | None = None, dtype: str = "float32") -> Shape:
    return shape_of(config, vocabulary=vocabulary, dtype=dtype, name="made", option="--large")


@pytest.mark.parametrize("kind", [*T5_TYPES, "t5 gated", *BART_TYPES])
def test_flops_of_every_family_agree_with_torchs_counter_to_one_per_cent(kind: str) -> None:
    gated = {"feed_forward_proj": "gated-gelu"} if kind == "t5 gated" else {}
    model = _library_model(kind.removesuffix(" gated"), **gated)
    shape, reference = _shape(model.config), ReferenceModel(model, 90, 0)
    source = torch.randint(3, 90, (1, 23))

    encoded = reference.encode(source)
    assert encoding(shape, 23).flops == pytest.approx(_counted(lambda: reference.encode(source)), rel=0.01)
    for cached in _LENGTHS:
        for rows in (1, 8):
            session = reference.session(encoded)
            if cached:
                session.extend([5] * cached)
            measured = _counted(lambda session=session, rows=rows: session.extend([5] * rows))
            assert decoder_call(shape, DecoderCall(rows, cached, 23, rows)).flops == pytest.approx(measured, rel=0.01)


@pytest.mark.parametrize("save", [save_t5, save_mt5])
def test_flops_of_our_own_decoder_are_counted_as_they_are_done(save: Any, tmp_path: Path) -> None:
    fast = FastModel(load(save(tmp_path), "float32"), VOCABULARY)
    shape = _shape(transformers.AutoConfig.from_pretrained(tmp_path), VOCABULARY)
    encoded = fast.encode(SOURCE)
    for cached in _LENGTHS:
        session = fast.session(encoded)
        if cached:
            session.extend([5] * cached)
        # Eight rows are fed and only the last one is read.
        measured = _counted(lambda session=session: session.extend([5] * 8).last().argmax())
        assert decoder_call(shape, DecoderCall(8, cached, 7, 1)).flops == pytest.approx(measured, rel=0.01)


# d 4, inner 6; encoder of one layer with d_ff 8, decoder of two with d_ff 10, gated; 20 ids; 4 bytes.
HAND = Shape(4, Stack(1, 6, 8, False), Stack(2, 6, 10, True), 20, 4, 4)


def test_a_call_by_hand() -> None:
    work = decoder_call(HAND, DecoderCall(rows=3, cached=5, source=7, projected=1))

    # A layer: 6 projections of 4x6 and 3 feed-forward matrices of 4x10, 264 weights, for 3 rows; scores and mixing over
    # 8 + 7 keys of width 6. The head: 20x4 for one row.
    assert work.flops == 2 * (2 * 3 * 264 + 2 * 2 * 3 * 15 * 6) + 2 * 20 * 4
    # The weights once, the head's too, and three rows of the embedding.
    assert work.weight_bytes == 4 * (2 * 264 + 20 * 4 + 3 * 4)
    # Keys and values of 15 positions read and of 3 written, each 6 wide, in 2 layers.
    assert work.cache_bytes == 4 * 2 * 2 * 6 * (15 + 3)
    assert work.bytes == work.weight_bytes + work.cache_bytes
    assert work.intensity == pytest.approx(work.flops / work.bytes)


def test_an_encoding_by_hand() -> None:
    work = encoding(HAND, 5)

    # 4 projections of 4x6 and 2 matrices of 4x8 for 5 rows, attention over 5; keys and values (2 x 4x6) of two layers.
    assert work.flops == 2 * 5 * (96 + 64) + 2 * 2 * 5 * 5 * 6 + 2 * 2 * 5 * 48
    assert work.weight_bytes == 4 * (160 + 2 * 48 + 5 * 4)
    assert work.cache_bytes == 4 * 2 * 2 * 5 * 6


def test_the_librarys_modules_spend_a_decoder_pass_on_the_source() -> None:
    spent = decoder_call(HAND, DecoderCall(1, 0, 5, 1))
    library = Shape(**{**HAND.__dict__, "reads_all": True})

    assert encoding(library, 5) == encoding(HAND, 5) + spent


def test_more_rows_share_the_weights_and_so_raise_the_intensity() -> None:
    one, eight = (decoder_call(HAND, DecoderCall(rows, 0, 7, rows)) for rows in (1, 8))

    assert eight.weight_bytes - one.weight_bytes == 4 * 7 * 4, "seven more rows of the embedding, and nothing else"
    assert one.intensity is not None
    assert eight.intensity is not None
    assert eight.intensity > 3 * one.intensity


def test_layers_that_are_skipped_cost_their_keys_and_values_alone() -> None:
    whole, left = (DecoderCall(1, 5, 7, 1, layers=layers, filled=filled) for layers, filled in ((2, 0), (1, 1)))
    saved = decoder_call(HAND, whole).flops - decoder_call(HAND, left).flops

    # One layer less, but for its two projections of keys and values (4x6 each).
    assert saved == 2 * 264 + 2 * 2 * 13 * 6 - 2 * 2 * 24
    assert decoder_call(HAND, left).weight_bytes == 4 * (264 + 2 * 24 + 80 + 4)


def test_each_reading_of_the_head_reads_its_weights_again() -> None:
    one, three = (decoder_call(HAND, DecoderCall(1, 5, 7, heads, heads=heads)) for heads in (1, 3))

    assert three.weight_bytes - one.weight_bytes == 2 * 4 * 80
    assert three.flops - one.flops == 2 * 2 * 80


def test_half_precision_halves_the_bytes_but_for_what_t5_keeps_in_float32() -> None:
    config = transformers.AutoConfig.for_model("t5", **_T5)
    single, half, brain = (_shape(config, 96, dtype) for dtype in ("float32", "float16", "bfloat16"))
    call = DecoderCall(1, 5, 7, 1)

    kept = 3 * 32 * 48
    assert decoder_call(brain, call).bytes * 2 == decoder_call(single, call).bytes
    assert decoder_call(half, call).bytes - decoder_call(brain, call).bytes == 2 * kept


def test_an_architecture_without_formulas_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="longt5, whose layers have no formulas"):
        _shape(SimpleNamespace(model_type="longt5"))


def test_works_add_up_and_nothing_moved_has_no_intensity() -> None:
    assert sum([Work(1, 2, 3), Work(10, 20, 30)], Work()) == Work(11, 22, 33)
    assert Work().intensity is None
