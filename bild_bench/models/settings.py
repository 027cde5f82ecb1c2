"""A checkpoint's generation settings: which are kept for the library's own `generate`, and which are dropped.

What a peer does is said by its label. Special ids and rules (see `rules`) say which texts are possible and are kept;
search, sampling, caches, outputs and assistants are how a text is found, and those in a file are left out.
"""

from __future__ import annotations

from typing import Any

import transformers

from bild_bench.models.checkpoint import Checkpoint
from bild_bench.models.rule_values import check_values
from bild_bench.models.rules import APPLIED, GenerationRules, refuse_unknown_rules
from bild_bench.models.special_ids import SpecialIds

_SPECIAL = ("decoder_start_token_id", "eos_token_id", "pad_token_id", "bos_token_id")
# The limit is the run's, and the rest is no setting.
_NO_SETTING = ("max_length", "max_new_tokens", "transformers_version", "_from_model_config", "_commit_hash")


def settings_of(checkpoint: Checkpoint) -> tuple[dict[str, Any], str]:
    """Generation settings as they are written, and the name of their file: old checkpoints have them in config.json."""
    own = checkpoint.file_json("generation_config.json")
    if own or (checkpoint.path / "generation_config.json").is_file():
        return own, "generation_config.json"
    known = transformers.GenerationConfig().to_dict()
    found = checkpoint.file_json("config.json")
    return {name: value for name, value in found.items() if name in known}, "config.json"


def check_settings(checkpoint: Checkpoint, *, rules: bool) -> None:
    """Check what the file says of rules and special ids.

    Args:
        checkpoint: its files are read, and nothing is loaded.
        rules: whether its rules are those that hold, so that all must be known.

    Raises:
        DataError: a value of another form, or a rule that cannot be followed; it is named.
    """
    settings, file = settings_of(checkpoint)
    check_values(settings, f"{checkpoint.name}/{file}")
    if rules:
        refuse_unknown_rules(settings, f"{checkpoint.name}/{file}")


def loadable(checkpoint: Checkpoint) -> transformers.GenerationConfig | None:
    """Settings to load the model with where the library refuses the file's own; None where it takes them.

    It refuses combinations that say nothing here, such as three results of a search that finds one.
    """
    settings, _ = settings_of(checkpoint)
    try:
        transformers.GenerationConfig(**settings)
    except Exception:
        # Its checks compare whatever stands there, so that they raise whatever Python does.
        kept = {name: value for name, value in settings.items() if name in (*_SPECIAL, *APPLIED)}
        return transformers.GenerationConfig(**kept)
    return None


def dropped(checkpoint: Checkpoint) -> dict[str, Any]:
    """Settings of the file that say something, and that a peer does not get."""
    settings, _ = settings_of(checkpoint)
    kept = (*_SPECIAL, *APPLIED, *_NO_SETTING)
    usual = {**transformers.GenerationConfig._get_default_generation_params(), "use_cache": True}
    return {
        name: value
        for name, value in settings.items()
        if name not in kept
        and value is not None
        and (value is not False if name not in usual else value != usual[name])
    }


def greedy_settings(special: SpecialIds, rules: GenerationRules) -> transformers.GenerationConfig:
    """Greedy search with a cache under these rules, and nothing else."""
    return transformers.GenerationConfig(
        decoder_start_token_id=special.start,
        eos_token_id=list(special.ends),
        pad_token_id=special.pad,
        num_beams=1,
        do_sample=False,
        use_cache=True,
        **rules.applied,
    )
