"""Reference genomes and transcripts of a benchmark's coordinates, by the benchmark's names.

A benchmark may say `I` where the file says `chrI`, or leave out a transcript's version: a
`Reference` knows how to get from one to the other. Strand "-" means the reverse complement; ""
counts as "+".
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from genodiff.alphabet import reverse_complement
from genodiff.data.fetch import fetch
from genodiff.data.recipe import Recipe, Source
from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.tasks.examples import Coordinates


class ReferenceGenome(Source):
    """One FASTA file.

    A region is looked up under its own name, then `rename[name]`, then `prefix + name`. With
    `versioned`, names in the file end in `.1`, `.2`, ..., which the benchmark leaves out. `holdout`
    names the contigs that test under `--split chrom-holdout`.
    """

    prefix: str = ""
    rename: dict[str, str] = Field(default_factory=dict)
    versioned: bool = False
    holdout: tuple[str, ...] = ()

    def contig(self, region: str, known: dict[str, Any]) -> str | None:
        """The file's name for `region`, or None."""
        names = (region, self.rename.get(region, region), self.prefix + region)
        return next((name for name in names if name in known), None)


def find_reference(
    name: str, reference: ReferenceGenome, given: Mapping[str, Path], *, offline: bool
) -> Path:
    """The file of a reference: the user's, or the fetched one. Raises `DataError`."""
    if name in given:
        return given[name]
    source = Source.model_validate(reference.model_dump(include=set(Source.model_fields)))
    try:
        return fetch(Recipe(name=name, sources=(source,)), offline=offline)[0]
    except DataError as fault:
        fix = f"give your own copy with --reference {name}=FILE"
        raise DataError(fault.what, fix=fix) from None


def read_sequences(
    path: Path, reference: ReferenceGenome, coordinates: Coordinates
) -> Iterator[bytes]:
    """The upper-case sequence of each interval, on its strand.

    Raises `DataError` for a contig or an interval that the file does not have.
    """
    with Genome(path) as genome:
        cut = reference.versioned
        known = {name.rsplit(".", 1)[0] if cut else name: name for name in genome.contigs}
        names: dict[str, str] = {}
        places = zip(*(values.tolist() for values in coordinates), strict=True)
        for wanted, start, end, strand in places:
            if wanted not in names:
                found = reference.contig(wanted, known)
                if found is None:
                    what = f"has no contig '{wanted}', which the coordinates name"
                    raise DataError(what, file=path, fix="give the right assembly")
                names[wanted] = known[found]
            letters = genome.fetch(names[wanted], start, end).upper()
            yield bytes(reverse_complement(letters)) if strand == "-" else letters  # type: ignore[arg-type]
