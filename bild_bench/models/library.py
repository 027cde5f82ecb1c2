"""Loads a checkpoint with the library, and refuses what cannot be measured: wrong kind, missing or broken weights."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from bild_bench.errors import DataError, UsageError
from bild_bench.models.checkpoint import Checkpoint

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}


def load_tokenizer(checkpoint: Checkpoint, option: str) -> Any:
    """The checkpoint's tokenizer.

    Raises:
        DataError: there is none, or its files are damaged.
    """
    try:
        return transformers.AutoTokenizer.from_pretrained(checkpoint.tokenizer_path, local_files_only=True)
    except Exception as error:
        # The library raises whatever its tokenizer back-ends raise; no narrower class covers them.
        raise DataError(
            option,
            str(checkpoint.tokenizer_path),
            f"has no tokenizer that can be loaded ({_reason(error)})",
            "add tokenizer.json or the sentencepiece model to the folder",
        ) from error


def load_model(checkpoint: Checkpoint, option: str, device: str, dtype: str) -> Any:
    """The library's encoder-decoder model, in evaluation mode, every weight present and finite.

    Args:
        checkpoint: see `find_checkpoint`.
        option: the flag that named it, for errors.
        device: as torch names it.
        dtype: a key of `DTYPES`.

    Raises:
        DataError: not an encoder-decoder, or weights missing, damaged or not finite.
    """
    _require_encoder_decoder(checkpoint, option)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        model, info = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            checkpoint.path,
            dtype=DTYPES[dtype],
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
            # One token and a block of tokens give the same bfloat16 scores only without the fused attention kernel.
            attn_implementation="eager" if dtype == "bfloat16" else None,
        )
    except (SafetensorError, OSError, ValueError, RuntimeError, KeyError) as error:
        raise DataError(
            option, checkpoint.name, f"cannot be loaded ({_reason(error)})", "fetch or save the checkpoint anew"
        ) from error
    missing = sorted(info["missing_keys"])
    if missing:
        raise DataError(
            option,
            checkpoint.name,
            f"lacks {len(missing)} weights, {missing[0]} among them",
            "fetch or save the checkpoint anew",
        )
    broken = next((name for name, weight in model.named_parameters() if not torch.isfinite(weight).all()), None)
    if broken is not None:
        raise DataError(
            option,
            checkpoint.name,
            f"weight {broken} holds NaN or infinity in {dtype}",
            "use --dtype float32, or another checkpoint",
        )
    if dtype == "float64":
        _make_norms_exact(model)
    return model.requires_grad_(False).eval().to(device)


def load_exit_classifier(checkpoint: Checkpoint, device: Any) -> tuple[Tensor, Tensor] | None:
    """CALM's learned exit classifier: weight [d_model] and bias [], float32; None where the checkpoint has none.

    Raises:
        DataError: the file is damaged, or holds something else.
    """
    path = checkpoint.path / "exit_classifier.safetensors"
    if not path.is_file():
        return None
    try:
        tensors = load_file(path)
        return tensors["weight"].float().to(device), tensors["bias"].float().to(device)
    except (SafetensorError, KeyError) as error:
        raise DataError(
            "exit classifier", str(path), f"cannot be loaded ({_reason(error)})", "train it anew"
        ) from error


def check_device(device: str) -> str:
    """The device to use; "auto" is the GPU where torch sees one.

    Raises:
        UsageError: the device is not known or not there.
    """
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(
            "--device",
            device,
            f"torch cannot use it ({_reason(error)}; allowed: auto, cpu, cuda, cuda:N, mps)",
            "try --device auto",
        ) from error
    return device


def _require_encoder_decoder(checkpoint: Checkpoint, option: str) -> None:
    config = checkpoint.file_json("config.json")
    kind = config.get("model_type")
    known = transformers.models.auto.modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    if kind not in known:
        what = "names no model_type" if kind is None else f"is of type {kind}, which is no encoder-decoder text model"
        raise DataError(
            option,
            checkpoint.name,
            f"{what} (allowed: {', '.join(sorted(known))})",
            "give a sequence-to-sequence checkpoint",
        )


class _ExactNorm(nn.Module):
    """RMS norm in the states' own precision; the library's computes the variance in float32 even in float64."""

    def __init__(self, norm: Any) -> None:
        super().__init__()
        self.weight, self.epsilon = nn.Parameter(norm.weight.detach()), norm.variance_epsilon

    def forward(self, states: Tensor) -> Tensor:
        return nn.functional.rms_norm(states, self.weight.shape, self.weight, self.epsilon)


def _make_norms_exact(model: nn.Module) -> None:
    for module in list(model.modules()):
        for name, child in module.named_children():
            if type(child).__name__ in ("T5LayerNorm", "MT5LayerNorm"):
                setattr(module, name, _ExactNorm(child))


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"
