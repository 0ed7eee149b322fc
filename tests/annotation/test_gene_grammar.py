"""Genes as paths of states: what is written is read back on both strands, and no other path is.

Genes whose codons are read are compared with all paths, on both strands, and with plain scores.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.annotation.codon_states import STARTS, STOPS, CodonScores, find_codon_path
from genodiff.annotation.gene_grammar import (
    BETWEEN,
    N_STATES,
    STATES,
    UNKNOWN,
    CodingGene,
    allow_steps,
    as_coding_genes,
    label_genes,
    list_genes,
    mirror_states,
)
from genodiff.annotation.state_chain import FORBIDDEN, find_long_path
from genodiff.io.transcript_model import GenePart, Transcript


def spell(path: np.ndarray) -> str:
    return " ".join(STATES[s] for s in path)


def test_a_gene_with_an_intron_is_spelled_on_both_strands():
    parts = ((1, 3), (5, 9))  # two bases, an intron of two, four bases
    path, left_out = label_genes([CodingGene(1, parts)], 10)
    assert not left_out
    assert spell(path) == (
        "between exon0+ exon1+ intron1+ intron1+ exon2+ exon0+ exon1+ exon2+ between"
    )
    path, _ = label_genes([CodingGene(-1, parts)], 10)
    assert spell(path) == (
        "between exon2- exon1- intron0- intron0- exon0- exon2- exon1- exon0- between"
    )


@st.composite
def contigs(draw: st.DrawFn) -> tuple[list[CodingGene], int]:
    """Genes with a base between them, of whole codons."""
    genes, at = [], 0
    for _ in range(draw(st.integers(0, 3))):
        at += draw(st.integers(1, 4))
        sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
        sizes[-1] += -sum(sizes) % 3
        parts = []
        for size in sizes:
            parts.append((at, at + size))
            at += size + draw(st.integers(1, 4))
        at = parts[-1][1]
        genes.append(CodingGene(draw(st.sampled_from([1, -1])), tuple(parts)))
    return genes, at + draw(st.integers(1, 3))


@given(contigs())
@settings(max_examples=80, deadline=None)
def test_what_is_written_is_allowed_and_read_back_on_either_strand(case):
    genes, length = case
    path, left_out = label_genes(genes, length)
    assert not left_out
    assert allow_steps()[path[:-1], path[1:]].all()
    assert list_genes(path) == genes
    # The contig's reverse complement has the genes' mirror images, and the mirrored path.
    turned = [
        CodingGene(-g.strand, tuple((length - b, length - a) for a, b in reversed(g.parts)))
        for g in reversed(genes)
    ]
    other, _ = label_genes(turned, length)
    assert (other == np.array(mirror_states())[path[::-1]]).all()


def test_steps_are_those_of_the_mirrored_contig():
    steps, other = allow_steps(), np.array(mirror_states())
    assert (steps == steps.T[np.ix_(other, other)]).all()
    assert min(steps.sum(0).min(), steps.sum(1).min()) >= 1  # no state without a way
    assert len(STATES) == N_STATES == len(set(STATES))


def test_what_has_no_path_is_left_out_and_its_bases_are_unknown():
    whole = CodingGene(1, ((3, 9),))
    for other in (
        CodingGene(1, ((12, 16),)),  # no whole codons
        CodingGene(-1, ((6, 12),)),  # overlaps
        CodingGene(-1, ((9, 12),)),  # touches
        CodingGene(1, ((15, 24),)),  # beyond the contig
    ):
        path, left_out = label_genes([whole, other], 20)
        assert left_out == 1
        assert list_genes(np.where(path == UNKNOWN, BETWEEN, path)) == [whole]
        first, last = max(other.parts[0][0], 9), min(other.parts[0][1], 20)
        assert (path[first:last] == UNKNOWN).all()


def test_genes_that_an_end_cuts_off_are_not_listed():
    path, _ = label_genes([CodingGene(1, ((2, 8),)), CodingGene(-1, ((10, 16),))], 18)
    assert len(list_genes(path)) == 2
    assert list_genes(path[3:])[0].strand == -1
    assert len(list_genes(path[3:])) == 1
    assert len(list_genes(path[:15])) == 1


def test_the_longest_coding_sequence_of_each_gene_is_taken():
    def make(name: str, *coding: tuple[int, int], strand: int = -1) -> Transcript:
        pieces = tuple(GenePart(a, b, strand) for a, b in coding)
        return Transcript("chr", 0, 50, strand, "G", name, pieces, pieces)

    short, long = make("a", (20, 26)), make("b", (20, 26), (3, 9))
    none = make("c", strand=0)
    found = as_coding_genes([short, long, none, Transcript("chr", 0, 9, 1, "R", "r")])
    assert found == {"chr": ([CodingGene(-1, ((3, 9), (20, 26)))], [])}
    cut = [short._replace(skip=1, gene="H"), long._replace(ends=False)]
    found = as_coding_genes([short, *cut])
    assert found == {"chr": ([CodingGene(-1, ((20, 26),))], [(0, 50), (0, 50)])}


def test_a_partial_gene_is_unknown_and_not_between():
    whole = CodingGene(1, ((3, 9),))
    path, left_out = label_genes([whole], 20, [(6, 12), (17, 25), (-4, 1)])
    assert left_out == 0
    assert np.flatnonzero(path == UNKNOWN).tolist() == [0, 9, 10, 11, 17, 18, 19]
    assert list_genes(np.where(path == UNKNOWN, BETWEEN, path)) == [whole]


def test_lengths_of_one_and_none():
    assert label_genes([], 1)[0].tolist() == [BETWEEN]
    assert list_genes(np.zeros(0, np.int8)) == []
    with pytest.raises(IndexError):
        label_genes([CodingGene(1, ())], 3)


TURN = bytes.maketrans(b"ACGT", b"TGCA")
STEPS = np.where(allow_steps(), 0.0, FORBIDDEN).astype(np.float32)


def turn(letters: bytes) -> bytes:
    return letters.translate(TURN)[::-1]


@cache
def list_paths(length: int) -> list[tuple[int, ...]]:
    allowed = allow_steps()
    paths = [(s,) for s in range(N_STATES)]
    for _ in range(length - 1):
        paths = [(*p, s) for p in paths for s in range(N_STATES) if allowed[p[-1], s]]
    return paths


def has_codons(path: tuple[int, ...], letters: bytes) -> bool:
    """Whether the genes of a path begin with ATG, end with a stop codon, and have none before."""
    inside = [0, *(int(s > 0) for s in path), 0]
    edges = [i for i, (a, b) in enumerate(pairwise(inside)) if a != b]
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        states, text = path[first:last], letters[first:last]
        begins, ends = first > 0, last < len(path)
        if states[0] > 6 or states[-1] > 6:
            states, text = tuple(s - 6 for s in states[::-1]), turn(text)
            begins, ends = ends, begins
        codons = [text[i : i + 3] for i in range(len(text) - 2) if states[i : i + 3] == (1, 2, 3)]
        if begins and not (states[:3] == (1, 2, 3) and text[:3] in STARTS):
            return False
        if ends and not (states[-3:] == (1, 2, 3) and text[-3:] in STOPS):
            return False
        whole_end = states[-3:] == (1, 2, 3)
        if any(one in STOPS for one in (codons[:-1] if whole_end else codons)):
            return False
        if begins and ends and len(states) < 6:
            return False
    return True


@pytest.mark.few(2)
@pytest.mark.parametrize("seed", range(4))
def test_the_path_is_the_best_of_all_that_have_their_codons(seed):
    draw = np.random.default_rng(seed)
    parts = [b"C", b"ATG", b"TAA", b"A", b"CAT", b"TTA", b"TGA"]
    letters = b"".join(draw.permutation(parts).tolist())[:8]
    scores = draw.normal(size=(8, N_STATES)).astype(np.float32)
    steps = np.where(allow_steps(), draw.normal(size=STEPS.shape), FORBIDDEN).astype(np.float32)

    def weigh(path: tuple[int, ...]) -> float:
        own = sum(scores[i, s] for i, s in enumerate(path))
        return float(own + sum(steps[a, b] for a, b in pairwise(path)))

    some = [path for path in list_paths(8) if has_codons(path, letters)]
    assert 10 < len(some) < len(list_paths(8))
    assert tuple(find_codon_path(scores, steps, letters).tolist()) == max(some, key=weigh)


@pytest.mark.slow
def test_every_gene_has_its_codons_on_both_strands_and_the_other_strand_says_the_same():
    draw = np.random.default_rng(3)
    chances = [0.12] * 8 + [0.04]
    letters = b"".join(draw.choice([*map(str.encode, "ACGTacgtN")], 6_000, p=chances).tolist())
    scores = draw.normal(size=(len(letters), N_STATES)).astype(np.float16)
    scores[:, 0] += np.where(np.arange(len(letters)) // 100 % 2, 3, -3)
    genes = list_genes(find_codon_path(scores, STEPS, letters))
    strands = {gene.strand for gene in genes}
    assert (len(genes) > 20, strands) == (True, {1, -1})
    assert any(len(gene.parts) > 1 for gene in genes)
    for gene in genes:
        text = b"".join(letters[a:b] for a, b in gene.parts).upper()
        text = text if gene.strand > 0 else turn(text)
        assert (len(text) % 3, text[:3] in STARTS, text[-3:] in STOPS) == (0, True, True)
        whole = len(gene.parts) == 1
        assert not (whole and {text[i : i + 3] for i in range(0, len(text) - 3, 3)} & {*STOPS})
    mirror = np.array(mirror_states())
    turned = np.ascontiguousarray(scores[::-1][:, mirror])
    other = find_codon_path(turned, STEPS, turn(letters.upper()))
    assert (mirror[other[::-1]] == find_codon_path(scores, STEPS, letters)).all()


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_short_contigs_have_a_path(length):
    scores = np.zeros((length, N_STATES), np.float32)
    assert len(find_codon_path(scores, STEPS, b"ATGTAA"[:length])) == length


def test_where_letters_allow_everything_that_is_best_the_path_is_the_plain_one():
    letters = b"CC" + b"ATG" + b"CCC" * 9 + b"TAA" + b"CC"
    path = np.array([0, 0, *[1, 2, 3] * 11, 0, 0])
    scores = np.full((len(letters), N_STATES), -3.0, np.float32)
    scores[np.arange(len(path)), path] = 0.0
    free = np.zeros(N_STATES, np.float32)
    assert (find_codon_path(scores, STEPS, letters) == path).all()
    assert (find_long_path(scores, STEPS, free, free) == path).all()
    assert CodonScores(scores, letters)[np.arange(len(path))].shape == (len(path), 25)
