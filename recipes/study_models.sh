#!/bin/sh
# Trains the models of the study (docs/STUDY.md):
#
#     sh recipes/study_models.sh DATA OUT [PAIR]
#
# DATA holds multi30k/{train.parquet,val.jsonl} with the columns source and target. PAIR holds a trained pair in the folders
# multi30k-large and multi30k-small; without it one is trained from scratch first. About an hour on two cores, and an hour more
# without PAIR; what is killed goes on where it stopped.
set -eu
[ $# -ge 2 ] || { echo "usage: sh recipes/study_models.sh DATA OUT [PAIR]" >&2; exit 2; }
DATA=$1 OUT=$2 PAIR=${3:-} BIN=${BIN:-.venv/bin}
mkdir -p "$OUT"

# Bfloat16 products where the processor has them (twice as fast here); weights stay float32.
captions() {
    command=$1
    shift
    "$BIN/bild-bench" "$command" --task custom --data "$DATA/multi30k/train.parquet" \
        --validation-data "$DATA/multi30k/val.jsonl" --batch-tokens 2400 --precision bfloat16 --threads 1 --processes 2 "$@"
}
# By another name until it is whole: what a kill left must not pass for a model.
copied() {
    [ -d "$OUT/$1" ] && return
    rm -rf "$OUT/$1.part"
    cp -R "$PAIR/multi30k-$1" "$OUT/$1.part"
    mv "$OUT/$1.part" "$OUT/$1"
}

if [ -n "$PAIR" ]; then
    copied large
    copied small
else
    captions train --size big --vocab-size 8000 --steps 4000 --every 500 --out "$OUT/large"
    captions train --size little --tokenizer "$OUT/large" --steps 8000 --every 1000 --rate 0.08 --out "$OUT/small"
fi

captions align --large "$OUT/large" --small "$OUT/small" --steps 12000 --every 1000 --rate 0.03 --out "$OUT/aligned"
captions train --init "$OUT/large" --objective early-exit --steps 500 --every 250 --rate 0.03 --out "$OUT/early-exit"
captions train --init "$OUT/large" --objective calm --steps 400 --every 200 --rate 0.03 --out "$OUT/calm-backbone"
captions train --init "$OUT/calm-backbone" --objective calm-classifier --steps 200 --every 100 --out "$OUT/calm"
