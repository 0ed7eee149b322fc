"""Random access gives the letters of the strict reader, whatever lies beside the file."""

import gzip
import os
import pickle
import shutil
import time
from contextlib import contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.errors import DataError
from genodiff.io import faidx, fasta_index
from genodiff.io.faidx import Genome
from genodiff.io.fasta import read_fasta
from tests.io.test_atomic import kill_everywhere


def wrapped(name: bytes, sequence: bytes, width: int, end: bytes = b"\n") -> bytes:
    lines = [sequence[at : at + width] + end for at in range(0, len(sequence), width)]
    return b">" + name + end + b"".join(lines)


ENDS = [b"\n", b"\r\n", b" \n", b"\n\n"]


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def builds(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths for which an index is built from now on."""
    seen: list[str] = []
    real = fasta_index._build_index
    monkeypatch.setattr(
        fasta_index, "_build_index", lambda path, *rest: (seen.append(path), real(path, *rest))[1]
    )
    return seen


@st.composite
def files(draw: st.DrawFn) -> bytes:
    data = draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\n"]))
    for i in range(draw(st.integers(1, 4))):
        sequence = draw(st.text("ACGTNacgtnR", max_size=40)).encode()
        end = draw(st.sampled_from(ENDS[:2]))
        record = wrapped(b"c%d x" % i, sequence, draw(st.integers(1, 20)), end)
        if draw(st.booleans()):
            record = record.replace(end, draw(st.sampled_from(ENDS)), draw(st.integers(1, 3)))
        data += record + draw(st.sampled_from([b"", b"\n", b"\n\n", b"\r\n"]))
    return data + b">last\nA" + draw(st.sampled_from([b"", b"\n", b"\r\n", b"\n\n"]))


@settings(max_examples=40, deadline=None)
@given(files(), st.sampled_from([4, 12, 1 << 20]), st.booleans())
def test_every_range_is_the_slice_of_what_the_reader_gives(tmp_path_factory, data, block, zipped):
    path = tmp_path_factory.mktemp("genome") / "in.fa"
    path.write_bytes(gzip.compress(data) if zipped else data)
    records = {r.name: r.sequence for r in read_fasta(path)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("genodiff.io.input_file.BLOCK", block)
        patch.setattr("genodiff.io.fasta._HEAD", 3)
        genome = Genome(path)
    assert genome.contigs == {name: len(sequence) for name, sequence in records.items()}
    for name, sequence in records.items():
        for start in range(0, len(sequence) + 1, 3):
            for end in range(start, len(sequence) + 1):
                assert genome.fetch(name, start, end) == sequence[start:end]


def test_even_files_are_read_in_place_and_uneven_ones_through_a_copy(tmp_path, empty_cache):
    even = (
        wrapped(b"a", b"ACGTN" * 30, 60)
        + b"\n"
        + wrapped(b"b", b"ACGT" * 30, 50, b"\r\n")
        + b">e\n\n>f\n\r\n\nACG\nTT\n\n>c\nACGT"
    )
    (tmp_path / "even.fa").write_bytes(even)
    genome = Genome(tmp_path / "even.fa")
    asked = (("b", 48, 53), ("f", 1, 5), ("c", 0, 4))
    assert [genome.fetch(*one) for one in asked] == [b"ACGTA", b"CGTT", b"ACGT"]
    assert list(empty_cache.rglob("*.fa")) == []
    uneven = {"long_last": b">a\nACGT\nACGTA\n", "blank": b">a\nACGT\n\nACGT\n",
              "short": b">a\nAC\nACGT\n",
              "mixed": b">a\nACGT\r\nACGT\nACGT\n", "swapped": b">a\nACGT\r\nACGTA\nACGT\r\n",
              "long_crlf": b">a\nACGT\r\nACGTA", "blanks": b">a\nACGT \nACGT \nACGT\n",
              "short_end": b">a\nACGT\r\nACGT\n>b\nA\n",
              "swapped2": b">a\nACGTA\nACGT\r\nACGT\n", "zip": gzip.compress(even)}  # fmt: skip
    for n, (name, data) in enumerate(uneven.items(), 1):
        (tmp_path / name).write_bytes(data)
        genome = Genome(tmp_path / name)
        assert len(list(empty_cache.rglob("*.fa"))) == n
        assert [genome.fetch(r.name, 0, len(r.sequence)) for r in read_fasta(tmp_path / name)] == [
            r.sequence for r in read_fasta(tmp_path / name)
        ]
    (tmp_path / "plain.fa.gz").write_bytes(even)
    assert Genome(tmp_path / "plain.fa.gz").fetch("b", 48, 53) == b"ACGTA"


FAIS = [b"chr1\t100\t6\t60\t61\n", b"", b"chr1\t1\t0\t0\t0\n", b"\xff",
        b"chr1\t9223372036854775808\t-6\t0\t0\n"]  # fmt: skip


@pytest.mark.parametrize("fai", FAIS)
@pytest.mark.parametrize("age", [-10_000, 10_000])
def test_an_index_beside_the_file_is_neither_believed_nor_touched(tmp_path, fai, age):
    data = wrapped(b"chr1", b"ACGTTGCA" * 50, 50) + wrapped(b"chr2", b"TTTT" * 50, 50)
    (tmp_path / "in.fa").write_bytes(data)
    (tmp_path / "in.fa.fai").write_bytes(fai)
    os.utime(tmp_path / "in.fa.fai", (time.time() + age, time.time() + age))
    genome = Genome(tmp_path / "in.fa")
    assert genome.contigs == {"chr1": 400, "chr2": 200}
    assert genome.fetch("chr1", 96, 104) == b"ACGTTGCA"
    assert (tmp_path / "in.fa.fai").read_bytes() == fai
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cache", "in.fa", "in.fa.fai"]


def test_the_index_is_built_once_and_again_only_when_the_content_changes(tmp_path, monkeypatch):
    path, seen = tmp_path / "in.fa", builds(monkeypatch)
    path.write_bytes(wrapped(b"a", b"ACGT" * 100, 60))
    assert Genome(path).fetch("a", 0, 4) == b"ACGT"
    Genome(path)
    path.chmod(0o600)
    os.utime(path, (1, 1))
    os.rename(path, tmp_path / "x")
    os.link(tmp_path / "x", path)
    assert Genome(path).fetch("a", 0, 4) == b"ACGT"
    assert len(seen) == 1, "touching a file does not change it"
    status = path.stat()
    path.write_bytes(wrapped(b"a", b"TTTT" * 100, 60))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert Genome(path).fetch("a", 0, 4) == b"TTTT", "same size, same mtime, other content"
    assert len(seen) == 2


@pytest.mark.parametrize("old", [False, True])
def test_a_file_whose_times_do_not_tell_is_judged_by_all_its_content(tmp_path, monkeypatch, old):
    """It is too young, or old with other times; a change lies between the samples."""
    path, now = tmp_path / "in.fa", time.time_ns()
    monkeypatch.setattr(fasta_index, "_sample", lambda *_: "the same")
    if old:
        monkeypatch.setattr(fasta_index, "_YOUNG", -(10**18))
    for module in () if old else (fasta_index, faidx):  # a clock of coarse ticks
        monkeypatch.setattr(module, "stamp_file", lambda status: (status.st_size, now, now, 1, 1))
    for i, name in enumerate((b"a", b"b", b"c")):
        path.write_bytes(wrapped(name, b"ACGT" * 50, 60))
        os.utime(path, (i, i))
        assert Genome(path).contigs == {name.decode(): 200}


def test_an_old_file_is_believed_by_its_times_and_samples_alone(tmp_path, monkeypatch):
    path = tmp_path / "in.fa"
    path.write_bytes(wrapped(b"a", b"ACGT" * 100, 60))
    monkeypatch.setattr(fasta_index, "_YOUNG", -(10**18))
    Genome(path)
    monkeypatch.setattr(fasta_index, "_sha256_of", lambda _: pytest.fail("read it all"))
    assert Genome(path).fetch("a", 1, 3) == b"CG"


def test_a_file_changed_while_open_is_noticed(tmp_path):
    path = tmp_path / "in.fa"
    path.write_bytes(wrapped(b"a", b"ACGT" * 5000, 60))
    genome = Genome(path)
    os.rename(path, tmp_path / "moved.fa")
    path.write_bytes(b">a\nT\n")
    assert genome.fetch("a", 0, 4) == b"ACGT", "the opened file is still the old one"
    os.truncate(tmp_path / "moved.fa", 100)
    with pytest.raises(DataError, match="changed while in use"):
        genome.fetch("a", 0, 4)
    with pytest.raises(DataError, match="changed while in use"):
        genome.fetch("a", 10_000, 10_004)


def test_a_file_swapped_between_two_looks_is_noticed(tmp_path, monkeypatch):
    path = tmp_path / "in.fa"

    def swap(data: bytes) -> None:
        (tmp_path / "new").write_bytes(data)
        os.replace(tmp_path / "new", path)

    path.write_bytes(wrapped(b"a", b"ACGT" * 50, 60))
    real = faidx.open_index

    @contextmanager
    def open_late(*given):
        with real(*given) as index:
            swap(wrapped(b"a", b"TTTT" * 50, 60))
            yield index

    monkeypatch.setattr(faidx, "open_index", open_late)
    with pytest.raises(DataError, match="changed while it was opened"):
        Genome(path)
    monkeypatch.setattr(faidx, "open_index", real)
    path.write_bytes(gzip.compress(wrapped(b"a", b"ACGT" * 50, 60)))
    write = fasta_index._write_copy
    monkeypatch.setattr(
        fasta_index,
        "_write_copy",
        lambda *a: (swap(gzip.compress(wrapped(b"a", b"GGGG" * 50, 60))), write(*a))[1],
    )
    with pytest.raises(DataError, match="changed while it was being read"):
        Genome(path)


def test_the_file_is_judged_as_strictly_as_by_the_reader(tmp_path):
    (tmp_path / "in.fa").write_bytes(b">a\nACGT\nAC-T\n")
    with pytest.raises(DataError, match=r"line 3 \(record a\): column 3: gap"):
        Genome(tmp_path / "in.fa")
    with pytest.raises(DataError, match="no such file"):
        Genome(tmp_path / "gone.fa")
    with pytest.raises(DataError, match="stdin cannot be read at random"):
        Genome("-")


@pytest.mark.parametrize(
    ("contig", "start", "end", "words"),
    [
        ("1", 0, 1, "no contig '1'; did you mean 'chr1'"),
        ("chr1", -1, 1, "not within"),
        ("chr1", 0, 9, "length 8"),
        ("chr1", 3, 2, "not within"),
    ],
)
def test_what_is_not_there_is_an_error(tmp_path, contig, start, end, words):
    (tmp_path / "in.fa").write_bytes(b">chr1\nACGTACGT\n")
    with pytest.raises(DataError, match=words):
        Genome(tmp_path / "in.fa").fetch(contig, start, end)


def test_a_damaged_index_is_built_again(tmp_path, empty_cache, monkeypatch):
    (tmp_path / "in.fa").write_bytes(
        wrapped(b"a", b"ACGTTGCA" * 20, 60) + wrapped(b"b", b"CCCC" * 20, 60)
    )
    Genome(tmp_path / "in.fa").close()
    index, seen = next(empty_cache.rglob("index.json")), builds(monkeypatch)
    good = index.read_bytes()
    broken = [b"", b"{", b"null", b"[]", b"\xff" * 10, good[:-1], good[: len(good) // 2],
              good.replace(b"160", b"161")]  # fmt: skip
    broken += [bytes([*good[:at], good[at] ^ 1, *good[at + 1 :]]) for at in range(0, len(good), 37)]
    for n, bad in enumerate(broken, 1):
        index.write_bytes(bad)
        with Genome(tmp_path / "in.fa") as genome:
            assert genome.contigs == {"a": 160, "b": 80}
            assert genome.fetch("a", 58, 66) == (b"ACGTTGCA" * 20)[58:66]
        assert len(seen) == n


def test_a_damaged_copy_is_built_again(tmp_path, empty_cache):
    (tmp_path / "in.fa").write_bytes(gzip.compress(wrapped(b"a", b"ACGTTGCA" * 20, 60)))
    Genome(tmp_path / "in.fa")
    copy = next(empty_cache.rglob("*.fa"))
    copy.write_bytes(copy.read_bytes().replace(b"A", b"T"))
    assert Genome(tmp_path / "in.fa").fetch("a", 0, 8) == b"ACGTTGCA"
    copy.unlink()
    assert Genome(tmp_path / "in.fa").fetch("a", 0, 8) == b"ACGTTGCA"
    (tmp_path / "in.fa").write_bytes(gzip.compress(wrapped(b"a", b"TTTT" * 20, 60)))
    assert Genome(tmp_path / "in.fa").fetch("a", 0, 8) == b"TTTTTTTT"
    assert len(list(empty_cache.rglob("*.fa"))) == 1, "the copy of what is gone is gone"


def test_without_a_cache_to_write_to_all_works_and_nothing_is_left(tmp_path, monkeypatch, caplog):
    (tmp_path / "in.fa").write_bytes(wrapped(b"a", b"ACGTTGCA" * 20, 60))
    (tmp_path / "in.gz").write_bytes(gzip.compress(wrapped(b"a", b"ACGTTGCA" * 20, 60)))
    (tmp_path / "blocked").write_text("a file where a folder should be")
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "blocked"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    for name in ("in.fa", "in.gz"):
        with Genome(tmp_path / name) as genome:
            assert genome.fetch("a", 58, 66) == (b"ACGTTGCA" * 20)[58:66]
    assert "kept in memory" in caplog.text
    assert "temporary folder" in caplog.text
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
def test_killed_at_any_moment_of_building_the_next_opening_is_right(tmp_path, empty_cache):
    path, codes = tmp_path / "in.gz", []
    path.write_bytes(gzip.compress(wrapped(b"a", b"ACGTTGCA" * 20, 60)))
    for code in kill_everywhere(lambda: Genome(path), tmp_path):
        codes.append(code)
        with Genome(path) as genome:
            assert genome.fetch("a", 1, 9) == b"CGTTGCAA"
        assert not list(empty_cache.rglob("*.tmp"))
        shutil.rmtree(empty_cache)
    assert codes[:-1] == [-9] * (len(codes) - 1)
    assert len(codes) > 8


def test_a_genome_travels_by_pickle_unless_its_file_has_changed(tmp_path):
    (tmp_path / "in.fa").write_bytes(b">a\nACGT\n")
    genome = Genome(tmp_path / "in.fa")
    packed = pickle.dumps(genome)
    assert pickle.loads(packed).fetch("a", 0, 4) == b"ACGT"
    (tmp_path / "in.fa").write_bytes(b">a\nACGA\n")
    with pytest.raises(DataError, match="changed while in use"):
        pickle.loads(packed)


def test_a_circular_contig_goes_round_where_it_is_asked_for_and_is_told_where_not(tmp_path, caplog):
    path = tmp_path / "p.fa"
    path.write_text(
        ">a a plasmid [topology=circular]\nACGTTG\n>b topology=linear\nACGTTG\n"
        ">c gene=topology=circularity\nACGTTG\n>d topology=circular len=6\nACGTTG\n>e\nACGTTG\n"
    )
    with Genome(path, goes_round=True, circular=["e"]) as genome:
        assert genome.circular == {"a", "d", "e"}
        for name in "ade":
            assert genome.fetch(name, 4, 9) == b"TGACG"
            assert genome.fetch(name, -3, 15) == b"TTGACGTTGACGTTGACG"
        with pytest.raises(DataError, match="not within b"):
            genome.fetch("b", 4, 9)
        again = pickle.loads(pickle.dumps(genome))
        assert again.fetch("e", -1, 1) == b"GA"
        again.close()
    assert not caplog.records
    for _ in range(2):  # once for a file
        with Genome(path) as genome, pytest.raises(DataError, match="not within a"):
            genome.fetch("a", 4, 9)
    (line,) = caplog.messages
    assert line == f"{path}: a, d are circular; here nothing is read across their origin"
    with pytest.raises(DataError, match="no contig 'f'"):
        Genome(path, circular=["f"])
