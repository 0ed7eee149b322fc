"""A genome as .2bit, read again by Biopython."""

from pathlib import Path

import numpy as np
import pytest
from Bio import SeqIO

from genodiff.errors import DataError, UsageError
from genodiff.io import two_bit
from genodiff.io.two_bit import write_two_bit


def write(path: Path, held: dict[str, bytes]) -> dict[str, str]:
    lengths = {name: len(letters) for name, letters in held.items()}
    write_two_bit(path, lengths, lambda name, start, end: held[name][start:end])
    with open(path, "rb") as file:
        return {one.id: str(one.seq) for one in SeqIO.parse(file, "twobit")}


def test_biopython_reads_every_letter_in_its_case(tmp_path):
    rng = np.random.default_rng(1)
    held = {
        f"chr{n}": rng.choice(list(b"ACGTacgtNn"), n).astype(np.uint8).tobytes()
        for n in (1, 2, 3, 4, 5, 63, 64, 65, 1000)
    }
    held |= {"N": b"N" * 17, "plain": b"ACGT" * 9, "HLA:01": b"acgtNNNNACGT"}
    wanted = {name: letters.decode() for name, letters in held.items()}
    assert write(tmp_path / "x.2bit", held) == wanted


def test_a_code_that_is_no_base_is_n(tmp_path):
    assert write(tmp_path / "x.2bit", {"a": b"ACRYgtswKA"}) == {"a": "ACNNgtnnNA"}


def test_blocks_go_on_over_stretches(tmp_path, monkeypatch):
    held = {"a": b"ACGTNNNNNNacgtacgtNNNN", "b": b"nnnnnnnnn"}
    whole = write(tmp_path / "x.2bit", held)
    monkeypatch.setattr(two_bit, "_STEP", 4)
    assert write(tmp_path / "y.2bit", held) == whole == {"a": held["a"].decode(), "b": "n" * 9}
    assert (tmp_path / "x.2bit").read_bytes() == (tmp_path / "y.2bit").read_bytes()


def test_what_the_format_cannot_hold_is_refused(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="255 bytes"):
        write(tmp_path / "x.2bit", {"a" * 256: b"A"})
    monkeypatch.setattr(two_bit._Record, "size", property(lambda _: 1 << 32))
    with pytest.raises(UsageError, match="too large"):
        write(tmp_path / "x.2bit", {"a": b"A"})
    assert not list(tmp_path.iterdir())
