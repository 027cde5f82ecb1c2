"""Greedy search with the library's `generate`, many texts at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache, EncoderDecoderCache
from transformers.generation import LogitsProcessorList, SuppressTokensLogitsProcessor

from bild_bench.models.checkpoint import find_checkpoint
from bild_bench.models.choice import ModelChoice
from bild_bench.models.library import check_device, load_model, load_tokenizer, require_encoder_decoder
from bild_bench.models.rules import read_rules
from bild_bench.models.settings import check_settings, greedy_settings
from bild_bench.models.special_ids import read_special_ids, vocabulary_of


@dataclass(frozen=True)
class Large:
    """The model that generates the targets.

    Args:
        model: the library's, in float32.
        tokenizer: its tokenizer.
        ends: ids that end a text.
        surplus: ids that the model scores and its tokenizer does not have; they are never generated.
    """

    model: Any
    tokenizer: Any
    ends: tuple[int, ...]
    surplus: tuple[int, ...]

    def text(self, ids: Sequence[int]) -> str:
        """Ids as text, without special tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True)).strip()


def load_large(name: str, announce: Callable[[str], None]) -> Large:
    """Load a model to decode with: on the GPU if there is one, else on the CPU.

    Raises:
        DataError: it cannot be used; its generation_config may set a rule that our own decoding does not know either.
    """
    checkpoint = find_checkpoint(ModelChoice(name), "--large", announce)
    require_encoder_decoder(checkpoint, "--large")
    check_settings(checkpoint, rules=True)
    tokenizer = load_tokenizer(checkpoint, "--large")
    model = load_model(checkpoint, "--large", _device(), "float32")
    vocabulary = vocabulary_of(tokenizer)
    special = read_special_ids({"large": model}, vocabulary, {"large": name})
    # What the file says of search and outputs would change what `generate` does.
    model.generation_config = greedy_settings(special, read_rules(model.generation_config, vocabulary, name))
    width = model.get_output_embeddings().weight.shape[0]
    return Large(model, tokenizer, special.ends, tuple(range(vocabulary, width)))


def greedy(large: Large, sources: Sequence[Sequence[int]], limit: int, budget: int) -> list[list[int]]:
    """What the model generates for each source, in the order of the sources.

    Args:
        sources: ids with their end token.
        limit: tokens of a text at most, the end token included.
        budget: tokens of a batch at most, sources with padding and `limit` for each text; one text always fits.

    Returns:
        Ids after the start token, up to and with the first end token; a text without one has `limit` ids.
    """
    found: list[list[int]] = [[] for _ in sources]
    for rows in _batches([len(source) for source in sources], limit, budget):
        for row, ids in zip(rows, _generate(large, [sources[row] for row in rows], limit), strict=True):
            end = next((place for place, token in enumerate(ids) if token in large.ends), len(ids) - 1)
            found[row] = ids[: end + 1]
    return found


@torch.inference_mode()
def _generate(large: Large, sources: Sequence[Sequence[int]], limit: int) -> list[list[int]]:
    """Ids after the start token, each text padded once it has ended."""
    width, pad = max(map(len, sources)), large.tokenizer.pad_token_id
    # Padding at the end, where neither relative nor absolute positions of the text move.
    padded = [[*ids, *[0 if pad is None else pad] * (width - len(ids))] for ids in sources]
    mask = [[1] * len(ids) + [0] * (width - len(ids)) for ids in sources]
    surplus = [SuppressTokensLogitsProcessor(list(large.surplus))] if large.surplus else []
    output = large.model.generate(
        inputs=torch.tensor(padded, device=large.model.device),
        attention_mask=torch.tensor(mask, device=large.model.device),
        # The library's own would be sized by the encoder's layers, which fails where the decoder is the deeper one.
        cache=EncoderDecoderCache(DynamicCache(), DynamicCache()),
        logits_processor=LogitsProcessorList(surplus),
        max_new_tokens=limit,
        max_length=None,
    )
    found: list[list[int]] = output[:, 1:].tolist()
    return found


def _batches(lengths: Sequence[int], limit: int, budget: int) -> Iterator[list[int]]:
    """Rows of like length, the longest first: a batch too large for the memory shows at once."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        # The first of a batch is its longest.
        if batch and (len(batch) + 1) * (lengths[batch[0]] + limit) > budget:
            yield batch
            batch = []
        batch.append(row)
    yield batch


def _device() -> str:
    """The GPU, and of several GPUs one for each process."""
    device, rank = check_device("auto"), int(os.environ.get("LOCAL_RANK", "0"))
    return f"cuda:{rank % torch.cuda.device_count()}" if device == "cuda" else device
