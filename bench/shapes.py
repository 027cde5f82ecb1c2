"""What is measured: T5 shapes with random weights, made once in a cache folder; the embedded pair; trained pairs."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.interleave import Text
from bild_bench.data import load_examples
from bild_bench.models.choice import choose_pair
from bild_bench.models.pair import Pair, load_pair
from bild_bench.tasks import load_task

PAD, END, UNKNOWN = 0, 1, 2

# The published configurations of T5 1.0 (Raffel et al. 2020) and of mT5 (Xue et al. 2021), whose vocabulary is eight
# times as large; random weights cost what trained ones do.
T5 = {"vocab_size": 32_128, "feed_forward_proj": "relu", "decoder_start_token_id": PAD}
MT5 = {"model_type": "mt5", "vocab_size": 250_112, "decoder_start_token_id": PAD}
RANDOM_SHAPES: dict[str, dict[str, Any]] = {
    "t5-small": {**T5, "d_model": 512, "d_kv": 64, "d_ff": 2048, "num_heads": 8, "num_layers": 6},
    "t5-large": {**T5, "d_model": 1024, "d_kv": 64, "d_ff": 4096, "num_heads": 16, "num_layers": 24},
    "mt5-small": {**MT5, "d_model": 512, "d_kv": 64, "d_ff": 1024, "num_heads": 6, "num_layers": 8},
}

Announce = Callable[[str], None]


@dataclass(frozen=True)
class Subject:
    """Models to be measured, and texts for them.

    Args:
        shape: its name in the results.
        pair: the large model, the small one where there is one, and the library's copies of them.
        texts: source texts to measure on.
        tokens: generated tokens at most.
        fixed: every text has exactly `tokens` tokens and no end token counts; for random weights.
        validation: other texts, to look for thresholds on.
    """

    shape: str
    pair: Pair
    texts: tuple[Text, ...]
    tokens: int
    fixed: bool
    validation: tuple[Text, ...] = ()

    @property
    def ends(self) -> frozenset[int]:
        """The tokens that end a text."""
        return frozenset() if self.fixed else frozenset(self.pair.special.ends)


def random_checkpoint(folder: Path, config: dict[str, Any]) -> Path:
    """A checkpoint of random weights with a tokenizer as large as its vocabulary; left alone where it exists.

    Args:
        folder: where it is, or is made.
        config: fields of T5Config, or of MT5Config where the model_type is mt5.
    """
    import torch
    import transformers

    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(0)
    model = _random_model(config)
    with tempfile.TemporaryDirectory(dir=folder.parent) as space:
        made = Path(space) / folder.name
        model.save_pretrained(made)
        _tokenizer(int(config["vocab_size"])).save_pretrained(made)
        # Whoever looks for the folder finds all of it or nothing.
        made.rename(folder)
    return folder


def _random_model(config: dict[str, Any]) -> Any:
    import torch
    import transformers

    if config.get("model_type") != "mt5":
        return transformers.T5ForConditionalGeneration(transformers.T5Config(**config))
    settings = {name: value for name, value in config.items() if name != "model_type"}
    model = transformers.MT5ForConditionalGeneration(transformers.MT5Config(**settings))
    # The library's configuration ties them; published mT5 has a head of its own, which costs memory once more.
    model.lm_head.weight = torch.nn.Parameter(0.05 * torch.randn_like(model.lm_head.weight))
    return model


def _tokenizer(vocabulary: int) -> Any:
    """One piece per id, so that no implementation may leave out a row of the output projection."""
    import transformers
    from tokenizers import Tokenizer, models

    pieces = ["<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(3, vocabulary))]
    backend = Tokenizer(models.Unigram([(piece, -1.0) for piece in pieces], UNKNOWN))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    )


def random_texts(count: int, length: int, vocabulary: int, seed: int) -> tuple[Text, ...]:
    """Sources of this many random ids, the end token last."""
    draw = random.Random(seed)
    return tuple(
        Text((*(draw.randrange(UNKNOWN + 1, vocabulary) for _ in range(length - 1)), END)) for _ in range(count)
    )


def random_subject(
    shape: str,
    folder: Path,
    config: dict[str, Any],
    *,
    count: int,
    length: int,
    tokens: int,
    announce: Announce,
    small: str | None = None,
    device: str = "cpu",
    dtype: str = "float32",
) -> Subject:
    """A large model with random weights, and a small one where that is asked for.

    Args:
        shape: its name.
        folder: the cache folder.
        config: see `random_checkpoint`.
        count, length: of the source texts.
        tokens: that each text has.
        announce: called with one line before something slow.
        small: one of `RANDOM_SHAPES`, with the large model's vocabulary.
        device, dtype: of the models.
    """
    announce(f"{shape}: opening the model (the first time it is made), {dtype}")
    chosen: dict[str, Any] = {"large": str(random_checkpoint(folder / shape, config))}
    if small is not None:
        chosen["small"] = str(random_checkpoint(folder / small, RANDOM_SHAPES[small]))
    choice = choose_pair("custom", "translation", **chosen)
    opened: dict[str, Any] = {"device": device, "dtype": dtype, "announce": announce}
    pair = load_pair(choice, tuple(chosen), library_keys=("large",), **opened)
    # Without an end token the library runs to the limit, as the others do.
    pair.library["large"].generation_config.eos_token_id = None
    return Subject(shape, pair, random_texts(count, length, int(config["vocab_size"]), seed=0), tokens, fixed=True)


def embedded_subject(
    count: int, announce: Announce, device: str = "cpu", dtype: str = "float32", aligned: bool = False
) -> Subject:
    """The pair and the texts that come with the package: one half of them for thresholds, the other to measure on."""
    task = load_task("iwslt17")
    choice = choose_pair(task.name, task.kind, aligned=aligned)
    pair = load_pair(choice, device=device, dtype=dtype, library_keys=("large", "small"), announce=announce)
    texts = _texts(pair, load_examples(task, "embedded", None, None, 0, announce).examples[:count], task.source_limit)
    half = len(texts) // 2
    shape = "embedded, aligned" if aligned else "embedded"
    return Subject(shape, pair, texts[half:], task.target_limit, fixed=False, validation=texts[:half])


def trained_subject(
    models: tuple[str, str], data: str, validation: str, counts: tuple[int, int], announce: Announce
) -> Subject:
    """A trained pair and texts of its kind, with the columns source and target.

    Args:
        models: the large and the small one.
        data, validation: files of texts.
        counts: texts of each at most, from the first on.
        announce: called with one line before something slow.

    Raises:
        UsageError, DataError: as `load_pair` and `load_examples`.
    """
    task = load_task("custom")
    choice = choose_pair(task.name, task.kind, large=models[0], small=models[1])
    pair = load_pair(choice, device="cpu", library_keys=("large", "small"), announce=announce)
    texts, looked_at = (
        _texts(pair, load_examples(task, file, None, None, 0, announce).examples[:count], task.source_limit)
        for file, count in zip((data, validation), counts, strict=True)
    )
    return Subject(choice.label, pair, texts, task.target_limit, fixed=False, validation=looked_at)


def _texts(pair: Pair, examples: Sequence[Any], limit: int) -> tuple[Text, ...]:
    return tuple(
        Text(tuple(pair.tokenise(example.source, limit).ids[0].tolist()), example.references)
        for example in examples
        if example.source.strip()
    )
