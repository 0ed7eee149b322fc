"""Codon usage: the weighted law against enumeration, and what a table may be."""

import itertools
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from genodiff.constraints.chain import draw_bases, draw_by_logs, find_marginals, pass_back_logs
from genodiff.constraints.coding import KeepProtein
from genodiff.constraints.codon_usage import LEAST, read_codon_usage
from genodiff.constraints.constraint import Constraint, DesignSpace
from genodiff.constraints.design_rules import RuleWords, make_rules
from genodiff.constraints.layers import compile_constraints
from genodiff.constraints.words import Avoid
from genodiff.errors import DataError, UsageError
from genodiff.generate.constrained import draw_fast
from tests.constraints.enumerated_designs import check_law, enumerate_designs

TURN = str.maketrans("ACGT", "TGCA")


def write(folder: Path, seed: int = 0) -> Path:
    g = np.random.default_rng(seed)
    rows = ["amino_acid,codon,relative_frequency"]
    rows += [f"?,{''.join(c)},{g.gamma(0.5):.6f}" for c in itertools.product("ACGU", repeat=3)]
    (folder / "usage.csv").write_text("\n".join(rows))
    return folder / "usage.csv"


def make_space(text: str, free: list[int]) -> DesignSpace:
    is_free = np.zeros(len(text), bool)
    is_free[free] = True
    return DesignSpace(text.encode(), is_free, 0, len(text))


def enumerate_law(
    rule: Constraint, space: DesignSpace, usage: dict[str, float], strand: int, p: np.ndarray
) -> dict[tuple[int, ...], float]:
    """The weight of each design: of its free bases, and of the codons that have some."""
    found = {}
    opened = np.flatnonzero(space.free[::strand].reshape(-1, 3).any(1))
    for text in enumerate_designs(rule, space):
        read = text if strand == 1 else text.translate(TURN)[::-1]
        weight = np.prod([usage[read[3 * i : 3 * i + 3]] for i in opened])
        bases = tuple("ACGT".index(text[at]) for at in space.positions)
        found[bases] = float(weight * p[range(len(bases)), bases].prod())
    return found


CASES = [
    ("CTGAGCGGC", [0, 2, 3, 4, 5, 8], 1, None),
    ("CTGAGCGGC", [0, 2, 3, 5, 6, 8], -1, None),
    ("CTGAGCCGT", [0, 2, 5, 6, 8], 1, "GAG"),
    ("CTGAGCCGT", [1, 2], 1, None),  # codons of which bases are kept
]


@pytest.mark.few(2)
@pytest.mark.parametrize(("text", "free", "strand", "word"), CASES)
def test_marginals_and_draws_are_those_of_the_weighted_law(tmp_path, text, free, strand, word):
    usage = read_codon_usage(str(write(tmp_path)), 1)
    space = make_space(text, free)
    rule: Constraint = KeepProtein((), strand, keep_start=False, usage=usage)
    rule = rule if word is None else rule & Avoid((word,))
    layers = compile_constraints(rule, space)
    g = np.random.default_rng(1)
    p = g.dirichlet(np.ones(4), len(free))
    law = enumerate_law(rule, space, dict(usage), strand, p)
    assert len(law) > 1
    total = sum(law.values())
    logp = np.log(p)
    marginals = find_marginals(layers, logp)
    for f, base in itertools.product(range(len(free)), range(4)):
        share = sum(w for x, w in law.items() if x[f] == base) / total
        assert marginals[f, base] == pytest.approx(share, abs=1e-9)
    assert np.exp(pass_back_logs(layers, logp)[0][0]) * layers.scale == pytest.approx(total)
    due = np.ones(len(logp), bool)
    count = dict.fromkeys(law, 0)
    for i in range(1200):
        u = g.random(len(logp))
        drawn = draw_fast(layers, logp, due, u, 1e-6)
        if i < 20:
            for other in (draw_bases, draw_by_logs):
                assert drawn.symbols.tolist() == other(layers, logp, due, u).symbols.tolist()
        count[tuple(drawn.symbols.tolist())] += 1  # fails for what the law excludes
    check_law(count, law)


