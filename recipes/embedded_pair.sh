#!/bin/sh
# Trains the pair of models that comes with the package, and puts it into bild_bench/embedded:
#
#     make embedded DATA=DIR [OUT=DIR]
#
# DIR holds tatoeba/train.parquet, debian_de_en/{train.parquet,val.jsonl} and debian_synopsis/{train.parquet,val.jsonl}, each
# with the columns source and target. About two and a half hours on two cores; what is killed goes on where it stopped.
set -eu
DATA=$1 OUT=$2 BIN=${BIN:-.venv/bin}
TRANSLATE="translate German to English: "
SUMMARIZE="summarize: "

for texts in tatoeba/train.parquet debian_de_en/train.parquet debian_synopsis/train.parquet; do
    [ -f "$DATA/$texts" ] || { echo "DATA: '$DATA' lacks $texts" >&2; exit 3; }
done
mkdir -p "$OUT"
[ -f "$OUT/tatoeba/test.jsonl" ] || "$BIN/python" recipes/hold_out_tatoeba.py "$DATA/tatoeba/train.parquet" "$OUT/tatoeba"

# Bfloat16 products where the processor has them (twice as fast here); weights stay float32.
mixed() {
    command=$1 synopses=$2
    shift 2
    "$BIN/bild-bench" "$command" --task custom,custom,custom \
        --data "$OUT/tatoeba" --data "$DATA/debian_de_en/train.parquet" --data "$DATA/debian_synopsis/train.parquet" \
        --validation-data "$OUT/tatoeba/validation.jsonl" --validation-data "$DATA/debian_de_en/val.jsonl" \
        --validation-data "$DATA/debian_synopsis/val.jsonl" \
        --prefix "$TRANSLATE" --prefix "$TRANSLATE" --prefix "$SUMMARIZE" --weight 1 --weight 1 --weight "$synopses" \
        --source-limit 128 --target-limit 128 --precision bfloat16 --threads 1 --processes 2 "$@"
}

# In stages, only because each turned out to be short: the losses were still falling.
mixed train 0.5 --size big --vocab-size 6000 --steps 3600 --every 300 --out "$OUT/large-1"
mixed train 0.5 --init "$OUT/large-1" --steps 1200 --every 300 --rate 0.03 --out "$OUT/large-2"
mixed train 1 --init "$OUT/large-2" --steps 1600 --every 400 --rate 0.04 --dropout 0.05 --out "$OUT/large"
mixed train 0.5 --size little --tokenizer "$OUT/large-1" --steps 4000 --every 500 --rate 0.08 --out "$OUT/small-1"
mixed train 0.5 --init "$OUT/small-1" --steps 6000 --every 500 --rate 0.05 --out "$OUT/small-2"
mixed train 1 --init "$OUT/small-2" --steps 3000 --every 1000 --rate 0.05 --dropout 0 --out "$OUT/small"

# There is no pre-trained little model to align, so the trained one goes on. The control goes on for
# as many steps as the first of the three stages, on the references.
mixed align 1 --large "$OUT/large" --small "$OUT/small" --share 0.3 --steps 2000 --every 500 --rate 0.03 --dropout 0 \
    --out "$OUT/aligned-1"
mixed align 1 --large "$OUT/large" --small "$OUT/aligned-1" --share 0.6 --steps 6000 --every 1000 --rate 0.03 --dropout 0 \
    --out "$OUT/aligned-2"
mixed align 1 --large "$OUT/large" --small "$OUT/aligned-2" --share 1 --steps 7000 --every 1000 --rate 0.03 \
    --dropout 0.05 --out "$OUT/aligned-3"
[ -d "$OUT/aligned" ] || "$BIN/python" recipes/scale_confidence.py "$OUT/aligned-3" "$OUT/aligned" 1.6
mixed train 1 --init "$OUT/small" --steps 2000 --every 500 --rate 0.03 --dropout 0 --out "$OUT/control"

"$BIN/python" recipes/pack_embedded.py "$OUT"
