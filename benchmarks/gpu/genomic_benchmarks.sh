#!/bin/sh
# The official table, on a machine with a network and a GPU: pretrain on hg38, then nine tasks, five seeds, the paper's settings, by the
# official split and without its leaks. Every line goes on where it stopped. First what it takes: sh benchmarks/gpu/genomic_benchmarks.sh plan
set -e
out=${OUT:-runs/genomic-benchmarks-official}
jobs=${JOBS:-4}
run="$out/hg38-caduceus-ps-470k"
if [ "$1" = plan ]; then
    genodiff train hg38 --preset caduceus-ps-470k --batch-size 1024 --max-steps 10000 --precision bf16 --out "$run" --plan
    genodiff finetune genomic-benchmarks --head mean --model scratch:caduceus-ps-470k --model baselines --jobs "$jobs" --plan
    exit
fi
genodiff train hg38 --preset caduceus-ps-470k --batch-size 1024 --max-steps 10000 --precision bf16 --out "$run"
for split in official dedup chrom-holdout; do
    genodiff finetune genomic-benchmarks --head mean --split $split --model "$run" --model scratch --model baselines --jobs "$jobs" --out "$out/sweep"
done
genodiff finetune genomic-benchmarks --head mean --protocol mdlm --model "$run" --jobs "$jobs" --out "$out/sweep"
