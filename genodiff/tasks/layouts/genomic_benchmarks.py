"""Genomic Benchmarks (Gresova et al. 2023): nine tasks, given as coordinates in public genomes.

Four layouts are read, in this order:
  the upstream folder or zip   train/CLASS/ID.txt and test/CLASS/ID.txt
  upstream coordinates         train/CLASS.csv.gz and test/CLASS.csv.gz (id, region, start, end,
                               strand), with the genomes
  one table of coordinates     coordinates.parquet (dataset, split, class, id, region, start, end,
                               strand), with the genomes
  tables of sequences          train.csv.gz and test.csv.gz (seq, label)
Where only the official test part exists, `local_split.csv.gz` (row, part) splits it again. That
split is called "local"; its numbers are not comparable with published ones.

In every layout with ids, examples are ordered by class and then by id as text. So a seed's split is
the same in all of them.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from genodiff.errors import DataError
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.planning import is_planning
from genodiff.tasks.class_folders import PARTS, is_class_folders, read_class_folders
from genodiff.tasks.examples import Coordinates, Examples, Parts
from genodiff.tasks.labelled_file import read_examples
from genodiff.tasks.layouts.parts import find_part
from genodiff.tasks.reference import ReferenceGenome, find_reference, read_sequences
from genodiff.tasks.suite import LAYOUTS, TaskFiles
from genodiff.tasks.table import read_table

COORDINATES = "coordinates.parquet"
PARTIAL = "from_coordinates_partial.parquet"
LOCAL = "local_split.csv.gz"
_COLUMNS = ["id", "region", "start", "end", "strand"]


class Genomes(NamedTuple):
    """The genomes of a task's coordinates.

    `of_class` gives each class its reference, and `given` the user's files by reference name.
    `offline` forbids fetching. Without `wanted`, coordinates stay without sequences.
    """

    of_class: dict[str, tuple[str, ReferenceGenome]]
    given: dict[str, Path]
    offline: bool = False
    wanted: bool = True


@LAYOUTS.register("genomic-benchmarks")
def read_benchmark(files: TaskFiles) -> Parts:
    """The parts of a task: the official ones, or those of the split "local" or "partial"."""
    task = files.task
    if files.split == "local":
        return read_local(files.folder, task.name, task.classes)
    if files.split == "partial":
        return read_partial(files.folder, task.name, task.classes)
    of_class = {name: (ref, files.suite.references[ref]) for name, ref in task.references.items()}
    genomes = Genomes(of_class, dict(files.references), files.offline, files.sequences)
    return read_official(files.folder, task.name, task.classes, genomes)


def read_official(folder: Path, name: str, classes: tuple[str, ...], genomes: Genomes) -> Parts:
    """The official parts of a task from whichever layout `folder` has. Raises `DataError`."""
    home = folder / name if (folder / name).is_dir() else folder
    archive = next((p for p in (folder, folder / f"{name}.zip") if p.is_file()), None)
    if archive is not None and archive.suffix.lower() == ".zip":
        return Parts(*read_class_folders(archive, classes)[:2])
    if home.is_dir() and is_class_folders(home):
        return Parts(*read_class_folders(home, classes)[:2])
    table = read_coordinates(folder, name, classes)
    if table is not None:
        if not genomes.wanted:
            for reference in genomes.of_class.values() if is_planning() else ():
                find_reference(*reference, genomes.given, offline=genomes.offline)
            return Parts(*table)
        train, test = (add_sequences(part, classes, genomes) for part in table)
        return Parts(train, test)
    paths = [find_part(home, part) for part in PARTS]
    if paths[0] is None and paths[1] is not None:
        if (home / LOCAL).is_file():
            fix = "use --split local, which re-splits the test part"
        else:
            fix = "give both parts"
        what = f"the official train part of {name} is not here, only its test part"
        raise DataError(what, file=home, fix=fix)
    if paths[0] is None or paths[1] is None:
        what = f"holds no data of {name}"
        fix = "give the folder that holds the task, or its coordinates"
        raise DataError(what, file=folder, fix=fix)
    train, test = (read_examples(path, classes=classes)[0] for path in paths if path is not None)
    return Parts(train, test)


def read_local(folder: Path, name: str, classes: tuple[str, ...]) -> Parts:
    """The official test part, split again by `local_split.csv.gz`.

    Its train and valid rows make the train part.
    """
    home = folder / name if (folder / name).is_dir() else folder
    path = find_part(home, "test")
    if path is None or not (home / LOCAL).is_file():
        what = f"a local split of {name} needs test.csv.gz and {LOCAL}"
        raise DataError(what, file=home, fix="use --split official")
    whole = read_examples(path, classes=classes)[0]
    rows = read_table(home / LOCAL)
    part = dict(
        zip(
            rows.cells[rows.column("row", (), "row")],
            rows.cells[rows.column("part", (), "part")],
            strict=True,
        )
    )
    chosen = np.array([part.get(str(i), "") for i in range(whole.n)])
    if set(chosen) != {"train", "valid", "test"} or len(part) != whole.n:
        what = f"does not give each of the {whole.n:,} rows of {path.name} a part"
        raise DataError(what, file=home / LOCAL, fix="restore both files")
    note = (
        "local split: a re-split of the official test part, not comparable with published numbers"
    )
    return Parts(whole.take(chosen != "test"), whole.take(chosen == "test"), (note,))


def read_partial(folder: Path, name: str, classes: tuple[str, ...]) -> Parts:
    """The few examples that pieces of a genome allow, from `from_coordinates_partial.parquet`."""
    rows = _parquet(folder / PARTIAL).filter(pl.col("dataset") == name)
    if rows.is_empty():
        fix = "choose another task"
        raise DataError(f"holds no rows of {name}", file=folder / PARTIAL, fix=fix)
    parts = []
    for part in PARTS:
        chosen = rows.filter(pl.col("split") == part)
        parts.append(
            _examples(chosen, classes)._replace(
                sequences=[s.encode() for s in _sorted(chosen, classes)["seq"]]
            )
        )
    note = (
        f"partial: {parts[0].n:,} train and {parts[1].n:,} test examples, not comparable "
        f"with published numbers"
    )
    return Parts(parts[0], parts[1], (note,))


def read_coordinates(
    folder: Path, name: str, classes: tuple[str, ...]
) -> tuple[Examples, Examples] | None:
    """(train, test) of a task without sequences; None if `folder` has no coordinates of it."""
    file = folder if folder.is_file() else folder / COORDINATES
    if file.suffix == ".parquet" and file.is_file():
        rows = _parquet(file).filter(pl.col("dataset") == name)
        if rows.is_empty():
            raise DataError(f"holds no rows of {name}", file=file, fix="choose another task")
        train, test = (_examples(rows.filter(pl.col("split") == part), classes) for part in PARTS)
        return train, test
    home = folder / name if (folder / name).is_dir() else folder
    if not any((home / "train").glob("*.csv*")):
        return None
    train, test = (
        _examples(pl.concat([_upstream(home / part, c) for c in classes]), classes)
        for part in PARTS
    )
    return train, test


def add_sequences(examples: Examples, classes: tuple[str, ...], genomes: Genomes) -> Examples:
    """Examples known by coordinates, with their sequences read from the genomes.

    Raises `DataError` where a genome or a contig is missing.
    """
    assert examples.coordinates is not None
    sequences: list[bytes] = [b""] * examples.n
    for label, name in enumerate(classes):
        reference_name, reference = genomes.of_class[name]
        path = find_reference(reference_name, reference, genomes.given, offline=genomes.offline)
        rows = np.flatnonzero(examples.labels == label)
        for i, sequence in zip(
            rows, read_sequences(path, reference, examples.coordinates.take(rows)), strict=True
        ):
            sequences[i] = sequence
    return examples._replace(sequences=sequences)


def _sorted(rows: pl.DataFrame, classes: tuple[str, ...]) -> pl.DataFrame:
    order = pl.col("class").replace_strict(
        list(classes), list(range(len(classes))), return_dtype=pl.Int64
    )
    return rows.with_columns(_label=order, _id=pl.col("id").cast(pl.String)).sort(
        "_label", "_id", maintain_order=True
    )


def _examples(rows: pl.DataFrame, classes: tuple[str, ...]) -> Examples:
    strange = set(rows["class"].unique()) - set(classes)
    if strange:
        what = f"unknown class '{min(strange)}'; the task has {', '.join(classes)}"
        raise DataError(what, fix="restore the coordinates")
    rows = _sorted(rows, classes)
    start, end = rows["start"].to_numpy().astype(np.int64), rows["end"].to_numpy().astype(np.int64)
    contig, strand = (
        rows[column].fill_null("").to_numpy().astype(np.str_) for column in ("region", "strand")
    )
    return Examples(
        [],
        rows["_label"].to_numpy(),
        rows["_id"].to_list(),
        Coordinates(contig, start, end, strand),
    )


def _upstream(folder: Path, name: str) -> pl.DataFrame:
    path = next(
        (p for ending in (".csv.gz", ".csv") if (p := folder / f"{name}{ending}").is_file()), None
    )
    if path is None:
        fix = "restore its .csv.gz"
        raise DataError(f"the class '{name}' is missing here", file=folder, fix=fix)
    table = read_table(path)
    for column in _COLUMNS:
        table.column(column, (), column)
    try:
        return pl.DataFrame({c: table.cells[c] for c in _COLUMNS}).with_columns(
            pl.col("start", "end").cast(pl.Int64), **{"class": pl.lit(name)}
        )
    except pl.exceptions.PolarsError:
        fix = "restore the file"
        raise DataError("start and end must be whole numbers", file=path, fix=fix) from None


def _parquet(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(find_plain_path(path))
    except (pl.exceptions.PolarsError, OSError) as fault:
        what = f"cannot be read ({str(fault).splitlines()[0][:120]})"
        raise DataError(what, file=path, fix="restore the file") from None
