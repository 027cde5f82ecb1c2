"""A tokenizer trained on the texts at hand, the same each time from the same texts and seed.

By sentencepiece, as T5's was. The tokenizers library's own trainer walks through hash maps whose order differs from
process to process, and so do the pieces that it keeps.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from bild_bench.errors import DataError

_SPECIAL = ("<pad>", "</s>", "<unk>")
# Sums of expected counts depend on how many threads share them.
_THREADS = 4
# Lines at most: more are sampled by the seed, since the trainer holds them in memory.
_MOST_LINES = 2_000_000
_LONGEST_LINE = 2**30
_WARNINGS_AND_WORSE = 2


def train_tokenizer(texts: Iterable[str], vocabulary: int, folder: Path, seed: int = 0) -> None:
    """A unigram tokenizer (Kudo 2018) of T5's form, saved into folder.

    Args:
        texts: any number; more than 2,000,000 lines are sampled.
        vocabulary: pieces, the three special ones included.
        seed: of the sample.

    Raises:
        DataError: the texts do not fill such a vocabulary, or have more characters than it has pieces.
    """
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.Unigram(_pieces(texts, vocabulary, seed), _SPECIAL.index("<unk>")))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    folder.mkdir(parents=True, exist_ok=True)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>"
    ).save_pretrained(folder)


def _pieces(texts: Iterable[str], vocabulary: int, seed: int) -> list[tuple[str, float]]:
    """Each piece with its log probability, the special ones first."""
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.set_random_generator_seed(seed)
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_lines(texts),
            model_writer=written,
            model_type="unigram",
            vocab_size=vocabulary,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            normalization_rule_name="identity",
            character_coverage=1.0,
            max_sentence_length=_LONGEST_LINE,
            input_sentence_size=_MOST_LINES,
            num_threads=_THREADS,
            minloglevel=_WARNINGS_AND_WORSE,
        )
    except RuntimeError as error:
        raise _unfit(vocabulary, str(error)) from error
    model = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    return [(model.id_to_piece(number), model.get_score(number)) for number in range(len(model))]


def _lines(texts: Iterable[str]) -> Iterator[str]:
    """Words with a space between, as the tokenizer will split them."""
    for text in texts:
        words = text.split()
        if words:
            yield " ".join(words)


def _unfit(vocabulary: int, said: str) -> DataError:
    """The trainer's complaint as one line; it raises no narrower class."""
    few = re.search(r"too high .*<= (\d+)", said)
    if few is not None:
        problem = f"the texts yield only {int(few[1]):,} pieces"
        return DataError("--vocab-size", vocabulary, problem, "ask for fewer, or give more text")
    many = re.search(r"required_chars\. \d+ vs (\d+)", said)
    if many is not None:
        problem = f"is too small (the texts have {int(many[1]):,} characters and special pieces)"
        return DataError("--vocab-size", vocabulary, problem, f"ask for {int(many[1]):,} or more")
    return DataError(
        "--vocab-size", vocabulary, f"no tokenizer can be trained on these texts ({said})", "check the texts"
    )
