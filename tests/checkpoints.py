"""Small random checkpoints of every architecture that the tests need, each with a tokenizer beside it.

Weights are drawn anew after the library's own initialisation: T5's leaves attention almost flat and every norm at one,
so that a wrong mask, bias or norm would hardly change a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

PAD, END, UNKNOWN = 0, 1, 2
WORDS = ("the", "a", "dog", "cat", "man", "woman", "child", "house", "street", "tree", "reads", "runs", "sees", "near")
PIECES = ("<pad>", "</s>", "<unk>", *("▁" + word for word in WORDS), "▁", *"abcdefghijklmnopqrstuvwxyz.,")
VOCABULARY = len(PIECES)
WIDTH = VOCABULARY + 8  # the models score more ids than the tokenizer has, as published T5 checkpoints do

T5_SHAPE = {
    "vocab_size": WIDTH,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
    "decoder_start_token_id": PAD,
    "pad_token_id": PAD,
    "eos_token_id": END,
}
BART_SHAPE = {
    "vocab_size": WIDTH,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 256,
    "decoder_start_token_id": PAD,
    "pad_token_id": PAD,
    "bos_token_id": None,
    "eos_token_id": END,
    "forced_eos_token_id": None,
}


def save_tokenizer(folder: Path, pieces: tuple[str, ...] = PIECES, lowercase: bool = False) -> Path:
    """A unigram tokenizer of these pieces; the first three are padding, end and unknown. An end token closes a text."""
    backend = Tokenizer(models.Unigram([(piece, -float(index > 2)) for index, piece in enumerate(pieces)], UNKNOWN))
    if lowercase:
        backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", END)])
    made = transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )
    made.save_pretrained(folder)
    return folder


def save_t5(folder: Path, *, gated: bool = False, tied: bool = True, seed: int = 0, **shape: Any) -> Path:
    """T5 1.0 as it stands (ReLU, tied head, scaled output); `gated` without `tied` is T5 1.1.

    Args:
        folder: where to save it; made if absent.
        gated: gated-GELU instead of ReLU.
        tied: one matrix for embedding and head. The untied form keeps its own lm_head and does not scale.
        seed: of the weights.
        shape: fields of T5Config instead of the small defaults.
    """
    feed = "gated-gelu" if gated else "relu"
    settings = {**T5_SHAPE, "feed_forward_proj": feed, "scale_decoder_outputs": tied, **shape}
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(**settings))
    return _save(model, folder, seed, tied)


def save_mt5(folder: Path, *, seed: int = 0, rules: Mapping[str, Any] | None = None, **shape: Any) -> Path:
    """mT5: gated-GELU, untied head, no scaling."""
    model = transformers.MT5ForConditionalGeneration(transformers.MT5Config(**{**T5_SHAPE, **shape}))
    return _save(model, folder, seed, tied=False, rules=rules)


def save_bart(folder: Path, *, seed: int = 0, rules: Mapping[str, Any] | None = None, **shape: Any) -> Path:
    """BART. `rules` go to its generation_config.json."""
    model = transformers.BartForConditionalGeneration(transformers.BartConfig(**{**BART_SHAPE, **shape}))
    return _save(model, folder, seed, rules=rules)


def save_marian(folder: Path, *, seed: int = 0, rules: Mapping[str, Any] | None = None, **shape: Any) -> Path:
    """Marian (opus-mt): sinusoidal positions, shared embeddings."""
    settings = {**BART_SHAPE, **shape}
    settings["decoder_vocab_size"] = settings["vocab_size"]
    return _save(transformers.MarianMTModel(transformers.MarianConfig(**settings)), folder, seed, rules=rules)


def save_pegasus(folder: Path, *, seed: int = 0, rules: Mapping[str, Any] | None = None, **shape: Any) -> Path:
    """Pegasus: pre-norm, sinusoidal positions."""
    model = transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(**{**BART_SHAPE, **shape}))
    return _save(model, folder, seed, rules=rules)


def save_library_model(model: Any, folder: Path, seed: int) -> Path:
    """A model of any architecture, with new weights and a tokenizer beside it."""
    return _save(model, folder, seed)


def _save(model: Any, folder: Path, seed: int, tied: bool = True, rules: Mapping[str, Any] | None = None) -> Path:
    if not tied:
        # The configurations of T5 and mT5 insist on a tied head; an untied one survives where the tensors differ.
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    _draw_weights(model, seed)
    transformers.utils.logging.disable_progress_bar()
    model.generation_config.update(**(rules or {}))
    model.save_pretrained(folder)
    return save_tokenizer(folder)


def _draw_weights(model: Any, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not weight.requires_grad:  # sinusoids, which are computed and never saved
                continue
            noise = torch.randn(weight.shape, generator=generator)
            if weight.dim() > 1:
                weight.copy_(0.3 * noise)
            elif "norm" in name and name.endswith("weight"):
                weight.copy_(1 + 0.2 * noise)
            else:
                weight.copy_(0.05 * noise)
