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

import numpy as np
import polars as pl

from genodiff.errors import DataError
from genodiff.io.file_kinds import find_plain_path
from genodiff.io.input_file import is_planning
from genodiff.tasks.class_folders import PARTS, is_class_folders, read_class_folders
from genodiff.tasks.examples import Coordinates, Examples, Parts
from genodiff.tasks.labelled_file import read_examples
from genodiff.tasks.layouts.parts import find_part
from genodiff.tasks.suite import LAYOUTS, TaskFiles, read_sequences
from genodiff.tasks.table import read_table

COORDINATES = "coordinates.parquet"
PARTIAL = "from_coordinates_partial.parquet"
LOCAL = "local_split.csv.gz"
_COLUMNS = ["id", "region", "start", "end", "strand"]


@LAYOUTS.register("genomic-benchmarks")
def read_benchmark(files: TaskFiles) -> Parts:
    """The parts of a task: the official ones, or those of the split "local" or "partial".

    Raises `DataError`.
    """
    folder, home, name, classes = files.folder, files.home, files.task.name, files.task.classes
    if files.split == "local":
        return read_local(files)
    if files.split == "partial":
        return read_partial(folder, name, classes)
    files_here = [p for p in (folder, folder / f"{name}.zip") if p.is_file()]
    for place in (*files_here[:1], home):
        if is_class_folders(place):
            return Parts(*read_class_folders(place, classes)[:2])
    table = read_coordinates(files)
    if table is not None:
        train, test = table
        if files.sequences:
            return Parts(add_sequences(train, files), add_sequences(test, files))
        for reference in files.task.references.values() if is_planning() else ():
            files.find_genome(reference)
        return Parts(train, test)
    paths = [path for part in PARTS if (path := find_part(home, part)) is not None]
    if len(paths) == 2:
        train, test = (read_examples(path, classes=classes)[0] for path in paths)
        return Parts(train, test)
    if find_part(home, "test") is not None:
        local = "use --split local, which re-splits the test part"
        fix = local if (home / LOCAL).is_file() else "give both parts"
        what = f"the official train part of {name} is not here, only its test part"
        raise DataError(what, file=home, fix=fix)
    fix = "give the folder that holds the task, or its coordinates"
    raise DataError(f"holds no data of {name}", file=folder, fix=fix)


def read_local(files: TaskFiles) -> Parts:
    """The official test part, split again by `local_split.csv.gz`.

    Its train and valid rows make the train part.
    """
    home = files.home
    path = find_part(home, "test")
    if path is None or not (home / LOCAL).is_file():
        what = f"a local split of {files.task.name} needs test.csv.gz and {LOCAL}"
        raise DataError(what, file=home, fix="use --split official")
    whole = read_examples(path, classes=files.task.classes)[0]
    rows = read_table(home / LOCAL)
    columns = (rows.cells[rows.column(name, (), name)] for name in ("row", "part"))
    part = dict(zip(*columns, strict=True))
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
    rows = _rows_of(folder / PARTIAL, name)
    train, test = (_examples(rows.filter(pl.col("split") == part), classes) for part in PARTS)
    note = (
        f"partial: {train.n:,} train and {test.n:,} test examples, not comparable "
        f"with published numbers"
    )
    return Parts(train, test, (note,))


def read_coordinates(files: TaskFiles) -> list[Examples] | None:
    """Train and test of a task without sequences; None if there are no coordinates of it."""
    folder, home, classes = files.folder, files.home, files.task.classes
    file = folder if folder.is_file() else folder / COORDINATES
    if file.suffix == ".parquet" and file.is_file():
        rows = _rows_of(file, files.task.name)
        return [_examples(rows.filter(pl.col("split") == part), classes) for part in PARTS]
    if not any((home / "train").glob("*.csv*")):
        return None
    tables = (pl.concat([_upstream(home / part, c) for c in classes]) for part in PARTS)
    return [_examples(table, classes) for table in tables]


def add_sequences(examples: Examples, files: TaskFiles) -> Examples:
    """Examples known by coordinates, with their sequences read from the genomes.

    Raises `DataError` where a genome or a contig is missing.
    """
    assert examples.coordinates is not None
    sequences: list[bytes] = [b""] * examples.n
    for label, name in enumerate(files.task.classes):
        reference = files.task.references[name]
        path, genome = files.find_genome(reference), files.suite.references[reference]
        rows = np.flatnonzero(examples.labels == label)
        found = read_sequences(path, genome, examples.coordinates.take(rows))
        for i, sequence in zip(rows, found, strict=True):
            sequences[i] = sequence
    return examples._replace(sequences=sequences)


def _examples(rows: pl.DataFrame, classes: tuple[str, ...]) -> Examples:
    """Examples in the order of class and id, with their sequences if there is a column `seq`."""
    strange = set(rows["class"].unique()) - set(classes)
    if strange:
        what = f"unknown class '{min(strange)}'; the task has {', '.join(classes)}"
        raise DataError(what, fix="restore the coordinates")
    number = {name: i for i, name in enumerate(classes)}
    rows = rows.with_columns(
        _label=pl.col("class").replace_strict(number, return_dtype=pl.Int64),
        _id=pl.col("id").cast(pl.String),
    ).sort("_label", "_id", maintain_order=True)
    start, end = (rows[column].to_numpy().astype(np.int64) for column in ("start", "end"))
    contig, strand = (
        rows[column].fill_null("").to_numpy().astype(np.str_) for column in ("region", "strand")
    )
    sequences = [s.encode() for s in rows["seq"]] if "seq" in rows.columns else []
    places = Coordinates(contig, start, end, strand)
    return Examples(sequences, rows["_label"].to_numpy(), rows["_id"].to_list(), places)


def _upstream(folder: Path, name: str) -> pl.DataFrame:
    both = (folder / f"{name}.csv.gz", folder / f"{name}.csv")
    path = next((one for one in both if one.is_file()), None)
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


def _rows_of(path: Path, name: str) -> pl.DataFrame:
    """The rows of a task in a parquet file of all of them."""
    try:
        rows = pl.read_parquet(find_plain_path(path)).filter(pl.col("dataset") == name)
    except (pl.exceptions.PolarsError, OSError) as fault:
        what = f"cannot be read ({str(fault).splitlines()[0][:120]})"
        raise DataError(what, file=path, fix="restore the file") from None
    if rows.is_empty():
        raise DataError(f"holds no rows of {name}", file=path, fix="choose another task")
    return rows
