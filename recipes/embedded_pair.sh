#!/bin/sh
# Trains the pair of models that comes with the package, and puts it into bild_bench/embedded:
#
#     make embedded DATA=DIR [OUT=DIR]
#
# DIR holds tatoeba/train.parquet, debian_de_en/{train.parquet,val.jsonl} and debian_synopsis/{train.parquet,val.jsonl}, each
# with the columns source and target. About two hours on two cores; what is killed goes on where it stopped.
set -eu
DATA=$1 OUT=$2 BIN=${BIN:-.venv/bin}
TRANSLATE="translate German to English: "
SUMMARIZE="summarize: "

mkdir -p "$OUT"
[ -f "$OUT/tatoeba/test.jsonl" ] || "$BIN/python" recipes/hold_out_tatoeba.py "$DATA/tatoeba/train.parquet" "$OUT/tatoeba"

# Bfloat16 products where the processor has them (twice as fast here); weights stay float32.
mixed() {
    command=$1
    shift
    "$BIN/bild-bench" "$command" --task custom,custom,custom \
        --data "$OUT/tatoeba" --data "$DATA/debian_de_en/train.parquet" --data "$DATA/debian_synopsis/train.parquet" \
        --validation-data "$OUT/tatoeba/validation.jsonl" --validation-data "$DATA/debian_de_en/val.jsonl" \
        --validation-data "$DATA/debian_synopsis/val.jsonl" \
        --prefix "$TRANSLATE" --prefix "$TRANSLATE" --prefix "$SUMMARIZE" --weight 1 --weight 1 --weight 0.5 \
        --source-limit 128 --target-limit 128 --precision bfloat16 --threads 1 --processes 2 "$@"
}

mixed train --size big --vocab-size 6000 --steps 3600 --every 300 --out "$OUT/large"
