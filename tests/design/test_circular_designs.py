"""Designs of circular records against enumeration: a circle is read by writing it twice."""

import random
from collections.abc import Callable
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from Bio import SeqIO
from Bio.Seq import Seq
from tiny_run import write_run

import genodiff
from genodiff.alphabet import DNA
from genodiff.constraints.design_rules import RuleWords, make_rules
from genodiff.design.design_regions import Designer, TemplateSource
from genodiff.generate.infill import Gap, Template
from genodiff.io.faidx import Genome
from genodiff.io.fasta import read_fasta
from genodiff.io.variant_source import read_vcf
from genodiff.runs import training_memory
from tests.commands import exit_code
from tests.constraints.enumerated_designs import list_accepted


def list_designs(
    text: str, regions: list[tuple[int, int]] | None, window: int = 6, **words
) -> set[str]:  # type: ignore[no-untyped-def]
    """Every circle that a designer allows, by automata and by what it reads when it is whole."""
    source = TemplateSource([Template("p", "[topology=circular]", text.encode())], "memory")
    rules = make_rules(RuleWords(**words), source.contigs, source.circular)
    gaps = None if regions is None else [Gap("p", *one) for one in regions]
    designer = Designer(source, gaps, rules, window, max(1, window // 2), 1 << 20)
    circles = {text}
    for group in designer.groups:
        layers, space, more = designer.compile(group), designer.space(group), set()
        together = designer.piece(group, layers, 0, DNA).together
        for found in list_accepted(layers, space):
            if together.accepts is None or together.accepts(DNA.encode(found)):
                assert not list(designer.find_violations(group, space.letters, found.encode()))
                for old in circles:
                    letters = list(old)
                    for at in space.positions:
                        letters[(group.start + at) % len(text)] = found[at]
                    more.add("".join(letters))
        circles = more
    return circles


def enumerate_circles(text: str, free: list[int], holds: Callable[[str], bool]) -> set[str]:
    found = set()
    for some in product("ACGT", repeat=len(free)):
        letters = list(text)
        for at, base in zip(free, some, strict=True):
            letters[at] = base
        found.add("".join(letters))
    return {one for one in found if holds(one)}


def avoids(*words: str) -> Callable[[str], bool]:
    both = {*words, *(str(Seq(word).reverse_complement()) for word in words)}
    return lambda text: not any(word in text + text + text for word in both)


PLASMID = "ACATTAGCCATGACCTAAGGGGTC"  # 24 bases; its last four, then TC, are BsaI's GGTCTC


def test_a_gap_of_two_at_the_origin_makes_no_site_across_it_on_either_strand():
    found = list_designs(PLASMID, [(0, 2)], enzymes=("BsaI",))
    every = {a + b + PLASMID[2:] for a, b in product("ACGT", repeat=2)}
    assert every - found == {"TC" + PLASMID[2:]}
    # GAGACC is the site on the other strand.
    turned = "ACATTAGCCATGACCTAAGGGAGA"
    found = list_designs(turned, [(0, 2)], enzymes=("BsaI",))
    assert {a + b for a, b in product("ACGT", repeat=2)} - {one[:2] for one in found} == {"CC"}


def test_a_palindrome_is_not_made_from_both_sides_of_the_origin():
    text = "GGCATTAGCCATGACCTAAGGGAA"  # GAA stands before the origin, and TTC would end GAATTC
    found = list_designs(text, [(23, 26)], enzymes=("EcoRI",))  # the last base and the first two
    assert found == enumerate_circles(text, [23, 0, 1], avoids("GAATTC"))
    assert "TTCATTAGCCATGACCTAAGGGAA" not in list_designs(
        "NNCATTAGCCATGACCTAAGGGAA", None, enzymes=("EcoRI",)
    )


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("text", "free"),
    [("GACTTGAC", [6, 7, 0, 1, 2]), ("GACTTG", [0, 1, 2, 3, 4, 5]), ("GACTTGAC", [1, 2, 4, 5, 7])],
)
def test_a_site_that_is_longer_than_what_is_kept_is_not_made(text, free):
    start = free[0]
    regions = [(i, i + 1) for i in free] if start == 1 else [(start, start + len(free))]
    assert list_designs(text, regions, avoid=("GAATTC", "GGTCTC")) == enumerate_circles(
        text, free, avoids("GAATTC", "GGTCTC")
    )


@pytest.mark.slow
def test_a_record_without_a_kept_base_is_judged_round():
    def holds(text: str) -> bool:
        runs = not any(base * 3 in text * 2 for base in "ACGT")
        windows = [(text * 2)[i : i + 4] for i in range(6)]
        return runs and all(1 <= sum(b in "GC" for b in one) <= 2 for one in windows)

    wanted = enumerate_circles("NNNNNN", [0, 1, 2, 3, 4, 5], holds)
    for regions in (None, [(0, 6)], [(4, 10)], [(0, 4), (3, 7)]):
        assert list_designs("NNNNNN", regions, max_run=2, gc=("25-50%/4",)) == wanted


def test_gc_windows_go_round_where_bases_are_kept():
    def holds(text: str) -> bool:
        windows = [(text * 2)[i : i + 5] for i in range(0, 10, 2)]
        return all(1 <= sum(b in "GC" for b in one) <= 3 for one in windows)

    wanted = enumerate_circles("ACNGTAANCG", [2, 7], holds)
    # The window of the last two bases and the first three has three already
    assert len(wanted) == 8
    assert list_designs("ACNGTAANCG", None, gc=("20-60%/5:2",)) == wanted


def test_a_linear_record_ends_where_it_ends():
    source = TemplateSource([Template("p", "", b"NNATTAGCCATGACCTAAGGGGTC")], "memory")
    rules = make_rules(RuleWords(enzymes=("BsaI",)), source.contigs)
    designer = Designer(source, None, rules, 6, 3, 1 << 20)
    (group,) = designer.groups
    assert len(list_accepted(designer.compile(group), designer.space(group))) == 16


@pytest.mark.slow
def test_random_circles_allow_what_enumeration_does():
    draws = random.Random(5)
    some = 0
    for _ in range(60):
        length = draws.randint(7, 13)
        free = sorted(draws.sample(range(length), draws.randint(1, 4)))
        text = "".join(draws.choices("ACGT", k=length))
        words = ["".join(draws.choices("ACGT", k=draws.randint(2, 5))) for _ in range(2)]
        wanted = enumerate_circles(text, free, avoids(*words))
        gaps = [(i, i + 1) for i in free]
        template = "".join("N" if i in free else b for i, b in enumerate(text))
        for given, regions in ((text, gaps), (template, None)):
            try:
                found = list_designs(given, regions, avoid=tuple(words))
            except genodiff.errors.UsageError:  # nothing satisfies all
                found = set()
            # A word of kept bases alone is a conflict only where it touches what is judged.
            kept = enumerate_circles(text, [], avoids(*words)) or regions is None
            assert found == wanted or (not kept and not wanted), (given, regions, words)
        some += 0 < len(wanted) < 4 ** len(free)
    assert some > 10


@pytest.mark.parametrize("strand", [1, -1])
def test_a_protein_across_the_origin_is_kept(strand):
    gene = "ATGCTGGGC" if strand == 1 else str(Seq("ATGCTGGGC").reverse_complement())
    text = gene[4:] + "AATAATTAAAT" + gene[:4]  # its frame is p:17-5
    word = f"p:17-5:{'+' if strand == 1 else '-'}"
    found = list_designs(text, [(0, 3)], protein=(word,))
    assert text in found

    def holds(one: str) -> bool:
        read = Seq(one[-4:] + one[:5])
        return str((read if strand == 1 else read.reverse_complement()).translate()) == "MLG"

    free = [0, 1, 2]
    wanted = enumerate_circles(text, free, lambda one: holds(one))
    if strand == -1:  # the first codon stays as it is, whatever else is a start
        wanted = {one for one in wanted if one[2:5] == text[2:5]}
    assert found == wanted
    assert 1 < len(found) < 64


def test_bases_kept_across_the_origin_stay():
    found = list_designs("ACGTACGTAC", [(8, 13)], keep=("p:10-2",))
    assert {(one[9], one[0], one[1]) for one in found} == {("C", "A", "C")}
    assert len(found) == 4**2


def test_a_genbank_file_is_designed_across_its_origin_and_the_vcf_is_in_order(
    tmp_path, run, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    text = "".join(rng.choice(list("ACGT"), 300))
    record = SeqIO.SeqRecord(Seq(text), "pX.1", "pX", annotations={"molecule_type": "DNA"})
    record.annotations["topology"] = "circular"
    SeqIO.write([record], tmp_path / "p.gb", "genbank")
    with Genome(tmp_path / "p.gb", goes_round=True) as genome:
        assert genome.circular == {"pX.1"}
        assert genome.fetch("pX.1", 298, 303).decode() == text[-2:] + text[:3]
        assert genome.fetch("pX.1", -2, 1).decode() == text[-2:] + text[:1]
    words = ["--fasta", "p.gb", "--region", "pX.1:296-4", "--region", "pX.1:100-101"]
    words += ["--avoid", "GGTCTC", "--steps", "4", "-n", "3", "-o", "o.fa", "--threads", "1"]
    assert exit_code("redesign", run, *words) == 0
    found = {one.name: one.sequence.decode() for one in read_fasta("o.fa")}
    assert list(found) == [f"pX.1:{at}.{i}" for at in ("100-101", "296-4") for i in (1, 2, 3)]
    rows = list(read_vcf(tmp_path / "o.fa.vcf")[1])
    places = [row.pos for row in rows]
    assert places == sorted(places)
    assert {at for at in places if at not in (100, 101)} <= {296, 297, 298, 299, 300, 1, 2, 3, 4}
    for copy in range(3):
        letters = list(text)
        for row in rows:
            allele = int(row.rest[4 + copy])
            if allele:
                letters[row.pos - 1] = row.alts[allele - 1]
        whole = "".join(letters)
        assert whole[295:] + whole[:4] == found[f"pX.1:296-4.{copy + 1}"]
    bed = [row.split("\t") for row in (tmp_path / "o.fa.bed").read_text().splitlines()[1:]]
    assert all(0 <= int(row[1]) < int(row[2]) <= 300 for row in bed)
    assert [int(row[1]) for row in bed] == sorted(int(row[1]) for row in bed)


def test_a_window_round_the_origin_leaves_all_of_its_contig_out_of_a_memory(monkeypatch):
    monkeypatch.setattr(
        training_memory, "leave_out_locus", lambda _, name, start, end: (start, end)
    )
    source = TemplateSource([Template("p", "[topology=circular]", b"ACGTACGTAC")], "memory")
    known: Any = SimpleNamespace(find=lambda *_: "p")
    found: Any = SimpleNamespace(memory=None, told={}, contigs=known)
    loci = training_memory.OwnLoci(found, source)
    assert loci.leave_out(("p", 2, 6)) == (2, 6)
    assert loci.leave_out(("p", 8, 12)) == (0, 10)


def test_python_takes_a_circular_record_and_a_region_across_its_origin(tmp_path):
    model = genodiff.load(write_run(tmp_path))
    record = SeqIO.SeqRecord(
        Seq("CATTAGCCATGACCTAAGGGGTCT"), "p", annotations={"topology": "circular"}
    )
    for design in model.redesign(
        record, 20, regions=[(23, 26)], rules={"enzymes": ["BsaI"]}, steps=2
    ):
        text = str(getattr(design, "seq", design))
        assert text[2:23] == "TTAGCCATGACCTAAGGGGTC"
        assert avoids("GGTCTC")(text)
