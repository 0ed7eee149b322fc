"""The store: the genome exactly, found again, shared by many processes, and never silently another
one.
"""

import gzip
import json
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from genomes import random_dna, recipe_of, store_of, write_fasta
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.alphabet import DNA, SOFT
from genodiff.data.dna_store import DnaStore, build_dna_store, make_encoding_table
from genodiff.data.recipe import Recipe, load_recipe
from genodiff.errors import DataError

CONTIGS = {"a": "ACGTNacgtnRYSWKMBDHVrysw", "b": random_dna(300)}


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.text("ACGTNacgtnRYSWKMBDHVryswkmbdhv", min_size=1, max_size=50), min_size=1, max_size=4
    )
)
def test_every_letter_and_its_case_come_back_from_the_store(tmp_path_factory, sequences):
    contigs = {f"c{i}": s for i, s in enumerate(sequences)}
    store, _ = store_of(tmp_path_factory.mktemp("s"), contigs)
    for name, sequence in contigs.items():
        ids = store.ids(name)
        known = "".join(c if c in "ACGTNacgtn" else "N" if c.isupper() else "n" for c in sequence)
        assert DNA.decode(ids & (SOFT - 1), ids >= SOFT) == known
        assert ids.dtype == np.uint8
    assert store.contigs == {name: len(s) for name, s in contigs.items()}


def test_the_encoding_table_agrees_with_the_alphabet_for_every_byte():
    for byte, stored in enumerate(make_encoding_table()):
        try:
            wanted = int(DNA.encode(bytes([byte]))[0]) | (SOFT if chr(byte).islower() else 0)
        except DataError:
            wanted = 0xFF
        assert stored == wanted


def test_ambiguity_codes_and_n_are_counted_per_contig(tmp_path):
    store, _ = store_of(tmp_path, CONTIGS)
    first = store.manifest["contigs"][0]
    assert first == {"name": "a", "length": 24, "n": 16, "soft": 9, "ambiguous": 14}
    assert store.n_runs.tolist() == [[4, 5], [9, 24]]


def test_a_run_of_n_ends_with_its_contig(tmp_path):
    store, _ = store_of(tmp_path, {"a": "ACNN", "b": "nNNT", "c": "ANA"})
    assert store.n_runs.tolist() == [[2, 4], [4, 7], [9, 10]]


@pytest.mark.parametrize("form", ["plain", "gzip", "crlf"])
def test_the_same_bases_come_out_of_gzip_and_of_dos_line_ends(tmp_path, form):
    path = write_fasta(tmp_path / "in.fa", CONTIGS)
    reference = build_dna_store(recipe_of(CONTIGS), path)
    data = path.read_bytes()
    forms = {"plain": data, "gzip": gzip.compress(data), "crlf": data.replace(b"\n", b"\r\n")}
    (tmp_path / "other").write_bytes(forms[form])
    other = build_dna_store(recipe_of(CONTIGS), tmp_path / "other")
    assert (np.asarray(other.flat) == reference.flat).all()
    assert other.manifest["ids_sha256"] == reference.manifest["ids_sha256"]
    assert (other.fingerprint == reference.fingerprint) == (form == "plain")


def test_a_store_is_built_once_and_found_again_under_any_name(tmp_path):
    one, recipe = store_of(tmp_path, CONTIGS)
    stamp = (one.path / "genome.ids").stat().st_mtime_ns
    moved = tmp_path / "moved.fa"
    (tmp_path / "in.fa").rename(moved)
    two = build_dna_store(recipe, moved)
    assert two.path == one.path
    assert (two.path / "genome.ids").stat().st_mtime_ns == stamp
    assert two.source.path == str(moved)
    assert two.fingerprint == one.fingerprint


def test_two_recipes_share_one_copy_of_the_bases_and_no_run_goes_on_with_other_splits(tmp_path):
    one, _ = store_of(tmp_path, CONTIGS)
    two, _ = store_of(tmp_path, CONTIGS, recipe_of(CONTIGS, valid=("b",)))
    assert one.path == two.path
    assert one.fingerprint != two.fingerprint
    with pytest.raises(DataError, match="splits have changed"):
        two.check_same(one.identity())


def test_ignored_contigs_are_not_stored(tmp_path):
    store, _ = store_of(tmp_path, CONTIGS, Recipe(name="x", ignore="^a$"))
    assert [*store.contigs] == ["b"]
    with pytest.raises(KeyError):
        store.ids("a")


def test_a_bed_may_name_a_contig_that_the_recipe_ignores(tmp_path):
    (tmp_path / "in.bed").write_text("chrM\t0\t200\ttrain\n")
    recipe = load_recipe("hg38", bed=tmp_path / "in.bed")
    store, _ = store_of(tmp_path, {"chrM": random_dna(300)}, recipe)
    assert store.splits.intervals["train"].n_bases == 200


@pytest.mark.parametrize(
    ("seed", "name", "content"),
    [
        (1, "genome.ids", bytes(5)),
        (2, "genome.ids", bytes(24 + 300 + 40 + 1)),  # one more than there are
        (3, "genome.ids", None),
        (4, "manifest.json", b"{"),
        (5, "manifest.json", b""),
        (6, "n_runs.npy", b"\x93NUMPY"),
        (7, "n_runs.npy", [[4, 5], [9, 24], [300, 301]]),
    ],
)
def test_a_damaged_store_is_built_again(tmp_path, seed, name, content):
    store, recipe = store_of(tmp_path, CONTIGS | {"own": random_dna(40, seed)})
    good = np.array(store.flat)
    if isinstance(content, list):
        np.save(store.path / name, np.array(content))
    elif content is None:
        (store.path / name).unlink()
    else:
        (store.path / name).write_bytes(content)
    with pytest.raises(DataError, match="not a whole store"):
        DnaStore(store.path, recipe, store.source)
    assert (np.asarray(build_dna_store(recipe, tmp_path / "in.fa").flat) == good).all()


