"""In a world of 4^8 sequences: the designs of each constraint follow its exact law."""

import numpy as np
import pytest
from scipy.stats import chisquare

from genodiff.constraints.bases import FitPattern, KeepBases, MaxEdits
from genodiff.constraints.coding import KeepProtein, NoStop
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import Constraint, DesignSpace
from genodiff.constraints.layers import compile_constraints
from genodiff.constraints.words import Avoid, AvoidSites, MaxRun, NoRepeats, Require
from genodiff.generate.constrained import draw_fast
from tests.constraints.enumerated_designs import enumerate_designs, weigh, weigh_codons

LETTERS = b"CTGAGTTC"
USAGE = weigh_codons(2)
KINDS: dict[str, Constraint] = {
    "avoid": Avoid(("GA", "CCT")),
    "require": Require(("TRC",)),
    "enzymes": AvoidSites(("TaqI", "MseI")),
    "run": MaxRun(2),
    "repeats": NoRepeats(3, ("ATGCC", "GGGTA")),
    "gc": GcContent(0.4, 0.6),
    "gc windows": GcContent(0.25, 0.75, window=4),
    "protein": KeepProtein(((0, 6),), keep_start=False),
    "protein on the other strand": KeepProtein(((1, 7),), strand=-1),
    "codons by their use": KeepProtein(((0, 6),), keep_start=False, usage=USAGE),
    "codons of the other strand": KeepProtein(((1, 7),), -1, usage=USAGE) & Avoid(("GAT",)),
    "no stop": NoStop(((0, 6),)),
    "kept bases": KeepBases((2, 5)),
    "pattern": FitPattern("RYNNSWKM"),
    "edits": MaxEdits(3),
    "several": Avoid(("GA",)) & Require(("ACR",)) & MaxRun(3) & GcContent(0.25, 0.75, 4),
}


def weigh_text(text: str, turned: bool) -> float:
    """The product of the weights of two codons, read with slices."""
    frame = text[1:7].translate(str.maketrans("ACGT", "TGCA"))[::-1] if turned else text[:6]
    of = dict(USAGE)
    return of[frame[:3]] * of[frame[3:]]


@pytest.mark.few(4)
@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_designs_follow_the_law_of_their_constraint(name):
    """Drawn in two steps; the second step has its own law, given what the first has drawn."""
    n, space = 5_000, DesignSpace(LETTERS, np.ones(8, bool), 0, 8)
    layers = compile_constraints(KINDS[name], space)
    assert layers is not None
    rng = np.random.default_rng(6)
    logp = rng.normal(0, 1, (8, 4))
    first = np.isin(np.arange(8), [1, 3, 4, 6])
    designs = enumerate_designs(KINDS[name], space)
    weights = weigh(designs, space, logp)
    if name.startswith("codons"):
        weights *= [weigh_text(text, name.endswith("strand")) for text in designs]
    law = dict(zip(designs, weights / weights.sum(), strict=True))
    seen = dict.fromkeys(designs, 0)
    for u in rng.random((n, 8)):
        given, text = logp, np.full(8, -1)
        for due in (first, ~first):
            drawn = draw_fast(layers, given, due, u, 0.0)
            text[due] = drawn.symbols
            fixed = np.where(np.arange(4) == text[:, None], 0, -np.inf)
            given = np.where(due[:, None], fixed, given)
        seen["".join("ACGT"[s] for s in text)] += 1  # a KeyError is a forbidden design
    expected = np.array([law[text] for text in designs]) * n
    bins = np.floor((expected.cumsum() - expected / 2) / 8).astype(int)
    bins = np.unique(bins, return_inverse=True)[1]
    observed = np.bincount(bins, [seen[text] for text in designs])
    wanted = np.bincount(bins, expected)
    assert len(wanted) > 3
    assert chisquare(observed, wanted * n / wanted.sum()).pvalue > 1e-3
