"""Automata, marginals and draws against enumeration of every completion."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Seq import Seq
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from genodiff.constraints.chain import (
    choose_base,
    draw_bases,
    draw_by_logs,
    draw_scaled,
    find_influence,
    find_marginals,
    scale_rows,
)
from genodiff.constraints.check import find_conflict, find_violations
from genodiff.constraints.coding import KeepProtein, NoStop
from genodiff.constraints.composition import GcContent
from genodiff.constraints.constraint import (
    AllOf,
    Constraint,
    DesignSpace,
    KeepBases,
    MaxEdits,
    free_space,
)
from genodiff.constraints.layers import Layers, compile_constraints, is_feasible
from genodiff.constraints.repeats import NoRepeats
from genodiff.constraints.words import Avoid, AvoidSites, FitPattern, MaxRun, Require
from genodiff.errors import UsageError
from genodiff.generate.constrained import draw_fast
from tests.constraints.enumerated_designs import (
    check_law,
    enumerate_designs,
    list_accepted,
    weigh,
    weigh_codons,
)


def mixed_space() -> DesignSpace:
    """Six free bases among kept ones, one of them an N, in the middle of a contig."""
    letters = b"TGAATGCANTTcGAATA"
    free = np.zeros(len(letters), bool)
    free[[4, 5, 6, 7, 9, 11]] = True
    return DesignSpace(letters, free, 4, 12, offset=100)


KINDS: dict[str, Constraint] = {
    "avoid": Avoid(("GAA", "TTN")),
    "avoid one strand": Avoid(("GAATT", "CC"), both=False),
    "avoid in a span": Avoid(("AR",), span=(106, 110)),
    "require": Require(("TRC",)),
    "require one strand": Require(("CA",), both=False),
    "enzymes": AvoidSites(("EcoRI", "TaqI")),
    "run": MaxRun(2),
    "repeats": NoRepeats(2, ("ATG", "CAT", "GGG")),
    "gc": GcContent(0.4, 0.6),
    "gc windows": GcContent(0.25, 0.75, window=4),
    "gc steps": GcContent(0.25, 0.5, window=5, step=2),
    "protein": KeepProtein(((103, 106), (111, 114))),
    "protein on the other strand": KeepProtein(((103, 106),), strand=-1),
    "protein given": KeepProtein(((104, 107),), protein="L", table=4),
    "stop": NoStop(((104, 107), (111, 114)), strand=-1),
    "keep": KeepBases((106, 110)),
    "pattern": FitPattern("RYNN", at=104),
    "edits": MaxEdits(2),
}

OF_THE_MIXED_SPACE = {
    "avoid in a span", "protein", "protein on the other strand", "protein given", "stop", "keep",
    "pattern",
}  # fmt: skip
"""Their intervals are not in the other space."""


@pytest.mark.few(18)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("make", [mixed_space, lambda: free_space(5)], ids=["mixed", "free"])
def test_each_constraint_accepts_what_enumeration_does(name, make):
    space: DesignSpace = make()  # type: ignore[operator]
    rule = KINDS[name]
    if not space.offset and name in OF_THE_MIXED_SPACE:
        return
    wanted = enumerate_designs(rule, space)
    layers = compile_constraints(rule, space)
    assert is_feasible(rule, space) == bool(wanted)
    assert (list_accepted(layers, space) if layers else []) == wanted
    if space.offset:  # here each has something to forbid
        assert 0 < len(wanted) < 4 ** int(space.free.sum())


RULES = st.one_of(
    st.builds(
        Avoid,
        st.lists(st.text("ACGTRYN", min_size=2, max_size=4), min_size=1, max_size=3).map(tuple),
        st.booleans(),
    ),
    st.builds(
        Require, st.lists(st.text("ACGTS", min_size=1, max_size=3), min_size=1, max_size=2)
        .map(tuple), st.booleans(),
    ),
    st.builds(MaxRun, st.integers(1, 3)),
    st.builds(lambda a, b, w, s: GcContent(min(a, b), max(a, b), w, min(s, w)),
              st.floats(0, 1), st.floats(0, 1), st.integers(1, 8), st.integers(1, 8)),
    st.builds(MaxEdits, st.integers(0, 5)),
    st.builds(KeepProtein, st.sampled_from([((0, 6),), ((1, 3), (5, 9))]),
              st.sampled_from([1, -1])),
    st.builds(NoStop, st.sampled_from([((0, 9),), ((2, 8),)]), st.sampled_from([1, -1]),
              st.sampled_from([1, 2, 27])),
    st.builds(FitPattern, st.text("ACGTRYWSN", min_size=1, max_size=6)),
    st.builds(lambda a, n: KeepBases((a, a + n)), st.integers(0, 8), st.integers(1, 3)),
)  # fmt: skip


def has_stop(rule: NoStop, letters: str) -> bool:
    stops = unambiguous_dna_by_id[rule.table].stop_codons
    ((start, end),) = rule.exons
    codons = (Seq(letters[i : i + 3]) for i in range(start, end, 3))
    return any(str(c if rule.strand == 1 else c.reverse_complement()) in stops for c in codons)


@settings(max_examples=30)
@given(
    st.lists(RULES, min_size=1, max_size=4),
    st.text("ACGT", min_size=10, max_size=10),
    st.sets(st.integers(0, 9), min_size=0, max_size=4),
    st.integers(0, 3),
    st.integers(0, 2**32),
)
def test_mixes_are_those_of_the_enumeration(rules, letters, places, start, seed):
    # A stop that stood there is one for the automaton, and none for the checker.
    assume(not any(has_stop(one, letters) for one in rules if isinstance(one, NoStop)))
    free = np.isin(np.arange(10), sorted(places))
    space = DesignSpace(letters.encode(), free, start, 10)
    both = AllOf(tuple(rules))
    wanted = enumerate_designs(both, space)
    layers = compile_constraints(both, space)
    assert (layers is not None) == bool(wanted) == is_feasible(rules, space)
    if layers is None:
        part = find_conflict(both, space)
        assert part
        assert not enumerate_designs(AllOf(tuple(part)), space)
        for i in range(len(part)):  # without any one, the others can be met
            assert enumerate_designs(AllOf((*part[:i], *part[i + 1 :])), space)
        return
    assert list_accepted(layers, space) == wanted
    logp = np.random.default_rng(seed).normal(0, 3, (len(space.positions), 4))
    weights = weigh(wanted, space, logp)
    found = find_marginals(layers, logp)
    for f, at in enumerate(space.positions):
        for symbol, base in enumerate("ACGT"):
            exact = sum(w for w, text in zip(weights, wanted, strict=True) if text[at] == base)
            assert abs(found[f, symbol] - exact) < 1e-9


@cache
def designs_of_the_world() -> list[str]:
    return enumerate_designs(WORLD, SPACE)


SPACE = free_space(7)
WORLD = Avoid(("GA", "CCT")) & Require(("ACR",)) & MaxRun(3) & GcContent(0.25, 0.75, 4)


@pytest.mark.few(1)
@pytest.mark.parametrize("lowest", [-2.0, -400.0], ids=["scaled", "logarithms"])
def test_bases_of_one_step_are_drawn_from_the_exact_joint_law(lowest):
    layers = compile_constraints(WORLD, SPACE)
    rng = np.random.default_rng(5)
    shifted = rng.normal(0, 1, (7, 4))
    shifted[3] = [0, -1, -0.5, lowest]
    scaled = draw_scaled(layers, np.exp(shifted), shifted[:, 0] < 9, rng.random(7))
    assert (scaled is None) == (lowest < -300)
    due = np.isin(np.arange(7), [1, 3, 4, 6])
    designs = designs_of_the_world()
    weights = weigh(designs, SPACE, shifted)
    law: dict[str, float] = {}
    for text, weight in zip(designs, weights, strict=True):
        key = "".join(text[i] for i in np.flatnonzero(due))
        law[key] = law.get(key, 0) + weight
    seen = dict.fromkeys(law, 0)
    for u in rng.random((1000, 7)):
        drawn = draw_bases(layers, shifted, due, u)
        seen["".join("ACGT"[s] for s in drawn.symbols)] += 1  # a KeyError is a forbidden design
    assert len(law) > 5
    check_law(seen, law)


def test_step_by_step_no_draw_leads_into_a_dead_end():
    layers = compile_constraints(WORLD, SPACE)
    rng = np.random.default_rng(7)
    allowed = set(designs_of_the_world())
    for _ in range(60):
        known = np.full(7, -1)
        order = rng.permutation(7)
        for some in (order[:3], order[3:4], order[4:6], order[6:]):
            logp = rng.normal(0, 30, (7, 4))  # another network each time, and a stubborn one
            for f in np.flatnonzero(known >= 0):
                logp[f] = np.where(np.arange(4) == known[f], 0, -np.inf)
            due = np.isin(np.arange(7), some)
            known[due] = draw_bases(layers, logp, due, rng.random(7)).symbols
        assert "".join("ACGT"[s] for s in known) in allowed


def find_gap(layers: Layers, logp: np.ndarray, due: np.ndarray, u: np.ndarray) -> float:
    """The least error of all logarithms that could change a draw, by the definition."""
    logp, gap = logp.copy(), np.inf
    for f in np.flatnonzero(due):
        law = find_marginals(layers, logp)[f]
        symbol, gaps = choose_base(law, float(u[f]))
        for edge in np.flatnonzero(np.isfinite(gaps)):
            gap = min(gap, gaps[edge] / (2 * find_influence(layers, logp, f, int(edge))))
        logp[f] = np.where(np.arange(4) == symbol, 0, -np.inf)
    return gap


CLOSE_SPACES = {
    "words": Avoid(("GAATTC", "TATA", "NCG")) & MaxRun(2),
    "a count": GcContent(0.4, 0.6),
    "far apart": Require(("ACGTACGTAC",), both=False),
    "nothing": AllOf(),
    "codons by their use": KeepProtein(protein="LSRI", keep_start=False, usage=weigh_codons(4)),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", CLOSE_SPACES)
def test_all_ways_to_draw_agree_on_every_uniform_and_on_what_is_close(name):
    space = free_space(12)
    layers = compile_constraints(CLOSE_SPACES[name], space)
    rng = np.random.default_rng(3)
    told = []
    for turn in range(6):
        logp, u, due = rng.normal(0, 2, (12, 4)), rng.random(12), rng.random(12) < 0.4
        if turn % 3 == 2:  # some bases are known
            full = draw_bases(layers, logp, np.ones(12, bool), rng.random(12)).symbols
            known = (rng.random(12) < 0.5) & ~due
            logp[known] = np.where(np.arange(4) == full[known, None], 0, -np.inf)
        gap = find_gap(layers, logp, due, u)
        if gap == np.inf:  # all that is due is forced
            continue
        for error in (0.97 * gap, 1.03 * gap):
            ways = [
                draw_scaled(layers, scale_rows(logp), due, u, error),
                draw_by_logs(layers, logp, due, u, error),
                draw_fast(layers, logp, due, u, error),
            ]
            found = {(tuple(one.symbols), one.close) for one in ways if one is not None}
            assert len(found) == 1, (turn, error)
            told.append(found.pop()[1])
    assert told == [False, True] * (len(told) // 2)
    assert len(told) >= 6


LONG = {
    "words": Avoid(("GATTC", "TACA", "GGG")),
    "runs of a base and GC": AllOf((MaxRun(3), GcContent(0.2, 0.8, window=20, step=10))),
    "a word that must be": AllOf((Avoid(("ACGT",)), Require(("TTGACA",)))),
}


@pytest.mark.few(3)
@pytest.mark.parametrize("weighed", [False, True])
@pytest.mark.parametrize("name", LONG)
def test_runs_of_known_bases_cut_a_draw_without_changing_it(name, weighed):
    n = 120
    layers = compile_constraints(LONG[name], free_space(n))
    rng = np.random.default_rng(5)
    if weighed:
        gains = [rng.uniform(0.1, 1, table.shape) for table in layers.moves]
        layers = replace(layers, moves=tuple(t.copy() for t in layers.moves), gains=tuple(gains))
    close = []
    for share in (0.5, 0.8, 0.95, 0.99):
        for error in (0.0, 1e-3, 0.03):
            logp, u = rng.normal(0, 1, (n, 4)), rng.random(n)
            full = draw_bases(layers, logp, np.ones(n, bool), rng.random(n)).symbols
            known = rng.random(n) < share
            logp[known] = np.where(np.arange(4) == full[known, None], 0, -np.inf)
            due = ~known & (rng.random(n) < 0.5)
            slow = draw_bases(layers, logp, due, u, error)
            fast = draw_fast(layers, logp, due, u, error)
            assert (slow.symbols == fast.symbols).all(), (share, error)
            assert slow.close == fast.close, (share, error)
            close.append(slow.close)
    assert True in close
    assert False in close


def test_no_error_below_what_is_called_close_changes_a_draw():
    layers = compile_constraints(WORLD, free_space(8))
    rng = np.random.default_rng(11)
    changed = 0
    for _ in range(100):
        logp, u, due = rng.normal(0, 1, (8, 4)), rng.random(8), np.arange(8) == rng.integers(8)
        gap = find_gap(layers, logp, due, u)
        if gap > 0.05:
            continue
        first = draw_bases(layers, logp, due, u).symbols
        for share in (0.9, 1.5):
            moved = [
                logp + share * gap * np.sign(rng.normal(0, 1, (8, 4))),
                logp + share * gap * find_worst(layers, logp, int(np.flatnonzero(due)[0])),
                logp - share * gap * find_worst(layers, logp, int(np.flatnonzero(due)[0])),
            ]
            same = all((draw_bases(layers, one, due, u).symbols == first).all() for one in moved)
            assert same or share > 1
            changed += not same
    assert changed  # the bound is met: half as much again does change draws


def find_worst(layers: Layers, logp: np.ndarray, f: int) -> np.ndarray:
    """The signs of errors that move the first boundary of position f the most."""
    sides = []
    for side in (np.arange(4) < 1, np.arange(4) >= 1):
        given = logp.copy()
        given[f] = np.where(side, logp[f], -np.inf)
        sides.append(find_marginals(layers, given))
    return np.sign(sides[0] - sides[1])


def test_equal_layers_are_one_table():
    layers = compile_constraints(Avoid(("GAATTC", "TATA")), free_space(200))
    assert len({id(moves) for moves in layers.moves}) < 20
    packed = layers.packed
    for f, moves in enumerate(layers.moves):
        at = packed.begin[f]
        assert (packed.tables[at : at + len(moves)] == moves).all()
        assert packed.first[f + 1] - packed.first[f] == len(moves)
    assert packed.first[-1] == layers.states + 1


@pytest.mark.few(6)
@pytest.mark.parametrize("strand", [1, -1])
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize(("first", "table"), [("TTG", 1), ("CTG", 11), ("GTG", 11), ("GTG", 1)])
def test_a_start_codon_stays_for_the_checker_as_for_the_automaton(first, table, keep, strand):
    """TTG and CTG are leucine's and GTG is valine's, and each may start a protein in some codes."""
    letters = first + "AAA" if strand == 1 else "TTT" + str(Seq(first).reverse_complement())
    space = DesignSpace(letters.encode(), np.ones(6, bool), 0, 6)
    rule = KeepProtein(((0, 6),), strand, table, keep_start=keep)
    accepted = list_accepted(compile_constraints(rule, space), space)
    every = ("".join(bases) for bases in product("ACGT", repeat=6))
    assert accepted == [one for one in every if not find_violations(rule, one, letters, 0, 6)]
    held = keep and first in unambiguous_dna_by_id[table].start_codons
    codons = 1 if held else 6 if first in ("TTG", "CTG") else 4
    assert len(accepted) == 2 * codons  # lysine has two


def test_a_kept_site_is_a_conflict_of_that_rule_alone():
    text = b"ACGAATTCGTA"
    space = DesignSpace(text, np.isin(np.arange(11), [0, 10]), 0, 11)
    rules = MaxRun(5) & AvoidSites(("EcoRI", "BamHI")) & GcContent(0, 1)
    assert find_conflict(rules, space) == [AvoidSites(("EcoRI", "BamHI"))]
    assert find_violations(rules, text.decode(), text.decode(), 0, 11)
    # It does not touch what is judged.
    aside = DesignSpace(text, np.isin(np.arange(11), [10]), 9, 11)
    assert find_conflict(rules, aside) == []


def test_nothing_free_and_nothing_there():
    assert compile_constraints(AllOf(), free_space(0)) is not None
    assert compile_constraints(Require(("A",)), free_space(0)) is None
    assert find_conflict(Require(("A",)), free_space(0)) == [Require(("A",))]
    space = DesignSpace(b"ACGT", np.zeros(4, bool), 0, 4)
    layers = compile_constraints(Avoid(("TTT",)), space)
    assert layers.states == 0
    drawn = draw_bases(layers, np.zeros((0, 4)), np.zeros(0, bool), np.zeros(0))
    assert len(drawn.symbols) == 0


def test_a_frame_that_is_no_multiple_of_three_is_refused():
    space = DesignSpace(b"ATGAAAAAAATTTTTT", np.ones(16, bool), 0, 16)
    with pytest.raises(UsageError, match="no multiple of three"):
        compile_constraints(KeepProtein(), space)
    with pytest.raises(UsageError, match="no multiple of three"):
        KeepProtein(((0, 16),))
    with pytest.raises(UsageError, match="30 amino acids"):
        KeepProtein(((0, 45),), protein="M" * 30)
