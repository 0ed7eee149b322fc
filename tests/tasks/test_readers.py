"""Folders, zips, tables and FASTA with labels: what is read, and what is refused with its place and
remedy.
"""

import gzip
import os
import tarfile
import warnings
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from genodiff.alphabet import reverse_complement
from genodiff.errors import DataError, UsageError
from genodiff.io.input_file import planning
from genodiff.tasks import task as download
from genodiff.tasks.class_folders import read_class_folders
from genodiff.tasks.examples import Coordinates
from genodiff.tasks.labelled_file import TableColumns, read_examples
from genodiff.tasks.layouts.genomic_benchmarks import read_partial
from genodiff.tasks.suite import ReferenceGenome, load_suite, read_sequences
from genodiff.tasks.task import load_task
from tests.labelled_files import check_equal, load_own, random_dna, write, write_folder

A, C, G = random_dna(3, 40)


def zipped(folder: Path, path: Path, top: str = "", *, turned: bool = False) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*.txt"), reverse=turned):
            archive.write(file, f"{top}{file.relative_to(folder).as_posix()}")
    return path


@pytest.mark.parametrize("top", ["", "gb/"])
def test_a_zip_is_read_as_its_folder(tmp_path, top):
    folder = write_folder(tmp_path / "gb")
    archive = zipped(folder, tmp_path / "gb.zip", top, turned=bool(top))
    check_equal(read_class_folders(folder), read_class_folders(archive))


def test_hidden_files_white_space_and_lower_case_change_nothing(tmp_path):
    folder = write_folder(tmp_path / "gb")
    before = read_class_folders(folder)
    write(folder / "train/positive/.DS_Store", b"\x00\x01")
    file = folder / "train/positive/0.txt"
    write(file, b"\xef\xbb\xbf" + file.read_bytes().lower() + b" \r\n")
    assert read_class_folders(folder)[0].sequences == before[0].sequences


def put(name: str, text: str | bytes) -> Callable[[Path], object]:
    return lambda folder: write(folder / name, text)


def take(name: str) -> Callable[[Path], object]:
    return lambda folder: os.rename(folder / name, folder.parent / name.replace("/", "-"))


