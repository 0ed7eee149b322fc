"""Scores of variants in memory: `m.score`, by its longer name `m.score_variants`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.api.score import make_score_frame
from genodiff.api.score_settings import ScoreSettings
from genodiff.kernels.defaults import own_defaults
from genodiff.scoring.methods import AUTO
from genodiff.scoring.methods.nelbo import MAX_EVALUATIONS, STANDARD_ERROR

if TYPE_CHECKING:
    import polars as pl


class ModelScores:
    """What `genodiff score` writes, as a frame."""

    memory: Literal["on", "off"] | None

    @own_defaults()
    def score_variants(
        self,
        variants: Any,
        *,
        fasta: str | Path,
        method: str = AUTO,
        se: float = STANDARD_ERROR,
        max_evaluations: int = MAX_EVALUATIONS,
        context: int | Literal["2x"] | None = None,
        exact: bool = False,
        unit: Literal["nats", "bits"] = "nats",
        region: Sequence[str] = (),
        background: int | str = "off",
        haplotypes: bool = False,
        features: str | Path | None = None,
        genetic_code: Sequence[str] = (),
        memory: Literal["on", "off"] | None = None,
        seed: int = 1,
        batch_size: int | None = None,
    ) -> pl.DataFrame:
        """Scores of variants: a row for each ALT, in their order, as `genodiff score` writes them.

        `variants` is a file (VCF, BCF, CSV, TSV, parquet), a frame of polars or pandas with chrom,
        pos (from 1), ref and alt, or rows of these four: tuples, named tuples, mappings, records of
        pysam. One row may stand alone. `fasta` is the genome that they are of.
        `score` is the log-likelihood of ALT minus that of REF, in `unit`: positive where ALT is
        likelier. It is null where `flags` says why there is none. `method` auto is llr for one
        base, chain for spans of up to 8, nelbo beyond. `se` is the standard error, in nats, that
        nelbo goes on to; after `max_evaluations` of one variant it stops above it, with a flag
        (se_above_wanted). `context` is in bases (default: the trained length); "2x" scores at
        double context as well, and flags what moves. `exact` gives every SNV an evaluation of its
        own.
        `region` (chr1:1,000-2,000) takes the variants there alone. `background`, "on" or a number,
        ranks each score among so many random variants of the genome: percentile, z and phred.
        `haplotypes` scores the phased variants of one copy (GT, PS) together too: the column of
        this name has a row for each copy that carries the ALT. `memory` "on" mixes in what the
        training genome holds, but for each window's own locus (None: where the run was trained with
        a memory). `features`, an annotation (GFF3, GTF, BED12, GenBank), adds the columns gene,
        consequence, protein and transcripts; `genetic_code` (chrM=2) says a contig's code.
        Raises `UsageError` for a model of text, `DataError` for variants of another genome.
        """
        model: Any = self
        return make_score_frame(
            model.trained,
            variants,
            fasta=fasta,
            asked=ScoreSettings(
                method, se, max_evaluations, context, exact, unit, batch_size, seed,
                memory or self.memory,
            ),
            region=region,
            background=background,
            haplotypes=haplotypes,
            features=features,
            genetic_code=genetic_code,
        )  # fmt: skip

    score = score_variants
