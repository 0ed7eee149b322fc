"""Checks of this machine: each result is ok, warn or fail, with a remedy.

The checks write nothing and download nothing. This module does not import torch, so it also works
where torch is broken. The checks that need torch are in `selftest`.
"""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal

from packaging.requirements import Requirement

from genodiff.data.recipe import list_recipe_names
from genodiff.errors import GenodiffError, MachineError, printable
from genodiff.io.process import count_usable_cores, is_command_line, read_memory, read_processor
from genodiff.io.target import cache_dir, can_be_written, free_disk_space

GIB = 1 << 30
_MALICIOUS = {("lightning", "2.6.2"), ("lightning", "2.6.3")}
_SHOWN = ("lightning", "numpy", "polars", "matplotlib")
_VARIABLES = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS")
_OPTIONAL = {
    "tokenizers": "text models",
    "tensorboard": "train --logger tensorboard",
    "wandb": "train --logger wandb",
    "transformers": "genodiff.hf",
    "pysam": "genodiff score: BCF, and indexes of .vcf.gz",
    "pyBigWig": "genodiff tracks: bigWig",
    "python-codon-tables": "genodiff redesign --codon-usage SPECIES",
    "mamba-ssm": "the published CUDA scan",
    "causal-conv1d": "its CUDA convolution",
}


