"""Genetic load: of each sample, the derived alleles that it carries and how constrained they are.

Of each record with one base for another, the ancestral base is the likeliest of REF and the ALTs
(`memory/column_rates.py`); every other base that a copy of a sample carries is derived. Where it is
ancestral with a probability below `LEAST`, nothing is judged. `load` sums rejected substitutions
(`rs`, never below 0) over derived alleles: a homozygote counts twice. `score` sums log-likelihood
ratios of the derived bases against the ancestral one, in nats: negative where they are unlikely.

Each sample has a row for each class of consequences (`all` without an annotation, and for all of
them), and what could not be judged is counted: alleles of records without an ancestral base, and
missing calls.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from genodiff.io import atomic
from genodiff.io.phasing import read_genotype
from genodiff.io.variants import Allele
from genodiff.variants.consequences import Consequences
from genodiff.variants.request import LOAD_COLUMNS
from genodiff.variants.scored_variants import ScoredRecord, find_ancestral

LEAST = 0.9
ALL = "all"


@dataclass
class _Counts:
    """Of one sample and class; `derived` and `ancestral` are alleles, the next two are sites."""

    derived: int = 0
    homozygous: int = 0
    heterozygous: int = 0
    load: float = 0.0
    load_homozygous: float = 0.0
    score: float = 0.0
    ancestral: int = 0
    unjudged: int = 0
    missing: int = 0


class LoadTally:
    """Counts the records that pass; with `genes`, by the most severe consequence of the ALTs."""

    def __init__(self, samples: Sequence[str], genes: Consequences | None = None) -> None:
        self._samples, self._genes = list(samples), genes
        self._counts: dict[tuple[int, str], _Counts] = defaultdict(_Counts)

    def watch(self, scored: Iterable[ScoredRecord]) -> Iterator[ScoredRecord]:
        """The records as they come."""
        for one in scored:
            self.add(one)
            yield one

    def add(self, scored: ScoredRecord) -> None:
        """Count one record; one without ALT has no alleles to judge."""
        record = scored.record
        if not record.alts:
            return
        bases = [record.ref.upper(), *(alt.upper() for alt in record.alts)]
        base, chance = find_ancestral(scored)
        known = base is not None and chance is not None and chance >= LEAST
        ancestral = bases.index(base) if base is not None and known else -1
        # What an allele is against the ancestral one: scores are of ALT against REF.
        values = [0.0, *(one.value or 0.0 for one in scored.scores)]
        sites = [max(one.rs or 0.0, 0.0) for one in scored.scores]
        names = [self._classify(one) for one in scored.judged]
        for sample in range(len(self._samples)):
            called = read_genotype(record, sample)
            if called is None:
                continue
            for name in {ALL, *(self._name(called.alleles, names, ancestral),)}:
                counts = self._counts[sample, name]
                counts.missing += sum(one is None for one in called.alleles)
                alleles = [one for one in called.alleles if one is not None]
                if not known:
                    counts.unjudged += len(alleles)
                    continue
                derived = [one for one in alleles if one != ancestral]
                counts.ancestral += len(alleles) - len(derived)
                if not derived:
                    continue
                both = len(derived) == len(called.alleles)  # of a haploid, its one copy
                counts.derived += len(derived)
                counts.homozygous += both
                counts.heterozygous += not both
                own = sum(sites[(one or ancestral) - 1] for one in derived)
                counts.load += own
                counts.load_homozygous += own * both
                counts.score += sum(values[one] - values[ancestral] for one in derived)

    def _classify(self, judged: object) -> str:
        if self._genes is None or not isinstance(judged, Allele):
            return ALL
        terms = str(self._genes.describe(judged)["consequence"])
        return terms.partition("&")[0] or "not annotated"

    @staticmethod
    def _name(alleles: Sequence[int | None], names: Sequence[str], ancestral: int) -> str:
        """The class of a genotype: that of the first ALT that tells it from the ancestral base."""
        for one in alleles:
            if one is not None and one != ancestral:
                return names[(one or max(ancestral, 1)) - 1]
        return names[0]

    def describe(self) -> dict[str, Any]:
        """How many samples, alleles that they carry, and of these not judged; the columns."""
        every = [one for (_, name), one in self._counts.items() if name == ALL]
        unjudged = sum(one.unjudged for one in every)
        alleles = unjudged + sum(one.derived + one.ancestral for one in every)
        counts = {"samples": len(self._samples), "alleles": alleles, "unjudged": unjudged}
        return {**counts, "columns": LOAD_COLUMNS}

    def write(self, path: str | Path) -> None:
        """Write the table, samples in the order of the file. Raises `MachineError`."""
        rows = ["\t".join(LOAD_COLUMNS)]
        for (sample, name), counts in sorted(
            self._counts.items(), key=lambda one: (one[0][0], one[0][1] != ALL, one[0][1])
        ):
            cells = [self._samples[sample], name]
            for value in vars(counts).values():
                cells.append(f"{value:.4f}" if isinstance(value, float) else str(value))
            rows.append("\t".join(cells))
        atomic.write_text(path, "\n".join(rows) + "\n")
