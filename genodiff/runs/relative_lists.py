"""What `--relatives` takes: lists of genomes, FASTA files, names of recipes, built folders.

A FASTA file is one genome. `split:FILE` reads the species that its headers name as genomes of their
own, and each record of no named species as one; `whole:FILE` says that a file whose headers name
several is one genome nevertheless, such as a hybrid. `FASTA:ALIGNMENT` gives a genome with its
alignment to the target (PAF, chain or MAF), and a MAF alone is the genomes of its rows.

A recipe is a list in `data_recipes/relatives/NAME.tsv`, whose first line says what it is for. Its
genomes are fetched and built by `genodiff data relatives NAME`, and nowhere else: nobody wants a
verb that begins with the download of ten mammals. A folder that was built with `--out` holds
`relatives.json`, which says what stands in it, and needs the genomes' own files no longer.
"""

import json
import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from genodiff.data.genomes.listing import (
    WHOLE,
    GenomeList,
    GenomeRow,
    name_species,
    read_genome_list,
)
from genodiff.data.recipe import list_recipe_folders
from genodiff.errors import DataError, did_you_mean, format_count
from genodiff.io import atomic
from genodiff.io.alignments import find_alignment_format
from genodiff.io.fasta import Header, scan_fasta
from genodiff.io.file_kinds import sha256_json
from genodiff.io.input_file import open_input
from genodiff.runs.aligned_genomes import list_maf_species
from genodiff.runs.relatives import is_built
from genodiff.version import __version__

BUILT = "relatives.json"
_FORMAT = 1
_LISTS = (".tsv", ".txt", ".list")
_FASTA = re.compile(r".+\.(?:fa|fas|fasta|fna)(?:\.gz|\.bgz)?", re.IGNORECASE)
_SHOWN = 3
_SPLIT, _WHOLE = "split", "whole"
_log = logging.getLogger("genodiff")


class RelativeRecipe(NamedTuple):
    """A recipe: its name, its file, and the line that says what it is for."""

    name: str
    path: Path
    description: str


def list_relative_recipes() -> list[RelativeRecipe]:
    """The recipes, by name.

    >>> [one.name for one in list_relative_recipes()][:2]
    ['brassicales', 'drosophila']
    """
    paths = [p for folder in list_recipe_folders() for p in (folder / "relatives").glob("*.tsv")]
    rows = []
    for name, path in sorted({path.stem: path for path in paths}.items()):
        with open(path, encoding="utf-8") as file:
            rows.append(RelativeRecipe(name, path, file.readline().lstrip("# ").strip()))
    return rows


def list_genomes(given: Sequence[str | Path], *, fetches: bool = False) -> GenomeList:
    """The genomes of all that is given, in the order of their names.

    Of a recipe that is given by its name, all are here, unless the caller `fetches` them. Raises
    `DataError` in one line.
    """
    rows = [row for one in given for row in _list_one(one, fetches)]
    names = [row.name for row in rows]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        what = f"two relatives are called {twice[0]}"
        raise DataError(what, file=given[0], fix="give each a name of its own in a list")
    shown = ", ".join(map(str, given))
    return GenomeList(shown, tuple(sorted(rows, key=lambda row: row.name)), sha256_json(names))


def choose_genomes(listed: GenomeList, only: Iterable[str]) -> GenomeList:
    """The genomes of these names; all without any. Raises `DataError` for a name that is not there.

    Example: `choose_genomes(read_genome_list("yeasts.tsv"), ["CBS432"])`
    """
    wanted = set(only)
    names = [row.name for row in listed.rows]
    for name in sorted(wanted - set(names)):
        what = f"has no genome '{name}'; {did_you_mean(name, names)}"
        raise DataError(what, file=listed.path, fix="give names of the list")
    rows = tuple(row for row in listed.rows if not wanted or row.name in wanted)
    return GenomeList(listed.path, rows, listed.sha256)


def write_built(folder: Path, rows: Iterable[GenomeRow], find: Callable[[GenomeRow], Path]) -> None:
    """Say in `folder` which memories stand there: `find` gives that of each row."""
    genomes = [
        {"name": row.name, "species": row.species, "weight": row.weight}
        | {"memory": find(row).name, "source": row.path, "alignment": row.alignment}
        for row in rows
    ]
    told = {"format": _FORMAT, "genodiff": __version__, "genomes": genomes}
    atomic.write_json(folder / BUILT, told)


def _make_row(
    path: str | Path, name: str, *, weight: float = 1.0, species: str = "", **more: Any
) -> GenomeRow:
    return GenomeRow(os.path.abspath(path), name, weight, species, "train", None, 0, **more)


