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
_FIX = "give the task's official files, unchanged"


class GlueColumns(NamedTuple):
    """The folder of a task, the columns of a file without a header, and the words of labels 0, 1.

    A file with a header needs the label and the columns of sentences, in any order.
    """

    folder: str
    names: tuple[str, ...]
    words: tuple[str, str] = ("0", "1")

    @property
    def texts(self) -> list[str]:
        """The columns of sentences."""
        return [name for name in self.names if name.startswith("sentence")]


_PAIR = ("index", "sentence1", "sentence2", "label")
COLUMNS = {
    "sst2": GlueColumns("SST-2", ("sentence", "label")),
    "cola": GlueColumns("CoLA", ("source", "label", "mark", "sentence")),
    "rte": GlueColumns("RTE", _PAIR, ("entailment", "not_entailment")),
    "wnli": GlueColumns("WNLI", _PAIR),
}


@LAYOUTS.register("glue")
def read_glue(task_files: TaskFiles) -> Parts:
    """The official train part and, as test, the official dev part.

    Raises `DataError` for files that are missing, broken or not GLUE's.
    """
    name = task_files.task.name
    home = _home(task_files.folder, name)
    files = {part: find_part(home, part, _ENDINGS) for part in ("train", "val", "dev", "test")}
    if files["train"] is None:
        what = f"holds no train.tsv of {name}"
        fix = f"give the folder that holds {COLUMNS[name].folder}, with --data"
        raise DataError(what, file=home, fix=fix)
    test = "test" if files["test"] is not None and has_labels(files["test"], name) else "dev"
    read = ("train", "val", "dev", test)
    kept = {part: path for part, path in files.items() if path is not None and part in read}
    if test not in kept:
        what = (
            f"holds no labelled part of {name} to test on: no dev.tsv, and test.tsv has no labels"
        )
        raise DataError(what, file=home, fix=_FIX)
    found = {part: read_part(path, name) for part, path in kept.items()}
    pieces = [part for part in found if part != test]
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
    glue, sentences, labels, names = COLUMNS[name], [], [], []
    columns: list[str] = []
    for number, fields in _rows(path):
        if not columns:
            columns = _name_columns(path, number, fields, name)
            if columns == _lower(fields):
                continue
        if len(fields) != len(columns):
            what = f"{len(fields)} fields, not {len(columns)}: no line of {name}"
            raise DataError(what, file=path, line=number, fix=_FIX)
        row = {column: field.strip() for column, field in zip(columns, fields, strict=True)}
        texts, answer = [row[column] for column in glue.texts], row["label"]
        if not all(texts):
            fix = "remove the row, or give its sentence"
            raise DataError("empty sentence", file=path, line=number, fix=fix)
        if answer not in glue.words:
            what = f"unknown label '{answer[:40]}': {name} has {' and '.join(glue.words)}"
            raise DataError(what, file=path, line=number, fix=_FIX)
        sentences.append(TAB.join(text.encode() for text in texts))
        labels.append(glue.words.index(answer))
        names.append(f"{path.name.partition('.')[0]}{len(labels)}")
    if not labels:
        raise DataError("has no rows", file=path, fix=_FIX)
    return Examples(sentences, np.array(labels, np.int64), names)


def has_labels(path: Path, name: str) -> bool:
    """Whether a part has the labels of its task: GLUE's own test parts have none."""
    _, fields = next(_rows(path), (0, list[str]()))
    if _is_header(fields):
        return "label" in _lower(fields)
    row = dict(zip(COLUMNS[name].names, fields, strict=False))
    return len(fields) == len(COLUMNS[name].names) and row["label"].strip() in COLUMNS[name].words


def _rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Number and fields of each line. Control characters stay: CoLA's own file has one."""
    for number, line in enumerate("".join(read_text_pieces(path)).split("\n"), 1):
        if line.strip():
            yield number, line.removesuffix("\r").split("\t")


def _name_columns(path: Path, number: int, fields: list[str], name: str) -> list[str]:
    """The columns of a file by its first line: those of a header, or those that the task has."""
    glue, have = COLUMNS[name], _lower(fields)
    if not _is_header(fields):
        if len(fields) != len(glue.names):
            n = format_count(len(fields), "field")
            what = f"no file of {name}: its first line has {n}, not {len(glue.names)}"
            raise DataError(what, file=path, line=number, fix=_FIX)
        return list(glue.names)
    for word in (*glue.texts, "label"):
        if word not in have:
            what = f"no column '{word}', which {name} has; {did_you_mean(word, have)}"
            raise DataError(what, file=path, line=number, fix=_FIX)
    return have


def _is_header(fields: Sequence[str]) -> bool:
    return not {"sentence", *_PAIR}.isdisjoint(_lower(fields))


def _lower(fields: Sequence[str]) -> list[str]:
    return [field.strip().lower() for field in fields]


def _home(folder: Path, name: str) -> Path:
    """The task's folder, whether `folder` is it or holds it, however its name is written."""
    wanted = name.replace("-", "").lower()
    if not folder.is_dir():
        fix = f"give the folder that holds {COLUMNS[name].folder}"
        raise DataError("is no folder", file=folder, fix=fix)
    if find_part(folder, "train", _ENDINGS) is not None:
        return folder
    for inside in sorted(folder.iterdir()):
        if inside.is_dir() and inside.name.replace("-", "").lower() == wanted:
            return inside
    what = f"holds no data of {name}: no folder {COLUMNS[name].folder}"
    raise DataError(what, file=folder, fix="give the folder that holds CoLA, SST-2, RTE and WNLI")
