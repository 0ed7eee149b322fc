"""What a model was trained on of the bases that are scored, told by the bases and not by the file.

The run's genome has four contigs, each split by its ends: of c4, 1,300 bases, the first 1,170
train. Scored are its bases 1,024 to 1,280, four windows of 64, of which five are N: 251, and 146 of
train.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from genodiff.alphabet import DNA, SOFT
from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.genomes.store import open_genomes
from genodiff.data.recipe import make_user_recipe
from genodiff.data.store import find_intervals
from genodiff.evaluation.evaluate import evaluate
from genodiff.runs import known_contigs
from genodiff.runs.feed import describe_soft_mask, measure_soft_mask, open_feed
from genodiff.runs.known_contigs import KnownContigs, StoreLetters, hash_contig
from genodiff.runs.resolve import resolve_config
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.trained_on import TrainedOn, TrainPart, measure_seen_bases
from genodiff.scoring.variant_windows import HeldContigs
from tests.commands import succeed
from tests.data.genomes import write_list
from tests.tiny_run import genome_text, split_contigs, write_fasta

SEEN = "the run was trained on genome.fa: 146 of 251 scored bases were in its train split"
TURN = str.maketrans("ACGTacgt", "TGCAtgca")
CONTIGS = split_contigs(genome_text())
C4 = CONTIGS["c4"]
LETTERS = {name: letters.encode() for name, letters in CONTIGS.items()}


def write(folder: Path, contigs: dict[str, str], name: str = "scored.fa") -> str:
    return str(write_fasta(folder / name, contigs))


def score(model: TrainedModel, fasta: str | None, rows: str, **options: Any) -> dict[str, Any]:
    bed = Path(fasta or str(model.run / "x")).with_suffix(".bed")
    bed.write_text(rows)
    found = evaluate(model, fasta=fasta, bed=str(bed), baselines=False, **options)
    seen: dict[str, Any] = found["seen_in_training"]
    assert seen["bases"] == found["tokens"]
    return seen


COPIES: dict[str, Callable[[Path], tuple[str, str]]] = {
    "the file itself": lambda folder: (write(folder, CONTIGS), "c4"),
    "packed": lambda folder: (write(folder, CONTIGS, "scored.fa.gz"), "c4"),
    "under another name": lambda folder: (write(folder, {"chrIV": C4}), "chrIV"),
    "in lower case": lambda folder: (write(folder, {"c4": C4.lower()}), "c4"),
    "in upper case": lambda folder: (write(folder, {"c4": C4.upper()}), "c4"),
    "beside a contig of its length": lambda folder: (
        write(folder, {"x": "ACCA" * 325, "c4": C4}),
        "c4",
    ),
}


@pytest.mark.parametrize("copy", COPIES)
def test_the_same_bases_give_the_same_note(copy, model, tmp_path):
    fasta, name = COPIES[copy](tmp_path)
    seen = score(model, fasta, f"{name}\t1024\t1280\ttest\n")
    assert seen["note"] == SEEN
    assert (seen["in_train"], seen["other_bases"]) == (146, 0)


def test_the_other_strand_is_the_same_contig(model, tmp_path):
    fasta = write(tmp_path, {"turned": C4.translate(TURN)[::-1]})
    assert score(model, fasta, "turned\t20\t276\ttest\n")["note"] == SEEN


def test_a_list_of_genomes_that_holds_the_contig_is_its_training_data(tmp_path):
    """Twice the same contig: in one genome it trains up to 1,100, in the other from 1,240 on."""
    write(tmp_path, {"one": C4.upper()}, "a.fa")
    write(tmp_path, {"other": "GATTACA" * 90, "two": C4}, "b.fa")
    (tmp_path / "a.bed").write_text("one\t0\t1100\ttrain\n")
    (tmp_path / "b.bed").write_text("two\t1240\t1300\ttrain\nother\t0\t600\ttrain\n")
    rows = [{"path": f"{name}.fa", "split": f"{name}.bed"} for name in "ab"]
    genomes = open_genomes(write_list(tmp_path / "list.tsv", rows))
    part = TrainPart(genomes, find_intervals(genomes, "train"))
    fasta = write(tmp_path, {"chrIV": C4})
    (tmp_path / "scored.bed").write_text("chrIV\t1024\t1280\ttest\n")
    recipe = make_user_recipe(fasta, tmp_path / "scored.bed")
    windows = DnaWindows(build_dna_store(recipe, fasta), recipe, "test", 64)
    counted = windows.length - 5.0 * (windows.start == 1216)  # its Ns lie at 1,260 to 1,265
    seen = measure_seen_bases(TrainedOn("key", lambda store: [part]), windows, counted)
    assert (seen.bases, seen.in_train, seen.other_bases) == (251, 76 + 40 - 5, 0)


def test_bases_that_are_not_counted_are_not_seen(model, tmp_path):
    """30 bases of the test interval, and 500 of train, are in lower case."""
    seen = score(model, None, "c4\t1024\t1280\ttest\n", soft_masked=False)
    assert (seen["in_train"], seen["bases"]) == (146, 221)
    seen = score(model, None, "c4\t640\t768\ttest\n", soft_masked=False)
    assert (seen["in_train"], seen["bases"]) == (68, 68)


def test_a_contig_with_one_other_base_is_looked_up_by_its_words(model, tmp_path):
    """Words of 24 within a window: 64 bases of the first window lie in some that train has, 51 of
    the second, whose base 1,100 differs, and none of the third, which has 18 bases of train."""
    other = {"A": "C", "C": "G", "G": "T", "T": "A"}[C4[1100]]
    fasta = write(tmp_path, {"c4": C4[:1100] + other + C4[1101:]})
    seen = score(model, fasta, "c4\t1024\t1280\ttest\n")
    assert (seen["in_train"], seen["other_bases"], seen["in_kmers"]) == (0, 251, 115)
    assert seen["note"] == (
        "the run was trained on genome.fa: it has none of these contigs, and 115 of 251 scored "
        "bases lie in 24-mers of its train split"
    )
    assert score(model, fasta, "c4\t1024\t1280\ttest\n") == seen
    mixed = write(tmp_path, {"c4": C4[:1100] + other + C4[1101:], "whole": C4}, "mixed.fa")
    seen = score(model, mixed, "c4\t1024\t1280\ttest\nwhole\t1024\t1280\ttest\n")
    assert seen["note"] == (
        "the run was trained on genome.fa: 146 of 502 scored bases were in its train split, and "
        "115 of 251 in contigs that it does not have lie in 24-mers of it"
    )


def test_the_own_splits_need_no_note_but_where_train_itself_is_scored(model):
    own = evaluate(model, baselines=False)["seen_in_training"]
    assert (own["in_train"], own["other_bases"], own["note"]) == (0, 0, "")
    train = evaluate(model, "train", baselines=False)
    assert train["seen_in_training"]["in_train"] == train["tokens"] > 0


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            {"path": "/x/mine", "config": {}},
            "published weights: their training data are not recorded",
        ),
        (None, "its run does not say on what data"),
    ],
)
def test_what_is_not_known_is_said(source, said, model, tmp_path):
    of_others = model._replace(data={} if source is None else {"source": source})
    fasta = write(tmp_path, {"c4": C4})
    seen = evaluate(of_others, "all", fasta=fasta, baselines=False)["seen_in_training"]
    assert seen == {
        "not_known": said,
        "note": f"it is not known what the run saw of it in training: {said}",
    }


def test_training_data_that_are_gone_are_not_known(model, tmp_path, monkeypatch):
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    gone = model.config.model_copy(update={"fasta": str(tmp_path / "gone.fa")})
    fasta = write(tmp_path, {"c4": C4})
    seen = evaluate(model._replace(config=gone), "all", fasta=fasta, baselines=False)
    assert "not on this machine" in seen["seen_in_training"]["not_known"]


def test_the_table_has_the_note_under_it(run, tmp_path, capsys):
    fasta = write(tmp_path, {"chrIV": C4})
    bed = tmp_path / "scored.bed"
    bed.write_text("chrIV\t1024\t1280\ttest\n")
    words = ("eval", run, "--fasta", fasta, "--bed", bed, "--no-baselines", "--threads", 1)
    out = succeed(capsys, *words)
    assert SEEN in " ".join(out.split())


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


@pytest.mark.parametrize("upper", [False, True])
def test_the_share_is_that_of_the_bases_of_the_train_windows(tmp_path, upper):
    fasta = tmp_path / "genome.fa"
    fasta.write_text(genome_text().upper() if upper else genome_text())
    data = {"seq_len": 100, "soft_mask_weight": 0.3}
    feed = open_feed(resolve_config({"recipe": "own", "fasta": str(fasta), "data": data}))
    found = measure_soft_mask(feed)
    rows = zip(feed.train.flat_start, feed.train.length, strict=True)
    ids = np.concatenate([feed.store.flat[start : start + n] for start, n in rows])
    ids = ids[np.isin(ids & ~np.uint8(SOFT), DNA.targets)]
    assert found == {
        "soft_mask_weight": 0.3,
        "soft_masked_share": pytest.approx((ids >= SOFT).mean(), abs=1e-4),
    }
    assert (found["soft_masked_share"] == 0) == upper
    said = describe_soft_mask(found)
    assert ("no soft-masked bases" in said) == upper
    assert upper or "weighs 0.3 in training" in said


def test_text_has_nothing_to_say():
    assert describe_soft_mask({}) == ""
