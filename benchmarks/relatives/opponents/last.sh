#!/bin/bash
# Align assemblies to a target one-to-one with LAST; resumable, times in WORK/times.txt.
#   last.sh TARGET.fa WORK NAME=RELATIVE.fa[.gz] ...       writes WORK/NAME.maf
set -e; target=$1; work=$2; shift 2; mkdir -p "$work"
timed() { local step=$1; shift; /usr/bin/time -f "$step %U+%S s %M kB" -a -o "$work/times.txt" "$@"; }
[ -f "$work/db.prj" ] || timed lastdb lastdb -P1 -uNEAR "$work/db" "$target"
for pair in "$@"; do
  name=${pair%%=*}; file=${pair#*=}
  [ -f "$work/$name.maf" ] && continue
  case $file in *.gz) zcat "$file" > "$work/$name.fa" ;; *) cp "$file" "$work/$name.fa" ;; esac
  timed "last-train $name" last-train -P1 --sample-number=60 "$work/db" "$work/$name.fa" \
    > "$work/$name.train" 2> "$work/$name.train.log"
  timed "lastal $name" lastal -P1 -C2 -p "$work/$name.train" "$work/db" "$work/$name.fa" \
    > "$work/$name.all.maf"
  timed "last-split $name" last-split -fMAF+ "$work/$name.all.maf" > "$work/$name.query.maf"
  timed "last-split -r $name" last-split -r "$work/$name.query.maf" > "$work/$name.part"
  mv "$work/$name.part" "$work/$name.maf"; rm -f "$work/$name.all.maf"
done
cat "$work/times.txt"
