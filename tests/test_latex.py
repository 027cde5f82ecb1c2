"""LaTeX tables: every figure, nothing that a label holds is a command, and rows of equal length."""

from __future__ import annotations

import re
from pathlib import Path

from bild_bench.report.collect import Collected, collect
from bild_bench.report.latex import escape, to_latex
from tests.made_reports import experiment, grid
from tests.made_results import BASELINE, POINT, made_sample, two_texts


def test_a_table_of_the_hand_worked_points(tmp_path: Path) -> None:
    experiment(tmp_path / "x", command="bild-bench run --task iwslt17")

    lines = to_latex(collect([tmp_path])).splitlines()

    assert lines[0] == r"% \usepackage{booktabs}"
    assert r"\begin{tabular}{lrrrrrrrr}" in lines
    assert (
        r"method & ROUGE-L & vs vanilla & decoding speed-up & total speed-up & fallback \% & rollback \%"
        r" & accepted \% & accepted length \\"
    ) in lines
    assert r"vanilla$^{\ast}$ & 100.00 & 0.00 & 1.00$\times$ & 1.00$\times$ & 0.0 & 0.0 & -- & 1.00 \\" in lines
    assert (
        r"bild fb=0.5 rb=2$^{\ast}$ & 78.57 & $-$21.43 [$-$42.86, $+$0.00] & 3.00$\times$ [2.50, 5.00]"
        r" & 2.00$\times$ [1.60, 4.00] & 20.0 & 10.0 & 80.8 & 2.73 \\"
    ) in lines
    rules = [line for line in lines if line in (r"\toprule", r"\midrule", r"\bottomrule")]
    assert rules == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert any(line.startswith("% ") and line.endswith(": bild-bench run --task iwslt17") for line in lines)
    assert any(line.startswith("% rougeL|nrefs:1") for line in lines)
    assert lines.count(r"\begin{table}") == lines.count(r"\end{table}") == 1


def test_what_a_label_or_a_name_holds_is_printed_and_not_obeyed(tmp_path: Path) -> None:
    odd = {**POINT, "point": "[b] 50% & $x_1^2$ {~} #\\input{/etc/passwd} <a|b>"}
    texts = {"a": [made_sample(BASELINE), made_sample(odd)], "b": two_texts()["b"][:1]}
    texts["b"].append(made_sample(odd, text_id="b", text_index=1))
    experiment(tmp_path / "x", texts, points=[BASELINE, odd], command="run\n\\evil", data_label="custom/a_b%.csv")

    lines = to_latex(collect([tmp_path])).splitlines()

    [row] = [line for line in lines if line.startswith("{}[b]")]
    assert row.split(" & ")[0].startswith(
        r"{}[b] 50\% \& \$x\_1\textasciicircum{}2\$ \{\textasciitilde{}\} \#\textbackslash{}input\{/etc/passwd\}"
        r" \textless{}a\textbar{}b\textgreater{}"
    )
    [caption] = [line for line in lines if line.startswith(r"\caption")]
    assert r"custom/a\_b\%.csv" in caption
    outside = [line for line in lines if not line.startswith("%")]
    assert not [line for line in outside if "evil" in line or r"\input" in line]
    # An unescaped ampersand would be a cell more.
    body = [line for line in outside if line.endswith(r" \\")]
    assert len({len(re.findall(r"(?<!\\)&", line)) for line in body}) == 1
    for line in outside:
        bare = re.sub(r"\\[\\{}]", "", line)
        assert bare.count("{") == bare.count("}")


def test_each_group_has_a_table_of_its_own_and_damaged_files_a_comment(tmp_path: Path) -> None:
    grid(tmp_path / "one", [(0.5, 1.0, 1.0)])
    experiment(tmp_path / "two", split="validation")
    text = to_latex(collect([tmp_path]))
    assert text.count(r"\begin{tabular}") == 2
    assert [label in text for label in (r"\label{tab:bild-bench-1}", r"\label{tab:bild-bench-2}")] == [True, True]
    assert to_latex(Collected((), ("x/run.parquet:\ndamaged",))).endswith("% left out: x/run.parquet: damaged\n")


def test_escape_leaves_ordinary_text_alone() -> None:
    assert escape("Größe naïve (2 × 3) – ok, “so”") == "Größe naïve (2 × 3) – ok, “so”"
