#!/bin/bash
# Everything that needs a GPU, in one call of less than ten minutes.
#
#     benchmarks/gpu/fetch.sh                                                     (here, once: wheels and sources into .gpu, out of git)
#     OUT=folder COMMIT=$(git rev-parse HEAD) bash benchmarks/gpu/run.sh           (there, with .gpu beside it; needs nvcc for the peers)
#     OUT=folder bash benchmarks/gpu/run.sh --dry                                  (anywhere: the same steps, tiny, on the CPU)
#     python benchmarks/gpu/fold.py folder                                         (here: into results.jsonl and RESULTS.md)
#
# Each step has its own limit and writes its JSON as it goes, so that a call that is cut off still brings what it has. mamba-ssm and
# causal-conv1d compile for sm_90 in the background while nothing is timed. Nothing is installed, compiled or cached outside a temporary
# folder. COMMIT is for a tree without .git; without it the commit is that of the last fetch.sh.
set -u
cd "$(dirname "$0")/../.." || exit 1
here=$PWD out=${OUT:-benchmarks/gpu/out} carried=${GENODIFF_GPU_CARRIED:-$PWD/.gpu} limit=${LIMIT:-570} dry=""
[ "${1:-}" = "--dry" ] && dry="--dry" limit=${LIMIT:-1800}
python=${PYTHON:-python3}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
log=$out/run.log
: >"$log"
: >"$out/steps.jsonl"
export PYTHONPATH=$work/site:$work/peers:$here${PYTHONPATH:+:$PYTHONPATH} PYTHONUNBUFFERED=1 GENODIFF_CACHE=$work/cache MPLBACKEND=Agg
export TRITON_CACHE_DIR=$work/triton TORCHINDUCTOR_CACHE_DIR=$work/inductor PYTHONPYCACHEPREFIX=$work/pycache
[ -d "${CUDA_HOME:=/usr/local/cuda}/bin" ] && export CUDA_HOME PATH=$PATH:$CUDA_HOME/bin # nvcc, and ptxas beside it
builder=""
trap '[ -z "$builder" ] || kill -- "-$builder" 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 143' INT TERM

say() { echo "[$SECONDS s] $*" | tee -a "$log"; }

step() { # NAME SECONDS COMMAND...: runs it for at most so long, and never past the end of the call
  local name=$1 most=$2 start=$SECONDS code left
  shift 2
  left=$((limit - SECONDS - 5))
  [ "$left" -lt "$most" ] && most=$left
  if [ "$most" -lt 3 ]; then
    say "$name: no time left"
    return 1
  fi
  say "$name (at most $most s)"
  timeout --kill-after=5 "$most" "$@" >>"$log" 2>&1
  code=$?
  echo "{\"step\": \"$name\", \"code\": $code, \"seconds\": $((SECONDS - start))}" >>"$out/steps.jsonl"
  [ "$code" -eq 0 ] || say "$name: exit code $code"
  return "$code"
}

build_peers() { # for sm_90 only, without torch's other architectures: all of them take ten minutes
  local source
  for source in "$carried"/sources/*.tar.gz; do tar -xzf "$source" -C "$work" || return 1; done
  "$python" - "$work"/causal_conv1d-*/setup.py "$work"/mamba_ssm-*/setup.py <<'PATCH' || return 1
import re, sys
for path in sys.argv[1:]:
    text = open(path).read()
    lines = re.sub(r'^(\s*)cc_flag\.append\("(?:-gencode|arch=[^"]*)"\)\n', r'\1pass\n', text, flags=re.M)
    assert lines != text, path
    lines, n = re.subn(r'^(\s*)cc_flag = \[\]\n', r'\1cc_flag = ["-gencode", "arch=compute_90,code=sm_90"]\n', lines, flags=re.M)
    assert n == 1, path
    lines = re.sub(r'"-std=c\+\+17",?', '', lines)  # torch adds the standard that its own headers need
    open(path, "w").write(lines)
PATCH
  export MAMBA_FORCE_BUILD=TRUE CAUSAL_CONV1D_FORCE_BUILD=TRUE MAMBA_KEEP_CUDA_BUILD=TRUE MAX_JOBS=14
  "$python" -m pip install -q --no-index --no-deps --no-build-isolation --target "$work/peers" "$work"/causal_conv1d-*/ &
  local first=$!
  "$python" -m pip install -q --no-index --no-deps --no-build-isolation --target "$work/peers_mamba" "$work"/mamba_ssm-*/
  local code=$?
  wait "$first" || code=1
  mkdir -p "$work/peers"
  cp -r "$work/peers_mamba"/. "$work/peers/" 2>/dev/null
  : >"$work/peers/mamba_ssm/__init__.py" # it imports Mamba-2 and 3 and a generation interface of older transformers; Mamba-1 needs none of them
  return "$code"
}

say "start, at $(git rev-parse --short HEAD 2>/dev/null || echo unknown)${dry:+, dry}"
commit=$(git rev-parse HEAD 2>/dev/null || echo "${COMMIT:-$(cat "$carried/commit" 2>/dev/null || echo unknown)}")
echo "{\"commit\": \"$commit\"}" >>"$out/steps.jsonl"
if [ -z "$dry" ] && ls "$carried"/wheels/*.whl >/dev/null 2>&1; then
  step wheels 90 "$python" -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --target "$work/site" "$carried"/wheels/*.whl
fi
if [ -z "$dry" ] && command -v nvcc >/dev/null && ls "$carried"/sources/*.tar.gz >/dev/null 2>&1; then
  set -m # its own process group, so that it ends with all its compilers
  (build_peers >"$out/build.log" 2>&1) &
  builder=$!
  set +m
fi

step doctor 90 "$python" -m genodiff doctor --json
step parity 120 "$python" benchmarks/gpu/parity.py --out "$out/parity.json" --seconds 80 $dry
# A foreign package's warning, an error in CI, fails nothing here. Most of the time is Triton's, which compiles on one core.
export PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
pytest="$python -m pytest -q -p no:cacheprovider -W default"
if [ -n "$dry" ]; then
  step tests 250 $pytest tests/kernels/test_triton_mixer.py -m "not slow" -k "convolution and 1-3-4"
else
  "$python" -c "import xdist" 2>/dev/null && pytest="$pytest -p xdist -n 4"
  step tests 110 $pytest -m gpu tests/kernels
fi

if [ -n "$builder" ]; then
  say "waiting for the peers"
  until ! kill -0 "$builder" 2>/dev/null || [ "$SECONDS" -gt 270 ]; do sleep 1; done
  if kill -0 "$builder" 2>/dev/null; then
    say "the peers are not ready: measured without"
    kill -- "-$builder" 2>/dev/null
  elif ! wait "$builder"; then
    say "the peers did not compile: measured without (build.log)"
  fi
  builder=""
fi
step machine 40 "$python" benchmarks/gpu/machine.py --out "$out/machine.json" $dry
step scan 80 "$python" benchmarks/gpu/scan.py --out "$out/scan.json" --seconds 55 $dry
step step 160 "$python" benchmarks/gpu/step.py --out "$out/step.json" --machine "$out/machine.json" --seconds 120 $dry
steps=600 most=200 seconds=90
[ -n "$dry" ] && steps=6 most=900 seconds=300 # of a machine that may have better things to do
step train "$most" "$python" benchmarks/gpu/train.py --out "$out/train.json" --folder "$work/runs" --fasta "$carried/genome.fa.gz" \
  --steps "$steps" --seconds "$seconds" $dry
say "end"
cat "$out/steps.jsonl"
