"""The problems of DnaChisel's tests, restated: each has a design, or is proved to have none."""

import numpy as np
import pytest

from genodiff.constraints.bases import KeepBases
from genodiff.constraints.chain import draw_bases
from genodiff.constraints.check import find_conflict, find_violations
from genodiff.constraints.coding import KeepProtein, NoStop
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import Constraint, DesignSpace
from genodiff.constraints.layers import compile_constraints
from genodiff.constraints.words import Avoid, AvoidSites, MaxRun
from genodiff.errors import UsageError

GFP = (
    "ATGGTGAGCAAGGGCGAGGAGCTGTTCACCGGGGTGGTGCCCATCCTGGTCGAGCTGGACGGCGACGTAAACGGCCACAAGTTCAGCGTGCGCGGC"
    "GAGGGCGAGGGCGATGCCACCAACGGCAAGCTGACCCTGAAGTTCATC"
)


def random_dna(length: int, seed: int = 123) -> str:
    return "".join(np.random.default_rng(seed).choice(list("ACGT"), length))


def random_coding(codons: int, seed: int = 123) -> str:
    """Codons that are no stops."""
    rng, found = np.random.default_rng(seed), ["ATG"]
    while len(found) < codons:
        codon = "".join(rng.choice(list("ACGT"), 3))
        if codon not in ("TAA", "TAG", "TGA"):
            found.append(codon)
    return "".join(found)


def turn(text: str) -> str:
    return text[::-1].translate(str.maketrans("ACGT", "TGCA"))


def redesign(rules: Constraint, before: str) -> str:
    """A design of a whole sequence that prefers what stands there."""
    space = DesignSpace(before.encode(), np.ones(len(before), bool), 0, len(before))
    layers = compile_constraints(rules, space)
    assert layers is not None
    logp = np.where(space.symbols[:, None] == np.arange(4), 0.0, -5.0)
    u = np.random.default_rng(1).random(len(before))
    drawn = draw_bases(layers, logp, np.ones(len(before), bool), u)
    after = "".join("ACGT"[s] for s in drawn.symbols)
    assert not find_violations(rules, after, before, 0, len(before))
    return after


SOLVED: dict[str, tuple[Constraint, str]] = {
    "AAA avoided, protein kept": (Avoid(("AAA",)) & KeepProtein(), random_coding(50)),
    "AGC avoided, protein on the other strand": (
        Avoid(("AGC",)) & KeepProtein(strand=-1), turn(random_coding(50)),
    ),
    "BsmBI in GFP": (AvoidSites(("BsmBI",)) & KeepProtein(), GFP),
    "BsmBI and BsaI in random DNA": (AvoidSites(("BsmBI", "BsaI")), random_dna(1000)),
    "CCCC on both strands": (Avoid(("CCCC",)), "AAAAAACCCC"),
    "CCCC on the other strand only": (Avoid(("GGGG",), both=False), "AAAAAACCCC"),
    "no stop codon": (NoStop(), "ATTTAGGCCTGAATCTAA"),
    "windows of GC beside BsaI": (
        AvoidSites(("BsaI",)) & GcContent(0.3, 0.7, window=50, step=25), random_dna(200),
    ),
    "runs": (MaxRun(5) & KeepProtein(), GFP),
    "a table of bacteria": (KeepProtein(table=11), "GTG" + random_coding(14)[3:]),
}  # fmt: skip


@pytest.mark.parametrize("name", SOLVED)
def test_a_problem_is_solved(name):
    rules, before = SOLVED[name]
    after = redesign(rules, before)
    assert len(after) == len(before)
    if name == "CCCC on the other strand only":
        assert "GGGG" not in after
        assert after.endswith("CCCC")
    if name == "a table of bacteria":
        assert after.startswith("GTG")


@pytest.mark.parametrize(
    ("rules", "before"),
    [
        (KeepBases((0, 16)) & AvoidSites(("BsmBI",)), "AAAAATCGTCTCTTTT"),
        (KeepBases((0, 10)) & GcContent(0.8, 1), "T" * 28),
        (KeepBases((0, 4)) & GcContent(0.8, 1), "TTTTTTT"),
    ],
)
def test_what_has_no_solution_is_proved_and_both_parts_are_named(rules, before):
    space = DesignSpace(before.encode(), np.ones(len(before), bool), 0, len(before))
    assert find_conflict(rules, space) == list(rules.parts())


def test_a_frame_that_is_no_multiple_of_three_is_refused():
    space = DesignSpace(b"ATGAAAAAAATTTTTT", np.ones(16, bool), 0, 16)
    with pytest.raises(UsageError, match="no multiple of three"):
        compile_constraints(KeepProtein(), space)
    with pytest.raises(UsageError, match="no multiple of three"):
        KeepProtein(((0, 16),))
    with pytest.raises(UsageError, match="30 amino acids"):
        KeepProtein(((0, 45),), protein="M" * 30)