def test_equal_use_is_the_law_without_weights():
    space = make_space("CTGAGCGGC", [0, 2, 3, 4, 5, 8])
    even = tuple(("".join(c), 0.5) for c in itertools.product("ACGT", repeat=3))
    logp = np.log(np.random.default_rng(1).dirichlet(np.ones(4), 6))
    one, other = (
        compile_constraints(KeepProtein(keep_start=False, usage=use), space) for use in (even, None)
    )
    assert np.allclose(find_marginals(one, logp), find_marginals(other, logp))
    assert one.states == other.states


def test_a_table_is_relative_within_an_amino_acid(tmp_path):
    rows = ["".join(c) + "\t10" for c in itertools.product("ACGT", repeat=3)]
    (tmp_path / "t").write_text(
        "\n".join(rows).replace("AAG\t10", "AAG\t30").replace("TGG\t10", "")
    )
    found = dict(read_codon_usage(str(tmp_path / "t"), 1))
    assert (found["AAA"], found["AAG"], found["CTG"]) == (0.25, 0.75, pytest.approx(1 / 6))
    assert found["TGG"] == 1
    (tmp_path / "t").write_text("\n".join(rows).replace("AAG\t10", "AAG\t0"))
    assert dict(read_codon_usage(str(tmp_path / "t"), 1))["AAG"] == LEAST


@pytest.mark.parametrize(
    ("text", "said"),
    [("AAA 1", "1 codons"), ("AAA x", "AAA has no frequency"), ("AAA -1", "no frequency"),
     ("AAA 1\nAAA 2", "listed twice")],
)  # fmt: skip
def test_a_faulty_table_is_one_line(tmp_path, text, said):
    (tmp_path / "t").write_text(text)
    with pytest.raises(DataError, match=said):
        read_codon_usage(str(tmp_path / "t"), 1)


def test_species_are_those_of_the_package(monkeypatch):
    names = ["e_coli_316407", "m_musculus_10090", "m_musculus_domesticus_10092"]
    tables = {"e_coli_316407": {"K": {"AAA": 0.76, "AAG": 0.24}}}
    fake = SimpleNamespace(
        available_codon_tables_names=names, get_codons_table=lambda name: tables[name]
    )
    monkeypatch.setitem(sys.modules, "python_codon_tables", fake)
    for name in ("e_coli", "e_coli_316407"):
        assert dict(read_codon_usage(name, 1))["AAA"] == pytest.approx(0.76)
    with pytest.raises(UsageError, match="no codon usage of 'e_colli'"):
        read_codon_usage("e_colli", 1)
    monkeypatch.setitem(sys.modules, "python_codon_tables", None)
    with pytest.raises(UsageError, match=r"genodiff\[codons\]"):
        read_codon_usage("e_coli", 1)


def test_the_package_has_the_usage_of_e_coli():
    pytest.importorskip("python_codon_tables")
    assert dict(read_codon_usage("e_coli", 11))["AAG"] == pytest.approx(0.24, abs=0.02)
    assert read_codon_usage("ecoli", 11) == read_codon_usage("e_coli", 11)
    assert read_codon_usage("yeast", 1) == read_codon_usage("s_cerevisiae", 1)


def test_words_need_a_protein(tmp_path):
    path = str(write(tmp_path))
    rules = make_rules(RuleWords(protein=("forward",), codon_usage=path), {"c": 90})
    (rule,) = rules.everywhere.parts()
    assert isinstance(rule, KeepProtein)
    assert rule.usage == read_codon_usage(path, 1)
    with pytest.raises(UsageError, match="--codon-usage is of a kept protein"):
        make_rules(RuleWords(codon_usage=path), {"c": 90})
