#!/bin/sh
# Trains the models of the study (docs/STUDY.md) that a trained pair of Multi30k captions does not have yet:
#
#     sh recipes/study_models.sh DATA PAIR OUT
#
# DATA holds multi30k/{train.parquet,val.jsonl} with the columns source and target; PAIR a trained large and small model in
# the folders multi30k-large and multi30k-small. About 40 minutes on two cores; what is killed goes on where it stopped.
set -eu
DATA=$1 PAIR=$2 OUT=$3 BIN=${BIN:-.venv/bin}

mkdir -p "$OUT"
[ -d "$OUT/large" ] || cp -R "$PAIR/multi30k-large" "$OUT/large"
[ -d "$OUT/small" ] || cp -R "$PAIR/multi30k-small" "$OUT/small"

# Bfloat16 products where the processor has them (twice as fast here); weights stay float32.
captions() {
    command=$1
    shift
    "$BIN/bild-bench" "$command" --task custom --data "$DATA/multi30k/train.parquet" \
        --validation-data "$DATA/multi30k/val.jsonl" --batch-tokens 2400 --precision bfloat16 --threads 1 --processes 2 "$@"
}

captions align --large "$OUT/large" --small "$OUT/small" --steps 2000 --every 500 --rate 0.03 --out "$OUT/aligned"
captions train --init "$OUT/large" --objective early-exit --steps 500 --every 250 --rate 0.03 --out "$OUT/early-exit"
captions train --init "$OUT/large" --objective calm --steps 400 --every 200 --rate 0.03 --out "$OUT/calm-backbone"
captions train --init "$OUT/calm-backbone" --objective calm-classifier --steps 200 --every 100 --out "$OUT/calm"
