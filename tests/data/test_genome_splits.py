"""Splits of many genomes hold homologous sequence apart, by a checker that knows who is whose copy;
sketches, duplicates, and the rules of a list."""

import csv
from pathlib import Path

import numpy as np
import pytest
from genomes import LETTERS, change, turn, write_family, write_fasta, write_list

from genodiff.alphabet import DNA, encode_bases
from genodiff.data.genomes.build import build_genome
from genodiff.data.genomes.collection import (
    ContigReader,
    build_collection,
    leave_leaks_out,
    read_splits,
)
from genodiff.data.genomes.dealing import Contig, cluster_owners, deal_units
from genodiff.data.genomes.homologs import Rows, leave_homologs_out
from genodiff.data.genomes.listing import GenomeRow, read_genome_list
from genodiff.data.kmers import SAMPLED, SketchWriter, canonical_kmers, mix, open_sketch
from genodiff.errors import DataError


def build(folder: Path, rows: list[dict[str, str]]) -> tuple[dict, list, Path]:
    out = folder / "built"
    manifest = build_collection(read_genome_list(write_list(folder / "l.tsv", rows)), out)
    return manifest, read_splits(out, manifest), out


def names_of(manifest: dict) -> list[str]:
    return [f"{g['name']}/{c}" for g in manifest["genomes"] for c, _ in g["contigs"]]


def test_copies_of_one_ancestor_stay_in_one_split(tmp_path):
    family = dict(write_family(tmp_path / "fa"))
    manifest, rows, _ = build(tmp_path, [{"path": f"fa/{n}.fa"} for n in family])
    names, where = names_of(manifest), {}
    for split, part in enumerate(rows):
        for contig, _, _ in part:
            genome, _, number = names[contig].partition("/")
            where.setdefault((family[genome], number), set()).add(split)
    assert all(len(splits) == 1 for splits in where.values())
    assert {s for splits in where.values() for s in splits} == {0, 1, 2}
    assert manifest["homology"]["test"]["shared_tiles"] == 0


def test_a_stretch_that_train_has_too_is_left_out(tmp_path):
    """One stretch of 1.5 kb of a large contig is copied, turned and changed, into all others: too
    little to join them, and it may not be tested on."""
    rng = np.random.default_rng(1)
    shared = LETTERS[rng.integers(0, 4, 1500)]
    rows, size, places = [], 200_000, {}
    for i in range(6):
        sequence = LETTERS[rng.integers(0, 4, size)]
        at = 25_000 * (i + 1)
        sequence[at : at + 1500] = change(turn(shared) if i % 2 else shared, 0.02, rng)
        places[f"g{i}"] = at
        write_fasta(tmp_path / f"g{i}.fa", {"c": sequence})
        rows.append({"path": f"g{i}.fa"})
    manifest, parts, _ = build(tmp_path, rows)
    names = [g["name"] for g in manifest["genomes"]]
    assert {names[c] for c, _, _ in parts[0]} != set(names)
    for part in parts[1:]:
        assert part
        for contig, start, end in part:
            at = places[names[contig]]
            assert end <= at + 24 or start >= at + 1500 - 24
    assert manifest["homology"]["test"]["left_out"] >= 1500


