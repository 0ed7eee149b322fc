"""What was changed: a VCF with a sample for each design, and a BED file of the changed bases.

Applying sample i of the VCF to the reference gives design i, for example with `bcftools consensus
-s design1`. A genotype is haploid. A reference letter that is not A, C, G or T is N in the VCF.
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple

from genodiff.design.design_regions import DesignGroup, Source
from genodiff.design.request import REQUEST
from genodiff.io.atomic import open_atomic
from genodiff.io.file_kinds import encode_text
from genodiff.io.target import describe_file, is_stream
from genodiff.version import __version__

Note = Callable[[DesignGroup, Callable[[int, int], str], bytes, Sequence[bytes]], None]
"""What is done with the designs of a group: see `EditWriter.add`."""


class EditFiles(NamedTuple):
    """The names of the files; None is not written."""

    vcf: str | None = None
    bed: str | None = None

    def describe(self) -> list[bool]:
        """Which are written."""
        return [self.vcf is not None, self.bed is not None]

    def open(self, stack: ExitStack, source: Source, n: int, request: str) -> "EditWriter":
        """A writer; the files get their names when `stack` is closed without an error."""
        vcf = None if self.vcf is None else stack.enter_context(open_atomic(self.vcf))
        bed = None if self.bed is None else stack.enter_context(open_atomic(self.bed))
        return EditWriter(vcf, bed, source, n, request)

    def seal(self) -> dict[str, Any]:
        """What the sidecar says of the files."""
        named = {"vcf": self.vcf, "bed": self.bed}
        return {
            kind: {"path": Path(path).name, **describe_file(path)}
            for kind, path in named.items()
            if path is not None and not is_stream(path)
        }


class EditWriter:
    """Writes the edits of one group after the other."""

    def __init__(
        self, vcf: IO[bytes] | None, bed: IO[bytes] | None, source: Source, n: int, request: str
    ) -> None:
        self._vcf, self._bed, self._n, self._source = vcf, bed, n, source
        self._held: list[tuple[int, str]] = []
        self._rows: list[tuple[int, int, str]] = []
        self._contig = ""
        if vcf is not None:
            names = "\t".join(f"design{i + 1}" for i in range(n))
            lines = [
                "##fileformat=VCFv4.3",
                f"##source=genodiff {__version__} redesign",
                f"##reference={Path(source.path).name}",
                f"##{REQUEST}{request}",
                *(f"##contig=<ID={c},length={size}>" for c, size in source.contigs.items()),
                '##FORMAT=<ID=GT,Number=1,Type=String,Description="Allele of the design">',
                f"#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t{names}",
            ]
            vcf.write(encode_text("".join(f"{line}\n" for line in lines)))
        if bed is not None:
            bed.write(f"# {REQUEST}{request}\n".encode())

    def add(
        self,
        group: DesignGroup,
        name: Callable[[int, int], str],
        before: bytes,
        designs: Sequence[bytes],
    ) -> None:
        """The edits of a group, whose letters were `before` and are `designs`.

        `name` gives that of a region.

        Those of a circular contig are held until all of it is there: the VCF stays in order.
        """
        if group.contig != self._contig:
            self.finish()
        self._contig, length = group.contig, self._source.contigs[group.contig]
        old = before.upper().decode("ascii")
        new = [letters.upper().decode("ascii") for letters in designs]
        changed = [{i for i, letter in enumerate(text) if letter != old[i]} for text in new]
        if self._vcf is not None:
            for at in sorted(set().union(*changed)):
                ref = old[at] if old[at] in "ACGT" else "N"
                alts = list(dict.fromkeys(text[at] for text in new if text[at] != old[at]))
                alleles = [old[at], *alts]
                genotypes = [str(alleles.index(text[at])) for text in new]
                place = (group.start + at) % length
                fields = [group.contig, str(place + 1), ".", ref, ",".join(alts)]
                fields += [".", "PASS", ".", "GT", *genotypes]
                self._held.append((place, "\t".join(fields) + "\n"))
        if self._bed is not None:
            for region in group.regions:
                label = name(*region)
                for copy, places in enumerate(changed):
                    inside = [i for i in sorted(places) if region[0] <= i + group.start < region[1]]
                    inside = [(i + group.start) % length for i in inside]
                    for _, run in groupby(enumerate(inside), lambda pair: pair[1] - pair[0]):
                        some = [i for _, i in run]
                        self._rows.append((some[0], some[-1] + 1, f"{label}.{copy + 1}"))
        if group.contig not in self._source.circular:
            self.finish()

    def finish(self) -> None:
        """Write what is held."""
        if self._vcf is not None:
            self._vcf.write("".join(row for _, row in sorted(self._held)).encode())
        if self._bed is not None:
            rows = ("\t".join(map(str, (self._contig, *row))) for row in sorted(self._rows))
            self._bed.write("".join(f"{row}\n" for row in rows).encode())
        self._held, self._rows = [], []
