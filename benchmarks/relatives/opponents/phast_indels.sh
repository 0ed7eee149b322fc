#!/bin/bash
# PHAST's indel model over star alignments with gaps (star.py --gaps): rates, and log-likelihood by column.
#   phast_indels.sh FIT.mod OUT ALIGNMENT.fa ...      FIT.mod of phast.sh; OUT/CONTIG.indels has a line a column
set -e; model=$1; out=$2; shift 2; mkdir -p "$out"
tree_doctor --tree-only "$model" > "$out/tree.nh"
for file in "$@"; do
  contig=$(basename "$file" .fa)
  indelHistory "$file" "$model" > "$out/$contig.ih"
  indelFit --columns "$out/$contig.ih" "$out/tree.nh" > "$out/$contig.indels"
done
