"""A user's own labelled data as a task: class folders, their zip, or tables."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from genodiff.errors import DataError, UsageError, printable
from genodiff.io.input_file import open_input, was_cut
from genodiff.tasks.class_folders import is_class_folders, read_class_folders, refuse_archive
from genodiff.tasks.examples import Parts, concatenate, count_classes
from genodiff.tasks.labelled_file import TableColumns, read_examples
from genodiff.tasks.labels import SEPARATOR, Kind, list_few
from genodiff.tasks.layouts.parts import find_parts
from genodiff.tasks.resplit import resplit
from genodiff.tasks.split_names import (
    RESPLITS,
    THRESHOLD,
    check_similarity,
    choose_split,
    name_split,
    refuse_single_table,
)
from genodiff.tasks.suite import Metric, Task
from genodiff.tasks.task import TaskData, join_parts

SUITE = "table"
METRICS: dict[Kind, tuple[Metric, ...]] = {
    "binary": ("accuracy", "f1", "mcc", "auroc"),
    "multiclass": ("accuracy", "f1_macro", "mcc", "auroc"),
    "multilabel": ("f1_macro", "accuracy", "auroc", "auprc"),
    "regression": ("pearson", "spearman", "r2", "mse"),
}


def load_own_data(
    train: str | Path,
    test: str | Path | None = None,
    valid: str | Path | None = None,
    *,
    layout: TableColumns = TableColumns(),
    kind: Kind | None = None,
    metric: Metric | None = None,
    max_length: int | None = None,
    name: str | None = None,
    split: str = "official",
    similarity: float | None = None,
    test_share: float | None = None,
) -> TaskData:
    """The task that a user's files make.

    `train` may be a folder or zip that holds the other parts as well. The train part's labels say
    what kind of task it is and give the classes their order, unless `kind` is given; without
    `max_length` nothing is cut. `test_share` (between 0 and 1) of one table tests, in clusters of
    sequences that are alike, always the same. `split` is `official` (as given) or one of
    `RESPLITS`; `similarity` is homology's threshold. Raises `DataError` and `UsageError`.
    """
    path = Path(train)
    layout = layout._replace(own=True)
    split = choose_split(split, test_share)
    check_similarity(split, similarity)
    for given in (train, test, valid):
        if given is not None:
            refuse_archive(given)
    refuse_single_table(path, test, valid, test_share)
    parts, kind, classes = _parts(path, test, valid, layout, kind, test_share)
    if split in RESPLITS and not was_cut():
        parts = resplit(split, parts, classes, frozenset(), similarity or THRESHOLD)
    elif split != "official":
        fix = f"use official, {', '.join(RESPLITS)}"
        raise UsageError(f"own data have no split '{split}'", fix=fix)
    longest = max(int(part.lengths.max()) for part in (parts.train, parts.test) if part.n)
    metrics = tuple(dict.fromkeys(([metric] if metric else []) + list(METRICS[kind])))
    task = Task(
        suite=SUITE,
        name=name or printable(path.name.split(".")[0] or path.resolve().name or "own"),
        kind=kind,
        classes=classes,
        metrics=metrics,
        max_length=max_length or longest,
    )
    return join_parts(task, parts, "own" if split == "official" else name_split(split, similarity))


def _parts(
    path: Path,
    test: str | Path | None,
    valid: str | Path | None,
    layout: TableColumns,
    kind: Kind | None,
    test_share: float | None,
) -> tuple[Parts, Kind, tuple[str, ...]]:
    if test is None and not path.exists():
        with open_input(path):  # says what is wrong with it, with the nearest name
            pass
    if test is None and is_class_folders(path):
        train_part, test_part, classes = read_class_folders(path)
        kind = "binary" if len(classes) == 2 else "multiclass"
        return Parts(train_part, test_part), kind, classes
    if test is None and path.is_dir():
        files = find_parts(path)
        for part in ("train", "test"):
            if part not in files:
                what = (
                    f"has no {part} part: neither a folder '{part}' nor a table {part}.csv, "
                    f".tsv, .parquet or .fa"
                )
                fix = "give train/CLASS/*.txt and test/CLASS/*.txt, or train.csv and test.csv"
                raise DataError(what, file=path, fix=fix)
        path, test, *own = files.values()
        valid = valid or next(iter(own), None)
    train_part, kind, classes = read_examples(path, layout, kind=kind)
    if kind in ("binary", "multiclass") and train_part.n > 2 * len(classes) and not was_cut():
        counts = count_classes(train_part.labels, classes)
        if alone := next((name for name, n in counts.items() if n < 2), None):
            # It cannot be learnt and validated, and is mostly a typing error in a label.
            what = f"the class '{alone}' has one example only"
            raise DataError(what, file=path, fix="correct the label, or give more examples")
    if test is None:
        n_test = max(1, round((test_share or 0) * train_part.n))
        rows = np.arange(train_part.n)
        note = f"one table: a share of {test_share:g} of it tests"
        some, rest = train_part.take(rows[:n_test]), train_part.take(rows[n_test:])
        return Parts(rest, some, (_tell_kind(kind, classes), note)), kind, classes
    told, notes = (not was_cut() and classes) or None, [_tell_kind(kind, classes)]
    index: NDArray[np.int64] | None = None
    test_part = read_examples(test, layout, kind=kind, classes=told)[0]
    if valid is not None:
        valid_part = read_examples(valid, layout, kind=kind, classes=told)[0]
        name = Path(valid).name
        notes.append(f"validation: {name} ({valid_part.n:,} examples) for every seed")
        index = np.arange(train_part.n, train_part.n + valid_part.n)
        train_part = concatenate(train_part, valid_part)
    return Parts(train_part, test_part, tuple(notes), index), kind, classes


def _tell_kind(kind: Kind, classes: tuple[str, ...]) -> str:
    told = f"the labels make a {kind} task"
    if classes:
        told += f": {list_few(classes)}"
    if kind == "multiclass" and any(SEPARATOR in name for name in classes):
        told += f" (--kind multilabel would read {SEPARATOR} as 'and')"
    return told
