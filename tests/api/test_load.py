"""`genodiff.load`: runs, checkpoints, published folders and text, and nothing left behind; and with
`memory`: what every method takes where it is given none.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from tiny_run import genome_text

import genodiff
from genodiff.errors import CheckpointError, GenodiffError, UsageError
from genodiff.runs import training_memory
from tests.commands import exit_code
from tests.hub.published_folders import DIT, make_mdlm, sample_ids, write_mdlm, write_published
from tests.texts import SONG


def listing(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


@pytest.mark.parametrize("paired", [True, False])
def test_a_published_caduceus_is_read_as_it_stands_and_as_its_import(tmp_path, paired):
    folder = tmp_path / "published"
    theirs = write_published(folder, rcps=paired)
    before = listing(tmp_path)
    ours = genodiff.load(folder, device="cpu")
    assert exit_code("sample", folder, "--fasta", "-", "-n", 1, "--length", 12) == 0
    assert listing(tmp_path) == before
    with torch.no_grad():
        torch.testing.assert_close(ours.network(sample_ids()), theirs(sample_ids()), rtol=0, atol=0)
    assert exit_code("checkpoint", "import", folder, "--out", tmp_path / "run", "-q") == 0
    imported = genodiff.load(tmp_path / "run", device="cpu")
    assert imported.digest == ours.digest
    assert imported.config == ours.config
    assert imported.sample(2, length=30, steps=4) == ours.sample(2, length=30, steps=4)
    np.testing.assert_array_equal(imported.embed("ACGTTNA"), ours.embed("ACGTTNA"))
    assert ours.bits("ACGTTNA" * 20).value == imported.bits("ACGTTNA" * 20).value
    with pytest.raises(GenodiffError):
        ours.bits()  # no data of its own


def test_a_published_network_of_mdlm_is_read_as_it_stands(tmp_path):
    theirs = make_mdlm(DIT)
    folder = write_mdlm(tmp_path / "published", theirs)
    before = listing(tmp_path)
    ours = genodiff.load(folder)
    assert listing(tmp_path) == before
    ids, sigma = sample_ids(), torch.tensor([0.1, 0.5, 2.0])
    with torch.no_grad():
        found, expected = ours.network(ids, sigma=sigma), theirs(ids, sigma)
    torch.testing.assert_close(found[..., :12], expected[..., :12], rtol=0, atol=1e-5)
    assert len(ours.sample(1, length=20, steps=3)[0]) == 20


def test_what_is_no_model_is_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    for path, said in (("nowhere", "not found"), ("empty", "not found"), ("file", "is a file")):
        with pytest.raises(CheckpointError, match=said):
            genodiff.load(tmp_path / path)


def test_a_model_of_text_samples_fills_and_is_scored(text_run, tmp_path):
    model = genodiff.load(text_run)
    out = tmp_path / "out.txt"
    words = ["sample", "--domain", "text", "--checkpoint", text_run, "--out", out, "--n", 2]
    assert exit_code(*words, "--prompt", "The mill", "-q", "--threads", 1) == 0
    texts = model.sample(2, prompt="The mill")
    assert out.read_text() == "\n<|endoftext|>\n".join(texts) + "\n"
    filled = model.infill("The mill [[4]] idle")
    assert filled.startswith("The mill ")
    assert filled.endswith(" idle")
    assert model.infill(["a [[2]] b", "The mill [[4]] idle"], seed=3)[0][:2] == "a "
    found = model.bits()
    assert found.ci95[0] < found.value < found.ci95[1]
    ids, lengths = model.encode([SONG[:9], "abc"])
    assert ids.shape == (2, 9)
    assert lengths.tolist() == [9, 3]
    assert model.network(ids, lengths).shape == (2, 9, model.network.vocab_size)


def test_what_text_has_not_is_one_line(text_run):
    model = genodiff.load(text_run)
    for ask in (model.predict, model.embed, model.bits):
        with pytest.raises(UsageError, match=r"model is of text"):
            ask("ACGT")
    with pytest.raises(GenodiffError, match="no gap to fill"):
        model.infill("nothing is missing")


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
