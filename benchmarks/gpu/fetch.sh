#!/bin/sh
# Gathers what the GPU machine lacks and cannot download: wheels for its Python 3.12, and the sources of the peers that compile there.
#
#     benchmarks/gpu/fetch.sh [FOLDER]      (default: .gpu at the top of the tree; keep it out of git: echo /.gpu/ >> .git/info/exclude)
#
# Present on that machine, so not fetched: torch, triton, lightning, torchmetrics, numpy, scipy, scikit-learn, matplotlib, pyyaml, rich,
# jinja2, filelock, safetensors, jaxtyping, requests, packaging, attrs, einops, transformers, huggingface_hub, ninja, setuptools, wheel.
# 64 MiB travel in all: polars is an old one, because it is smaller.
# Optional: GENODIFF_GPU_FASTA=genome.fa.gz is copied along, for a training run on a real genome.
set -eu
cd "$(dirname "$0")/../.."
to=${1:-.gpu}
python=${PYTHON:-python3}
mkdir -p "$to/wheels" "$to/sources"
rm -f "$to"/wheels/*.whl "$to"/sources/*.tar.gz # two versions of one package would stop the install

platforms=""
for tag in manylinux_2_39 manylinux_2_34 manylinux_2_31 manylinux_2_28 manylinux_2_27 manylinux_2_24 manylinux_2_17 manylinux2014 manylinux1; do
  platforms="$platforms --platform ${tag}_x86_64"
done
# shellcheck disable=SC2086
"$python" -m pip download -q --no-deps --only-binary=:all: --python-version 3.12 --implementation cp $platforms -d "$to/wheels" \
  pydantic==2.12.5 pydantic-core==2.41.5 annotated-types typing-inspection 'typing-extensions>=4.14.1' \
  'cyclopts>=5.2,<6' docstring-parser rich-rst \
  polars==1.30.0 'pyfaidx>=0.9' 'biopython>=1.85' \
  'platformdirs>=4.3' 'pooch>=1.9' beartype

# Their setup.py asks for CUDA only where it is not told to skip it.
for source in mamba-ssm==2.3.2.post1 causal-conv1d==1.7.0; do
  MAMBA_SKIP_CUDA_BUILD=TRUE CAUSAL_CONV1D_SKIP_CUDA_BUILD=TRUE \
    "$python" -m pip download -q --no-deps --no-binary :all: --no-build-isolation -d "$to/sources" "$source"
done
[ -z "${GENODIFF_GPU_FASTA:-}" ] || cp -L "$GENODIFF_GPU_FASTA" "$to/genome.fa.gz"
du -sh "$to" "$to"/*
git rev-parse HEAD >"$to/commit"
