"""Genes whose codons are read: against all paths, on both strands, and against plain scores."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from genodiff.annotation.codon_states import STARTS, STOPS, CodonScores, find_codon_path
from genodiff.annotation.gene_grammar import N_STATES, allow_steps, list_genes, mirror_states
from genodiff.annotation.state_chain import FORBIDDEN, find_long_path

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
