"""The verbs, one file each, found by listing this folder.

A verb is called as its file is, and so is what runs it: a function, or an `App` where the verb has
verbs of its own. An underscore at the end is left out, for names that Python keeps for itself. The
docstring of the file is the help text, and its first line stands in the list of verbs. It is read
without importing the file, so that `genodiff --help` loads neither torch nor numpy.

A plug-in adds a verb with a decorator; the docstring of the function is the help text:

    from genodiff.cli.verbs import VERBS

    @VERBS.register("count")
    def count(fasta: Path) -> None: ...
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cyclopts import App

from genodiff.registry import Registry


class VerbFile(NamedTuple):
    """A verb that is imported when it runs."""

    path: Path
    entry: str
    """Where the function or `App` is: "module:name"."""

    def help(self) -> str:
        """The docstring of the file, which must begin with it."""
        return inspect.cleandoc(self.path.read_text(encoding="utf-8").split('"""', 2)[1])


def list_verbs(folder: Path, package: str) -> dict[str, VerbFile]:
    """The verbs of a folder by name; a verb with a folder of its own has verbs below it."""
    found = {}
    for path in sorted(folder.iterdir()):
        is_package = (path / "__init__.py").is_file()
        if is_package or (path.suffix == ".py" and path.stem != "__init__"):
            file = path / "__init__.py" if is_package else path
            entry = f"{package}.{path.stem}:{path.stem}"
            found[path.stem.rstrip("_").replace("_", "-")] = VerbFile(file, entry)
    return found


def add_verb(app: App, name: str, verb: VerbFile | Callable[..., Any]) -> None:
    """Make `verb` a command of `app`."""
    if isinstance(verb, VerbFile):
        app.command(verb.entry, name=name, help=verb.help())
    else:
        app.command(verb, name=name)


VERBS: Registry[VerbFile | Callable[..., Any]] = Registry("verb")
for _name, _verb in list_verbs(Path(__file__).parent, __name__).items():
    VERBS.add(_name, _verb)
