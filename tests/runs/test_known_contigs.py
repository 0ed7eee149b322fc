"""Contigs told by their bases: whatever the file, the name, the case and the order."""

import numpy as np
import pytest
from tiny_run import genome_text

from genodiff.data.dna_store import build_dna_store
from genodiff.data.recipe import make_user_recipe
from genodiff.runs import known_contigs
from genodiff.runs.known_contigs import KnownContigs, StoreLetters, hash_contig
from genodiff.scoring.variant_windows import HeldContigs


def read_letters(text: str) -> dict[str, bytes]:
    rows = (part.split("\n") for part in text.split(">")[1:])
    return {name: letters.encode() for name, letters, *_ in rows}


LETTERS = read_letters(genome_text())


@pytest.fixture(scope="module")
def known():
    held = HeldContigs(LETTERS)
    lengths = [len(x) for x in LETTERS.values()]
    return KnownContigs([*LETTERS], lengths, lambda name: hash_contig(held, name))


def test_names_case_and_order_say_nothing(known):
    other = HeldContigs(
        {f"x{i}": x.lower() for i, x in enumerate(reversed(LETTERS.values()))}
        | {"c1": LETTERS["c2"]}
    )
    found = {name: known.find(other, name) for name in other.contigs}
    assert found == {"x0": "c4", "x1": "c3", "x2": "c2", "x3": "c1", "c1": "c2"}


def test_one_base_or_one_letter_more_is_another_contig(known):
    letters = LETTERS["c3"]
    changed = letters[:1500] + (b"A" if letters[1500:1501] != b"A" else b"C") + letters[1501:]
    given = HeldContigs({"changed": changed, "longer": letters + b"A", "shorter": letters[1:]})
    assert [known.find(given, name) for name in given.contigs] == [None] * 3
    odd = letters.replace(b"N", b"R")  # other codes are N
    assert known.find(HeldContigs({"odd": odd}), "odd") == "c3"


def test_of_equal_contigs_that_of_the_same_name_is_taken():
    held = HeldContigs({"a": b"ACGTAC", "b": b"ACGTAC", "c": b"ACGTAA"})
    known = KnownContigs.of_rows([(n, 6, hash_contig(held, n)) for n in held.contigs])
    other = HeldContigs({"b": b"acgtac", "z": b"ACGTAC", "c": b"ACGTAC"})
    assert [known.find(other, name) for name in other.contigs] == ["b", "a", "a"]


def test_a_long_contig_is_hashed_in_pieces(monkeypatch):
    whole = hash_contig(HeldContigs(LETTERS), "c1")
    monkeypatch.setattr(known_contigs, "_PIECE", 777)
    assert hash_contig(HeldContigs(LETTERS), "c1") == whole


def test_a_store_is_known_by_its_content(tmp_path, monkeypatch):
    """A store's key is that of its file, so one of the same key has the same names."""
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    stores = []
    for i, text in enumerate((genome_text(), genome_text().replace(">c", ">d"))):
        path = tmp_path / f"{i}.fa"
        path.write_text(text)
        stores.append(build_dna_store(make_user_recipe(path), path))
    one, other = stores
    assert one.manifest["key"] != other.manifest["key"]
    known = KnownContigs.of_store(one)
    assert known.find(StoreLetters(other), "d2") == "c2"
    hashed: list[str] = []
    real = known_contigs.hash_contig
    monkeypatch.setattr(
        known_contigs, "hash_contig", lambda s, name: hashed.append(name) or real(s, name)
    )
    assert known.find(StoreLetters(one), "c2") == "c2"
    assert hashed == []
    letters = StoreLetters(one).fetch("c1", 0, 6000)
    assert letters == LETTERS["c1"].upper()
    assert known.list_rows({"c1"}) == [("c1", 6000, real(HeldContigs(LETTERS), "c1"))]
    assert np.array_equal([*StoreLetters(one).contigs.values()], one.lengths)
