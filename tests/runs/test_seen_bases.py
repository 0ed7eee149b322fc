"""What a model was trained on of the bases that are scored, told by the bases and not by the file.

The run's genome has four contigs, each split by its ends: of c4, 1,300 bases, the first 1,170
train. Scored are its bases 1,024 to 1,280, four windows of 64, of which five are N: 251, and 146 of
train.
"""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from genodiff.data.dna_store import build_dna_store
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.genomes.store import open_genomes
from genodiff.data.recipe import make_user_recipe
from genodiff.data.store import find_intervals
from genodiff.evaluation.evaluate import evaluate
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.trained_on import TrainedOn, TrainPart, measure_seen_bases
from tests.commands import command
from tests.data.many_genomes import write_list
from tests.tiny_run import genome_text

SEEN = "the run was trained on genome.fa: 146 of 251 scored bases were in its train split"
TURN = str.maketrans("ACGTacgt", "TGCAtgca")


def read_contigs() -> dict[str, str]:
    records = genome_text().split(">")[1:]
    return {name: text.strip() for name, text in (record.split("\n", 1) for record in records)}


def write(folder: Path, contigs: dict[str, str], name: str = "scored.fa") -> str:
    text = "".join(f">{name}\n{sequence}\n" for name, sequence in contigs.items())
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return str(path)


def score(model: TrainedModel, fasta: str | None, rows: str, **options: Any) -> dict[str, Any]:
    bed = Path(fasta or str(model.run / "x")).with_suffix(".bed")
    bed.write_text(rows)
    found = evaluate(model, fasta=fasta, bed=str(bed), baselines=False, **options)
    seen: dict[str, Any] = found["seen_in_training"]
    assert seen["bases"] == found["tokens"]
    return seen


C4 = read_contigs()["c4"]
COPIES: dict[str, Callable[[Path], tuple[str, str]]] = {
    "the file itself": lambda folder: (write(folder, read_contigs()), "c4"),
    "packed": lambda folder: (write(folder, read_contigs(), "scored.fa.gz"), "c4"),
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
    code, out, _ = command(capsys, *words)
    assert code == 0
    assert SEEN in " ".join(out.split())
