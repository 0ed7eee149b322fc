"""What the lent machine is and has, in ten seconds: first of all, so that a surprise is seen early.

python benchmarks/gpu/probe.py --out FILE
"""

import argparse
import importlib
import os
import platform
import shutil
import subprocess
import sys
import traceback
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from machine import save

TOOLS = {
    "nvidia-smi": ["nvidia-smi"],
    "nvcc": ["nvcc", "--version"],
    "ncu": ["ncu", "--version"],
    "compute-sanitizer": ["compute-sanitizer", "--version"],
}
PACKAGES = (
    "torch triton lightning numpy scipy polars pydantic cyclopts rich jaxtyping beartype pytest "
    "hypothesis pytest-xdist einops transformers mamba-ssm causal-conv1d"
).split()
MODULES = (
    "genodiff.kernels.triton.scan genodiff.training.run genodiff.evaluation.bound genodiff.cli "
    "genodiff.generate.sample genodiff.finetuning.sweep hypothesis pytest mamba_ssm causal_conv1d"
).split()


def run_tool(command: list[str]) -> str:
    """What a tool prints, or why it does not run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"
    return (done.stdout + done.stderr).strip()


def find_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def try_import(name: str) -> str:
    """ "ok", "missing", or the traceback of an import that fails."""
    try:
        if find_spec(name) is None:
            return "missing"
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        return f"missing: {error}"
    except Exception:
        return traceback.format_exc()[-2000:]
    return "ok"


def describe_memory() -> dict[str, Any]:
    """Of the machine, and of the GPU."""
    import torch

    found: dict[str, Any] = {"disk_free": shutil.disk_usage("/tmp").free}
    if hasattr(os, "sysconf"):
        found["memory"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if torch.cuda.is_available():
        found["gpu_free"], found["gpu_total"] = torch.cuda.mem_get_info()
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    found: dict[str, Any] = {
        "python": f"{platform.python_version()} at {sys.executable}",
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "packages": {name: find_version(name) for name in PACKAGES},
    }
    save(arguments.out, found)
    found["imports"] = {name: try_import(name) for name in MODULES}
    save(arguments.out, found)
    found |= describe_memory()
    save(arguments.out, found)
    found["tools"] = {name: run_tool(command) for name, command in TOOLS.items()}
    save(arguments.out, found)
    print({k: v for k, v in found.items() if k not in ("tools", "imports")})
    for name, result in found["imports"].items():
        print(f"{name}: {result}")
    print(found["tools"]["nvidia-smi"][:2000])


if __name__ == "__main__":
    main()
