"""Which genodiff this is: what `genodiff --version` prints."""

from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

import genodiff
from genodiff.runs.run_paths import list_ready_models
from genodiff.version import __version__, name_revision


def describe_version() -> str:
    """The version, alone on the first line; then commit, Python, torch, kernels, ready models.

    >>> describe_version().splitlines()[0]  # doctest: +SKIP
    '0.1.0'
    """
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        torch = "missing"
    kernels = Path(genodiff.__file__).parent.glob("kernels/_native_*.so")
    compiled = sorted(path.stem.removeprefix("_native_") for path in kernels)
    machine = f"{platform.system()} {platform.machine()}"
    return "\n".join(
        [
            __version__,
            f"commit: {name_revision() or 'not known'}",
            f"Python {platform.python_version()}, torch {torch}, {machine}",
            f"kernels in C: {', '.join(compiled) or 'none'}",
            f"ready models: {', '.join(list_ready_models()) or 'none'}",
        ]
    )