@dataclass(frozen=True)
class Check:
    """The result of one check; `fix` is the remedy, empty if none is needed."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    fix: str = ""


def report(checks: Iterable[Check], scan: str | None) -> dict[str, Any]:
    """The object that `doctor --json` prints; `scan` is the name of the scan in use."""
    return {"checks": [asdict(c) for c in checks], "scan": scan}


def check_machine(*, offline: bool = False) -> list[Check]:
    """All checks that need no torch. With `offline`, the network is reported as unused."""
    return [
        check_python(sys.version_info[:2]),
        *check_packages(),
        *check_optional_packages(),
        check_processor(),
        check_memory(),
        check_disk(),
        check_cache(),
        check_recipes(),
        check_network(offline),
        check_environment(dict(os.environ)),
    ]


def check_python(found: tuple[int, int]) -> Check:
    """Check that genodiff is tested on this version of Python."""
    detail = f"{platform.python_version()} at {printable(sys.executable)}"
    if found < (3, 11):
        fix = "install Python 3.11 or newer and make a new environment with it"
        return Check("python", "fail", detail, fix)
    if found >= (3, 15):
        fix = "use Python 3.11 to 3.14 if something fails"
        return Check("python", "warn", f"{detail}: newer than any tested", fix)
    return Check("python", "ok", detail)


def check_packages(lines: Iterable[str] | None = None) -> list[Check]:
    """Check the required packages: one line for all, and one for each package with a fault.

    A fault is a package that is missing, outside its version range or known to be malicious.
    `lines` are requirements such as "numpy>=1.26" (default: genodiff's own).
    """
    found: dict[str, str] = {}
    faults: list[Check] = []
    for line in _required() if lines is None else lines:
        wanted = Requirement(line)
        fix = f"pip install '{wanted.name}{wanted.specifier}'"
        try:
            here = version(wanted.name)
        except PackageNotFoundError:
            faults.append(Check(wanted.name, "fail", "is not installed", fix))
            continue
        found[wanted.name] = here
        broken = [s for s in wanted.specifier if not s.contains(here, prereleases=True)]
        if (wanted.name, here) in _MALICIOUS:
            remedy = f"change this machine's secrets, then {fix}"
            faults.append(Check(wanted.name, "fail", f"{here} was a malicious upload", remedy))
        elif broken:
            is_old = any(s.operator in (">=", ">") for s in broken)
            what = f"{here} is outside {wanted.specifier}"
            faults.append(Check(wanted.name, "fail" if is_old else "warn", what, fix))
    shown = ", ".join(f"{name} {found[name]}" for name in _SHOWN if name in found)
    return [Check("packages", "ok", f"{len(found)} required packages installed ({shown})"), *faults]


def _required() -> list[str]:
    try:
        lines = requires("genodiff") or []
    except PackageNotFoundError:
        return []
    markers = {line: Requirement(line).marker for line in lines}
    return [line for line, of in markers.items() if of is None or of.evaluate({"extra": ""})]


def check_optional_packages() -> list[Check]:
    """Check the optional packages.

    A package that is installed but cannot be imported is a warning. Only the command tries it, in a
    process of its own; `genodiff.doctor` starts none.
    """
    checks = []
    for name, use in _OPTIONAL.items():
        module = name.replace("-", "_")
        if importlib.util.find_spec(module) is None:
            checks.append(Check(name, "ok", f"not installed; optional ({use})"))
        elif not is_command_line():
            seen = f"{_version(name)} is installed; the command `genodiff doctor` tries it ({use})"
            checks.append(Check(name, "ok", seen))
        elif (fault := _import_fault(module)) is None:
            checks.append(Check(name, "ok", f"{_version(name)} ({use})"))
        else:
            again = f"pip install --no-build-isolation --no-cache-dir {name}"
            again = f"MAMBA_KEEP_CUDA_BUILD=TRUE {again}" if name == "mamba-ssm" else again
            fix = f"pip uninstall {name}, or build it against this torch: {again}"
            checks.append(Check(name, "warn", f"installed, but cannot be imported: {fault}", fix))
    return checks


def _import_fault(module: str) -> str | None:
    """Why `module` cannot be imported, or None.

    A separate process tries the import, because a broken extension can crash it.
    """
    names = {"mamba_ssm": "selective_scan_cuda", "causal_conv1d": "causal_conv1d_cuda"}
    code = f"import torch, {names[module]}, {module}" if module in names else f"import {module}"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return type(fault).__name__
    if done.returncode == 0:
        return None
    said = [line for line in done.stderr.splitlines() if line.strip()]
    return printable(said[-1] if said else f"exit {done.returncode}", 160)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown version"


def check_processor() -> Check:
    """Check the cores that this process may use, and the container's limit."""
    usable = count_usable_cores()
    quota = _quota()
    detail = f"{printable(read_processor(), 60)}, {usable} usable of {os.cpu_count()} cores"
    if quota is not None and quota < usable:
        detail += f", but the container may use only {quota:g} at a time"
        return Check("cpu", "warn", detail, f"pass --threads {max(1, int(quota))}")
    return Check("cpu", "ok", detail)


def _quota() -> float | None:
    """The number of cores that the control group allows; None without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
    except (OSError, ValueError):
        return None
    return None if quota == "max" else int(quota) / int(period)


def check_memory() -> Check:
    """Check the free memory, within the container's limit."""
    total, free = read_memory()
    if total is None or free is None:
        return Check("memory", "ok", "this system does not report its free memory")
    detail = f"{free / GIB:.1f} GiB free of {total / GIB:.1f} GiB"
    if free < GIB:
        fix = "close other programs, or give a smaller --batch-size and --seq-len"
        return Check("memory", "warn", detail, fix)
    return Check("memory", "ok", detail)


def check_disk(folder: Path | None = None) -> Check:
    """Check free space and write permission in `folder` (default: the current one)."""
    here = Path.cwd() if folder is None else folder
    free = shutil.disk_usage(here).free
    detail = f"{free / GIB:.1f} GiB free in {printable(here)}"
    if not os.access(here, os.W_OK):
        fix = "change to a folder of your own, or give --out"
        return Check("disk", "warn", f"{detail}, which is read-only", fix)
    if free < GIB // 20:
        return Check("disk", "fail", detail, "free some disk space, or change to another disk")
    if free < GIB:
        fix = "free some space: a genome takes one byte per base, a checkpoint 16 per parameter"
        return Check("disk", "warn", detail, fix)
    return Check("disk", "ok", detail)


def check_cache() -> Check:
    """Check the folder of built stores and genome indices."""
    fix = "set GENODIFF_CACHE to a folder of your own"
    try:
        folder = cache_dir()
    except MachineError as fault:
        return Check("cache", "fail", printable(fault.what), fix)
    detail = printable(folder)
    if not can_be_written(folder):
        return Check("cache", "fail", f"{detail} cannot be written", fix)
    free = free_disk_space(str(folder / "any"))
    return Check("cache", "ok", f"{detail}, {free / GIB:.1f} GiB free")


def check_recipes() -> Check:
    """Check that the recipes were installed with the package."""
    try:
        names = list_recipe_names()
    except (GenodiffError, OSError) as fault:
        return Check("recipes", "fail", printable(fault), "install genodiff again")
    if "toy" not in names:
        fix = "install genodiff again from its source folder"
        return Check("recipes", "fail", "the recipes are missing", fix)
    return Check("recipes", "ok", ", ".join(names))


def check_network(offline: bool) -> Check:
    """Report when genodiff would use the network; no connection is tried."""
    what = "not tried; only a recipe without --fasta would use it, unless --offline forbids it"
    what = "--offline: never used; give data with --fasta" if offline else what
    return Check("network", "ok", what)


def check_environment(variables: dict[str, str]) -> Check:
    """Check the environment variables that change what genodiff does."""
    names = [n for n in sorted(variables) if n.startswith("GENODIFF_") or n in _VARIABLES]
    detail = ", ".join(f"{n}={printable(variables[n], 60)}" for n in names)
    detail = detail or "no variable that changes genodiff is set"
    if "GENODIFF_CRASH_AT" in variables:
        fix = "unset GENODIFF_CRASH_AT: it kills genodiff on purpose (for tests)"
        return Check("environment", "warn", detail, fix)
    return Check("environment", "ok", detail)
