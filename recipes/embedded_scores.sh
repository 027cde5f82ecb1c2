#!/bin/sh
# Scores the pair that comes with the package on texts that it did not learn from:
#
#     sh recipes/embedded_scores.sh DATA OUT
#
# DATA and OUT are those of recipes/embedded_pair.sh, which must have run: OUT holds Tatoeba's test share and the control model.
set -eu
DATA=$1 OUT=$2 BIN=${BIN:-.venv/bin} PAIR=bild_bench/embedded
TRANSLATE="translate German to English: "
SUMMARIZE="summarize: "

alone() {
    name=$1
    shift
    "$BIN/bild-bench" run --task custom --threads 1 --mode small --large $PAIR/large --small $PAIR/small "$@" \
        --out "$OUT/scores/$name" >/dev/null
    "$BIN/bild-bench" run --task custom --threads 1 --mode small --no-baseline --small $PAIR/aligned "$@" \
        --out "$OUT/scores/$name-aligned" >/dev/null
    "$BIN/python" recipes/held_out_scores.py "$OUT/scores/$name" "$OUT/scores/$name-aligned"
}
rollbacks() {
    name=$1
    shift
    "$BIN/bild-bench" sweep --task custom --threads 1 --mode bild --alpha-fb 0.5 --alpha-rb 2 --large $PAIR/large \
        --small "$OUT/control,$PAIR/aligned" "$@" --out "$OUT/scores/rollbacks-$name" >/dev/null
    "$BIN/python" recipes/rollback_difference.py "$OUT/scores/rollbacks-$name"
}

alone tatoeba --data "$OUT/tatoeba/test.jsonl" --prefix "$TRANSLATE"
alone debian --data "$DATA/debian_de_en/test.jsonl" --prefix "$TRANSLATE"
alone synopsis --data "$DATA/debian_synopsis/test.jsonl" --prefix "$SUMMARIZE" --metric rougeL
"$BIN/python" recipes/first_sentence.py "$DATA/debian_synopsis/test.jsonl"
rollbacks tatoeba --data "$OUT/tatoeba/test.jsonl" --prefix "$TRANSLATE"
rollbacks debian --data "$DATA/debian_de_en/test.jsonl" --prefix "$TRANSLATE"
rollbacks synopsis --data "$DATA/debian_synopsis/test.jsonl" --prefix "$SUMMARIZE" --metric rougeL
