#!/bin/sh
# Gathers in one folder all that travels to a lent machine: the project, what its Python 3.12 lacks and cannot download, a genome.
#
#     benchmarks/gpu/fetch.sh [FOLDER]         (default: .gpu at the top of the tree; kept out of git)
#     benchmarks/gpu/fetch.sh build [FOLDER]   (the same, and mamba-ssm and causal-conv1d are compiled: 20 minutes on two busy cores)
#
# The project is `git archive` of the commit, of the parts that the calls need. Packages are installed here into one folder,
# stripped and packed by xz, because at most 64 MiB travel. GENODIFF_GPU_FASTA=genome.fa.gz travels along, for the real run.
# The peers need nvcc 13.0 here, and a Python 3.12 with the lent machine's torch: PYTHON312, by default a virtual environment
# that is made in $GENODIFF_GPU_CACHE (3 GB). Wheels that were built are kept there too, and not built again.
set -eu
cd "$(dirname "$0")/../.."
build=""
[ "${1:-}" != build ] || { build=1; shift; }
to=${1:-.gpu}
python=${PYTHON:-python3}
cache=${GENODIFF_GPU_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/genodiff-gpu}
rm -rf "$to"
mkdir -p "$to" "$cache/sources" "$cache/peers"
if [ -d .git ] || [ -f .git ]; then
  exclude=$(git rev-parse --git-path info/exclude)
  grep -qs "^/.gpu/" "$exclude" || { mkdir -p "$(dirname "$exclude")" && echo "/.gpu/" >>"$exclude"; }
fi
git archive --format=tar.gz -o "$to/project.tar.gz" HEAD genodiff data_recipes benchmarks/gpu tests/kernels 'tests/*.py' pyproject.toml
git rev-parse HEAD >"$to/commit"
cp benchmarks/gpu/run.sh "$to/run.sh"

if [ -n "$build" ]; then
  if [ -z "${PYTHON312:-}" ]; then
    PYTHON312=$cache/python312/bin/python
    if [ ! -x "$PYTHON312" ] && ! python3.12 -m venv "$cache/python312"; then
      echo "no python3.12 that runs: put one into PATH (pyenv: set PYENV_VERSION), or name one with torch in PYTHON312" >&2
      exit 2
    fi
    "$PYTHON312" -m pip install -q torch==2.11.0 triton==3.6.0 'setuptools<81' wheel ninja packaging einops numpy
  fi
  # By that Python, since their setup.py imports torch; it asks for CUDA only where it is not told to skip it.
  for source in mamba-ssm==2.3.2.post1 causal-conv1d==1.7.0; do
    name=$(echo "${source%%==*}" | tr - _)
    ls "$cache"/sources/"$name"-*.tar.gz >/dev/null 2>&1 ||
      MAMBA_SKIP_CUDA_BUILD=TRUE CAUSAL_CONV1D_SKIP_CUDA_BUILD=TRUE \
        "$PYTHON312" -m pip download -q --no-deps --no-binary :all: --no-build-isolation -d "$cache/sources" "$source"
  done
  "$PYTHON312" benchmarks/gpu/build_peers.py "$cache/sources" "$cache/peers" --jobs "${JOBS:-2}"
fi

platforms="--platform linux_x86_64" # as the peers are called that were built here
for tag in manylinux_2_39 manylinux_2_34 manylinux_2_31 manylinux_2_28 manylinux_2_27 manylinux_2_24 manylinux_2_17 manylinux2014 manylinux1; do
  platforms="$platforms --platform ${tag}_x86_64"
done
peers=$(ls "$cache"/peers/*.whl 2>/dev/null) || echo "without the peers: benchmarks/gpu/fetch.sh build compiles them"
site=$(mktemp -d)
trap 'rm -rf "$site"' EXIT
# The first two lines are not there. The others were, when the machine was last looked at: they are small.
# shellcheck disable=SC2086
"$python" -m pip install -q --no-deps --no-compile --only-binary=:all: --python-version 3.12 --implementation cp $platforms --target "$site" \
  pydantic==2.12.5 pydantic-core==2.41.5 annotated-types typing-inspection 'cyclopts>=5.2,<6' attrs docstring-parser rich-rst docutils \
  polars==1.30.0 'pyfaidx>=0.9' 'biopython>=1.85' 'platformdirs>=4.3' 'pooch>=1.9' beartype importlib-metadata zipp \
  'typing-extensions>=4.14.1' lightning==2.6.6 'lightning-utilities>=0.15' einops \
  'pyBigWig>=0.3.23' 'pytest>=8.4' pluggy iniconfig 'hypothesis>=6.130' sortedcontainers 'pytest-xdist>=3.6' execnet $peers
find "$site" -name '*.so' -exec strip --strip-unneeded {} + # two thirds of polars
tar c -C "$site" . | xz -9 -T0 >"$to/site.tar.xz"
[ -z "${GENODIFF_GPU_FASTA:-}" ] || cp -L "$GENODIFF_GPU_FASTA" "$to/genome.fa.gz"
du -h "$to"/*
size=$(cat "$to"/* | wc -c)
[ "$size" -le $((60 << 20)) ] || { echo "$size bytes are too many to travel: 64 MiB in all" >&2; exit 1; }
