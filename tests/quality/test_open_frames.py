"""Open frames, genes and codons, against a loop over frames that reads codon by codon."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from genodiff.quality.sample_quality import STOPS, count_codons, measure_genes, measure_open_frames
from tests.quality.test_scorecard import ids

CODONS = ["".join(word) for word in product("ACGT", repeat=3)]
texts = st.text("ACGTN", max_size=40) | st.lists(
    st.sampled_from(["ATG", "TAA", "CAT", "TTA", "GCC", "A", "N"]), max_size=14
).map("".join)


def read_frames(text: str) -> list[list[str]]:
    turned = "".join("TGCAN"["ACGTN".index(c)] for c in reversed(text))
    return [
        [strand[i : i + 3] for i in range(frame, len(strand) - 2, 3)]
        for strand in (text, turned)
        for frame in range(3)
    ]


@given(texts)
def test_frames_genes_and_codons_are_those_of_a_slow_reader(text):
    best: list[str] = []
    gene = 0
    for codons in read_frames(text):
        run: list[str] = []
        for codon in [*codons, "TAA"]:
            if codon in ("TAA", "TAG", "TGA") or "N" in codon:
                best = run if len(run) > len(best) else best
                run = []
            else:
                run.append(codon)
        start = None
        for i, codon in enumerate(codons):
            if "N" in codon:
                start = None
            elif codon in ("TAA", "TAG", "TGA"):
                gene = max(gene, 0 if start is None else i - start)
                start = None
            elif codon == "ATG" and start is None:
                start = i
    assert measure_open_frames([ids(text)]).tolist() == [len(best)]
    assert measure_genes([ids(text)]).tolist() == [gene]
    counted = Counter(best)
    assert count_codons([ids(text)])[0].tolist() == [counted[codon] for codon in CODONS]


def test_the_stops_are_those_of_the_standard_code():
    assert [CODONS[i] for i in STOPS] == ["TAA", "TAG", "TGA"]
