"""The finished model's folder: safetensors, tokenizer, configuration and a model card."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from bild_bench.models.prefix import PREFIXES_KEY
from bild_bench.parquet import writing
from bild_bench.training.card import model_card
from bild_bench.training.classifier import ExitClassifier
from bild_bench.training.job import Job
from bild_bench.whole_files import whole_file, write_whole

CLASSIFIER_FILE = "exit_classifier.safetensors"
# Tells `run` whether a model's lower layers were trained to be left.
OBJECTIVE_KEY = "bild_bench_objective"
_PRECISIONS = {"float32": torch.float32, "float16": torch.float16}


def save_finished(job: Job, trained: Any, model: Any, tokenizer: Any, record: dict[str, Any]) -> None:
    """Write the model that came out of a run into its folder, which then serves as --large, --small or --init.

    Args:
        trained: what was trained: the model, or the classifier beside it.
        model: the whole model.

    Raises:
        RunError: the disk is full.
    """
    with writing(job.out, "--out"):
        model.config.use_cache, model.config.output_hidden_states = True, False
        if not isinstance(trained, ExitClassifier):
            # A classifier leaves the layers as they were: what they were trained for stands there already.
            setattr(model.config, OBJECTIVE_KEY, job.recipe.objective)
            setattr(model.config, PREFIXES_KEY, _prefixes(job))
        save_model(model.cpu(), tokenizer, job.out)
        if isinstance(trained, ExitClassifier):
            linear = trained.linear.cpu()
            tensors = {"weight": linear.weight.detach()[0].clone(), "bias": linear.bias.detach()[0].clone()}
            with whole_file(job.out / CLASSIFIER_FILE) as part:
                save_file(tensors, part, metadata={"format": "pt"})
        write_whole(job.out / "README.md", model_card(job, model, record).encode())


def _prefixes(job: Job) -> list[dict[str, str | None]]:
    """The prefix of every source, once each; a custom task may be of either kind."""
    named = {(None if source.task.name == "custom" else source.task.kind, source.prefix) for source in job.sources}
    return [{"kind": kind, "prefix": prefix} for kind, prefix in sorted(named, key=str)]


def save_model(model: Any, tokenizer: Any, folder: Path, precision: str = "float32") -> None:
    """A checkpoint in the library's layout; config.json says float32 in any case, so that it loads as float32.

    Args:
        precision: of the weights on the disk, "float32" or "float16".
    """
    # T5's configuration says "tied" whatever the file said: an untied head must stay one for whoever loads it next.
    tied = model.get_output_embeddings().weight.data_ptr() == model.get_input_embeddings().weight.data_ptr()
    weights: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict().items():
        # The library finds a matrix that serves several modules under the first of its names, `shared`.
        weights.setdefault(tensor.data_ptr(), (name, tensor.to(_PRECISIONS[precision]).contiguous()))
    folder.mkdir(parents=True, exist_ok=True)
    model.config.tie_word_embeddings = tied
    model.config.dtype = torch.float32
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    with whole_file(folder / "model.safetensors") as part:
        save_file(dict(weights.values()), part, metadata={"format": "pt"})
