#!/bin/bash
# One of the calls on a lent GPU, or its rehearsal here. QUEUE.md says what each does and takes.
#
#     benchmarks/gpu/fetch.sh [build]                (here, once: everything that travels, into .gpu, out of git)
#     bash .gpu/run.sh 1                             (there, from .gpu alone, with OUT set; then 2 to 5)
#     bash benchmarks/gpu/run.sh 1 --rehearse        (anywhere: the same stages, tiny, on the CPU)
#     python benchmarks/gpu/fold.py FILE...          (here: the archives that came back, into results.jsonl and RESULTS.md)
#
# $OUT receives call-N.tar.gz (packed again every few seconds) and call-N.log. Everything else is written to
# $GENODIFF_GPU_WORK, which stays, so that a machine that is still warm need not install and compile again.
set -u
cd "$(dirname "$0")" || exit 1
work=${GENODIFF_GPU_WORK:-${TMPDIR:-/tmp}/genodiff-gpu}
mkdir -p "$work" || exit 1
if [ -f project.tar.gz ]; then # the copy of this script in .gpu: the project travels beside it
  export GENODIFF_GPU_CARRIED=$PWD OUT=${OUT:-$PWD/out}
  rm -rf "$work/project" && mkdir "$work/project" && tar xzf project.tar.gz -C "$work/project" || exit 1
  exec bash "$work/project/benchmarks/gpu/run.sh" "$@"
fi
cd ../.. || exit 1
here=$PWD
export GENODIFF_GPU_OUT=${OUT:-$here/benchmarks/gpu/out} GENODIFF_GPU_WORK=$work GENODIFF_GPU_CARRIED=${GENODIFF_GPU_CARRIED:-$here/.gpu}
mkdir -p "$GENODIFF_GPU_OUT" || exit 1
export PYTHONPATH=$work/site:$here${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1
export GENODIFF_CACHE=$work/cache TRITON_CACHE_DIR=$work/triton TORCHINDUCTOR_CACHE_DIR=$work/inductor MPLBACKEND=Agg
unset GENODIFF_SCAN # the scan that is measured is the one that is chosen
[ -d "${CUDA_HOME:=/usr/local/cuda}/bin" ] && export CUDA_HOME PATH=$PATH:$CUDA_HOME/bin # ncu, and ptxas
case " $* " in
*" --rehearse "*) export CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=${OMP_NUM_THREADS:-1} ;;
esac
exec "${PYTHON:-python3}" benchmarks/gpu/call.py "$@"
