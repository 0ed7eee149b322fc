"""Whole designed records with their annotation, for GenBank files.

A record of a GenBank or EMBL source keeps its features; each designed region and each run of edits
is a feature more. A FASTA source has no annotation to keep, and its records are whole too.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from genodiff.design.design_regions import DesignGroup, Source
from genodiff.design.edit_files import Note
from genodiff.errors import UsageError
from genodiff.generate.drawing import name_filling
from genodiff.io.genbank_writer import Mark, format_genbank, mark_changes, read_annotated

_MOST = 50_000_000


class Constructs:
    """The `n` designs of each contig that has regions, in place."""

    def __init__(self, source: Source, n: int) -> None:
        self._source, self._n = source, n
        self._whole: dict[str, list[bytearray]] = {}
        self._marks: dict[str, list[Mark]] = {}

    def note(self, more: Note) -> Note:
        """Return a function that puts a group's designs in place, and then calls `more`."""

        def place(
            group: DesignGroup,
            name: Callable[[int, int], str],
            before: bytes,
            designs: Sequence[bytes],
        ) -> None:
            contig, size = group.contig, self._source.contigs[group.contig]
            if contig not in self._whole:
                self._begin(contig, size)
            for whole, design in zip(self._whole[contig], designs, strict=True):
                for at, letter in enumerate(design, group.start):
                    whole[at % size] = letter
            for start, end in group.regions:
                about = {"label": f"redesigned {name(start, end)}", "note": "genodiff redesign"}
                start, end = start % size, (end - 1) % size + 1
                spans = [(start, end)] if start < end else [(start, size), (0, end)]
                self._marks[contig] += [Mark(*span, "misc_feature", about) for span in spans]
            more(group, name, before, designs)

        return place

    def _begin(self, contig: str, size: int) -> None:
        total = size * self._n + sum(len(one) for some in self._whole.values() for one in some)
        if total > _MOST:
            what = f"GenBank output holds whole records: {total:,} bases, at most {_MOST:,}"
            raise UsageError(what, fix="give --out NAME.fa")
        letters = self._source.fetch(contig, 0, size)
        self._whole[contig] = [bytearray(letters) for _ in range(self._n)]
        self._marks[contig] = []

    def format(self, records: Iterable[Any]) -> bytes:
        """Draw `records`, which notes their designs, and return the GenBank text of all."""
        for _ in records:
            pass
        annotated = read_annotated(self._source.path)
        text = []
        for number, (contig, designs) in enumerate(self._whole.items()):
            before = self._source.fetch(contig, 0, self._source.contigs[contig])
            for copy, design in enumerate(designs):
                name = name_filling(contig, self._n, number * self._n + copy)
                marks = [*self._marks[contig], *mark_changes(before, bytes(design))]
                own = annotated.get(contig)
                circular = contig in self._source.circular
                text.append(
                    format_genbank(name, "", bytes(design), marks, source=own, circular=circular)
                )
        return b"".join(text)
