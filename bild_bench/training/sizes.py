"""Shapes of new T5 v1.1 models by name."""

from __future__ import annotations

from typing import Any

# d_model, heads, width of a head, d_ff, encoder layers, decoder layers. An encoder shallower than the decoder would
# break the library's own `generate`.
SIZES: dict[str, tuple[int, int, int, int, int, int]] = {
    "little": (80, 2, 32, 192, 2, 1),
    "big": (192, 6, 32, 512, 8, 8),
    "t5-small": (512, 6, 64, 1024, 8, 8),
    "t5-base": (768, 12, 64, 2048, 12, 12),
    "t5-large": (1024, 16, 64, 2816, 24, 24),
}


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
