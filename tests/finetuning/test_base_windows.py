"""Windows: each labelled base is scored once, at its place, on either strand, at every edge."""

import numpy as np
import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.annotation.base_labels import read_class_labels, read_value_labels
from genodiff.annotation.gene_grammar import UNKNOWN
from genodiff.errors import DataError
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_lesson import score_cores
from genodiff.finetuning.base_windows import BaseWindows
from genodiff.io.faidx import Genome
from tests.finetuning.motif_task import draw_letters, write_genome
from tests.tiny_networks import network

CONTIGS = {"chr1": 157, "chr2": 31, "chr3": 20}
MIRROR = {"A": "T", "C": "G", "G": "C", "T": "A", "N": "N"}
INTERVALS = [("chr1", 0, 90), ("chr1", 101, 157), ("chr2", 0, 31), ("chr3", 0, 20)]


@pytest.fixture
def genome(tmp_path):
    letters = draw_letters(CONTIGS)
    letters["chr1"] = letters["chr1"][:40] + "N" * 7 + letters["chr1"][47:]
    write_genome(tmp_path, letters)
    with Genome(tmp_path / "g.fa") as found:
        yield found


@pytest.fixture
def labels(tmp_path, genome):
    """Every A of chr1 and chr2 is `a+`, every T `a-`: what a window shows can be checked by it."""
    rows = (tmp_path / "a.bed").read_text().splitlines(keepends=True)
    (tmp_path / "a.bed").write_text("".join(row for row in rows if row[:4] != "chr3"))
    return read_class_labels(tmp_path / "a.bed", CONTIGS, stranded=True).mask_unread(genome)


@pytest.mark.parametrize(("core", "context"), [(16, 8), (16, 0), (200, 5), (1, 3), (31, 40)])
@pytest.mark.parametrize("turn", [False, True])
def test_each_labelled_base_is_in_one_core_beside_its_own_letter(
    genome, labels, core, context, turn
):
    windows = BaseWindows(genome, labels, INTERVALS, core=core, context=context)
    numbers = np.arange(len(windows))
    ids, found = windows.collate(numbers, np.full(len(windows), turn))
    assert ids.shape == found.shape == (len(windows), core + 2 * context)
    known = found != UNKNOWN
    letters = np.array(list("".join(DNA.decode(row) for row in ids))).reshape(ids.shape)
    for letter, name in (("A", "a+"), ("T", "a-"), ("C", "none"), ("G", "none")):
        assert {labels.names[i] for i in found[known & (letters == letter)]} == {name}
    assert not (known & (letters == "N")).any()
    # chr3 has no label, seven bases are N: all others of the intervals, each once.
    assert known.sum() == 90 + 56 + 31 - 7
    places = {(c, at) for c, a, b in windows.cores for at in range(a, b)}
    assert len(places) == sum(b - a for _, a, b in windows.cores)
    if context:
        assert not known[:, :context].any()
        assert not known[:, -context:].any()


def test_a_window_is_the_genome_around_its_core_and_n_beyond_the_ends(genome, labels):
    windows = BaseWindows(genome, labels, INTERVALS, core=20, context=12)
    ids, _ = windows.collate(np.arange(len(windows)))
    other, _ = windows.collate(np.arange(len(windows)), np.ones(len(windows), bool))
    for row, (contig, start, _) in enumerate(windows.cores):
        whole = "N" * 40 + genome.fetch(contig, 0, CONTIGS[contig]).decode() + "N" * 40
        wanted = whole[start + 40 - 12 : start + 40 + 32]
        assert DNA.decode(ids[row]) == wanted
        assert DNA.decode(other[row]) == "".join(MIRROR[c] for c in reversed(wanted))


class Echo(BaseLabeller):
    """A network whose scores are the letters themselves, in passes of five windows."""

    def split(self, lengths: np.ndarray) -> list[slice]:
        return [slice(i, i + 5) for i in range(0, len(lengths), 5)]

    def predict(self, x0: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        return x0[:, :, None]


def test_the_scores_of_cores_stand_at_their_bases(genome, labels):
    """The letters themselves as scores: put together they are the intervals' letters."""
    windows = BaseWindows(genome, labels, INTERVALS, core=13, context=4)
    found = {name: np.full(n, -1) for name, n in CONTIGS.items()}
    for (contig, start, end), some in score_cores(Echo(network(), [0], complement=None), windows):
        assert (found[contig][start:end] == -1).all()
        found[contig][start:end] = some[:, 0]
    for contig, start, end in INTERVALS[:3]:
        letters = genome.fetch(contig, start, end)
        assert (found[contig][start:end] == DNA.encode(letters)).all()
    assert (found["chr1"][90:101] == -1).all()


def test_values_of_windows_are_turned_with_their_strands(tmp_path, genome):
    for name, at in (("fwd", 3), ("rev", 20)):
        (tmp_path / name).write_text(f"chr2\t{at}\t{at + 1}\t{at}\n")
    labels = read_value_labels({"x+": tmp_path / "fwd", "x-": tmp_path / "rev"}, CONTIGS)
    windows = BaseWindows(genome, labels, [("chr2", 0, 31)], core=31, context=2)
    for turn in (False, True):
        found = windows.collate(np.array([0]), np.array([turn])).labels[0]
        known = {(i, j): found[i, j] for i, j in np.argwhere(np.isfinite(found)).tolist()}
        wanted = {(5, 0): 3, (22, 1): 20}
        assert known == ({(34 - i, 1 - j): v for (i, j), v in wanted.items()} if turn else wanted)


def test_intervals_without_a_label_are_one_line(genome, labels):
    with pytest.raises(DataError, match="no base of the intervals has a label") as caught:
        BaseWindows(genome, labels, [("chr3", 0, 20)], core=8, context=2)
    assert "\n" not in str(caught.value)
