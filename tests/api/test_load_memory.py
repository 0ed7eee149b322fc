"""`genodiff.load(run, memory=...)`: what every method takes where it is given none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tiny_run import genome_text

import genodiff
from genodiff.errors import UsageError
from genodiff.runs import training_memory

COPY = "c1:5741-5744"  # test, and the same bases as from 1,031 on, which is train


def read_contig(number: int) -> str:
    return genome_text().split(">")[number].split("\n")[1]


def draw_score(m: genodiff.Model, fasta: Path, **more: Any) -> Any:
    base = read_contig(1)[5745].upper()
    rows = [("c1", 5746, base, x) for x in "ACGT" if x != base]
    found = m.score_variants(rows, fasta=fasta, **more)
    assert isinstance(found, pl.DataFrame)
    return found["score"].to_list()


def read_dependencies(m: genodiff.Model, fasta: Path, **more: Any) -> Any:
    return m.dependencies(fasta, region=[COPY], **more)[0].dependency.tolist()


GAPPED = read_contig(1)[1016:1030] + "NNNNNNNN" + read_contig(1)[1038:1078]
WHOLE = {"regions": [(14, 22)], "steps": 8}
CALLS: dict[str, Callable[..., Any]] = {
    "score": draw_score,
    "ism": lambda m, fasta, **more: m.ism(fasta, region=[COPY], **more)[0].tolist(),
    "tracks": lambda m, fasta, **more: m.tracks(fasta, region=[COPY], **more)[0].p.tolist(),
    "dependencies": read_dependencies,
    "sample": lambda m, fasta, **more: m.sample(4, steps=8, **more),
    "infill": lambda m, fasta, **more: m.infill(GAPPED, steps=8, **more),
    "redesign": lambda m, fasta, **more: m.redesign(read_contig(1)[1016:1078], **WHOLE, **more),
    "bits": lambda m, fasta, **more: m.bits(max_windows=32, **more).value,
    "bits of sequences": lambda m, fasta, **more: m.bits(read_contig(1)[5700:5828], **more).value,
}


@pytest.mark.few(4)
@pytest.mark.parametrize("name", CALLS)
def test_a_model_that_was_loaded_with_a_memory_takes_it_everywhere(run, name):
    fasta, call = run.parent / "genome.fa", CALLS[name]
    plain = genodiff.load(run, device="cpu")
    with_it = genodiff.load(run, device="cpu", memory="on")
    assert (plain.memory, with_it.memory) == (None, "on")
    kept, alone = call(with_it, fasta), call(plain, fasta)
    assert kept == call(plain, fasta, memory="on")
    assert alone == call(with_it, fasta, memory="off")
    assert kept != alone


def test_ten_lines_of_python_judge_a_variant_by_its_copy(run):
    fasta = run.parent / "genome.fa"
    m = genodiff.load(run, device="cpu", memory="on")
    assert max(draw_score(m, fasta)) < -4 < max(draw_score(genodiff.load(run), fasta))
    told = genodiff.evaluate(run, memory="on", baselines=False, device="cpu", keep=False)
    assert m.bits().value == told["bits_per_base"]


def test_sequences_of_the_training_genome_do_not_find_themselves(run):
    """A whole contig is known, also where two have the same name; a piece of it is not."""
    m = genodiff.load(run, device="cpu")
    letters = read_contig(2).lower()
    for given in ({"one": letters}, [letters, letters]):
        alone, kept = (m.bits(given, memory=x).value for x in ("off", "on"))
        assert abs(kept - alone) < 0.02
    piece = letters[800:2848]
    assert m.bits(piece, memory="on").value < m.bits(piece, memory="off").value - 0.5


def test_what_cannot_be_is_refused_when_it_is_loaded(run, monkeypatch):
    with pytest.raises(UsageError, match="no memory 'novel'"):
        genodiff.load(run, memory="novel")  # type: ignore[arg-type]
    monkeypatch.setattr(training_memory, "MOST_WINDOW", 63)
    with pytest.raises(UsageError, match="windows of at most 63 bases, not 64"):
        genodiff.load(run, memory="on")
    assert genodiff.load(run).memory is None
    assert np.isfinite(genodiff.load(run, memory="off").bits(read_contig(4)).value)
