"""Open reading frames, against Biopython and by hand."""

import numpy as np
from Bio.Seq import Seq
from hypothesis import given, settings
from hypothesis import strategies as st

from genodiff.alphabet import DNA
from genodiff.generate.open_frames import measure_open_frames


def by_translation(text: str) -> int:
    """The longest stretch without * in six translations; a codon with an N is * here."""
    longest = 0
    for strand in (Seq(text), Seq(text).reverse_complement()):
        for frame in range(3):
            whole = strand[frame : frame + (len(strand) - frame) // 3 * 3]
            codons = [str(whole[i : i + 3]) for i in range(0, len(whole), 3)]
            protein = "".join("*" if "N" in c else str(Seq(c).translate()) for c in codons)
            longest = max(longest, *map(len, protein.split("*")))
    return longest


@given(st.text("ACGTN", max_size=90))
@settings(max_examples=60, deadline=None)
def test_frames_are_those_of_six_translations(text: str) -> None:
    assert measure_open_frames([DNA.encode(text)]).tolist() == [by_translation(text)]


def test_a_frame_is_cut_by_stops_alone() -> None:
    sequences = [DNA.encode(t) for t in ("", "AC", "GCC" * 10, "GCC" * 4 + "TAA" + "GCC" * 6)]
    assert measure_open_frames(sequences[:3]).tolist() == [0, 0, 10]
    assert np.all(measure_open_frames(sequences[3:]) >= 6)
