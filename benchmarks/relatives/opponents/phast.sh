#!/bin/bash
# phyloFit, phyloP (LRT CONACC, GERP) and phastCons over star alignments; resumable, times in OUT/times.txt.
#   phast.sh TREE.nh FIT.fa MODEL_OPTIONS OUT ALIGNMENT.fa ...      MODEL_OPTIONS: "--scale-only" or ""
set -e; tree=$1; fit=$2; only=$3; out=$4; shift 4; mkdir -p "$out"
timed() { local step=$1; shift; /usr/bin/time -f "$step %U+%S s %M kB" -a -o "$out/times.txt" "$@"; }
[ -f "$out/fit.mod" ] || timed phyloFit phyloFit --tree "$tree" $only --subst-mod REV \
  --msa-format FASTA --out-root "$out/fit" "$fit" > "$out/fit.log" 2>&1
for file in "$@"; do
  contig=$(basename "$file" .fa)
  [ -f "$out/$contig.cons.wig" ] && continue
  timed "phyloP LRT $contig" phyloP --method LRT --mode CONACC --wig-scores --msa-format FASTA \
    "$out/fit.mod" "$file" > "$out/$contig.lrt.wig" 2>> "$out/log"
  timed "phyloP GERP $contig" phyloP --method GERP --wig-scores --msa-format FASTA \
    "$out/fit.mod" "$file" > "$out/$contig.gerp.wig" 2>> "$out/log"
  timed "phastCons $contig" phastCons --msa-format FASTA --expected-length 20 \
    --target-coverage .4 --rho .3 "$file" "$out/fit.mod" > "$out/$contig.part" 2>> "$out/log"
  mv "$out/$contig.part" "$out/$contig.cons.wig"
done