def _list_one(given: str | Path, fetches: bool) -> Sequence[GenomeRow]:
    path = Path(given)
    if path.suffix.lower() in _LISTS:
        return read_genome_list(path).rows
    if path.is_file() and (format_ := find_alignment_format(path)):
        return _list_maf(path, format_)
    if path.is_file():
        name = path.name.removesuffix(".gz").removesuffix(".bgz").rsplit(".", 1)[0]
        return [_make_row(path, name)]
    kind, _, file = str(given).partition(":")
    if kind == _SPLIT and Path(file).is_file():
        return _list_records(Path(file))
    if kind == _WHOLE and Path(file).is_file():
        return [replace(row, records=WHOLE) for row in _list_one(file, fetches)]
    fasta, colon, alignment = str(given).rpartition(":")
    if colon and Path(fasta).is_file() and Path(alignment).is_file():
        file = os.path.abspath(alignment)
        return [replace(one, alignment=file) for one in _list_one(fasta, fetches)]
    if (path / BUILT).is_file():
        return _read_built(path)
    recipes = {one.name: one.path for one in list_relative_recipes()}
    if str(given) in recipes:
        rows = read_genome_list(recipes[str(given)]).rows
        gone = [] if fetches else [row.name for row in rows if not is_built(row)]
        if gone:
            shown = ", ".join(gone[:_SHOWN]) + (", ..." if len(gone) > _SHOWN else "")
            what = f"{len(gone)} of the {len(rows)} relatives of {given} are not here ({shown})"
            raise DataError(what, fix=f"genodiff data relatives {given}")
        return rows
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if _FASTA.fullmatch(one.name))
        if not files:
            what = "is a folder without relatives"
            fix = "give one of FASTA files, or one that `genodiff data relatives --out` made"
            raise DataError(what, file=path, fix=fix)
        return [row for one in files for row in _list_one(one, fetches)]
    what = "is not there (not found)"
    fix = "give FASTA files, a list of genomes (.tsv), or a recipe: " + ", ".join(recipes)
    if not path.suffix and os.sep not in str(given):
        what = f"is no file, and no recipe has that name; {did_you_mean(str(given), recipes)}"
        fix = "see `genodiff data relatives`"
    raise DataError(what, file=path, fix=fix)


def _list_records(path: Path) -> list[GenomeRow]:
    """A row for each genome among the records of a file. Raises `DataError` for only one."""
    bases: Counter[str] = Counter()
    with open_input(path) as source:
        for event in scan_fasta(source):
            if isinstance(event, Header):
                name = name_species(event.name, event.description) or event.name
                bases[name] += 0
            else:
                bases[name] += len(event.letters())
    if len(bases) < 2:
        what = f"holds one genome ({', '.join(bases)}), and nothing to split"
        raise DataError(what, file=path, fix=f"give {path}")
    _log.info("%s: %s", path, format_count(len(bases), "genome"))
    names: Counter[str] = Counter()
    rows = []
    for group, n in bases.items():
        name = re.sub(r"[^A-Za-z0-9._+-]+", "_", group).strip("_")[:70] or "genome"
        names[name] += 1
        name += f"_{names[name]}" if names[name] > 1 else ""
        rows.append(_make_row(path, name, bases=n, records=group))
    return rows


def _list_maf(path: Path, format_: str) -> list[GenomeRow]:
    if format_ != "maf":
        what = f"is an alignment ({format_}) without the genome that is aligned"
        raise DataError(what, file=path, fix=f"give both: FASTA:{path}")
    file = os.path.abspath(path)
    return [
        _make_row(file, species, bases=n, records=species, alignment=file)
        for species, n in list_maf_species(path).items()
    ]


def _read_built(folder: Path) -> list[GenomeRow]:
    """The rows of a folder that was built: their path is the memory's own folder."""
    try:
        said = json.loads((folder / BUILT).read_text(encoding="utf-8"))
        if said["format"] != _FORMAT:
            raise ValueError
        return [
            _make_row(
                folder / Path(one["memory"]).name,
                str(one["name"]),
                weight=float(one["weight"]),
                species=str(one["species"]),
                alignment=str(one.get("alignment", "")),
            )
            for one in said["genomes"]
        ]
    except (OSError, ValueError, KeyError, TypeError):
        what, fix = "does not say what was built", "run `genodiff data relatives --out` again"
        raise DataError(what, file=folder / BUILT, fix=fix) from None
