"""The FASTA reader against an obvious one, at every block boundary; each fault at its place."""

import gzip
import hashlib
import io
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from Bio import bgzf
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.io import fasta, input_file
from genodiff.io.fasta import Record, read_contig_lengths, read_digests, read_fasta
from genodiff.io.fasta_writer import write_fasta
from tests.commands import SERVER

LETTERS = "ACGTNRYSWKMBDHVacgtnryswkmbdhv"
FASTA = b">a one\nACGT\nNN\n>b\nacgtRYKM\n"


class Blocks(input_file.InputFile):
    """A source that hands out the bytes in blocks of a given size, whatever they cut in two."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.step, self.shown, self.size = data, size, "in.fa", len(data)

    def blocks(self) -> Iterator[bytes]:
        for at in range(0, len(self.data), self.step):
            yield self.data[at : at + self.step]


def read(data: bytes, size: int = 1 << 20) -> list[tuple[str, bytes]]:
    records: list[tuple[str, bytes]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fasta, "_HEAD", min(max(size, 3), 4096))
        for event in fasta.scan_fasta(Blocks(data, size)):
            if isinstance(event, fasta.Header):
                records.append((event.name, b""))
            else:
                records[-1] = (records[-1][0], records[-1][1] + event.letters())
    return records


def obvious(data: bytes) -> list[tuple[str, bytes]] | int:
    """The records, or the line of the first fault: line by line, in the plainest words."""
    records: list[tuple[str, bytes]] = []
    heads: list[int] = []
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for n, line in enumerate(lines, 1):
        if n < len(lines) or line.startswith(b">"):
            line = line.removesuffix(b"\r")
        if line.startswith(b">"):
            words = line[1:].split()
            name = words[0].decode("utf-8", "replace") if words else ""
            if not name.isprintable() or not name or "\ufffd" in name or set(line) & {0, 13}:
                return n
            if name in [known for known, _ in records]:
                return n
            records.append((name, b""))
            heads.append(n)
            continue
        line = line.rstrip(b" \t")
        if not records and not line.strip(b" \t\r"):
            continue
        if line and (not records or not re.fullmatch(b"[%s]+" % LETTERS.encode(), line)):
            return n
        if line:
            records[-1] = (records[-1][0], records[-1][1] + line)
    if not records:
        return 0
    return records if records[-1][1] else heads[-1]


pieces = st.sampled_from(
    [b">", b">a", b">b x", b">c\n", b"ACGT", b"acgtn", b"RYK", b"\n", b"\r\n", b"\n\n", b" ",
    b"\t", b"\r", b"N" * 30,
     b"-", b"U", b"E", b"\x00", b"\xff", b"\xef\xbb\xbf", b"1", b";", b"ACGT\n", b"ACGT\n",
     b">d\nA\n"]
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(pieces, max_size=25).map(b"".join), st.integers(1, 40))
def test_the_fast_reader_and_the_obvious_one_agree_on_any_bytes(data, size):
    expected = obvious(data)
    try:
        found: object = read(data, size)
    except DataError as fault:
        found = fault.line or 0
    assert found == expected


@st.composite
def formatted(draw: st.DrawFn) -> tuple[bytes, list[tuple[str, bytes]]]:
    """A sound FASTA in some layout, and what it says."""
    ends = st.sampled_from([b"\n", b"\r\n", b" \n", b"\t\r\n", b"\n\n", b"\n\r\n"])
    records = draw(
        st.lists(
            st.tuples(st.text("abcXYZ:|*-.染", min_size=1, max_size=5), st.text("ACGTNacgtnR",
            max_size=50)),
            min_size=1, max_size=5, unique_by=lambda r: r[0],
        )
    )  # fmt: skip
    records[-1] = (records[-1][0], records[-1][1] + "A")
    data = draw(st.sampled_from([b"", b"\xef\xbb\xbf", b"\n \r\n"]))
    for name, sequence in records:
        description = draw(st.sampled_from(["", " d", "\tx > y", " "]))
        data += f">{name}{description}".encode() + draw(ends)
        while sequence:
            cut = draw(st.integers(1, 60))
            data += sequence[:cut].encode() + draw(ends)
            sequence = sequence[cut:]
    return data, [(n, s.encode()) for n, s in records]


@settings(max_examples=40, deadline=None)
@given(formatted(), st.integers(1, 99), st.sampled_from(["plain", "gzip", "members", "bgzf"]))
def test_layout_and_compression_change_nothing(tmp_path_factory, made, size, how):
    data, records = made
    assert read(data, size) == records
    if how == "gzip":
        data = gzip.compress(data)
    elif how == "members":
        data = b"".join(gzip.compress(data[at : at + size]) for at in range(0, len(data), size))
    elif how == "bgzf":
        data = zipped(data, size)
    path = tmp_path_factory.mktemp("layout") / "in.txt"
    path.write_bytes(data)
    assert [(r.name, r.sequence) for r in read_fasta(path)] == records
    assert [(d.name, d.length, d.sha) for d in read_digests(path)] == [
        (n, len(s), hashlib.sha256(s.upper().translate(bytes.maketrans(b"R", b"N"))).hexdigest())
        for n, s in records
    ]
    assert read_contig_lengths(path) == {n: len(s) for n, s in records}


def zipped(data: bytes, block: int = 60000) -> bytes:
    out = io.BytesIO()
    out.close = lambda: None  # type: ignore[method-assign]
    with bgzf.BgzfWriter(fileobj=out) as writer:
        for at in range(0, len(data), block):
            writer.write(data[at : at + block])
            writer.flush()
    return out.getvalue()


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_one_stranger_is_named_at_its_line_column_and_record(data):
    width, length = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 200))
    at = data.draw(st.integers(0, length - 1))
    foreign = data.draw(
        st.sampled_from([b"-", b"U", b"E", b"*", b"1", b"\x00", b"\x0c", b"\xff", b"X", b"~"])
    )
    sequence = b"ACGT" * 50
    sequence = sequence[:at] + foreign + sequence[at + 1 : length]
    start = (at // width) * width
    starts = range(0, len(sequence), width)
    lines = [sequence[i : i + width] for i in starts]
    text = b">first\nACGT\n>second x\n" + b"\n".join(lines) + b"\n"
    with pytest.raises(DataError) as caught:
        read(text, data.draw(st.integers(1, 50)))
    assert (caught.value.line, caught.value.record) == (4 + at // width, "second")
    assert f"column {at - start + 1}: " in caught.value.what


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (b"", None, "is empty .0 bytes"),
        (b" \n\t\n", None, "no record, only blank"),
        (b"ACGT\n", 1, "no FASTA header.*sequence without a header"),
        (b"\n\nACGT\n", 3, "no FASTA header"),
        (b">a\n", 1, "no sequence.*cut short"),
        (b">a\nAC\n>b\n", 3, "last record is empty"),
        (b">a\nAC\n>b", 3, "last record is empty"),
        (b">\nACGT\n", 1, "without a name"),
        (b">  \nACGT\n", 1, "without a name"),
        (b">a\nAC\n>a x\nAC\n", 3, "stands more than once .first at line 1"),
        (b">a\nACGUUU\n", 2, "RNA.*convert U to T"),
        (b">a\nMSDKLE\n", 2, "looks like protein"),
        (b">a\nAC>b\nAC\n", 2, "'>' inside a line"),
        (b">a\nAC\n >b\nAC\n", 3, "header indented"),
        (b">a\nAC\n;c\nAC\n", 3, "comment line"),
        (b">a\n 1 acgt\n", 2, "numbered"),
        (b">a\n1 acgt\n", 2, "digit"),
        (b">a\nAC GT\n", 2, "blank .whitespace. inside"),
        (b">a\nAC\tGT\n", 2, "tab .whitespace. inside"),
        (b">a\n  ACGT\n", 2, "blank .whitespace. inside"),
        (b">a\rACGT\r", 1, "carriage return"),
        (b">a\nACGT\rACGT\n", 2, "carriage return"),
        (b">a\nACGT\r\r\n", 2, "carriage return"),
        (b">a\nACGT\r", 2, "carriage return"),
        (b">a\nACGT \nACGT\r", 3, "carriage return"),
        (b">a\nAC\x00T\n", 2, "NUL"),
        (b">a\x00b\nACGT\n", 1, "NUL byte in a header"),
        (b">a\nACGT\n" + b"\0" * 65536, 3, "NUL"),
        (b">\xe9\nACGT\n", 1, "not UTF-8"),
        (">a\u200bb\nACGT\n".encode(), 1, "invisible"),
        (">a\u00a0b\nACGT\n".encode(), 1, "invisible"),
        (b">\x1b[2Ja\nACGT\n", 1, "invisible or control"),
        (">a\nＡＣ\n".encode(), 2, "U.FF21"),
        (b">a\nAC\n\xef\xbb\xbf>b\nAC\n", 3, "byte order mark"),
        (b">a\n@r\nAC\n+\nII\n", 2, "FASTQ"),
        (b">a\nMSDKHATTGVRWYNDSAGHKMVBDHVNNRSAAGTCKMWY\n", 2, "ambiguity codes.*protein"),
        (b">" + b"x" * 2_000_000, 1, "header longer than"),
        (b">a\nAC" + b" " * 2_000_000, 2, "blanks in a row"),
        (b"@r\nACGT\n+\nIIII\n", 1, "FASTQ"),
        (b"LOCUS       X\n", 1, "GenBank"),
        (b"chr1\t0\t100\n", 1, "BED"),
        (b"chr1\t1000\t6\t60\t61\n", 1, "FASTA index"),
        (b"a,b\n", 1, "CSV"),
        (b"<!DOCTYPE html>\n", 1, "HTML.*download"),
        (b"version https://git-lfs.github.com/spec/v1\n", 1, "git lfs pull"),
        (b"BZh91AY&SY", 1, "bunzip2"),
        (b"\x28\xb5\x2f\xfd\0\0", 1, "zstd"),
        (b"PK\x03\x04\x14\x00", 1, "ZIP"),
        (b"\x43\x27\x41\x1a\0\0\0\0", 1, "2bit"),
        (">a\nACGT\n".encode("utf-16"), 1, "UTF-16.*iconv"),
        (">a\nACGT\n".encode("utf-16-le"), 1, "NUL byte in a header.*UTF-16"),
        (">a\nACGT\n".encode("utf-32"), 1, "UTF-32"),
        (b"\0" * 5000, 1, "NUL bytes only"),
        (b"x" * 257 + b"ustar\0", 1, "tar archive"),
        (bytes(range(128, 256)), 1, "no FASTA header"),
        (b"hello world\n", 1, "no FASTA header.*found 'hello world'"),
    ],
)  # fmt: skip
def test_each_fault_is_one_line_that_says_where_what_and_what_to_do(text, line, words):
    with pytest.raises(DataError, match=words) as caught:
        read(text)
    assert caught.value.line == line
    assert caught.value.fix
    assert str(caught.value).startswith("in.fa")
    assert len(str(caught.value)) < 500
    if len(text) < 100_000:
        with pytest.raises(DataError) as caught:
            read(text, 7)
        assert caught.value.line == line


def test_all_iupac_codes_of_a_short_or_mostly_plain_record_are_dna():
    assert read(f">a\n{LETTERS}\n".encode()) == [("a", LETTERS.encode())]
    assert len(read(f">a\n{LETTERS}\n>b\n{LETTERS}\n".encode())) == 2, (
        "each record is judged by itself"
    )
    text = f">a\n{'ACGT' * 100}{LETTERS * 5}\n".encode()
    assert len(read(text)[0][1]) == 550


def test_a_record_carries_its_description_its_line_and_its_case(tmp_path):
    (tmp_path / "in.fa").write_bytes(b"\n>a  one \t two \r\nACgt\n\n>b\n\n>c\x0bd\nN\n")
    assert list(read_fasta(tmp_path / "in.fa")) == [
        Record("a", "one \t two", b"ACgt", 2),
        Record("b", "", b"", 5),
        Record("c", "d", b"N", 7),
    ]


def test_stdin_is_read_where_the_path_is_a_dash(tmp_path):
    code = "from genodiff.io.fasta import read_fasta; print([r.name for r in read_fasta('-')])"
    for data in (FASTA, zipped(FASTA), gzip.compress(FASTA)):
        assert SERVER.run_code(code, input=data, timeout=60).stdout == "['a', 'b']\n"


def test_what_is_written_is_read_back_at_any_width(tmp_path):
    records = [
        Record("a", "x=1 y", b"ACGTn" * 20_000, 1),
        Record("b", "", b"", 1),
        Record("c", "", b"G", 1),
    ]
    written = {}
    for width, is_zipped in ((60, False), (7, False), (60, True), (1_000_000, True)):
        out = io.BytesIO()
        write_fasta(out, iter(records), line_width=width, zipped=is_zipped)
        written[width, is_zipped] = out.getvalue()  # it is still open
        (tmp_path / "in.fa").write_bytes(out.getvalue())
        assert [one[:3] for one in read_fasta(tmp_path / "in.fa")] == [one[:3] for one in records]
    assert written[7, False].startswith(b">a x=1 y\nACGTnAC\nGTnACGT\n")
    assert written[60, True].endswith(bgzf._bgzf_eof)
    assert gzip.decompress(written[60, True]) == written[60, False]


@pytest.mark.parametrize("name", ["", "a b", "a\nb", "a\tb", "\x1b[2J", "a\r"])
def test_a_name_that_would_break_the_format_is_not_written(name):
    with pytest.raises(UsageError, match="cannot be the name"):
        write_fasta(io.BytesIO(), [Record(name, "", b"A", 1)])
    with pytest.raises(UsageError):
        write_fasta(io.BytesIO(), [Record("a", "x\n>y", b"A", 1)])


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 10**9),
    st.integers(1, 255),
    st.sampled_from(["flip", "cut", "append"]),
    st.booleans(),
)
def test_damaged_data_are_never_another_sequence(tmp_path_factory, where, byte, how, blocked):
    text = b">a\n" + b"ACGTTGCA" * 300 + b"\n"
    data = bytearray(zipped(text, 500) if blocked else gzip.compress(text))
    at = where % len(data)
    if how == "flip":
        data[at] ^= byte
    elif how == "cut":
        del data[at:]
    else:
        data += bytes([byte]) * (where % 40 + 1)
    path = tmp_path_factory.mktemp("damage") / "in.fa.gz"
    path.write_bytes(data)
    try:
        found = [r.sequence for r in read_fasta(path)]
    except GenodiffError:
        return
    # Only header fields that carry no data (time, system, flags) may change and leave the content
    # whole.
    assert how == "flip"
    assert found == [b"ACGTTGCA" * 300]
    assert zlib.crc32(found[0]) == zlib.crc32(b"ACGTTGCA" * 300)


def test_a_bgzip_file_without_its_end_block_is_truncated(tmp_path):
    data = zipped(FASTA, 10)
    for cut, words in (
        (28, "end-of-file block is missing"),
        (29, "stop in the middle"),
        (1, "stop in the middle"),
    ):
        (tmp_path / "in.fa").write_bytes(data[:-cut])
        with pytest.raises(DataError, match=f"truncated bgzf file: .*{words}"):
            list(read_fasta(tmp_path / "in.fa"))
    (tmp_path / "in.fa").write_bytes(data + data)
    with pytest.raises(DataError, match="stands more than once"):
        list(read_fasta(tmp_path / "in.fa"))


@pytest.mark.parametrize("tail", [b"x", b"\x00", b"\x00" * 600, b"more text\n", b"\x1f\x8c"])
def test_bytes_after_compressed_data_are_named_as_such(tmp_path, tail):
    for data in (zipped(FASTA), gzip.compress(FASTA), gzip.compress(FASTA) * 2):
        (tmp_path / "in.fa").write_bytes(data + tail)
        with pytest.raises(DataError, match="trailing garbage after the"):
            list(source_blocks(tmp_path / "in.fa"))


def source_blocks(path: Path) -> Iterator[bytes]:
    with input_file.open_input(path) as opened:
        yield from opened.blocks()


@pytest.mark.slow
def test_memory_stays_bounded_while_a_gzip_bomb_is_checked(tmp_path):
    member = gzip.compress(b"N" * (1 << 23), 1)
    (tmp_path / "bomb.fa.gz").write_bytes(gzip.compress(b">a\n") + 20 * member)
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (300 << 20,) * 2)\n"
        "from genodiff.io.fasta import read_digests\n"
        "print([d.length for d in read_digests('bomb.fa.gz')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == f"[{20 << 23}]\n", done.stderr


@pytest.mark.parametrize("change", ["append", "truncate", "touch"])
def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path, change):
    path = tmp_path / "in.fa"
    path.write_bytes(b">a\n" + b"ACGT\n" * 100_000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(input_file, "BLOCK", 1000)
        blocks = source_blocks(path)
        next(blocks)
        if change == "append":
            with open(path, "ab") as file:
                file.write(b"ACGT\n")
        elif change == "truncate":
            os.truncate(path, 200_000)
        else:
            os.utime(path, (1, 1))
        with pytest.raises(DataError, match="changed while it was being read"):
            list(blocks)
