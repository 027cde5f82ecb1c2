"""Every encoder-decoder that the library knows, small and random: cases of tests and of docs/ARCHITECTURES.md."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import transformers

from tests.checkpoints import BART_SHAPE, END, PAD, T5_SHAPE, WIDTH, save_library_model, save_t5
from tests.loading import edit

_SIDE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_GEMMA = {**_SIDE, "vocab_size": WIDTH, "num_key_value_heads": 2, "head_dim": 8}
_BERT = {**_SIDE, "vocab_size": WIDTH, "max_position_embeddings": 128}
_IDS = {"decoder_start_token_id": PAD, "pad_token_id": PAD, "eos_token_id": END}
# These hide padding from the decoder or count no position for it, so a text does not start with it, as it does in T5.
_END_FIRST = {"decoder_start_token_id": END}
_PROPHETNET = {
    "hidden_size": 32,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "num_encoder_layers": 2,
    "num_encoder_attention_heads": 4,
    "num_decoder_attention_heads": 4,
    "max_position_embeddings": 128,
}
_LED = {"attention_window": 8, "max_encoder_position_embeddings": 256, "max_decoder_position_embeddings": 128}
_FSMT = {"src_vocab_size": WIDTH, "tgt_vocab_size": WIDTH, "langs": ["a", "b"]}


@dataclass(frozen=True)
class Architecture:
    """One kind of model.

    Args:
        name: as the library's documentation calls it, and what is particular.
        save: writes a checkpoint with random weights and a tokenizer; takes folder, seed, and how many ids it scores.
        ours: whether our own decoders run it, not only the library's modules.
        refused: a part of the line with which it is refused; "" where it runs.
    """

    name: str
    save: Callable[[Path, int, int], Path]
    ours: bool = False
    refused: str = ""


def _t5(folder: Path, seed: int, width: int, **shape: Any) -> Path:
    return save_t5(folder, seed=seed, vocab_size=width, **shape)


def _made(
    model: str, config: str, base: Mapping[str, Any], shape: Mapping[str, Any], folder: Path, seed: int, width: int
) -> Path:
    fields = {**base, "vocab_size": width, **shape}
    made = getattr(transformers, model)(getattr(transformers, config)(**fields))
    return save_library_model(made, folder, seed)


def _of(name: str, base: Mapping[str, Any], **shape: Any) -> Callable[[Path, int, int], Path]:
    return partial(_made, f"{name}ForConditionalGeneration", f"{name}Config", base, shape)


def _marian(folder: Path, seed: int, width: int) -> Path:
    return _made("MarianMTModel", "MarianConfig", BART_SHAPE, {"decoder_vocab_size": width}, folder, seed, width)


def _tuples(folder: Path, seed: int, width: int) -> Path:
    _of("Bart", BART_SHAPE)(folder, seed, width)
    edit(folder, "config.json", return_dict=False, output_attentions=True, use_cache=False)
    return folder


def _t5gemma(folder: Path, seed: int, width: int) -> Path:
    sides = {side: {**_GEMMA, "vocab_size": width} for side in ("encoder", "decoder")}
    return _made("T5GemmaForConditionalGeneration", "T5GemmaConfig", {**_IDS, **_END_FIRST}, sides, folder, seed, width)


def _two_berts(folder: Path, seed: int, width: int) -> Path:
    one = transformers.BertConfig(**{**_BERT, "vocab_size": width})
    other = transformers.BertConfig(**{**_BERT, "vocab_size": width}, is_decoder=True, add_cross_attention=True)
    config = transformers.EncoderDecoderConfig(encoder=one.to_dict(), decoder=other.to_dict(), **_IDS)
    return save_library_model(transformers.EncoderDecoderModel(config), folder, seed)


ARCHITECTURES = (
    Architecture("T5 1.0", _t5, ours=True),
    Architecture("T5 1.1 (gated, untied head)", partial(_t5, gated=True, tied=False), ours=True),
    Architecture("T5, a decoder deeper than its encoder", partial(_t5, num_layers=1, num_decoder_layers=3), ours=True),
    Architecture("mT5", _of("MT5", T5_SHAPE), ours=True),
    Architecture("UMT5", _of("UMT5", T5_SHAPE)),
    Architecture("LongT5, local attention", _of("LongT5", T5_SHAPE, local_radius=4)),
    Architecture(
        "LongT5, transient-global attention",
        _of("LongT5", T5_SHAPE, local_radius=4, encoder_attention_type="transient-global"),
    ),
    Architecture("Switch Transformers", _of("SwitchTransformers", T5_SHAPE, num_experts=4)),
    Architecture("BART", _of("Bart", BART_SHAPE)),
    Architecture("BART, `return_dict: false`", _tuples),
    Architecture("mBART", _of("MBart", BART_SHAPE)),
    Architecture("Marian (opus-mt)", _marian),
    Architecture("M2M100, NLLB", _of("M2M100", {**BART_SHAPE, **_END_FIRST})),
    Architecture(
        "M2M100 that starts with padding", _of("M2M100", BART_SHAPE), refused="single tokens after a truncation"
    ),
    Architecture(
        "NLLB-MoE",
        _of("NllbMoe", {**BART_SHAPE, **_END_FIRST}, num_experts=4, encoder_sparse_step=2, decoder_sparse_step=2),
    ),
    Architecture("Pegasus", _of("Pegasus", BART_SHAPE)),
    Architecture("Pegasus-X", _of("PegasusX", BART_SHAPE, num_global_tokens=4, block_size=8)),
    Architecture("BigBird-Pegasus, sparse attention", _of("BigBirdPegasus", BART_SHAPE, block_size=4)),
    Architecture("BlenderBot", _of("Blenderbot", BART_SHAPE)),
    Architecture("BlenderBot-small", _of("BlenderbotSmall", BART_SHAPE)),
    Architecture("LED", _of("LED", BART_SHAPE, **_LED)),
    Architecture("MVP", _of("Mvp", BART_SHAPE)),
    Architecture("PLBart", _of("PLBart", BART_SHAPE)),
    Architecture("T5Gemma", _t5gemma),
    Architecture("EncoderDecoder of two BERTs", _two_berts),
    Architecture("FSMT", _of("FSMT", BART_SHAPE, **_FSMT), refused="single tokens after a truncation"),
    Architecture("ProphetNet", _of("ProphetNet", T5_SHAPE, **_PROPHETNET), refused="cannot be decoded in blocks"),
)
