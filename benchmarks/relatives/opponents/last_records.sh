#!/bin/bash
# Align many short records (mitogenomes) to a short target with LAST; times in WORK/times.txt.
#   last_records.sh TARGET.fa RECORDS.fa WORK              writes WORK/records.maf
# Circular records must begin at the target's origin (rotate.py).
set -e; target=$1; records=$2; work=$3; mkdir -p "$work"
timed() { local step=$1; shift; /usr/bin/time -f "$step %U+%S s %M kB" -a -o "$work/times.txt" "$@"; }
[ -f "$work/records.maf" ] && exit 0
timed lastdb lastdb -P1 "$work/db" "$target"
timed last-train last-train -P1 "$work/db" "$records" > "$work/train" 2> "$work/train.log"
timed lastal lastal -P1 -m200 -p "$work/train" "$work/db" "$records" > "$work/all.maf"
timed last-split last-split -fMAF+ "$work/all.maf" > "$work/part.maf"
mv "$work/part.maf" "$work/records.maf"; rm -f "$work/all.maf"; cat "$work/times.txt"
