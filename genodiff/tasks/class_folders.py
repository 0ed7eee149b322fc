"""The layout `train/CLASS/ID.txt` and `test/CLASS/ID.txt`, one bare sequence a file.

Genomic Benchmarks use it. It is read from a folder or straight from its zip archive. Classes and
files are put in order by name, so that labels and seed splits do not depend on the order in which a
file system lists them. Hidden files, and those that file managers leave (Thumbs.db), are passed
over; everything else that is not a sequence is an error.
"""

import logging
import os
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from genodiff.errors import DataError
from genodiff.io.diagnosis import find_binary_format
from genodiff.io.file_kinds import HEAD
from genodiff.io.input_file import FILES, is_planning, note_cut, open_input
from genodiff.tasks.examples import Examples, check_sequence

PARTS = ("train", "test")
ARCHIVES = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tbz2", ".txz", ".7z", ".rar")
_ENDING = ".txt"
_LARGEST = 1 << 26
_LEFT_BY_FILE_MANAGERS = {".ds_store", "thumbs.db", "ehthumbs.db", "desktop.ini"}
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)  # what zipfile raises
_BOM = b"\xef\xbb\xbf"
_LAYOUT = "the layout is train/CLASS/*.txt and test/CLASS/*.txt"

_log = logging.getLogger("genodiff")


class _Tree(NamedTuple):
    """part → class → file names, and how to read one of them."""

    shown: str
    files: dict[str, dict[str, list[str]]]
    read: Callable[[str], bytes]
    passed_over: tuple[str, ...] = ()


def is_class_folders(path: Path) -> bool:
    """Whether `path` is a zip archive or a folder in this layout.

    A folder counts if `train` or `test` in it, or in its only folder, holds folders.
    """
    return (path.is_file() and path.suffix.lower() == ".zip") or _root(path) is not None


def refuse_archive(path: str | Path) -> None:
    """Raises `DataError` for an archive that is not read in place: only zips are."""
    path = Path(path)
    if not path.is_file():
        return
    with path.open("rb") as file:
        head = file.read(HEAD)
    is_tar = head[257:262] == b"ustar"
    if head.startswith(b"PK") and (known := find_binary_format(head)) and "archive" not in known[0]:
        raise DataError(f"is {known[0]}", file=path, fix=known[1] or _LAYOUT)
    if is_tar or path.name.lower().endswith(ARCHIVES):
        kind = "a tar" if is_tar or ".t" in path.name.lower() else "an"
        what = f"is {kind} archive, which is not read in place"
        raise DataError(what, file=path, fix="unpack it and give the folder, or give a zip")


def read_class_folders(
    path: str | Path, classes: tuple[str, ...] | None = None
) -> tuple[Examples, Examples, tuple[str, ...]]:
    """(train, test, classes), each part ordered by class and name.

    `classes` fixes which classes there are and their labels; None takes the folders of the train
    part in alphabetical order. Raises `DataError` for anything missing, foreign or empty.
    """
    path = Path(path)
    tree = _zip(path) if path.is_file() else _folder(path)
    if tree.passed_over:
        names = ", ".join(sorted({name.rpartition("/")[2] for name in tree.passed_over}))
        _log.info("%s: passed over %d files (%s)", tree.shown, len(tree.passed_over), names)
    for part in PARTS:
        if not tree.files.get(part):
            what = f"has no folder '{part}' with one folder per class"
            raise DataError(what, file=tree.shown, fix=_LAYOUT)
    known = classes or tuple(sorted(tree.files["train"]))
    for part in PARTS:
        _check_classes(tree, part, known, fixed=classes is not None)
    if len(known) < 2:
        what = f"has one class only: '{known[0]}'"
        raise DataError(what, file=f"{tree.shown}/train", fix="give at least two class folders")
    train, test = (_read_part(tree, part, known) for part in PARTS)
    return train, test, known


def _check_classes(tree: _Tree, part: str, known: tuple[str, ...], *, fixed: bool) -> None:
    found, place = tree.files[part], f"{tree.shown}/{part}"
    for name in sorted(set(found) - set(known)):
        where = f"the task's are {', '.join(known)}" if fixed else "train has no sequences of it"
        what = f"unknown class '{name}': {where}"
        raise DataError(what, file=place, fix="remove the folder, or give train its sequences")
    for name in known:
        if name not in found:
            other = "" if fixed else ", which train has,"
            what = f"the class folder '{name}'{other} is missing here"
            raise DataError(what, file=place, fix="restore the folder")
        if not found[name]:
            what = "the class folder is empty: no sequences"
            raise DataError(what, file=f"{place}/{name}", fix="restore its files")


def _read_part(tree: _Tree, part: str, classes: tuple[str, ...]) -> Examples:
    sequences: list[bytes] = []
    names: list[str] = []
    labels: list[int] = []
    n, some = sum(len(tree.files[part][name]) for name in classes), None
    if is_planning() and n > FILES * len(classes):
        some = FILES
        note_cut(f"{tree.shown}/{part}", FILES * len(classes) / n, f"{FILES} files of each class")
    for label, name in enumerate(classes):
        # By the name without its ending, as in the benchmark's tables of coordinates.
        stems = sorted(file.removesuffix(_ENDING) for file in tree.files[part][name])
        for stem in stems[:some]:
            place = f"{part}/{name}/{stem}{_ENDING}"
            sequences.append(_sequence(tree.read(place), f"{tree.shown}/{place}"))
            names.append(stem)
            labels.append(label)
    return Examples(sequences, np.array(labels, np.int64), names, share=len(names) / n)


