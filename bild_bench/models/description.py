"""What the record says of one model of a pair."""

from __future__ import annotations

from typing import Any

from bild_bench.models.checkpoint import Checkpoint

_SHAPE = (
    *("d_model", "d_kv", "d_ff", "num_heads", "num_layers", "num_decoder_layers"),
    *("encoder_layers", "decoder_layers"),
)


def describe_model(checkpoint: Checkpoint, library_model: Any) -> dict[str, Any]:
    """Name, fingerprint, shapes and sizes."""
    config = library_model.config
    return {
        "name": checkpoint.name,
        "commit": checkpoint.commit,
        "converted_from": checkpoint.converted_from,
        "fingerprint": checkpoint.fingerprint,
        "variant": checkpoint.variant,
        "objective": checkpoint.file_json("config.json").get("bild_bench_objective"),
        "model_type": config.model_type,
        # Some configurations hold another for each side, and the number of ids only there.
        "vocab_size": config.get_text_config(decoder=True).vocab_size,
        **{name: getattr(config, name) for name in _SHAPE if getattr(config, name, None) is not None},
        "parameters": sum(weight.numel() for weight in library_model.parameters()),
        "decoder_parameters": sum(weight.numel() for weight in library_model.get_decoder().parameters()),
    }
