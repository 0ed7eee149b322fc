"""Which records of a file are scored: those of regions, and of one shard of several."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from genodiff.io.regions import parse_region
from genodiff.io.variants import VariantRecord


class RecordSelection:
    """Records that overlap one of the regions (all, where there is none), in the file's order."""

    def __init__(self, regions: Sequence[str], contigs: dict[str, int]) -> None:
        self._contigs = contigs
        self._regions: dict[str, list[tuple[int, int]]] = {}
        for text in regions:
            contig, start, end = parse_region(text, contigs)
            self._regions.setdefault(contig, []).append((start, end))

    def choose(self, records: Iterable[VariantRecord]) -> Iterator[VariantRecord]:
        """Those of `records` that are chosen."""
        return (record for record in records if self.holds(record))

    def choose_shard(
        self, records: Iterable[VariantRecord], cut: tuple[int, int]
    ) -> Iterator[VariantRecord]:
        """Those of one shard, by the numbers of the first and the last + 1."""
        return islice(self.choose(records), *cut)

    def holds(self, record: VariantRecord) -> bool:
        """Whether this record is one of them; a telomere belongs to the base beside it."""
        if not self._regions:
            return True
        first, last = record.pos - 1, record.pos - 1 + len(record.ref)
        length = self._contigs.get(record.chrom, 0)
        if record.is_at_telomere(length):
            first, last = (0, 1) if record.pos == 0 else (length - 1, length)
        return any(s < last and first < e for s, e in self._regions.get(record.chrom, ()))