def test_a_flipped_bit_is_found_by_verify_and_cured_by_force(tmp_path):
    store, recipe = store_of(tmp_path, {"flip": random_dna(200, 9)})
    store.verify()
    data = bytearray((store.path / "genome.ids").read_bytes())
    data[100] ^= 1
    (store.path / "genome.ids").write_bytes(data)
    with pytest.raises(DataError, match="was built as"):
        build_dna_store(recipe, tmp_path / "in.fa").verify()
    build_dna_store(recipe, tmp_path / "in.fa", force=True).verify()


def test_a_store_travels_to_a_worker_by_its_path(tmp_path):
    store, _ = store_of(tmp_path, CONTIGS)
    assert len(store.flat)
    sent = pickle.dumps(store)
    assert len(sent) < 20_000
    assert (pickle.loads(sent).flat == store.flat).all()


@pytest.mark.parametrize("change", ["replaced", "appended", "truncated"])
def test_a_resumed_run_refuses_a_source_that_was_changed_naming_both_hashes(tmp_path, change):
    contigs = {"chr1": random_dna(2000), "chr2": random_dna(900, 1)}
    store, recipe = store_of(tmp_path, contigs, Recipe(name="x"))
    remembered = json.loads(json.dumps(store.identity()))
    path = tmp_path / "in.fa"
    store.check_same(remembered)
    if change == "replaced":
        write_fasta(path, {"chr1": random_dna(2000, 5), "chr2": random_dna(900, 6)})
    elif change == "appended":
        path.write_text(path.read_text() + ">chr3\nACGT\n")
    else:
        os.truncate(path, 1000)
    with pytest.raises(DataError, match="has changed since the run started"):
        build_dna_store(recipe, path, remembered=remembered)
    with pytest.raises(DataError, match="has changed since the run started") as fault:
        build_dna_store(recipe, path).check_same(remembered)
    assert remembered["source_sha256"] in str(fault.value)
    assert str(path) in str(fault.value)


def test_reading_goes_on_when_the_source_is_removed_while_in_use(tmp_path):
    store, _ = store_of(tmp_path, {"chr1": random_dna(2000)})
    before = np.array(store.flat)
    (tmp_path / "in.fa").unlink()
    assert (store.flat == before).all()


def test_a_touched_but_equal_source_is_no_change(tmp_path):
    store, recipe = store_of(tmp_path, {"chr1": random_dna(2000)})
    os.utime(tmp_path / "in.fa", (1, 1))
    build_dna_store(recipe, tmp_path / "in.fa").check_same(store.identity())


def test_a_clock_that_runs_backwards_does_not_hide_another_genome(tmp_path):
    one, recipe = store_of(tmp_path, {"chr1": random_dna(2000)})
    stat = os.stat(tmp_path / "in.fa")
    write_fasta(tmp_path / "in.fa", {"chr1": random_dna(2000, 1)})
    os.utime(tmp_path / "in.fa", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert build_dna_store(recipe, tmp_path / "in.fa").fingerprint != one.fingerprint


def test_a_build_that_fails_leaves_nothing_behind(tmp_path, own_cache):
    stores = own_cache / "stores"
    (tmp_path / "in.fa").write_text(">a\nACGT\n>b\nACQT\n")
    before = {p for p in stores.glob("*") if p.suffix != ".lock"}
    with pytest.raises(DataError, match=r"in\.fa"):
        build_dna_store(Recipe(name="x"), tmp_path / "in.fa")
    assert {p for p in stores.glob("*") if p.suffix != ".lock"} == before


def test_the_toy_store_needs_no_file_and_no_network():
    store = build_dna_store(load_recipe("toy"), offline=True)
    assert store.source.path is None
    assert sum(store.contigs.values()) == 655_360


BUILD = """
import sys, time
from genodiff.data.recipe import Recipe
from genodiff.data.dna_store import build_dna_store
time.sleep(max(0, float(sys.argv[2]) - time.time()))
store = build_dna_store(Recipe(name="x"), sys.argv[1])
store.verify()
print(store.fingerprint)
"""


@pytest.mark.slow
def test_processes_that_build_one_store_at_once_all_get_it_whole(tmp_path):
    path = write_fasta(tmp_path / "in.fa", {"a": random_dna(200_000, 77), "b": "N" * 50_000})
    start = str(time.time() + 3)
    command = [sys.executable, "-c", BUILD, str(path), start]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    ends = [(*p.communicate(timeout=120), p.returncode) for p in running]
    assert all(code == 0 for _, _, code in ends), ends
    assert len({out for out, _, _ in ends}) == 1


@pytest.mark.slow
def test_building_keeps_up_with_a_hundred_million_bases_a_second_or_near_it(tmp_path):
    path = tmp_path / "in.fa"
    line = (random_dna(5_000_000, 3) + "\n").encode()
    path.write_bytes(b"".join(b">c%d\n" % i + line for i in range(4)))
    start = time.process_time()
    build_dna_store(Recipe(name="x"), path)
    assert 20e6 / (time.process_time() - start) > 25e6
