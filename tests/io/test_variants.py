"""An allele says what kind of change it is by its lengths."""

import pytest

from genodiff.io.variants import Allele


@pytest.mark.parametrize(
    ("ref", "alt", "kind"),
    [("A", "C", "snv"), ("AC", "GT", "mnv"), ("", "A", "ins"), ("A", "", "del"),
     ("AC", "T", "delins"), ("A", "TG", "delins")],
)  # fmt: skip
def test_kind(ref, alt, kind):
    assert Allele("chr1", 4, ref, alt).kind == kind
