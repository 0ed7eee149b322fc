"""The version of the package, below every floor: who writes a file names it."""

import subprocess
from pathlib import Path

__version__ = "0.1.0"


def find_git_revision() -> str | None:
    """The commit of the source tree that this package runs from, or was built from; or None.

    A `+` follows where the tree is changed, or was.
    """
    root = Path(__file__).resolve().parents[1]
    if not (root / ".git").exists():
        built = root / "genodiff" / "commit.txt"  # by setup.py
        return (built.read_text(encoding="ascii").strip() if built.is_file() else "") or None
    try:
        sha, changed = (
            subprocess.run(
                ["git", "-C", str(root), *words],
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return sha.strip() + ("+" if changed.strip() else "")
