"""The examples of a task, and the seeds' splits of its train part.

Protocol: the test part is fixed. For each seed the train part is split 90/10 at random, as in the
Caduceus paper (Schiff et al. 2024, App. D.2), unless the benchmark publishes a validation part of
its own, which then serves every seed.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, uniforms
from genodiff.data.fetch import fetch
from genodiff.data.recipe import Recipe, Source
from genodiff.errors import DataError, UsageError, did_you_mean
from genodiff.io import atomic
from genodiff.io.input_file import was_cut
from genodiff.io.target import cache_dir
from genodiff.tasks.class_folders import PARTS
from genodiff.tasks.examples import Examples, Parts, count_classes
from genodiff.tasks.resplit import draw_groups, resplit
from genodiff.tasks.split_names import RESPLITS, SPLITS, THRESHOLD, check_similarity, name_split
from genodiff.tasks.suite import LAYOUTS, Suite, Task, TaskFiles, load_suite


def fetch_task(suite: Suite, task: Task, *, offline: bool) -> Path:
    """The suite's folder in the cache; files of the task that are missing are fetched.

    Raises `DataError` with the remedy where a file can or may not be fetched.
    """
    name = suite.suite
    home = cache_dir() / "tasks" / name
    fix = f"give the folder that holds {name} with --data"
    if not suite.url and not home.exists():
        what = f"the data of {name} are not here, and no command can fetch them"
        raise DataError(what, file=home, fix=fix)
    url, by_class = suite.url, "{class}" in suite.url
    for part, one in product(PARTS if url else (), task.classes if by_class else ("",)):
        at = url.replace("{task}", task.name).replace("{part}", part).replace("{class}", one)
        ending = at.rpartition("/")[2].partition(".")[2]
        path = home / task.name / (f"{part}/{one}.{ending}" if by_class else f"{part}.{ending}")
        if path.exists():
            continue
        filename = f"{part}-{path.name}" if by_class else path.name
        source = Source(url=at, filename=filename, licence=f"see the suite {name}")
        try:
            found = fetch(Recipe(name=name, sources=(source,)), offline=offline)[0]
        except DataError as fault:
            raise DataError(fault.what, fix=fix) from None
        atomic.write_bytes(path, found.read_bytes())
    return home


VALID_SHARE = 10
"""One in so many train examples validates."""


class TaskData(NamedTuple):
    """A task with its examples.

    `valid_index` (into `train`) is the published validation part, if there is one. `split` says
    which split this is (official, local, chrom-holdout, dedup, ...); `notes` are to be shown with
    every number. `groups` is as in `Parts`.
    """

    task: Task
    train: Examples
    test: Examples
    split: str
    notes: tuple[str, ...] = ()
    valid_index: NDArray[np.int64] | None = None
    groups: NDArray[np.int64] | None = None


def seed_split(data: TaskData, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(train, valid) rows of `data.train` for `seed`, both sorted.

    The split is 90/10 at random, of whole groups where there are groups, or the published
    validation part. A pure function of the seed, the number of examples and their groups. Raises
    `DataError` for fewer than two examples, and where all of them are in one group.
    """
    if data.valid_index is not None:
        return np.setdiff1d(np.arange(data.train.n), data.valid_index), np.sort(data.valid_index)
    n = data.train.n
    if n < 2:
        fix = "give at least two"
        raise DataError(f"task {data.task.name}: {n} train examples cannot be split", fix=fix)
    n_valid = max(1, n // VALID_SHARE)
    if data.groups is not None:
        valid = draw_groups(data.groups, n_valid, Purpose.FINETUNE_SPLIT, seed, stream=0)
        return np.flatnonzero(~valid), np.flatnonzero(valid)
    order = np.argsort(uniforms(seed, Purpose.FINETUNE_SPLIT, 0, n), kind="stable")
    return np.sort(order[n_valid:]), np.sort(order[:n_valid])


def subsample_train(data: TaskData, n: int) -> TaskData:
    """The task with `n` of its train examples, the same ones for every seed and model.

    A published validation part stays.
    """
    valid = np.zeros(0, np.int64) if data.valid_index is None else data.valid_index
    pool = np.setdiff1d(np.arange(data.train.n), valid)
    if len(pool) <= n:
        return data
    order = np.argsort(uniforms(0, Purpose.FINETUNE_SPLIT, 1, len(pool)), kind="stable")
    rows = np.concatenate([np.sort(pool[order[:n]]), valid])
    note = f"train: {n:,} of {len(pool):,} examples, drawn once for all models and seeds"
    return data._replace(
        train=data.train.take(rows),
        notes=(*data.notes, note),
        valid_index=None if data.valid_index is None else np.arange(n, len(rows)),
        groups=None if data.groups is None else data.groups[rows],
    )


def load_task(
    suite: str,
    name: str,
    *,
    source: str | Path | None = None,
    split: str = "official",
    references: Mapping[str, Path] | None = None,
    offline: bool = False,
    sequences: bool = True,
    similarity: float | None = None,
) -> TaskData:
    """A task with its examples, checked against what its recipe says.

    `source` is the folder (or file) with the suite's data; None looks into the cache. `references`
    gives the user's own genome files by reference name; with `sequences=False` coordinates stay
    without sequences. `split` is `official`, one of `resplit` (`similarity` is homology's) or what
    the suite comes with. Raises `UsageError` for an unknown name and `DataError` for data that are
    missing, broken or not the task's.
    """
    found = load_suite(suite)
    task = found.find(name)
    if split not in SPLITS:
        raise UsageError(f"no split '{split}'; {did_you_mean(split, SPLITS)}")
    check_similarity(split, similarity)
    if found.domain == "text" and split != "official":
        raise UsageError(f"{suite} has no split '{split}', which is of DNA", fix="use official")
    if split in ("local", "partial") and split not in found.splits:
        fix = f"use official, {', '.join(RESPLITS)}"
        raise UsageError(f"{suite} has no split '{split}'", fix=fix)
    folder = Path(source) if source is not None else fetch_task(found, task, offline=offline)
    if not folder.exists():
        raise DataError(f"the data of {suite} are not here", file=folder, fix="check the path")
    wanted = split if split in found.splits else "official"
    parts = LAYOUTS[found.layout](
        TaskFiles(found, task, folder, wanted, dict(references or {}), offline, sequences)
    )
    if wanted == "official" and not was_cut():
        _check_counts(task, parts, folder)
    split = found.resolve_split(split)
    here = found.resolve_split("official")
    if split in RESPLITS and name_split(split, similarity) != here and not was_cut():
        usual = (
            contig for name in task.references.values() for contig in found.references[name].holdout
        )
        held_out = frozenset(task.holdout or usual)
        parts = resplit(split, parts, task.classes, held_out, similarity or THRESHOLD)
    return join_parts(task, parts, name_split(split, similarity))


def _check_counts(task: Task, parts: Parts, folder: Path) -> None:
    """The published counts and lengths are the check that these are the official data."""
    found = {"train": parts.train, "test": parts.test}
    if (valid := parts.valid_index) is not None:
        found["dev"] = parts.train.take(valid)
        found["train"] = parts.train.take(np.setdiff1d(np.arange(parts.train.n), valid))
    for part, examples in found.items():
        counts: tuple[int, ...] = (examples.n,)
        if task.classes:
            counts = tuple(count_classes(examples.labels, task.classes).values())
        if part in task.counts and counts != task.counts[part]:
            some = counts, task.counts[part]
            shown, wanted = (" / ".join(f"{n:,}" for n in ns) for ns in some)
            what = (
                f"{task.name}: {part} has {shown} examples per class "
                f"({', '.join(task.classes)}), the published data {wanted}"
            )
            fix = "give the complete official data, or use `finetune table` for your own"
            raise DataError(what, file=folder, fix=fix)
        if task.lengths is None:
            continue
        (least, most), lengths = task.lengths, examples.lengths
        low, high = lengths.min(), lengths.max()
        if low < least or high > most:
            what = (
                f"{task.name}: {part} has lengths {low:,} to {high:,}, "
                f"the published data {least:,} to {most:,}"
            )
            raise DataError(what, file=folder, fix="give the official data")


def join_parts(task: Task, parts: Parts, split: str) -> TaskData:
    """A task with its parts, and a note for each part with sequences that are cut.

    Texts have none: their number of tokens depends on the network.
    """
    notes = list(parts.notes)
    for part, examples in (("train", parts.train), ("test", parts.test)):
        long = int((examples.lengths > task.max_length).sum())
        if long and task.domain == "dna":
            share = f"{long:,} of {examples.n:,} {part} sequences ({long / examples.n:.1%})"
            notes.append(
                f"{share} are longer than {task.max_length:,} and are cut to their first "
                f"{task.max_length:,} bases"
            )
    index, groups = parts.valid_index, parts.groups
    return TaskData(task, parts.train, parts.test, split, tuple(notes), index, groups)
