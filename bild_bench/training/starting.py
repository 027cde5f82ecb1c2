"""Where training starts from: a checkpoint, or a new model with a tokenizer that is given or trained on the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from torch import nn

from bild_bench.models.checkpoint import find_checkpoint
from bild_bench.models.choice import ModelChoice
from bild_bench.models.library import load_model, load_tokenizer, require_encoder_decoder
from bild_bench.models.settings import check_settings
from bild_bench.parquet import writing
from bild_bench.training.job import OWN_TOKENIZER, Job
from bild_bench.training.objectives import check_layered
from bild_bench.training.sizes import new_model
from bild_bench.training.texts import load_split
from bild_bench.training.tokenizer import train_tokenizer
from bild_bench.whole_files import whole_folder

Announce = Callable[[str], None]


def start(job: Job, announce: Announce) -> tuple[Any, Any]:
    """The model to train, its weights in float32, and its tokenizer.

    Raises:
        UsageError, DataError: there is no such checkpoint, or it cannot be trained for the objective.
    """
    recipe = job.recipe
    if job.init is not None:
        checkpoint = find_checkpoint(ModelChoice(job.init), "--init", announce)
        require_encoder_decoder(checkpoint, "--init")
        check_settings(checkpoint, rules=False)
        tokenizer = load_tokenizer(checkpoint, "--init")
        model = load_model(checkpoint, "--init", "cpu", "float32")
        check_layered(recipe.objective, model, job.init)
        _make_trainable(model)
    else:
        tokenizer = _tokenizer_of_new(job, announce)
        model = new_model(str(job.size), len(tokenizer), recipe.seed)
    if recipe.dropout is not None:
        _set_dropout(model, recipe.dropout)
    return model, tokenizer


def make_tokenizer(job: Job, announce: Announce) -> None:
    """Train the tokenizer that the job asks for, unless that has been done."""
    folder = job.out / OWN_TOKENIZER
    if job.vocab_size is None or folder.is_dir():
        return
    announce(f"training a tokenizer of {job.vocab_size:,} pieces")
    with writing(job.out, "--out"), whole_folder(folder) as draft:
        train_tokenizer(_texts(job), job.vocab_size, draft, job.recipe.seed)


def fingerprints(job: Job, announce: Announce) -> dict[str, str]:
    """What the checkpoints that the job names hold now."""
    named = {"init": job.init, "tokenizer": job.tokenizer}
    return {
        role: find_checkpoint(ModelChoice(name), f"--{role}", announce).fingerprint
        for role, name in named.items()
        if name is not None
    }


def _tokenizer_of_new(job: Job, announce: Announce) -> Any:
    if job.tokenizer is not None:
        return load_tokenizer(find_checkpoint(ModelChoice(job.tokenizer), "--tokenizer", announce), "--tokenizer")
    import transformers

    folder = job.out / OWN_TOKENIZER
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


def _texts(job: Job) -> Iterator[str]:
    """Prefixes too, once for each source: their words are in every text that the model will read."""
    for source in job.sources:
        found = load_split(source, "train", job.recipe.seed, lambda line: None)
        yield source.prefix
        for example in found.examples:
            yield example.source
            yield example.target


def _make_trainable(model: nn.Module) -> None:
    """All weights but Marian's and Pegasus' positions, which are sinusoids by definition."""
    fixed = {id(module.weight) for module in model.modules() if "Sinusoidal" in type(module).__name__}
    for weight in model.parameters():
        weight.requires_grad_(id(weight) not in fixed)


def _set_dropout(model: nn.Module, rate: float) -> None:
    # T5's name; then those of BART and its kin.
    for name in ("dropout_rate", "dropout", "attention_dropout", "activation_dropout"):
        if hasattr(model.config, name):
            setattr(model.config, name, rate)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = rate
        # Attention, and the layers of BART, keep their rates as numbers.
        for name in ("dropout", "activation_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, rate)
