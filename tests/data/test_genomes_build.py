"""Many genomes as stores: the same bytes whatever the order, the threads and the kills; what has
changed is built again and nothing else; copies elsewhere; tables of datasets."""

import os
import shutil
import signal
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import fsspec
import numpy as np
import polars as pl
import pytest
from genomes import read_tree, write_family, write_list

from genodiff import build_genomes
from genodiff.alphabet import DNA
from genodiff.data import fetch
from genodiff.data.genomes.collection import build_collection
from genodiff.data.genomes.listing import read_genome_list
from genodiff.data.genomes.store import GenomesWindows, RemoteFolder, open_genomes
from genodiff.data.recipe import Recipe
from genodiff.errors import DataError
from genodiff.io.file_kinds import sha256_file
from tests.commands import SERVER

OWN = Recipe(name="own")


def write_listed(folder: Path) -> Path:
    made = write_family(folder / "fa")
    rows = [{"path": f"fa/{n}.fa", "species": f"s{a}", "weight": str(1 + a)} for n, a in made]
    return write_list(folder / "l.tsv", rows)


@pytest.fixture
def listed(tmp_path):
    return write_listed(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with genomes in `fa`, their list `l.tsv`, and `one`, which is built from it."""
    folder = tmp_path_factory.mktemp("built")
    build_collection(read_genome_list(write_listed(folder)), folder / "one")
    return folder


@pytest.mark.slow
def test_bytes_depend_on_neither_order_nor_threads(listed, tmp_path):
    genomes = read_genome_list(listed)
    build_collection(genomes, tmp_path / "one")
    lines = listed.read_text().splitlines()
    listed.write_text("\n".join([lines[0], *lines[:0:-1]]) + "\n")
    build_collection(read_genome_list(listed), tmp_path / "two", jobs=2)
    one, two = (read_tree(tmp_path / name) for name in ("one", "two"))
    assert one == two
    assert len(one) == 3 + 12 * 6


def test_each_genome_is_stored_as_its_file_has_it(built, tmp_path):
    store = open_genomes(built / "one")
    store.verify()
    truth = b""
    for i in range(12):
        text = (built / "fa" / f"g{i:02d}.fa").read_bytes()
        truth += b"".join(text.split(b"\n")[1::2])
    ids = DNA.encode(truth)
    assert np.array_equal(store.flat[:], ids)
    assert np.array_equal(store.flat[11_990:24_010], ids[11_990:24_010])
    places = np.array([[5, 30_000], [12_000, 1]])
    assert np.array_equal(store.flat[places], ids[places])
    assert np.array_equal(store.ids("g03/c1"), ids[42_000:48_000])
    cut = GenomesWindows(store, OWN, "train", 500)
    data = cut.gather(cut.flat_start, cut.length, DNA.pad_id)
    assert np.array_equal(data, ids[cut.flat_start[:, None] + np.arange(500)])
    shutil.copytree(built / "one", tmp_path / "one")
    (tmp_path / "one" / "g03" / "genome.ids").write_bytes(b"\0" * 12_000)
    with pytest.raises(DataError, match="is not what was built"):
        open_genomes(tmp_path / "one").verify()


def test_only_what_has_changed_is_built_again(listed, tmp_path):
    genomes, out = read_genome_list(listed), tmp_path / "one"
    key = build_collection(genomes, out)["key"]
    before = {p.name: p.stat().st_mtime_ns for p in out.iterdir()}
    os.utime(tmp_path / "fa" / "g01.fa", ns=(5, 5))  # read again, and found to be the same
    assert build_collection(genomes, out)["key"] == key
    assert {p.name: p.stat().st_mtime_ns for p in out.iterdir()} == before
    text = (tmp_path / "fa" / "g01.fa").read_text()
    (tmp_path / "fa" / "g01.fa").write_text(text.replace("A", "C", 1))
    assert build_collection(genomes, out)["key"] != key
    now = {p.name: p.stat().st_mtime_ns for p in out.iterdir()}
    changed = {name for name in now if now[name] != before[name]}
    assert changed == {"g01", "manifest.json", "splits.npy", "duplicates.tsv"}


def test_files_that_are_not_as_listed_are_told_with_their_lines(tmp_path, caplog):
    write_family(tmp_path / "fa", n=4)
    (tmp_path / "fa" / "g02.fa").write_text(">x\nACGT!CGT\n")
    files = [tmp_path / "fa" / f"g{i:02d}.fa" for i in range(4)]
    rows = [{"path": str(f), "split": "train", "sha256": sha256_file(f)} for f in files]
    rows[3]["sha256"] = "0" * 64
    path = write_list(tmp_path / "l.tsv", rows)
    with caplog.at_level("ERROR", "genodiff"), pytest.raises(DataError) as raised:
        build_collection(read_genome_list(path), tmp_path / "out")
    told = f"{caplog.text}\n{raised.value}"
    assert "line 4: the genome g02 cannot be used" in told
    assert "line 5: the genome g03 cannot be used: its sha256 is" in told
    built = {p.name for p in (tmp_path / "out").iterdir() if p.is_dir()}
    assert built == {"g00", "g01"}  # whole or not there
    right = path.read_text().replace("0" * 64, sha256_file(files[3]))
    path.write_text("\n".join(line for line in right.splitlines() if "g02" not in line) + "\n")
    build_collection(read_genome_list(path), tmp_path / "out")
    assert open_genomes(tmp_path / "out").genome_names == ("g00", "g01", "g03")


@pytest.mark.slow
def test_a_build_that_was_killed_ends_with_the_same_bytes(listed, tmp_path):
    build_collection(read_genome_list(listed), tmp_path / "calm")
    words = _BUILD, listed, tmp_path / "killed"
    for crash in (3, 30, 61):
        environment = dict(os.environ, GENODIFF_CRASH_AT=str(crash))
        assert SERVER.run_code(*words, env=environment).returncode == -signal.SIGKILL
    assert SERVER.run_code(*words).returncode == 0
    assert read_tree(tmp_path / "killed") == read_tree(tmp_path / "calm")


_BUILD = """
import sys
from pathlib import Path
from genodiff.data.genomes.collection import build_collection
from genodiff.data.genomes.listing import read_genome_list


if __name__ == "__main__":
    build_collection(read_genome_list(sys.argv[1]), Path(sys.argv[2]))
"""


def test_built_genomes_are_read_from_object_storage(built, monkeypatch):
    files = fsspec.filesystem("memory")
    files.put(str(built / "one"), "/bucket/many", recursive=True)
    here, there = open_genomes(built / "one"), open_genomes("memory://bucket/many")
    assert here.fingerprint == there.fingerprint
    assert np.array_equal(here.flat[23_000:25_000], there.flat[23_000:25_000])
    assert [p.name for p in there.path.iterdir() if p.is_dir()] == ["g01", "g02"]  # only these came
    files.rm("/bucket/many/g01", recursive=True)
    again = open_genomes("memory://bucket/many", offline=True)
    assert np.array_equal(here.flat[23_000:25_000], again.flat[23_000:25_000])
    with pytest.raises(DataError, match="--offline forbids"):
        again.flat[0:10]
    monkeypatch.setattr(fetch, "PAUSE", 0.0)
    files.pipe("/bucket/many/g00/genome.ids", b"\0" * 12_000)
    with pytest.raises(DataError, match="its sha256 is"):
        open_genomes("memory://bucket/many").flat[0:10]
    assert not list(there.path.glob("g00/genome.ids"))
    files.rm("/bucket/many", recursive=True)


def test_built_genomes_are_read_from_a_web_server(built, monkeypatch):
    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(built))  # type: ignore[arg-type]

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/one"
    try:
        with pytest.raises(DataError, match="http:// is not safe"):
            open_genomes(url)
        monkeypatch.setattr(fetch, "SCHEMES", ("http",))
        monkeypatch.setattr(
            RemoteFolder, "_copy", lambda s, n, p: fetch.copy_https(f"{s.url}/{n}", p)
        )
        store = open_genomes(url)
        assert np.array_equal(store.flat[5:9], open_genomes(built / "one").flat[5:9])
    finally:
        server.shutdown()
        server.server_close()


def test_a_manifest_may_not_name_files_outside_its_folder():
    with pytest.raises(DataError, match="names a file outside of it"):
        RemoteFolder("memory://x").fetch("../../evil", "0" * 64)


def test_tables_of_datasets_in_and_out(built, tmp_path):
    pq = tmp_path / "pq"
    made = build_genomes(built / "l.tsv", out=built / "one", jobs=1, seq_len=400, parquet=pq)
    frame = pl.read_parquet(pq / "train-00000.parquet")
    assert frame.columns == ["genome", "species", "contig", "start", "end", "sequence"]
    assert len(frame) == made.parquet["train"] == made.row["windows"]["train"]
    row = frame.row(7, named=True)
    text = (built / "fa" / f"{row['genome']}.fa").read_text().split("\n")
    truth = text[1 if row["contig"] == "c0" else 3]
    assert row["sequence"] == truth[row["start"] : row["end"]]
    rows = [{"path": f"pq/{s}-00000.parquet", "split": s, "name": s} for s in ("train", "valid")]
    back = build_genomes(write_list(tmp_path / "two.tsv", rows), jobs=1, seq_len=400)
    assert back.row["windows"] == {**made.row["windows"], "test": 0}
    store = open_genomes(back.path)
    name = f"train/{row['genome']}/{row['contig']}:{row['start']}-{row['end']}"
    assert DNA.decode(store.ids(name)) == truth[row["start"] : row["end"]]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"dna_": ["ACGT"]}, "no column 'sequence'"),
        ({"sequence": ["ACGT", None]}, "row 2 has no sequence"),
        ({"sequence": ["ACGT", "ACGT"], "id": ["a", "a"]}, "row 2 is called a"),
        ({"sequence": ["ACGT", "ACXT"], "id": ["a", "b"]}, "base 3"),
        (None, "no whole parquet file"),
    ],
)
def test_a_bad_table_is_told_with_its_row(tmp_path, columns, said):
    if columns is None:
        (tmp_path / "t.parquet").write_bytes(b"PAR1 but not really")
    else:
        pl.DataFrame(columns).write_parquet(tmp_path / "t.parquet")
    path = write_list(tmp_path / "l.tsv", [{"path": "t.parquet", "split": "train"}])
    with pytest.raises(DataError, match=said):
        build_genomes(path, jobs=1, out=tmp_path / "out")
