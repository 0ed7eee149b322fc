"""Files that are to be written: whether they can be, before any work is done for them."""

import os
import shutil
import stat
from pathlib import Path

from genodiff.errors import MachineError


def check_target(path: str) -> None:
    """Raises `MachineError` where `path` cannot become a file; "-" is stdout, which can."""
    if path == "-":
        return
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as fault:
        raise MachineError(
            f"cannot be written: {fault.strerror}", file=path, fix="choose another path"
        ) from None
    if mode is not None and stat.S_ISDIR(mode):
        raise MachineError("is a directory, not a file", file=path, fix="give the name of a file")
    if (
        mode is not None
        and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode))
        and not path.startswith(("/dev/std", "/dev/fd"))
    ):
        raise MachineError(
            "is a device: a file cannot be written there",
            file=path,
            fix="give a file, or - for stdout",
        )
    folder = target.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise MachineError(
            f"cannot be written: {folder} is not a directory", file=path, fix="choose another path"
        )
    if not os.access(folder if mode is None or stat.S_ISREG(mode) else target, os.W_OK):
        raise MachineError(
            "cannot be written: permission denied",
            file=path,
            fix="choose a path that you may write to",
        )


def free_disk_space(path: str) -> int:
    """Free bytes on the disk that `path` is on, or will be."""
    folder = Path(path).resolve().parent
    while not folder.exists():
        folder = folder.parent
    return shutil.disk_usage(folder).free


def format_size(n: float) -> str:
    """So many bytes as a person reads them: 512 B, 3 kB, 12 GB."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 1000:
            return f"{n:,.0f} {unit}"
        n /= 1000
    return f"{n:,.0f} PB"