NEW, LINK = "train/positive/3.txt", "train/positive/9.txt"
FAULTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "no test": (take("test"), "no folder 'test'"),
    "class missing in test": (
        take("test/positive"), r"test: the class folder 'positive'.* missing",
    ),
    "class unknown to train": (put("test/third/0.txt", A), "unknown class 'third'"),
    "class empty": (
        lambda d: [p.unlink() for p in (d / "train/positive").iterdir()], "train/positive: .*empty",
    ),
    "file empty": (put(NEW, "\n"), f"{NEW}: empty sequence"),
    "protein": (put(NEW, "MKVLAAGE"), "3.txt: position 4: .*protein"),
    "RNA": (put(NEW, "ACGU"), "3.txt: position 4: .*RNA"),
    "FASTA": (put(NEW, ">a\nACGT\n"), "3.txt: is FASTA"),
    "two lines": (put(NEW, "ACGT\nACGT\n"), "3.txt: has more than one line"),
    "gzip": (put(NEW, gzip.compress(b"ACGT")), "3.txt: not a sequence: this is gzip"),
    "UTF-16": (put(NEW, "ACGT".encode("utf-16")), "3.txt: not a sequence: this is UTF-16"),
    "another ending": (put("train/positive/3.md", A), "3.md: is not a .txt file"),
    "folder too deep": (put("train/positive/more/0.txt", A), "more: is a folder"),
    "file beside classes": (put("train/readme.txt", A), "readme.txt: is not a class folder"),
    "broken link": (lambda d: os.symlink("nowhere", d / LINK), "9.txt: is a broken link"),
    "pipe": (lambda d: os.mkfifo(d / LINK), "9.txt: is not a regular file"),
    "one class": (
        lambda d: [take(f"{part}/negative")(d) for part in ("train", "test")], "one class only",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_folder_is_refused_with_the_place_of_the_fault(tmp_path, fault):
    folder = write_folder(tmp_path / "gb")
    FAULTS[fault][0](folder)
    with pytest.raises(DataError, match=FAULTS[fault][1]):
        read_class_folders(folder)


def test_a_damaged_zip_is_refused_wherever_it_is_damaged(tmp_path):
    whole = zipped(write_folder(tmp_path / "gb"), tmp_path / "gb.zip").read_bytes()
    for n in (0, 10, len(whole) // 2, len(whole) - 5):
        with pytest.raises(DataError, match=r"gb\.zip.*zip archive \(corrupt or truncated\)"):
            read_class_folders(write(tmp_path / "gb.zip", whole[:n]))
    for byte in range(50, 78):  # inside the first sequence
        damaged = bytearray(whole)
        damaged[byte] ^= 0xFF
        with pytest.raises(DataError):
            read_class_folders(write(tmp_path / "gb.zip", bytes(damaged)))


def test_a_zip_with_a_stranger_or_a_file_twice_is_refused(tmp_path):
    folder = write_folder(tmp_path / "gb")
    for name, message in (
        ("train/../../evil.txt", "no sequence file"),
        ("train/positive/0.txt", "twice"),
    ):
        path = zipped(folder, tmp_path / "gb.zip")
        with warnings.catch_warnings(), zipfile.ZipFile(path, "a") as archive:
            warnings.simplefilter("ignore")
            archive.writestr(name, A)
        with pytest.raises(DataError, match=message):
            read_class_folders(path)


def test_tables_in_every_format_give_the_same_examples(tmp_path):
    rows = {"id": ["a", "b", "c"], "sequence": [A, C, G], "label": ["yes", "no", "yes"]}
    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_csv(tmp_path / "t.tsv", separator="\t")
    frame.write_parquet(tmp_path / "t.parquet")
    odd = f'id,sequence,label\r\na,"{A}",yes\r\nb,{C},"no"\r\n\r\nc,{G.lower()},yes\r\n'
    write(tmp_path / "q.csv.gz", odd)
    fasta = f">a label=yes\n{A}\n>b x label=no\n{C[:10]}\n{C[10:]}\n>c label=yes\n{G}\n"
    write(tmp_path / "t.fa", fasta)
    write(tmp_path / "u.fna", f">a|yes\n{A}\n>b|no\n{C}\n>c|yes\n{G}\n")
    for name in ("t.csv", "t.tsv", "t.parquet", "q.csv.gz", "t.fa", "u.fna"):
        found, kind, classes = read_examples(tmp_path / name)
        assert found.sequences == [s.encode() for s in (A, C, G)]
        assert found.names == ["a", "b", "c"]
        assert (kind, classes, found.labels.tolist()) == ("binary", ("no", "yes"), [1, 0, 1])


@pytest.mark.parametrize(
    ("labels", "kind", "classes"),
    [
        (["1", "0", "1"], "binary", ("0", "1")),
        (["10", "9", "8"], "multiclass", ("8", "9", "10")),
        (["b", "a", "c"], "multiclass", ("a", "b", "c")),
        (["0.5", "1", "2"], "regression", ()),
        ([str(i) for i in range(60)], "regression", ()),
    ],
)
def test_the_labels_tell_what_kind_of_task_they_make(tmp_path, labels, kind, classes):
    path = write(tmp_path / "t.csv", "seq,label\n" + "".join(f"{A},{label}\n" for label in labels))
    found, told, names = read_examples(path)
    assert (told, names) == (kind, classes)
    if kind == "regression":
        assert found.labels.tolist() == [float(x) for x in labels]


def test_several_columns_or_lists_of_names_make_a_multilabel_task(tmp_path):
    path = write(tmp_path / "t.csv", f"seq,a,b\n{A},1,0\n{C},True,1.0\n")
    found, kind, classes = read_examples(path, TableColumns(labels=("a", "b")))
    assert (kind, classes, found.labels.tolist()) == ("multilabel", ("a", "b"), [[1, 0], [1, 1]])
    path = write(tmp_path / "u.csv", f"seq,label\n{A},x;z\n{C},\n")
    found, kind, classes = read_examples(path, kind="multilabel")
    assert (classes, found.labels.tolist()) == (("x", "z"), [[1, 1], [0, 0]])
    with pytest.raises(DataError, match=r"line 3: no label.*--kind multilabel"):
        read_examples(path)
    rows = "".join(f"{s},{'x;z' if i % 2 else 'x'}\n" for i, s in enumerate(random_dna(8, 40)))
    for part in ("train", "test"):
        write(tmp_path / f"{part}.csv", f"seq,label\n{rows}{A},z\n{C},z\n")
    told = load_own(tmp_path).notes
    assert told[0].endswith("multiclass task: x, x;z, z (--kind multilabel would read ; as 'and')")


PLACED = "seq,label,contig,start,end\n"
TABLES = {
    "": "is empty: no header line",
    "seq,label\n": "has no rows",
    f"{A},1\n{C},0\n": "line 1: no header line",
    f"seq,label\n{A},1\n{C}\n": "line 3: 1 field, but the header has 2",
    f"seq,label\n{A},1\n{C},\n": "line 3: no label",
    f"seq,label\n{A},1\n,0\n": r"line 3 \(record row2\): empty sequence",
    f"seq,label\n{A},1\nACGZ,0\n": "line 3 .*position 4",
    f"seq,label\n{A},1\n{C},1\n": "1 different label .1. do not make",
    f"seq,value\n{A},1\n": "has no column of labels",
    f"sequences,label\n{A},1\n": "has no column of sequences",
    f"seq\tlabel\n{A}\t1\n{C}\n": "line 3: 1 field.*separated by tabs",
    f'seq,label\n"{A},1\n': "line 2: not CSV",
    f"seq,seq,label\n{A},{A},1\n": "duplicate column name",
    f"{PLACED}{A},1,chr1,x,9\n{C},0,chr1,1,9\n": r"line 2: the start .* 'x' is not an integer",
    f"{PLACED}{A},1,chr1,9,9\n{C},0,chr1,1,9\n": "start is not before end",
}


@pytest.mark.parametrize("text", TABLES, ids=range(len(TABLES)))
def test_a_faulty_table_is_refused_with_its_line(tmp_path, text):
    with pytest.raises(DataError, match=TABLES[text]):
        read_examples(write(tmp_path / "t.csv", text))


@pytest.mark.parametrize(
    ("name", "text", "how", "message"),
    [
        ("t.parquet", b"PAR1" + bytes(100), {}, "no whole parquet file"),
        ("t.xlsx", b"PK", {}, r"is no table that is known \('.xlsx'\)"),
        ("t.fa", f">a\n{A}\n", {}, "the header gives no label"),
        ("t.csv", f"sequence,label\n{A},1\n", {"sequence": "sequenze"}, "did you mean 'sequence'"),
        ("t.csv", f"seq,a,b\n{A},1,2\n", {"labels": ("a", "b")}, "neither 0 nor 1"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, name, text, how, message):
    with pytest.raises((DataError, UsageError), match=message):
        read_examples(write(tmp_path / name, text), TableColumns(**how))


def write_rows(path: Path, pairs: Iterable[tuple[str, str]]) -> Path:
    return write(path, "seq,label\n" + "".join(f"{s},{label}\n" for s, label in pairs))


def test_own_tables_share_the_train_parts_classes_and_keep_a_validation_part(tmp_path):
    rows = random_dna(9, 30)
    for part, labels, at in (("train", "abab", 0), ("dev", "ab", 4), ("test", "ba", 6)):
        write_rows(tmp_path / f"{part}.csv", zip(rows[at:], labels, strict=False))
    data = load_own(tmp_path)
    assert (data.task.classes, data.train.n, data.test.labels.tolist()) == (("a", "b"), 6, [1, 0])
    assert data.valid_index.tolist() == [4, 5]
    other = load_own(tmp_path / "train.csv", tmp_path / "test.csv", max_length=10)
    assert other.valid_index is None
    assert "are cut to their first 10 bases" in other.notes[-1]
    with pytest.raises(UsageError, match="which one tests"):
        load_own(tmp_path / "train.csv")


def test_a_label_that_stands_once_is_taken_for_a_typing_error(tmp_path):
    write_rows(tmp_path / "a.csv", zip(random_dna(9, 30), "ababababx", strict=True))
    with pytest.raises(DataError, match="the class 'x' has one example only"):
        load_own(tmp_path / "a.csv", tmp_path / "a.csv")


def test_sequences_come_from_their_places_under_the_benchmarks_names_and_on_their_strand(tmp_path):
    genome = write(tmp_path / "g.fa", f">chrI\n{A}\n>chrM\n{C.lower()}\n>ENST1.4\n{G}\n")
    source = {"url": "https://x.org/g.fa", "filename": "g.fa", "licence": ""}
    worm = ReferenceGenome(**source, prefix="chr", rename={"MtDNA": "chrM"})
    places = (["I", "MtDNA"], [3, 0], [20, 9], ["-", ""])
    first, second = read_sequences(genome, worm, Coordinates(*map(np.array, places)))
    assert (first, second) == (reverse_complement(A[3:20].encode()), C[:9].encode())
    transcripts = worm.model_copy(update={"versioned": True})
    one = Coordinates(np.array(["ENST1"]), np.array([1]), np.array([5]), np.array(["+"]))
    assert list(read_sequences(genome, transcripts, one)) == [G[1:5].encode()]
    with pytest.raises(DataError, match="has no contig 'ENST1'"):
        list(read_sequences(genome, worm, one))


def test_a_task_is_built_from_fetched_coordinates_and_the_users_genome(tmp_path, monkeypatch):
    suite = load_suite("genomic-benchmarks")
    task = suite.find("human_enhancers_cohn").model_copy(update={"counts": {}, "lengths": None})
    suite = suite.model_copy(update={"tasks": (task,)})
    monkeypatch.setattr("genodiff.tasks.task.load_suite", lambda name: suite)
    genome = write(tmp_path / "hg38.fa", f">chr1\n{A * 100}\n>chr8\n{C * 100}\n")
    asked: list[str] = []

    def fetch(recipe: object, *, offline: bool) -> list[Path]:
        source = recipe.sources[0]  # type: ignore[attr-defined]
        asked.append(source.url)
        pairs = ((i, ("chr1", "chr8")[i % 2]) for i in range(12))
        rows = "".join(f"{i},{c},{9 * i},{9 * i + 50},{'+-'[i % 2]}\n" for i, c in pairs)
        return [write(tmp_path / source.filename, f"id,region,start,end,strand\n{rows}")]

    monkeypatch.setattr(download, "fetch", fetch)
    name, ours = ("genomic-benchmarks", task.name), {"references": {"hg38": genome}}
    data = load_task(*name, **ours)
    assert len(asked) == 4
    assert asked[0].endswith("/datasets/human_enhancers_cohn/train/negative.csv.gz")
    assert data.train.names[:4] == ["0", "1", "10", "11"]
    assert data.train.sequences[0] == (A * 100)[:50].encode()
    assert data.train.sequences[1] == reverse_complement((C * 100)[9:59].encode())
    again = load_task(*name, **ours, split="chrom-holdout")
    assert len(asked) == 4
    assert set(again.test.coordinates.contig) == {"chr8"}
    with planning():  # which opens no genome, but must find it
        planned = load_task(*name, **ours, sequences=False)
        monkeypatch.setattr("genodiff.tasks.suite.fetch", lambda *_, **__: no_such_file())
        with pytest.raises(DataError, match="give your own copy"):
            load_task(*name, sequences=False, offline=True)
    assert planned.train.lengths.tolist() == data.train.lengths.tolist()
    assert planned.train.sequences == []


def no_such_file() -> list[Path]:
    raise DataError("hg38 is not here")


def test_data_that_no_command_can_fetch_are_asked_for(tmp_path):
    for suite, task, why in (
        ("gue", "tf/0", "no command can fetch them"),
        ("nt", "H3", "--offline forbids fetching it"),
    ):
        fix = f"give the folder that holds {suite} with --data"
        with pytest.raises(DataError, match=f"{why}; {fix}"):
            load_task(suite, task, offline=True)


def test_true_hg38_pieces_give_the_sequences_that_stand_in_the_partial_table(shared):
    folder = shared / "data/genomic_benchmarks"
    rows = pl.read_parquet(folder / "from_coordinates_partial.parquet")
    rows = rows.filter(pl.col("source") == "hg38")
    suite, n = load_suite("genomic-benchmarks"), 0
    for name in sorted(rows["dataset"].unique()):
        parts = read_partial(folder, name, suite.find(name).classes)
        for split, examples in (("train", parts.train), ("test", parts.test)):
            chosen = rows.filter((pl.col("dataset") == name) & (pl.col("split") == split))
            true = set(zip(chosen["label"], chosen["id"].cast(pl.String), strict=True))
            keys = zip(examples.labels.tolist(), examples.names, strict=True)
            part = examples.take(np.array([key in true for key in keys]))
            assert part.coordinates is not None
            genome = shared / "data/genomes/hg38_sparse.fa.gz"
            found = read_sequences(genome, suite.references["hg38"], part.coordinates)
            assert list(found) == part.sequences
            n += part.n
    assert n == rows.height


def test_what_file_managers_leave_is_passed_over_with_a_note(tmp_path, caplog):
    clean, left = write_folder(tmp_path / "clean"), write_folder(tmp_path / "left")
    for place in ("train", "train/negative", "test/positive"):
        for name in (".DS_Store", "Thumbs.db", "desktop.ini"):
            (left / place / name).write_bytes(b"\0junk")
    archive = tmp_path / "left.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(left.rglob("*")):
            file.write(path, path.relative_to(left))
    wanted = read_class_folders(clean)
    for given in (left, archive):
        caplog.clear()
        with caplog.at_level("INFO", logger="genodiff"):
            found = read_class_folders(given)
        check_equal(found, wanted)
        assert "passed over 9 files (.DS_Store, Thumbs.db, desktop.ini)" in caplog.text
    caplog.clear()
    read_class_folders(clean)
    assert "passed over" not in caplog.text


def test_an_archive_is_named_for_what_it_is(tmp_path):
    folder = write_folder(tmp_path / "task")
    for name, mode in (("task.tar", "w"), ("task.tar.gz", "w:gz")):
        with tarfile.open(tmp_path / name, mode) as file:  # type: ignore[call-overload]
            file.add(folder, "task")
        with pytest.raises(DataError, match=rf"{name}: is a tar archive.*unpack it"):
            load_own(tmp_path / name)
