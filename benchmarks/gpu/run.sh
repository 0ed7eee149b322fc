#!/bin/bash
# One of the three calls on a lent GPU, or its rehearsal here. QUEUE.md says what each does and takes.
#
#     benchmarks/gpu/fetch.sh                        (here, once: wheels and a genome into .gpu, out of git)
#     bash benchmarks/gpu/run.sh 1                   (there, with .gpu beside it and OUT set; then 2, then 3)
#     bash benchmarks/gpu/run.sh 1 --rehearse        (anywhere: the same stages, tiny, on the CPU)
#     python benchmarks/gpu/fold.py FILE...          (here: the archives that came back, into results.jsonl and RESULTS.md)
#
# $OUT receives call-N.tar.gz (packed again every few seconds), call-N.log and triton-cache.tar.gz.
# Everything else is written to $GENODIFF_GPU_WORK, which stays, so that a machine that is still warm need not install and
# compile again. COMMIT is for a tree without .git; without it the commit is that of the last fetch.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD
work=${GENODIFF_GPU_WORK:-${TMPDIR:-/tmp}/genodiff-gpu}
export GENODIFF_GPU_OUT=${OUT:-$here/benchmarks/gpu/out} GENODIFF_GPU_WORK=$work GENODIFF_GPU_CARRIED=${GENODIFF_GPU_CARRIED:-$here/.gpu}
mkdir -p "$GENODIFF_GPU_OUT" "$work" || exit 1
export PYTHONPATH=$work/site:$here${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
export GENODIFF_CACHE=$work/cache TRITON_CACHE_DIR=$work/triton TORCHINDUCTOR_CACHE_DIR=$work/inductor MPLBACKEND=Agg
unset GENODIFF_SCAN # the scan that is measured is the one that is chosen
[ -d "${CUDA_HOME:=/usr/local/cuda}/bin" ] && export CUDA_HOME PATH=$PATH:$CUDA_HOME/bin # ncu, and ptxas
case " $* " in
*" --rehearse "*) export CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} ;;
esac
exec "${PYTHON:-python3}" benchmarks/gpu/call.py "$@"
