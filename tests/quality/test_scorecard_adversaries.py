"""Sets that would fool a scorecard: each is shown up by the figure that is meant to.

The world has what real sequence has: a motif in each window, coding stretches, and no copies.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from genodiff.alphabet import DNA
from genodiff.io.motifs import read_motifs
from genodiff.quality.match_index import TrainText
from genodiff.quality.measured_scorecard import read_ids
from genodiff.quality.real_sequence import TrainSplit, draw_some, open_real
from genodiff.quality.sample_quality import Measures, compare_motifs, measure_sets
from genodiff.quality.scorecard import kmer_counts
from genodiff.quality.scorecard_figures import list_sample_findings

N, LENGTH = 60, 96
MOTIF = "TGACTCACGT"
Windows = list[np.ndarray]


def draw_windows(seed: int, n: int = N) -> Windows:
    """Windows of A+T-rich sequence, stranded: each has the motif, and more A than T."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        letters = rng.choice(list("ACGT"), LENGTH, p=[0.38, 0.2, 0.18, 0.24])
        at = rng.integers(LENGTH - len(MOTIF))
        letters[at : at + len(MOTIF)] = list(MOTIF)
        found.append(DNA.encode("".join(letters)))
    return found


def change_bases(windows: Sequence[np.ndarray], share: float) -> Windows:
    """Copies with this share of bases drawn anew."""
    rng, found = np.random.default_rng(5), [window.copy() for window in windows]
    for copy in found:
        places = rng.choice(LENGTH, int(share * LENGTH), replace=False)
        copy[places] = rng.choice(list(DNA.targets), len(places))
    return found


def shuffle_dinucleotides(ids: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A shuffle with the same dinucleotides: a random Eulerian path (Altschul & Erickson 1985)."""
    letters = ids.tolist()
    last = letters[-1]
    after: dict[int, list[int]] = {}
    for one, other in pairwise(letters):
        after.setdefault(one, []).append(other)
    final: dict[int, int] = {}
    while not final or not all(_leads_to(one, last, final) for one in final):
        final = {one: rng.choice(others) for one, others in after.items() if one != last}
    for one, others in after.items():
        kept = [final[one]] if one != last else []
        for end in kept:
            others.remove(end)
        rng.shuffle(others)
        others += kept
    path = [letters[0]]
    while after.get(path[-1]):
        path.append(after[path[-1]].pop(0))
    return np.array(path, np.uint8)


def _leads_to(one: int, last: int, final: dict[int, int]) -> bool:
    for _ in range(len(final) + 1):
        if one == last:
            return True
        one = int(final[one])
    return False


@pytest.fixture(scope="module")
def train():
    return draw_windows(1, 300)


@pytest.fixture(scope="module")
def real(train):
    return open_real(draw_windows(2, 2 * N), N, TrainSplit(TrainText(lambda: train)))


@pytest.fixture(scope="module")
def how(tmp_path_factory):
    """Two motifs that stand in real sequence more or less often, and eight that are noise."""
    rng = np.random.default_rng(3)
    words = [MOTIF, MOTIF[:8], *("".join(rng.choice(list("ACGT"), 7)) for _ in range(8))]
    file = tmp_path_factory.mktemp("motifs") / "m.jaspar"
    lines = []
    for i, word in enumerate(words):
        rows = [f"{b} [ {' '.join('9' if c == b else '0' for c in word)} ]" for b in "ACGT"]
        lines += [f">M{i} word{i}", *rows]
    file.write_text("\n".join(lines) + "\n")
    return Measures(motifs=read_motifs(file), embed=embed_by_words)


def embed_by_words(sequences: Sequence[np.ndarray]) -> np.ndarray:
    """A stand-in for a network: words of two bases, strands told apart."""
    return np.stack([kmer_counts([ids], 2, both_strands=False) for ids in sequences])


@pytest.fixture(scope="module")
def judge(real, how):
    """The findings of a set, and its figures."""
    floor = measure_sets({"real": real.floor}, real, how)

    def find(sequences: Windows) -> tuple[set[str], dict[str, Any]]:
        found = measure_sets({"samples": sequences}, real, how) | floor
        return {one["figure"] for one in list_sample_findings(found)}, found

    return find


def test_other_real_sequence_has_no_finding(judge):
    assert judge(draw_windows(7))[0] == set()


def test_copies_are_found_on_either_strand(judge, train):
    for copies in (train[:N], list(map(DNA.rc, train[:N]))):
        assert {"match of 20 bases", "near copies, train"} <= judge(copies)[0]
    half = draw_windows(13, N // 2)
    assert {"duplicates", "near copies, set"} <= judge([*half, *map(DNA.rc, half)])[0]


def test_copies_with_changes_have_short_matches_and_are_found(judge, train):
    found = judge(change_bases(train[:N], 0.2))[0]
    assert "near copies, train" in found
    assert "duplicates" not in found


def test_a_dinucleotide_shuffle_keeps_words_of_two_and_loses_motifs(judge, real, how):
    rng = np.random.default_rng(9)
    windows = draw_windows(11)
    shuffled = [shuffle_dinucleotides(ids, rng) for ids in windows]
    for one, other in zip(windows, shuffled, strict=True):
        pair = [kmer_counts([ids], 2, both_strands=False) for ids in (one, other)]
        assert np.array_equal(*pair)
    found, _ = judge(shuffled)
    assert {"6-mers", "AUROC, kmers"} <= found
    assert "Frechet distance" not in found  # this embedding sees words of two alone
    first = compare_motifs(shuffled, real.target, how.motifs)[0]
    assert first["name"] in ("word0", "word1")
    assert first["log2_ratio"] + 1.96 * first["se"] < -1


def test_a_collapsed_set_is_found_though_each_of_its_sequences_is_real(judge):
    modes = draw_windows(12, 4)
    near = change_bases(modes * (N // 4), 0.08)
    found, measured = judge(near)
    assert "near copies, set" in found
    assert "duplicates" not in found
    assert measured["samples"]["effective"] < 0.6 * measured["real"]["effective"]


def test_the_wrong_strand_is_told_by_the_discriminator_and_the_embedding(judge):
    assert judge(list(map(DNA.rc, draw_windows(14))))[0] == {"AUROC, kmers", "Frechet distance"}


def test_copies_anywhere_in_the_file_are_seen(real, train):
    """A file whose first sequences are good: what is measured is spread over all of it."""
    fresh = draw_windows(15, 3 * N)
    measured = measure_sets({"samples": [*fresh, *train[: 3 * N]]}, real)["samples"]
    assert measured["match"]["long"] == pytest.approx(0.5, abs=0.05)


def test_a_text_in_pieces_gives_what_it_gives_whole(train):
    whole = np.concatenate(train)
    samples = [whole[500:700], DNA.rc(whole[9_990:10_100]), *draw_windows(16, 3)]
    one = TrainText(lambda: [whole]).search([samples[:2], samples[2:]])
    many = TrainText(lambda: [whole], piece=5_000).search([samples[:2], samples[2:]])
    assert one[0].longest.tolist() == [200, 110]
    for a, b in zip(one, many, strict=True):
        assert a.longest.tolist() == b.longest.tolist()
    assert one[0].identity.tolist() == many[0].identity.tolist() == [1, 1]


def test_fasta_is_read_once_and_never_held_whole(tmp_path):
    file = tmp_path / "many.fa"
    file.write_text("".join(f">s{i}\nACGTACGT\n" for i in range(500)))
    reader = read_ids(file)
    drawn, total = draw_some(reader, 5, 1)
    assert (len(drawn), total) == (5, 500)
    assert next(reader, None) is None
