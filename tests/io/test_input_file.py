"""Inputs: `<(command)` of a shell, whose bytes come once, and what a plan forecasts of a file."""

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from Bio import bgzf

from genodiff.data.store import require_regular_file
from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.file_kinds import find_readable, is_descriptor, sha256_file
from genodiff.io.input_file import count_letters, count_lines, open_input

pytestmark = pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="no /dev/fd here")
FASTA = b">a\nACGTT\n>b\nGG\n"


@pytest.fixture
def substitute():
    """A function: the name of a pipe that these bytes (few enough for its buffer) come through."""
    opened = []

    def substituted(data: bytes) -> str:
        reader, writer = os.pipe()
        opened.append(reader)
        os.write(writer, data)
        os.close(writer)
        return f"/dev/fd/{reader}"

    yield substituted
    for reader in opened:
        os.close(reader)


def read(path: str) -> bytes:
    with open_input(path) as source:
        assert source.shown == path
        return b"".join(source.blocks())


def test_a_pipe_is_read_twice_and_hashed(substitute):
    path = substitute(FASTA)
    assert [read(path), read(path)] == [FASTA, FASTA]
    assert sha256_file(path) == hashlib.sha256(FASTA).hexdigest()


def test_two_pipes_are_not_taken_for_each_other(substitute):
    first, second = substitute(b"1"), substitute(b"2")
    assert [read(second), read(first), read(second)] == [b"2", b"1", b"2"]


def test_a_genome_through_a_pipe_is_read_at_random(substitute, own_cache):
    before = set(own_cache.rglob("*"))
    genome = Genome(substitute(FASTA))
    assert [genome.fetch("b", 0, 2), genome.fetch("a", 3, 5)] == [b"GG", b"TT"]
    assert set(own_cache.rglob("*")) == before


def test_a_file_that_is_stdin_is_read_from_its_beginning_each_time(tmp_path):
    (tmp_path / "in.fa").write_bytes(FASTA)
    descriptor = os.open(tmp_path / "in.fa", os.O_RDONLY)
    try:
        path = f"/dev/fd/{descriptor}"
        assert [read(path), read(path)] == [FASTA, FASTA]
    finally:
        os.close(descriptor)


def test_a_run_that_would_have_to_read_a_pipe_again_refuses_it(substitute):
    with pytest.raises(DataError, match="is a stream; give a file"):
        require_regular_file(Path(substitute(FASTA)))


def test_other_files_and_named_pipes_are_left_as_they_are(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path / "fd" / "3"):
        assert find_readable(path) == str(path)
        assert not is_descriptor(path)
    with pytest.raises(DataError, match="is a named pipe"):
        read(str(tmp_path / "fifo"))


def write(path, data, kind):
    if kind == "plain":
        path.write_bytes(data)
    elif kind == "gzip":
        path.write_bytes(gzip.compress(data, 6))
    else:
        with bgzf.open(path, "wb") as file:
            file.write(data)
    return path


@pytest.mark.few(6)
@pytest.mark.parametrize("kind", ["plain", "gzip", "bgzf"])
@pytest.mark.parametrize("lines", [0, 1, 3_000, 60_000])
def test_letters_and_lines_of_a_file_are_forecast_however_it_is_compressed(tmp_path, kind, lines):
    bases = np.random.default_rng(1).choice(np.frombuffer(b"ACGT", np.uint8), (lines, 61))
    bases[:, 60:] = 10
    path = write(tmp_path / "file", bases.tobytes(), kind)
    assert count_letters(path) == pytest.approx(61 * lines, rel=0.1)
    assert count_lines(path) == pytest.approx(lines, rel=0.1)
