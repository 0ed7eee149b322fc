"""GLUE's tasks of one sentence or two, from GLUE's own files.

There is a folder for each task and a tab-separated file, without quoting, for each part.

    CoLA    source, label, mark, sentence (no header)
    SST-2   sentence, label
    RTE     index, sentence1, sentence2, label (a word)
    WNLI    index, sentence1, sentence2, label (0 or 1)

GLUE does not publish the labels of its test parts. So the official dev part tests here, once, as in
published tables of dev results. Nothing is chosen by it: each seed's validation part comes from
train. Copies that others have split are read too. Their `val` part, and a `dev` part beside a
labelled `test`, are pieces of the official train part and are put back into it.

A sentence is its UTF-8 bytes. Two sentences have a tab between them, which no field can hold.
Source: Wang et al. 2019, arXiv 1804.07461; Warstadt et al. 2019 (CoLA), Socher et
al. 2013 (SST-2), Levesque et al. 2012 (WNLI).
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from genodiff.errors import DataError, did_you_mean, format_count
from genodiff.io.text_file import read_text_pieces
from genodiff.tasks.examples import Examples, Parts, concatenate
from genodiff.tasks.layouts.parts import find_part
from genodiff.tasks.suite import LAYOUTS, TaskFiles

TAB = b"\t"
_ENDINGS = (".tsv",)
_TEXTS = ("sentence", "sentence1", "sentence2")
_FIX = "give the task's official files, unchanged"


class GlueColumns(NamedTuple):
    """Where a file without a header has its sentences and labels, and how many fields it has.

    `words` are the labels of class 0, 1, ... as the files write them.
    """

    folder: str
    texts: tuple[int, ...]
    label: int
    fields: int
    words: tuple[str, str]
    header: bool = True


COLUMNS = {
    "sst2": GlueColumns("SST-2", (0,), 1, 2, ("0", "1")),
    "cola": GlueColumns("CoLA", (3,), 1, 4, ("0", "1"), header=False),
    "rte": GlueColumns("RTE", (1, 2), 3, 4, ("entailment", "not_entailment")),
    "wnli": GlueColumns("WNLI", (1, 2), 3, 4, ("0", "1")),
}


@LAYOUTS.register("glue")
def read_glue_task(files: TaskFiles) -> Parts:
    """The parts of a task of GLUE; see `read_glue`."""
    return read_glue(files.folder, files.task.name)


def read_glue(folder: Path, name: str) -> Parts:
    """The official train part and, as test, the official dev part.

    Raises `DataError` for files that are missing, broken or not GLUE's.
    """
    home = _home(folder, name)
    files = {part: find_part(home, part, _ENDINGS) for part in ("train", "val", "dev", "test")}
    if files["train"] is None:
        what = f"holds no train.tsv of {name}"
        fix = f"give the folder that holds {COLUMNS[name].folder}, with --data"
        raise DataError(what, file=home, fix=fix)
    test = "test" if files["test"] is not None and has_labels(files["test"], name) else "dev"
    if files[test] is None:
        what = (
            f"holds no labelled part of {name} to test on: no dev.tsv, and test.tsv has no labels"
        )
        raise DataError(what, file=home, fix=_FIX)
    pieces = [part for part in ("train", "val", "dev") if files[part] is not None and part != test]
    found = {part: read_part(files[part], name) for part in (*pieces, test)}  # type: ignore[arg-type]
    train = found["train"]
    for part in pieces[1:]:
        train = concatenate(train, found[part])
    whole = " + ".join(f"{part} ({found[part].n:,})" for part in pieces)
    notes = (
        f"the test part is GLUE's dev part ({found[test].n:,} examples): its own test part has "
        f"no public labels",
        f"validation: a tenth of train, drawn for each seed; train is {whole}",
    )
    return Parts(train, found[test], notes)


def read_part(path: Path, name: str) -> Examples:
    """The labelled examples of one file. Raises `DataError` naming the line."""
    columns, sentences, labels, names = COLUMNS[name], [], [], []
    where: tuple[tuple[int, ...], int, int] | None = None
    for number, line in _lines(path):
        if not line.strip():
            continue
        fields = line.split("\t")
        if where is None:
            where = _layout(path, number, fields, name)
            if _is_header(fields):
                continue
        texts, label, width = where
        if len(fields) != width:
            what = f"{len(fields)} fields, not {width}: no line of {name}"
            raise DataError(what, file=path, line=number, fix=_FIX)
        words = [fields[i].strip() for i in texts]
        if not all(words):
            fix = "remove the row, or give its sentence"
            raise DataError("empty sentence", file=path, line=number, fix=fix)
        answer = fields[label].strip()
        if answer not in columns.words:
            what = f"unknown label '{answer[:40]}': {name} has {' and '.join(columns.words)}"
            raise DataError(what, file=path, line=number, fix=_FIX)
        sentences.append(TAB.join(w.encode() for w in words))
        labels.append(columns.words.index(answer))
        names.append(f"{path.name.partition('.')[0]}{len(labels)}")
    if not labels:
        raise DataError("has no rows", file=path, fix=_FIX)
    return Examples(sentences, np.array(labels, np.int64), names)


def has_labels(path: Path | None, name: str) -> bool:
    """Whether a part has the labels of its task: GLUE's own test parts have none."""
    assert path is not None
    for _, line in _lines(path):
        if line.strip():
            fields = line.split("\t")
            if _is_header(fields):
                return "label" in _lower(fields)
            columns = COLUMNS[name]
            return len(fields) == columns.fields and fields[columns.label].strip() in columns.words
    return False


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line. Control characters stay: CoLA's own file has one."""
    for number, line in enumerate("".join(read_text_pieces(path)).split("\n"), 1):
        yield number, line.removesuffix("\r")


