"""Loads a checkpoint with the library, and refuses what cannot be measured: wrong kind, missing or broken weights."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import safe_open
from torch import Tensor, nn

from bild_bench.errors import DataError, UsageError
from bild_bench.models.checkpoint import Checkpoint
from bild_bench.models.config_sizes import wrong_size
from bild_bench.models.settings import loadable
from bild_bench.models.weights import not_floating

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}


def load_tokenizer(checkpoint: Checkpoint, option: str) -> Any:
    """The checkpoint's tokenizer.

    Raises:
        DataError: there is none, or its files are damaged.
    """
    try:
        # Said aloud: left open, the library asks on the terminal whether it may run the folder's own code.
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            checkpoint.tokenizer_path, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:
        # The library raises whatever its tokenizer back-ends raise; no narrower class covers them.
        raise _no_tokenizer(checkpoint, option, f"has no tokenizer that can be loaded ({reason(error)})") from error
    absent = _absent_vocabulary(checkpoint.tokenizer_path, tokenizer)
    if absent:
        raise _no_tokenizer(checkpoint, option, f"has no tokenizer (neither tokenizer.json nor {', '.join(absent)})")
    return tokenizer


def _no_tokenizer(checkpoint: Checkpoint, option: str, problem: str) -> DataError:
    fix = "add tokenizer.json or the sentencepiece model to the folder"
    return DataError(option, str(checkpoint.tokenizer_path), problem, fix)


def _absent_vocabulary(folder: Path, tokenizer: Any) -> list[str]:
    """Vocabulary files that are not there; without them the library makes up a tokenizer with an empty vocabulary."""
    if (folder / "tokenizer.json").is_file():
        return []
    optional = ("tokenizer_file", "tokenizer_config_file", "target_vocab_file")
    needed = [name for kind, name in tokenizer.vocab_files_names.items() if kind not in optional]
    return [name for name in needed if not (folder / name).is_file()]


def load_model(checkpoint: Checkpoint, option: str, device: str, dtype: str) -> Any:
    """The library's encoder-decoder model, in evaluation mode, every weight present and finite.

    Args:
        checkpoint: see `find_checkpoint`.
        option: the flag that named it, for errors.
        device: as torch names it.
        dtype: a key of `DTYPES`.

    Raises:
        DataError: weights missing, damaged, of another shape, or not finite.
    """
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    try:
        model, info = transformers.AutoModelForSeq2SeqLM.from_pretrained(
            checkpoint.path,
            dtype=DTYPES[dtype],
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            variant=checkpoint.variant,
            generation_config=loadable(checkpoint),
            output_loading_info=True,
            # Told apart below: the library's own refusal names no weight.
            ignore_mismatched_sizes=True,
            # One token and a block of tokens give the same bfloat16 scores only without the fused attention kernel.
            attn_implementation="eager" if dtype == "bfloat16" else None,
        )
    except Exception as error:
        # Damaged weights and impossible shapes end in errors of safetensors, torch, the library and Python itself.
        raise DataError(
            option, checkpoint.name, f"cannot be loaded ({reason(error)})", "download or save the checkpoint again"
        ) from error
    problem = _wrong_weights(checkpoint, model, info) or not_floating(checkpoint.path, model)
    if problem is not None:
        raise DataError(option, checkpoint.name, problem, "download or save the checkpoint again")
    tensors = (*model.named_parameters(), *model.named_buffers())
    broken = next((name for name, tensor in tensors if not torch.isfinite(tensor).all()), None)
    if broken is not None:
        raise DataError(
            option,
            checkpoint.name,
            f"weight {broken} holds NaN or infinity in {dtype}",
            "use --dtype float32, or another checkpoint" if dtype == "float16" else "use another checkpoint",
        )
    if dtype == "float64":
        _make_norms_exact(model)
    _want_no_more(model)
    return model.requires_grad_(False).eval().to(device)


def check_device(device: str) -> str:
    """The device to use; "auto" is the GPU where torch sees one.

    Raises:
        UsageError: the device is not known or not there.
    """
    if re.fullmatch(r"auto|cpu|cuda(:\d+)?|mps", device) is None:
        raise UsageError(
            "--device", device, "is not known (allowed: auto, cpu, cuda, cuda:N, mps)", "try --device auto"
        )
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise UsageError(
            "--device",
            device,
            f"torch cannot use it here ({reason(error)})",
            "try --device auto",
        ) from error
    return device


def _text_models() -> list[str]:
    """Kinds of model that the library maps from text to text; the same list of its own holds speech models too."""
    auto = transformers.models.auto.modeling_auto
    others = {*auto.MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES, *auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES}
    names = set(auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES) - others
    return sorted(name for name in names if not name.endswith(("flamingo", "flamingo3")))


def require_encoder_decoder(checkpoint: Checkpoint, option: str) -> None:
    """Check the configuration, before anything else is loaded.

    Raises:
        DataError: it names no encoder-decoder that the library knows, or impossible values.
    """
    config = checkpoint.file_json("config.json")
    kind = config.get("model_type")
    known = _text_models()
    if not isinstance(kind, str) or kind not in known:
        what = (
            "names no model_type" if kind is None else f"is of type {kind}, which is not an encoder-decoder text model"
        )
        raise DataError(
            option,
            checkpoint.name,
            f"{what} (allowed: {', '.join(known)})",
            "give a sequence-to-sequence checkpoint",
        )
    weight_bytes = sum(path.stat().st_size for path in checkpoint.path.glob("*.safetensors"))
    impossible = wrong_size(config, weight_bytes)
    if impossible is not None:
        raise DataError(option, checkpoint.name, impossible, "restore the file")
    try:
        transformers.AutoConfig.from_pretrained(checkpoint.path, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        # Each configuration class checks its fields in its own way.
        raise DataError(
            option, checkpoint.name, f"its config.json cannot be used ({reason(error)})", "restore the file"
        ) from error


def _wrong_weights(checkpoint: Checkpoint, model: Any, info: Any) -> str | None:
    """What is wrong with the weights that were read, in words."""
    if info["mismatched_keys"]:
        name, found, wanted = min(info["mismatched_keys"])
        return f"weight {name} has shape {list(found)}, its configuration expects {list(wanted)}"
    missing = sorted(info["missing_keys"])
    # T5's configuration insists on a tied head whatever the file says, and the library would tie one that is lost.
    own_head = checkpoint.file_json("config.json").get("tie_word_embeddings") is False
    if own_head and model.config.tie_word_embeddings and not _has_weight(checkpoint, "lm_head.weight"):
        missing.insert(0, "lm_head.weight")
    if missing:
        return f"lacks {len(missing)} of its weights, {missing[0]} first"
    modules = dict(model.named_modules())
    layers = [found[0] for name in info["unexpected_keys"] if (found := re.match(r".*\.(block|layers)\.\d+", name))]
    surplus = sorted(layer for layer in layers if layer not in modules)
    return f"holds weights of {surplus[0]}, for which its configuration has no layer" if surplus else None


def _has_weight(checkpoint: Checkpoint, name: str) -> bool:
    for path in checkpoint.path.glob("*.safetensors"):
        with safe_open(path, framework="pt") as weights:
            if name in weights.keys():  # noqa: SIM118  (an open file, not a mapping)
                return True
    return False


def _want_no_more(model: nn.Module) -> None:
    """Outputs by name, and of all that a model can return only the scores, whatever its configuration asks for."""
    for module in model.modules():
        if isinstance(config := getattr(module, "config", None), transformers.PreTrainedConfig):
            config.return_dict, config.output_attentions, config.output_hidden_states = True, False, False


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


def reason(error: BaseException) -> str:
    """An error of another library in one short line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"