def test_what_the_sample_misses_is_found_by_all_kmers(tmp_path):
    """Every fifth tile of a genome has 200 bases of train, on either strand: a sixth of its k-mers,
    which a sample of one in 32 misses in one of some forty tiles."""
    rng = np.random.default_rng(3)
    train, held = (LETTERS[rng.integers(0, 4, 400_000)] for _ in range(2))
    spoiled = range(0, 390, 5)
    for tile in spoiled:
        at = 1024 * tile + 300
        piece = train[at : at + 200]
        held[at : at + 200] = turn(piece) if tile % 2 else piece
    rows: list[Rows] = [[(0, 0, 400_000)], [], [(1, 0, 400_000)]]
    contigs = [Contig(0, "a", 400_000), Contig(1, "b", 400_000)]
    for name, sequence in (("a", train), ("b", held)):
        path = write_fasta(tmp_path / f"{name}.fa", {name: sequence})
        row = GenomeRow(str(path), name, 1, name, "cluster", None, 2)
        build_genome(row, tmp_path / name)
    sketches = [open_sketch(tmp_path / name) for name in "ab"]
    sampled = leave_homologs_out(rows, contigs, [True, True], sketches).rows
    held_tiles = {tile for _, a, b in sampled[2] for tile in range(a // 1024, b // 1024)}
    assert held_tiles & set(spoiled)
    reader = ContigReader([tmp_path / "a", tmp_path / "b"], contigs)
    kept, lost = leave_leaks_out(sampled, contigs, [True, True], reader)
    held_tiles = {tile for _, a, b in kept[2] for tile in range(a // 1024, b // 1024)}
    assert held_tiles
    assert not held_tiles & set(spoiled)
    assert lost["test"] == sum(b - a for _, a, b in sampled[2]) - sum(b - a for _, a, b in kept[2])
    assert leave_leaks_out(sampled, contigs, [True, False], reader)[0] == sampled


def test_rules_of_a_list(tmp_path):
    write_family(tmp_path / "fa", n=6)
    (tmp_path / "s.bed").write_text("c0\t0\t3000\ttrain\nc0\t3000\t6000\ttest\nc1\t0\t900\tvalid\n")
    rules = ["train", "valid", "test", "s.bed", "train", "train"]
    rows = [{"path": f"fa/g{i:02d}.fa", "split": r} for i, r in enumerate(rules)]
    manifest, parts, _ = build(tmp_path, rows)
    names = names_of(manifest)
    told = [[(names[c], a, b) for c, a, b in part] for part in parts]
    assert told[1] == [("g01/c0", 0, 6000), ("g01/c1", 0, 6000), ("g03/c1", 0, 900)]
    assert told[2] == [("g02/c0", 0, 6000), ("g02/c1", 0, 6000), ("g03/c0", 3000, 6000)]
    assert ("g03/c0", 0, 3000) in told[0]
    assert ("g00/c1", 0, 6000) in told[0]


def test_chromosomes_of_a_name_and_whole_assemblies_are_held_out_together(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for i in range(4):
        contigs = {f"chr{c}": LETTERS[rng.integers(0, 4, 2000 + 500 * c)] for c in range(8)}
        write_fasta(tmp_path / f"g{i}.fa", contigs)
        rows.append({"path": f"g{i}.fa", "split": "chromosome"})
    manifest, parts, _ = build(tmp_path, rows)
    names = names_of(manifest)
    held = [{names[c].partition("/")[2] for c, _, _ in part} for part in parts]
    assert held[1]
    assert held[2]
    assert not (held[0] & held[1])
    assert not (held[0] & held[2])
    assert not (held[1] & held[2])
    manifest, parts, _ = build(tmp_path, [row | {"split": "assembly"} for row in rows])
    held = [{names[c].partition("/")[0] for c, _, _ in part} for part in parts]
    assert [len(one) for one in held] == [2, 1, 1]


def test_a_family_that_cannot_be_parted_is_refused(tmp_path):
    write_family(tmp_path / "fa", n=4, ancestors=1)
    rows = [{"path": f"fa/g{i:02d}.fa"} for i in range(4)]
    with pytest.raises(DataError, match="cannot hold anything out of g00"):
        build(tmp_path, rows)


def test_duplicates_are_found_and_told(tmp_path):
    made = write_family(tmp_path / "fa", n=12)
    text = (tmp_path / "fa" / "g00.fa").read_text()
    (tmp_path / "fa" / "again.fa").write_text(text.replace(">c", ">other").lower())
    rows = [{"path": f"fa/{n}.fa"} for n in [*(n for n, _ in made), "again"]]
    manifest, _, out = build(tmp_path, rows)
    lines = (out / "duplicates.tsv").read_text().splitlines()
    found = list(csv.DictReader(lines, delimiter="\t"))
    same = {(r["a"], r["b"]) for r in found if r["kind"] == "contig"}
    assert same == {("again/other0", "g00/c0"), ("again/other1", "g00/c1")}
    alike = {(r["a"], r["b"]): r for r in found if r["kind"] == "assembly"}
    assert float(alike["again", "g00"]["identity"]) == 1.0
    ancestor = dict(made)
    assert all(ancestor[a] == ancestor[b] for a, b in alike if a != "again")
    assert manifest["duplicates"] == {"contig": 2, "assembly": len(alike)}


def test_a_sketch_in_pieces_is_the_sample_of_all_kmers(tmp_path):
    rng = np.random.default_rng(2)
    ids = DNA.encode(LETTERS[rng.integers(0, 4, 30_000)].tobytes())
    ids[5000:5003] = DNA.tokens.index("N")
    words, whole = canonical_kmers(encode_bases(ids))
    truth = np.flatnonzero(whole & (mix(words) < SAMPLED))
    with open(tmp_path / "sketch.kmers", "wb") as a, open(tmp_path / "sketch.places", "wb") as b:
        writer = SketchWriter(a, b)
        writer.begin(0)
        for start in range(0, len(ids), 997):
            writer.add(ids[start : start + 997])
    sketch = open_sketch(tmp_path)
    assert sketch.places.tolist() == truth.tolist()
    assert sketch.kmers.tolist() == mix(words[truth]).tolist()
    assert len(truth) == pytest.approx(30_000 / 32, rel=0.15)


def test_clusters_connect_what_shares_enough(tmp_path):
    rng = np.random.default_rng(3)
    pools = [rng.integers(0, 1 << 62, 300).astype(np.uint64) for _ in range(4)]
    owners = [np.concatenate((pools[i % 4][: 200 + i], pools[(i + 1) % 4][:1])) for i in range(50)]
    hashes = np.concatenate([np.unique(o) for o in owners])
    owner = np.repeat(np.arange(50), [len(np.unique(o)) for o in owners])
    label = cluster_owners(hashes, owner, 50)
    assert all((label[i] == label[j]) == (i % 4 == j % 4) for i in range(50) for j in range(50))


def test_units_are_dealt_whole_and_whatever_their_order():
    sizes = np.array([100] * 40 + [900, 30, 7])
    names = [f"u{i:02d}" for i in range(len(sizes))]
    splits = deal_units(sizes, names)
    total = {s: int(sizes[[i for i, t in enumerate(splits) if t == s]].sum()) for s in set(splits)}
    assert total["valid"] == pytest.approx(sizes.sum() / 20, rel=0.3)
    assert total["test"] == pytest.approx(sizes.sum() / 20, rel=0.3)
    turned = deal_units(sizes[::-1], names[::-1])
    assert turned[::-1] == splits
    assert deal_units(np.array([5, 5]), ["a", "b"]) == []
    assert sorted(deal_units(np.array([5, 5, 5]), ["a", "b", "c"])) == ["test", "train", "valid"]
