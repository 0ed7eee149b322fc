"""Every registered method of scoring: each gives its own number for every kind of variant."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from tiny_run import SEQ_LEN, make_allele, take_letters

import genodiff
from genodiff.alphabet import DNA
from genodiff.errors import UsageError
from genodiff.io.faidx import Genome
from genodiff.io.variants import Allele
from genodiff.runs.model import load_model
from genodiff.scoring.masked_reader import open_reader
from genodiff.scoring.methods import (
    AUTO,
    SCORE_METHODS,
    ScoreMethod,
    ScoreOptions,
    check_method,
    choose_method,
    describe_methods,
    find_method,
    name_methods,
)
from genodiff.scoring.span_scores import Estimate, run_steps
from genodiff.scoring.variant_scores import score_alleles, start_score
from genodiff.scoring.variant_windows import cut_window
from genodiff.variants.background import BackgroundRequest, draw_background, find_kinds
from genodiff.variants.background_draws import VariantDraws

START = 900
KINDS = ("SNV", "deletion", "insertion", "MNV", "delins", "long deletion", "haplotype")
Item = Allele | Sequence[Allele]
OF_NETWORKS = [
    name for name, one in SCORE_METHODS.items() if not (one.needs_relatives or one.visible)
]


@pytest.fixture(scope="module")
def model(run):
    return load_model(run)


@pytest.fixture(scope="module")
def genome(run):
    return Genome(run.parent / "genome.fa")


def make_variant(genome: Genome, kind: str) -> Item:
    if kind == "haplotype":
        return [make_allele(genome, START), make_allele(genome, START + 4)]
    of_kinds: dict[str, tuple[int, str | None]] = {
        "SNV": (1, None), "deletion": (2, ""), "insertion": (0, "GAT"), "MNV": (3, None),
        "delins": (2, "GATCA"), "long deletion": (12, ""),
    }  # fmt: skip
    return make_allele(genome, START, *of_kinds[kind])


def list_alleles(item: Item) -> list[Allele]:
    return [item] if isinstance(item, Allele) else list(item)


@pytest.mark.parametrize("name", OF_NETWORKS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_method_gives_its_own_number_for_every_kind(name, kind, model, genome):
    item, options = make_variant(genome, kind), ScoreOptions(method=name, se=9.0, exact=True)
    (found,) = score_alleles(model, genome, [item], options)
    reader = open_reader(model)
    cut = cut_window(genome, DNA, list_alleles(item), SEQ_LEN)
    place = cut.contig, cut.start, cut.end
    alone = run_steps(start_score(reader, cut.pair, options, place), reader)
    assert found.method == name
    assert found.value == pytest.approx(alone.value, abs=1e-5)
    method = find_method(cut.pair.widths, name)
    planned = method.windows(*cut.pair.widths)
    assert alone.windows == found.evaluations
    assert reader.evaluations <= (options.max_evaluations if method.until_se else planned)


def test_auto_is_the_first_method_that_takes_a_span_and_one_takes_every_span():
    for ref in range(12):
        for alt in range(12):
            width = max(ref, alt)
            wanted = "llr" if ref == alt == 1 else "chain" if width <= 8 else "nelbo"
            assert choose_method((ref, alt), AUTO) == wanted
            fitting = [name for name, one in SCORE_METHODS.items() if one().fits((ref, alt))]
            assert fitting[0] == wanted
            for name in SCORE_METHODS:
                assert choose_method((ref, alt), name) == name


def test_help_header_and_page_are_made_of_the_methods_own_words():
    assert describe_methods().endswith(
        "auto: profiles with relatives, else llr for one base, chain for spans of up to 8, "
        "nelbo beyond."
    )
    assert all(f"{name}: {one.help}" in describe_methods() for name, one in SCORE_METHODS.items())
    assert name_methods(AUTO) == name_methods("chain") == "llr, chain or nelbo"
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "score-variants.md").read_text()
    assert set(SCORE_METHODS) <= set(re.findall(r"^\| `(\w+)` \|", page, re.M))
    with pytest.raises(UsageError, match="did you mean 'chain'"):
        check_method("chian")
    with pytest.raises(UsageError, match="two methods are called 'auto'"):
        SCORE_METHODS.register(AUTO)(Letters)


class Letters(ScoreMethod):
    """How many more G and C the alternative has: a score that reads no network."""

    help = "G and C"

    def windows(self, ref, alt):  # type: ignore[no-untyped-def]
        return 0

    def start(self, reader, pair, options, place):  # type: ignore[no-untyped-def]
        assert place is not None
        yield from ()
        of_ref, of_alt = (
            int(np.isin(ids[span], DNA.encode("GC")).sum())
            for ids, span in ((pair.ref, pair.ref_span), (pair.alt, pair.alt_span))
        )
        return Estimate(float(of_alt - of_ref), 0.0, note="counted")


def count_gc(item: Item) -> float:
    alleles = list_alleles(item)
    return sum(sum(map(one.alt.count, "GC")) - sum(map(one.ref.count, "GC")) for one in alleles)


@pytest.fixture
def letters(monkeypatch, tmp_path):
    """A method that nothing else knows of."""
    assert "letters" not in SCORE_METHODS
    monkeypatch.setitem(SCORE_METHODS._pieces, "letters", Letters)
    monkeypatch.setenv("GENODIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("genodiff.variants.background.MOST_DRAWS", 4000)


@pytest.mark.usefixtures("letters")
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("double", [False, True])
def test_a_method_that_nothing_else_knows_of_gives_its_own_numbers(exact, double, model, genome):
    items = [make_variant(genome, kind) for kind in KINDS]
    options = ScoreOptions(method="letters", exact=exact, context="2x" if double else None)
    found = list(score_alleles(model, genome, items, options))
    assert [one.value for one in found] == [count_gc(one) for one in items]
    assert {(one.method, one.flags, one.evaluations) for one in found} == {
        ("letters", ("counted",), 0)
    }


def test_a_method_may_have_no_score_and_says_why(model, genome, monkeypatch):
    class Silent(Letters):
        def start(self, reader, pair, options, place):  # type: ignore[no-untyped-def]
            yield from ()
            return Estimate(float("nan"), 0.0, note="no_relatives")

    monkeypatch.setitem(SCORE_METHODS._pieces, "silent", Silent)
    items = [make_variant(genome, kind) for kind in KINDS]
    found = list(score_alleles(model, genome, items, ScoreOptions(method="silent")))
    assert {(one.value, one.se, one.method, one.flags) for one in found} == {
        (None, None, "silent", ("not_scored", "no_relatives"))
    }


@pytest.mark.usefixtures("letters")
def test_a_background_of_such_a_method_holds_its_numbers(model, genome):
    items = [make_variant(genome, kind) for kind in ("SNV", "deletion", "insertion")]
    kinds = find_kinds((one for one in items if isinstance(one, Allele)), genome)
    request = BackgroundRequest(100, 1, "letters", {"model": model.digest})

    def score(some):  # type: ignore[no-untyped-def]
        return score_alleles(model, genome, some, ScoreOptions(method="letters"))

    drawn = draw_background(genome, genome.sha256, kinds, request, score)
    for size, scores in drawn.classes.items():
        draws = VariantDraws(genome, size, 1)
        wanted = [count_gc(one) for i in range(request.count(size)) for one in draws.draw(i)]
        assert [one.value for one in scores] == wanted
    assert {size.name for size in drawn.classes} == {"snv", "del2", "ins3"}


@pytest.mark.slow
@pytest.mark.usefixtures("letters")
def test_files_and_plans_of_such_a_method_name_it(run, genome, tmp_path):
    snv, deletion = make_variant(genome, "SNV"), make_variant(genome, "deletion")
    assert isinstance(snv, Allele)
    assert isinstance(deletion, Allele)
    before, gone = take_letters(genome, START + 49, 1), take_letters(genome, START + 50, 2)
    rows = [("c1", START + 1, snv.ref, snv.alt), ("c1", START + 50, before + gone, before)]
    (tmp_path / "in.tsv").write_text(
        "chrom\tpos\tref\talt\n" + "".join("\t".join(map(str, row)) + "\n" for row in rows)
    )

    def write(out: str, **more: object) -> dict[str, object]:
        given = dict(fasta=genome.path, out=tmp_path / out, method="letters", device="cpu")
        return genodiff.score(run, tmp_path / "in.tsv", **given, **more)  # type: ignore[arg-type]

    planned = write("o.vcf", plan=True, background="on")
    assert planned["evaluations"] == planned["background_evaluations"] == 0
    write("o.vcf", background=100)
    text = (tmp_path / "o.vcf").read_text()
    assert "method: letters" in text
    scores = [float(one) for one in re.findall(r"GD_SCORE=([^;\t]+)", text)]
    assert scores == [count_gc(snv), -float(sum(map(gone.count, "GC")))]
    assert re.findall(r"GD_METHOD=(\w+)", text) == ["letters"] * 2
    assert len(re.findall(r"GD_PCT=", text)) == 2


@pytest.mark.parametrize("name", OF_NETWORKS)
def test_sharing_moves_an_snv_by_less_than_its_tolerance(name, model, genome):
    item = make_variant(genome, "SNV")

    def score(exact: bool) -> float | None:
        options = ScoreOptions(method=name, se=9.0, exact=exact)
        return next(score_alleles(model, genome, [item], options)).value

    assert score(False) == pytest.approx(score(True), abs=2e-3)
