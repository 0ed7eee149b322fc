"""Registries: the pieces of one kind by name, ours and those of plug-ins.

There is one registry for each kind of piece: schedules, samplers, objectives, backbones, suites of
tasks, baselines, methods of scoring, formats of tracks, verbs. All code that lists, checks,
documents or runs a piece asks its registry. There is no second list. A piece registers itself where
it is defined:

    OBJECTIVES = Registry("objective", package="genodiff.diffusion.objectives")

    @OBJECTIVES.register("mdlm")
    class Mdlm(Objective): ...

The modules of `package` are imported at the first look-up, so a file put there is found. Only the
names of pieces are also read without importing, so that a help text does not load torch. A plug-in
is an installed distribution with an entry point of the group `genodiff.plugins`, whose value is a
module; importing that module registers its pieces.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from genodiff.errors import GenodiffError, MachineError, UsageError, did_you_mean

GROUP = "genodiff.plugins"

Piece = TypeVar("Piece")

_DECORATOR = r"^@(?:{noun}|[A-Z_]+\.register)\(\s*[\"']([^\"']+)"
_plugins_loaded = False


def load_plugins() -> None:
    """Import the modules of all plug-ins, once. Raises `MachineError` for one that cannot be."""
    global _plugins_loaded
    if _plugins_loaded:
        return
    _plugins_loaded = True  # before the imports: a plug-in may itself look a piece up
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            point.load()
        except GenodiffError:
            raise
        except Exception as fault:  # a plug-in is foreign code: anything may come out of it
            owner = f" of {point.dist.name}" if point.dist is not None else ""
            raise MachineError(
                f"the plug-in {point.name}{owner} cannot be loaded "
                f"({type(fault).__name__}: {fault})",
                fix="repair or uninstall it",
            ) from fault


class Registry(Mapping[str, Piece]):
    """Pieces of one kind by name, in the order in which they were registered."""

    def __init__(self, noun: str, package: str | None = None, taken: Sequence[str] = ()) -> None:
        """`taken` are names that no piece may have."""
        self.noun, self._taken = noun, taken
        self._package = package
        self._pieces: dict[str, Piece] = {}
        self._is_loaded = False

    def add(self, name: str, piece: Piece) -> Piece:
        """Register `piece`; returns it. Raises `UsageError` where the name is taken."""
        if name in self._pieces or name in self._taken:
            raise UsageError(f"two {self.noun}s are called '{name}'", fix="rename one of them")
        self._pieces[name] = piece
        return piece

    def register(self, name: str) -> Callable[[Piece], Piece]:
        """A decorator that registers what it decorates."""
        return lambda piece: self.add(name, piece)

    def _load(self) -> None:
        if self._is_loaded:
            return
        self._is_loaded = True
        if self._package is not None:
            name, self._package = self._package, None  # first: a module may itself look a piece up
            package = importlib.import_module(name)
            for module in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{name}."):
                importlib.import_module(module.name)
        load_plugins()

    def list_names(self) -> list[str]:
        """The names of all pieces, of those not yet imported as their decorators write them."""
        if not self._is_loaded:
            load_plugins()
        if self._package is None:
            return list(self._pieces)
        files = _list_sources(self._package)
        written = [
            name
            for text in files
            for name in re.findall(_DECORATOR.format(noun=self.noun), text, re.MULTILINE)
        ]
        return list(dict.fromkeys([*written, *self._pieces])) if files else list(self)

    def __getitem__(self, name: str) -> Piece:
        """The piece called `name`. Raises `UsageError`, naming what is near."""
        self._load()
        if name not in self._pieces:
            raise UsageError(f"no {self.noun} '{name}'; {did_you_mean(name, self._pieces)}")
        return self._pieces[name]

    def __contains__(self, name: object) -> bool:
        self._load()
        return isinstance(name, str) and name in self._pieces

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(self._pieces)

    def __len__(self) -> int:
        self._load()
        return len(self._pieces)


def _list_sources(package: str) -> list[str]:
    """The texts of a package's files, or of a module, in the order in which it imports them."""
    spec = find_spec(package)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        return []
    first = Path(spec.origin).read_text(encoding="utf-8")
    if spec.submodule_search_locations is None:
        return [first]
    files = [p for at in spec.submodule_search_locations for p in Path(at).glob("*.py")]
    named = re.findall(r"\w+", first.partition(" import ")[2])
    rank = {name: place for place, name in reversed(list(enumerate(named)))}
    files.sort(key=lambda file: (rank.get(file.stem, len(rank)), file.stem))
    return [file.read_text(encoding="utf-8") for file in files]


def find_named(name: str) -> Any:
    """What "module:name" names, imported now: what takes seconds waits until it is used."""
    module, _, inside = name.partition(":")
    return getattr(importlib.import_module(module), inside)


def refuse_unknown(
    owner: str, given: Collection[str], known: Collection[str], none: str = "leave it out"
) -> None:
    """Raises `UsageError` for a setting that a piece has not; `none` is said where it has none."""
    for name in given:
        if name not in known:
            fix = did_you_mean(name, list(known)) if known else none
            raise UsageError(f"{owner} has no setting '{name}'", fix=fix)
