"""Completion of commands and flags in bash, zsh and fish."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

_Shell = Annotated[
    Literal["bash", "zsh", "fish"] | None, Parameter(help="Which shell (default: the one here).")
]
# In bash the value of a flag that names a file is completed as any word is.
_FILES = ("\ncomplete -F", "\ncomplete -o bashdefault -o default -F")


def add_completion(app: App) -> None:
    """Make `--show-completion` and `--install-completion` commands of `app`."""

    def show_completion(shell: _Shell = None, /) -> None:
        """Print the completion script of a shell."""
        script = app.generate_completion(prog_name="genodiff", shell=shell)
        sys.stdout.write(script.replace(*_FILES))

    def install_completion(shell: _Shell = None, /) -> None:
        """Write the completion script where the shell looks for it, and name the file."""
        path: Path = app.install_completion(shell=shell, add_to_startup=True)
        path.write_text(path.read_text(encoding="utf-8").replace(*_FILES), encoding="utf-8")
        print(f"{path}: written; open a new shell to use it")

    app.command(show_completion, name="--show-completion")
    app.command(install_completion, name="--install-completion")
