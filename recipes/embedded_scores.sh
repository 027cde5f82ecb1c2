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
# BiLD with the control and with the aligned model: by confidence, and with the large model called every three drafts.
rollbacks() {
    name=$1
    shift
    for settings in "--alpha-fb 0.5 --alpha-rb 2" "--alpha-fb 0 --max-draft 3 --alpha-rb 2"; do
        folder="$OUT/scores/rollbacks-$name$(echo "$settings" | tr -d ' ')"
        # shellcheck disable=SC2086
        "$BIN/bild-bench" sweep --task custom --threads 1 --mode bild $settings --large $PAIR/large \
            --small "$OUT/control,$PAIR/aligned" "$@" --out "$folder" >/dev/null
        "$BIN/python" recipes/rollback_difference.py "$folder"
    done
}

alone tatoeba --data "$OUT/tatoeba/test.jsonl" --prefix "$TRANSLATE"
# The validation share too: nothing was learned from it, and no checkpoint was chosen by it.
cat "$OUT/tatoeba/test.jsonl" "$OUT/tatoeba/validation.jsonl" > "$OUT/tatoeba-held-out.jsonl"
alone tatoeba-held-out --data "$OUT/tatoeba-held-out.jsonl" --prefix "$TRANSLATE"
alone debian --data "$DATA/debian_de_en/test.jsonl" --prefix "$TRANSLATE"
alone synopsis --data "$DATA/debian_synopsis/test.jsonl" --prefix "$SUMMARIZE" --metric rougeL
"$BIN/python" recipes/first_sentence.py "$DATA/debian_synopsis/test.jsonl" --experiment "$OUT/scores/synopsis"
rollbacks tatoeba --data "$OUT/tatoeba/test.jsonl" --prefix "$TRANSLATE"
rollbacks debian --data "$DATA/debian_de_en/test.jsonl" --prefix "$TRANSLATE"
rollbacks synopsis --data "$DATA/debian_synopsis/test.jsonl" --prefix "$SUMMARIZE" --metric rougeL
