"""The version of the package, below every floor: who writes a file names it."""

import subprocess
import sys
from pathlib import Path

__version__ = "0.1.0"


def find_git_revision() -> str | None:
    """The commit of the source tree that this package runs from, or was built from; or None.

    A `+` follows where the tree is changed, or was. Git is asked, in a process.
    """
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        built = root / "genodiff" / "commit.txt"  # by setup.py
        return (built.read_text(encoding="ascii").strip() if built.is_file() else "") or None
    try:
        sha, changed = (
            subprocess.check_output(
                ["git", "-C", str(root), *words], stderr=subprocess.DEVNULL, text=True, timeout=10
            )
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return sha.strip() + ("+" if changed.strip() else "")


def name_revision() -> str | None:
    """As `find_git_revision` for the `genodiff` command; elsewhere no process is started, and a `?`
    follows a tree's commit: it may be changed.
    """
    git = Path(__file__).resolve().parents[1] / ".git"
    asks = "genodiff.cli" in sys.modules or not git.exists()
    return find_git_revision() if asks else _read_head(git)


def _read_head(git: Path) -> str | None:
    """The commit that git's own files name as checked out, with a `?`; None where they do not."""
    try:
        if git.is_file():  # of a worktree
            git = Path(git.parent, git.read_text().removeprefix("gitdir:").strip())
        common = git / "commondir"
        shared = git / common.read_text().strip() if common.exists() else git
        name = (git / "HEAD").read_text().strip().removeprefix("ref: ")
        if (shared / name).is_file():
            name = (shared / name).read_text().strip()
        elif "/" in name:
            packed = (shared / "packed-refs").read_text().splitlines()
            name = next(line.split()[0] for line in packed if line.endswith(f" {name}"))
    except (OSError, StopIteration):
        return None
    return f"{name}?"
