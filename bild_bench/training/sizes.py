"""Shapes of new T5 v1.1 models by name, and a tokenizer trained on the texts at hand."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bild_bench.errors import DataError

# d_model, heads, width of a head, d_ff, encoder layers, decoder layers. An encoder shallower than the decoder would
# break the library's own `generate`.
SIZES: dict[str, tuple[int, int, int, int, int, int]] = {
    "little": (80, 2, 32, 192, 2, 1),
    "big": (192, 6, 32, 512, 8, 8),
    "t5-small": (512, 6, 64, 1024, 8, 8),
    "t5-base": (768, 12, 64, 2048, 12, 12),
    "t5-large": (1024, 16, 64, 2816, 24, 24),
}

_SPECIAL = ("<pad>", "</s>", "<unk>")


def new_model(size: str, vocabulary: int, seed: int) -> Any:
    """A T5 v1.1 model (gated GELU, tied head) with random weights; size is one of `SIZES`."""
    import torch
    import transformers

    d_model, heads, width, d_ff, encoder, decoder = SIZES[size]
    config = transformers.T5Config(
        vocab_size=vocabulary,
        d_model=d_model,
        num_heads=heads,
        d_kv=width,
        d_ff=d_ff,
        num_layers=encoder,
        num_decoder_layers=decoder,
        feed_forward_proj="gated-gelu",
        pad_token_id=0,
        eos_token_id=1,
        decoder_start_token_id=0,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return transformers.T5ForConditionalGeneration(config)


def train_tokenizer(texts: Iterable[str], vocabulary: int, folder: Path) -> None:
    """A unigram tokenizer (Kudo 2018) of T5's form, saved into folder.

    Raises:
        DataError: the texts do not fill such a vocabulary, or have more characters than it has pieces.
    """
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocabulary, special_tokens=list(_SPECIAL), unk_token="<unk>", show_progress=False
    )
    try:
        tokenizer.train_from_iterator(texts, trainer)
    except DataError:
        raise
    except Exception as error:
        # The library raises no narrower class where the texts have more characters than there are pieces.
        raise DataError("--vocab-size", vocabulary, f"is too small ({error})", "ask for more") from error
    if tokenizer.get_vocab_size() < vocabulary:
        found = f"the texts yield only {tokenizer.get_vocab_size():,} pieces"
        raise DataError("--vocab-size", vocabulary, found, "ask for fewer, or give more text")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)