def _sequence(raw: bytes, shown: str) -> bytes:
    known = find_binary_format(raw[:4096])
    if known:
        what = f"not a sequence: this is {known[0]}"
        raise DataError(what, file=shown, fix=known[1] or "give a text file with one sequence")
    text = raw.removeprefix(_BOM).strip(b" \t\r\n")
    if text.startswith(b">"):
        raise DataError("is FASTA, not a bare sequence", file=shown, fix="remove the header line")
    if b"\n" in text or b"\r" in text:
        raise DataError("has more than one line", file=shown, fix="write the sequence in one line")
    return check_sequence(text, shown)


def _root(path: Path) -> Path | None:
    if not path.is_dir():
        return None
    inside = [p for p in sorted(path.iterdir()) if p.is_dir() and not p.name.startswith(".")]
    for folder in [path, *inside] if len(inside) == 1 else [path]:
        parts = [folder / part for part in PARTS]
        tables = (".csv", ".csv.gz")
        if any(p.is_dir() and not any(q.name.endswith(tables) for q in p.iterdir()) for p in parts):
            return folder
    return None


def _folder(path: Path) -> _Tree:
    if not path.exists():
        with open_input(path):  # says what is wrong with it, with the nearest name
            pass
    root = _root(path)
    if root is None:
        raise DataError("has neither a folder 'train' nor a folder 'test'", file=path, fix=_LAYOUT)
    files: dict[str, dict[str, list[str]]] = {}
    left: list[str] = []
    for part in PARTS:
        if (root / part).is_dir():
            files[part] = {}
            for entry in _listed(root / part, left):
                if not entry.is_dir():
                    raise DataError("is not a class folder", file=entry.path, fix=_LAYOUT)
                files[part][entry.name] = [_name(one) for one in _listed(entry.path, left)]
    return _Tree(str(root), files, lambda name: _bytes(root / name), tuple(left))


def _name(entry: os.DirEntry[str]) -> str:
    """The name of a sequence's file. Raises `DataError` for anything else."""
    for wrong, what in (
        (entry.is_dir(), "is a folder where sequence files should stand"),
        (not entry.name.endswith(_ENDING), f"is not a {_ENDING} file"),
        (entry.is_symlink() and not os.path.exists(entry.path), "is a broken link"),
        (not entry.is_file(), "is not a regular file"),
    ):
        if wrong:
            raise DataError(what, file=entry.path, fix=_LAYOUT)
    return entry.name


def _listed(folder: str | Path, left: list[str]) -> list[os.DirEntry[str]]:
    """The entries by name; what file managers left is added to `left`."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError as fault:
        what = f"cannot be listed ({fault.strerror})"
        raise DataError(what, file=folder, fix="check its permissions") from None
    left += [entry.path for entry in found if entry.name.lower() in _LEFT_BY_FILE_MANAGERS]
    return [one for one in found if not one.name.startswith(".") and one.path not in left]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        with open_input(path) as source:  # the same fault again, in words
            return b"".join(source.blocks())


def _zip(path: Path) -> _Tree:
    fix = "download it again"
    try:
        archive = zipfile.ZipFile(path)
    except _BROKEN:
        what = "is no whole zip archive (corrupt or truncated)"
        raise DataError(what, file=path, fix=fix) from None
    files: dict[str, dict[str, list[str]]] = {}
    places: dict[str, str] = {}
    left: list[str] = []
    for entry in archive.infolist():
        pieces = entry.filename.split("/")
        if entry.file_size > _LARGEST:
            what = f"'{entry.filename}' claims {entry.file_size:,} bytes"
            raise DataError(what, file=path, fix=fix)
        if pieces[-1].lower() in _LEFT_BY_FILE_MANAGERS:
            left.append(entry.filename)
            continue
        if entry.is_dir() or any(
            (piece.startswith(".") and piece != "..") or piece == "__MACOSX" for piece in pieces
        ):
            continue
        at = next((i for i, piece in enumerate(pieces) if piece in PARTS), None)
        if at is None or len(pieces) != at + 3 or not pieces[-1].endswith(_ENDING):
            what = f"holds '{entry.filename}', which is no sequence file"
            raise DataError(what, file=path, fix=_LAYOUT)
        part, name, file = pieces[at:]
        place = f"{part}/{name}/{file}"
        if place in places:
            raise DataError(f"holds '{place}' twice", file=path, fix=fix)
        files.setdefault(part, {}).setdefault(name, []).append(file)
        places[place] = entry.filename

    def read(name: str) -> bytes:
        try:
            return archive.read(places[name])
        except _BROKEN as fault:
            what = f"'{name}' cannot be unpacked: the zip is corrupt ({fault})"
            raise DataError(what, file=path, fix=fix) from None

    return _Tree(str(path), files, read, tuple(left))
