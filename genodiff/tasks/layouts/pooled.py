"""Measured sequences of one or more tables without a published split: values to be predicted.

The tables are pooled. A sequence that stands in several rows (or, of a task without `oriented`, on
either strand) is one example with the mean of its values. Then clusters of sequences that are alike
are held out whole (see `tasks.homology`), a fifth of the examples, always the same. The split is
ours and is called `homology`: nobody has published figures of it.
"""

from pathlib import Path

import numpy as np

from genodiff.alphabet import reverse_complement
from genodiff.errors import DataError, UsageError
from genodiff.io.tables import ENDINGS, find_ending, open_table
from genodiff.io.text_lines import RowReader, read_text_lines
from genodiff.tasks.examples import Examples, Parts, check_sequence
from genodiff.tasks.resplit import split_by_homology
from genodiff.tasks.suite import LAYOUTS, Pool, TaskFiles, find_suite_file

TEST_SHARE = 5
"""One in so many examples tests."""


@LAYOUTS.register("pooled")
def read_pooled(files: TaskFiles) -> Parts:
    """The examples of the task's `pool`, split by homology. Raises `DataError` and `UsageError`."""
    task, pool = files.task, files.task.pool
    if pool is None:
        raise UsageError(f"task {task.name} does not say which tables it pools")
    values: dict[bytes, list[float]] = {}
    names: dict[bytes, str] = {}
    n_rows = with_n = negative = 0
    for file in pool.files:
        for line, sequence, cell in _read(find_suite_file(files.folder, file), pool):
            n_rows += 1
            read = check_sequence(sequence.encode("latin-1", "replace"), file, line=line)
            if pool.drop_n and b"N" in read:
                with_n += 1
                continue
            value = RowReader(file, line).read_number(cell, "value")
            negative += pool.log and value < 0
            key = read if task.oriented else min(read, bytes(reverse_complement(read)))  # type: ignore[arg-type]
            values.setdefault(key, []).append(np.log1p(max(value, 0.0)) if pool.log else value)
            names.setdefault(key, f"{Path(file).name.split('.')[0]}:{line}")
    sequences = list(values)
    labels = np.array([np.mean(values[s]) for s in sequences])
    whole = Examples(sequences, labels, [names[s] for s in sequences])
    n_files = f"{len(pool.files)} file{'s' * (len(pool.files) > 1)}"
    notes = [
        f"pooled: {n_rows:,} rows of {n_files}, {whole.n:,} different sequences; no published split"
    ]
    if with_n:
        notes.append(f"{with_n:,} rows with N are left out: their padding tells their origin")
    if pool.log:
        notes.append(f"values are log(1 + x); {negative:,} below 0 count as 0")
    n_test = whole.n // TEST_SHARE
    rows = np.arange(whole.n)
    parts = Parts(whole.take(rows[n_test:]), whole.take(rows[:n_test]), tuple(notes))
    return split_by_homology(parts)


def _read(path: Path, pool: Pool) -> list[tuple[int, str, str]]:
    """(line, sequence, value) of every row."""
    if not pool.header:
        separator, found = ENDINGS[find_ending(path)], []
        for line, text in read_text_lines(path, "a table"):
            fields = text.split(separator)
            if text.strip() and len(fields) != 2:
                what = f"{len(fields)} fields, not a sequence and a value"
                raise DataError(what, file=path, line=line, fix="give the named file")
            found += [(line, fields[0], fields[1])] if text.strip() else []
        return found
    table = open_table(path)
    header, rows = table.names, table.rows
    for column in (pool.sequence, pool.value):
        if column not in header:
            raise DataError(f"no column '{column}'", file=path, line=1, fix="give the named file")
    at, of = header.index(pool.sequence), header.index(pool.value)
    return [(line, fields[at], fields[of]) for line, fields in rows]