def _layout(
    path: Path, number: int, fields: list[str], name: str
) -> tuple[tuple[int, ...], int, int]:
    """Numbers of the sentence fields and the label field, and how many fields a line has."""
    columns = COLUMNS[name]
    if not _is_header(fields):
        if len(fields) != columns.fields:
            n = format_count(len(fields), "field")
            what = f"no file of {name}: its first line has {n}, not {columns.fields}"
            raise DataError(what, file=path, line=number, fix=_FIX)
        return columns.texts, columns.label, columns.fields
    wanted = ("sentence",) if len(columns.texts) == 1 else ("sentence1", "sentence2")
    have = _lower(fields)
    for word in (*wanted, "label"):
        if word not in have:
            what = f"no column '{word}', which {name} has; {did_you_mean(word, have)}"
            raise DataError(what, file=path, line=number, fix=_FIX)
    return tuple(have.index(word) for word in wanted), have.index("label"), len(have)


def _is_header(fields: Sequence[str]) -> bool:
    return bool({*_TEXTS, "index", "label"} & set(_lower(fields)))


def _lower(fields: Sequence[str]) -> list[str]:
    return [field.strip().lower() for field in fields]


def _home(folder: Path, name: str) -> Path:
    """The task's folder, whether `folder` is it or holds it, however its name is written."""
    wanted = name.replace("-", "").lower()
    if folder.is_dir() and find_part(folder, "train", _ENDINGS) is None:
        for inside in sorted(folder.iterdir()):
            if inside.is_dir() and inside.name.replace("-", "").lower() == wanted:
                return inside
        what = f"holds no data of {name}: no folder {COLUMNS[name].folder}"
        fix = "give the folder that holds CoLA, SST-2, RTE and WNLI"
        raise DataError(what, file=folder, fix=fix)
    if not folder.is_dir():
        fix = f"give the folder that holds {COLUMNS[name].folder}"
        raise DataError("is no folder", file=folder, fix=fix)
    return folder
