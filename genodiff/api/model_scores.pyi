# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

class ModelScores:
    """What `genodiff score` writes, as a frame; and how likely sequences are."""

    def score_variants(
        self,
        /,
        variants: typing.Any,
        *,
        method: str = 'auto',
        se: float = 0.25,
        max_evaluations: int = 512,
        context: int | typing.Literal['2x'] | None = None,
        longest: int = 1024,
        exact: bool = False,
        batch_size: int | None = None,
        memory: typing.Literal['on', 'off'] | None = None,
        seed: int = 1,
        fasta: str | pathlib.Path,
        unit: typing.Literal['nats', 'bits'] = 'nats',
        background: int | str = 'off',
        haplotypes: bool = False,
        features: str | pathlib.Path | None = None,
        genetic_code: collections.abc.Sequence[str] = (),
        region: collections.abc.Sequence[str] = (),
    ) -> typing.Any:
        """Scores of variants: a row for each ALT, in their order, as `genodiff score` writes them.

        `variants` is a file (VCF, BCF, CSV, TSV, parquet), a frame of polars or pandas with chrom, pos
        (from 1), ref and alt, or rows of these four: tuples, named tuples, mappings, records of pysam.
        One row may stand alone.

        `score` is the log-likelihood of ALT minus that of REF, in `unit`: positive where ALT is
        likelier. It is null where `flags` says why there is none. `method` auto is llr for one base,
        chain for spans of up to 8, nelbo beyond; nelbo that ends above `se` has the flag
        se_above_wanted. `background` adds percentile, z and phred. `haplotypes` adds a column with a
        row for each copy that carries the ALT. `features` adds gene, consequence, protein and
        transcripts. Raises `UsageError` for a model of text, `DataError` for variants of another
        genome.

        >>> m.score([("chr1", 1200, "A", "G")], fasta="genome.fa")["score"]

        Args:
            variants: VCF, BCF, CSV, TSV, JSON lines or parquet (chrom, pos, ref, alt); - for stdin.
            method: llr: the bases that differ, masked together; chain: unmasked one after the other;
                nelbo: the bound of the whole window; votes: of relatives, how many have each base (one
                base for another alone); headcount: as votes, each relative counting once, and more
                where the places around change quickly; profiles: of relatives, how well a mutation-
                selection model in its reading frame tolerates it; auto: llr for one base, chain for
                spans of up to 8, nelbo beyond.
            se: Standard error, in nats, that nelbo goes on to.
            max_evaluations: Evaluations of one variant after which nelbo stops above --se, with a flag.
            context: Bases of a window (default: the trained length); 2x scores at double context as
                well, and flags what moves.
            longest: Bases that may differ in one variant: a longer one is not scored, but counted.
            exact: Give every SNV an evaluation of its own.
            batch_size: Windows at a time: changes speed and memory, never the scores (default: about
                32,768 bases).
            memory: on: with a memory of the training genome, each window's own locus left out (default:
                on for a run of train --memory).
            seed: Seed of every random draw.
            fasta: The genome that the variants are of.
            unit: Unit of what is written; 1 bit is 0.69 nats.
            background: Rank scores among random variants of the genome: off, on (10,000), or how many.
                They cost evaluations once, and are kept (see --plan).
            haplotypes: Score the phased variants of one copy together too, from GT and PS: as FORMAT
                fields of a VCF, or a column of a table. They cost evaluations (see --plan).
            features: Genes (GFF3, GTF, BED12, GenBank): puts the consequence of each variant beside its
                score (missense, splice donor, ...).
            genetic_code: CONTIG=N, with --features: NCBI's number of a contig's genetic code, where the
                annotation does not say it; chrM=2. May be given several times.
            region: Only variants in chr1:1,000-2,000, 1-based and inclusive; one or several.
        """

    def score(
        self,
        /,
        variants: typing.Any,
        *,
        method: str = 'auto',
        se: float = 0.25,
        max_evaluations: int = 512,
        context: int | typing.Literal['2x'] | None = None,
        longest: int = 1024,
        exact: bool = False,
        batch_size: int | None = None,
        memory: typing.Literal['on', 'off'] | None = None,
        seed: int = 1,
        fasta: str | pathlib.Path,
        unit: typing.Literal['nats', 'bits'] = 'nats',
        background: int | str = 'off',
        haplotypes: bool = False,
        features: str | pathlib.Path | None = None,
        genetic_code: collections.abc.Sequence[str] = (),
        region: collections.abc.Sequence[str] = (),
    ) -> typing.Any:
        """Scores of variants: a row for each ALT, in their order, as `genodiff score` writes them.

        `variants` is a file (VCF, BCF, CSV, TSV, parquet), a frame of polars or pandas with chrom, pos
        (from 1), ref and alt, or rows of these four: tuples, named tuples, mappings, records of pysam.
        One row may stand alone.

        `score` is the log-likelihood of ALT minus that of REF, in `unit`: positive where ALT is
        likelier. It is null where `flags` says why there is none. `method` auto is llr for one base,
        chain for spans of up to 8, nelbo beyond; nelbo that ends above `se` has the flag
        se_above_wanted. `background` adds percentile, z and phred. `haplotypes` adds a column with a
        row for each copy that carries the ALT. `features` adds gene, consequence, protein and
        transcripts. Raises `UsageError` for a model of text, `DataError` for variants of another
        genome.

        >>> m.score([("chr1", 1200, "A", "G")], fasta="genome.fa")["score"]

        Args:
            variants: VCF, BCF, CSV, TSV, JSON lines or parquet (chrom, pos, ref, alt); - for stdin.
            method: llr: the bases that differ, masked together; chain: unmasked one after the other;
                nelbo: the bound of the whole window; votes: of relatives, how many have each base (one
                base for another alone); headcount: as votes, each relative counting once, and more
                where the places around change quickly; profiles: of relatives, how well a mutation-
                selection model in its reading frame tolerates it; auto: llr for one base, chain for
                spans of up to 8, nelbo beyond.
            se: Standard error, in nats, that nelbo goes on to.
            max_evaluations: Evaluations of one variant after which nelbo stops above --se, with a flag.
            context: Bases of a window (default: the trained length); 2x scores at double context as
                well, and flags what moves.
            longest: Bases that may differ in one variant: a longer one is not scored, but counted.
            exact: Give every SNV an evaluation of its own.
            batch_size: Windows at a time: changes speed and memory, never the scores (default: about
                32,768 bases).
            memory: on: with a memory of the training genome, each window's own locus left out (default:
                on for a run of train --memory).
            seed: Seed of every random draw.
            fasta: The genome that the variants are of.
            unit: Unit of what is written; 1 bit is 0.69 nats.
            background: Rank scores among random variants of the genome: off, on (10,000), or how many.
                They cost evaluations once, and are kept (see --plan).
            haplotypes: Score the phased variants of one copy together too, from GT and PS: as FORMAT
                fields of a VCF, or a column of a table. They cost evaluations (see --plan).
            features: Genes (GFF3, GTF, BED12, GenBank): puts the consequence of each variant beside its
                score (missense, splice donor, ...).
            genetic_code: CONTIG=N, with --features: NCBI's number of a contig's genetic code, where the
                annotation does not say it; chrM=2. May be given several times.
            region: Only variants in chr1:1,000-2,000, 1-based and inclusive; one or several.
        """

    def log_likelihood(
        self,
        /,
        sequences: typing.Any,
        *,
        order: str = 'left-to-right',
        order_options: collections.abc.Mapping[str, float] | None = None,
        memory: typing.Literal['on', 'off'] | None = None,
        batch_size: int = 32,
        seed: int = 1,
    ) -> typing.Any:
        """log p (n,) in nats of each of `sequences`, exactly: that of drawing it in an order.

        `sequences` are strings, records or a FASTA file, none longer than the trained length; one
        string is one sequence. The order is a sampler's, whose law this is: over all sequences of a
        length, e to this power sums to 1. Letters other than A, C, G and T are given, and not counted.
        Raises `UsageError`, `DataError`; `CheckpointError` where a memory is not to be had.

        >>> m.log_likelihood(["ACGTACGT", "GATTACA"], order="confidence").shape
        (2,)

        Args:
            sequences: Strings, records or a FASTA file.
            order: left-to-right, both-ends, confidence, entropy-bounded, random, ...
            order_options: Settings of the order, as {"at_once": 4} or {"steps": 256} [one base at a
                time].
            memory: The memory of the training genome [on for a run of train --memory].
            batch_size: Sequences at a time: changes the speed only.
            seed: Seed of every random draw.
        """
