"""A frame in the place of a list of sequences changes no result, in any function of the door."""

from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import genodiff
from genodiff.errors import UsageError

S = ["ACGTNN", "GGGCCC", "TTTTAA"]
KNOWN = [one.replace("N", "A") for one in S]
FRAME = pl.DataFrame({"id": ["a", "b", "c"], "dna": S, "label": [0, 1, 0]})
COLUMNS = {"sequence": KNOWN}
VERBS = "sample embed ism dependencies tracks redesign predict score"


@pytest.fixture(scope="module")
def model(run):
    return genodiff.load(run, device="cpu")


CALLS: dict[str, Callable[[genodiff.Model, Any], Any]] = {
    "embed": lambda m, held: m.embed(held).tolist(),
    "bits": lambda m, held: m.bits(held),
    "predict": lambda m, held: [one.tolist() for one in m.predict(held)],
    "infill": lambda m, held: m.infill(held, steps=2),
    "encode": lambda m, held: m.encode(held)[0].tolist(),
    "ism": lambda m, held: [np.nan_to_num(one).tolist() for one in m.ism(held)],
    "tracks": lambda m, held: [np.nan_to_num(one.p).tolist() for one in m.tracks(held)],
    "dependencies": lambda m, held: [
        np.nan_to_num(one.dependency).tolist() for one in m.dependencies(held)
    ],
    "redesign": lambda m, held: m.redesign(held, 2, steps=2),
}


@pytest.mark.few(5)
@pytest.mark.parametrize("name", CALLS)
def test_frames_and_columns_give_what_the_list_gives(name, model):
    call = CALLS[name]
    if name != "redesign":  # its draws depend on the names
        assert call(model, FRAME) == call(model, S)
    if name in ("encode", "redesign", "infill"):
        assert call(model, FRAME) == call(model, FRAME.lazy()) == call(model, FRAME.to_dicts())
        assert call(model, COLUMNS) == call(model, np.array(KNOWN))


@pytest.mark.parametrize("name", CALLS)
def test_columns_among_which_nothing_decides_are_asked_for(name, model):
    with pytest.raises(UsageError, match=r"which column holds the sequences: a, b\?"):
        CALLS[name](model, {"a": S, "b": S})


def test_a_frame_goes_to_a_file_as_a_list_does(tmp_path, run):
    told = [
        genodiff.embed(run, held, out=tmp_path / f"{i}.npz", device="cpu")
        for i, held in enumerate((S, FRAME))
    ]
    assert [one["windows"] for one in told] == [3, 3]
    arrays = [np.load(tmp_path / f"{i}.npz") for i in range(2)]
    assert arrays[1]["embeddings"].tolist() == arrays[0]["embeddings"].tolist()


def test_a_verb_of_a_model_has_its_name_as_a_method(model, run):
    for verb in VERBS.split():
        assert callable(getattr(genodiff, verb))
        assert callable(getattr(model, verb))
    fasta = run.parent / "genome.fa"
    base = fasta.read_text().split("\n")[1][899].upper()
    rows = [("c1", 900, base, "ACGT"[base == "A"])]
    assert model.score(rows, fasta=fasta).equals(model.score_variants(rows, fasta=fasta))


def test_variants_in_memory_are_no_file_of_variants(tmp_path, run):
    frame = pl.DataFrame({"chrom": ["c1"], "pos": [900], "ref": ["A"], "alt": ["C"]})
    with pytest.raises(UsageError, match=r"a DataFrame is no file.*score_variants"):
        genodiff.score(run, frame, fasta=run.parent / "genome.fa", out=tmp_path / "x.tsv")  # type: ignore[arg-type]
