"""Haplotypes of a sample: which alleles stand on one copy of a chromosome.

GT gives the alleles of a record in the order of the copies. `0|1` says which copy is which, within
a phase set (FORMAT/PS; without it, the contig).
"""

import re
from typing import NamedTuple

from genodiff.errors import DataError
from genodiff.io.variants import VariantRecord

_FORMAT = 3  # place of FORMAT in `VariantRecord.rest`


class Genotype(NamedTuple):
    """The alleles of one sample at one record: 0 is REF, None a missing call."""

    alleles: tuple[int | None, ...]
    phased: bool
    phase_set: str
    """FORMAT/PS, empty where there is none."""


def read_genotype(record: VariantRecord, sample: int) -> Genotype | None:
    """The genotype of the sample of this number (from 0), None where the record has no GT.

    Raises `DataError` for a GT that is none, or that names an ALT which is not there.
    """
    if len(record.rest) <= _FORMAT:
        return None
    names, told = record.rest[_FORMAT].split(":"), record.rest[_FORMAT + 1 + sample].split(":")
    values = dict(zip(names, told, strict=False))  # the last values may be left out
    text = values.get("GT")
    if text is None:
        return None
    alleles = []
    for one in re.split(r"[/|]", text.lstrip("/|")):
        if one != "." and not (one.isdecimal() and int(one) <= len(record.alts)):
            what = f"GT {text} names an allele that is not there"
            raise DataError(what, line=record.line, record=record.place, fix="correct the genotype")
        alleles.append(None if one == "." else int(one))
    phase_set = values.get("PS", ".")
    phased = "/" not in text and (len(alleles) > 1 or phase_set != ".")
    return Genotype(tuple(alleles), phased, "" if phase_set == "." else phase_set)
