# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def score(
    run: str | pathlib.Path,
    variants: typing.Any,
    *,
    out: str | pathlib.Path = '',
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
    shard: str | None = None,
    allow_mismatches: bool = False,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    page: bool = False,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
    json: bool = False,
) -> dict[str, typing.Any]:
    """Write the scores of a file of variants to `out`; what its sidecar says.

    `variants` is VCF, BCF or a table (CSV, TSV, parquet) with chrom, pos (from 1), ref and alt; "-"
    is stdin. `out` ends in .vcf, .tsv, .parquet or .jsonl, or in .vcf.gz or .tsv.gz, which get an
    index where the records are sorted; "-" is stdout, as JSON lines with `json`. Records stay in
    their order, and none is dropped: an ALT without a score has its reason.

    With `shard`, "i/n", the i-th of n parts of the records is written, and `genodiff.merge` puts
    the parts together. Scores are kept in OUT.partial until `out` is there, and the same call goes
    on after them; `fresh` starts anew. With `plan` nothing is computed, and counts are returned.
    Random variants of a `background` are kept in the cache folder.

    A file most of whose records do not fit the genome is refused. Where some do not, `out` is
    written whole, they are marked in it, and `DataError` is raised at the end, unless
    `allow_mismatches`. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.score("runs/demo", "variants.vcf", fasta="genome.fa", out="scored.vcf")

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        variants: VCF, BCF, CSV, TSV, JSON lines or parquet (chrom, pos, ref, alt); - for stdin.
        out: .vcf, .tsv, .parquet or .jsonl; .vcf.gz and .tsv.gz get an index; - for stdout.
        method: llr: the bases that differ, masked together; chain: unmasked one after the other;
            nelbo: the bound of the whole window; votes: of relatives, how many have each base (one
            base for another alone); headcount: as votes, each relative counting once, and more
            where the places around change quickly; profiles: of relatives, how well a mutation-
            selection model of the position tolerates each base; auto: llr for one base, chain for
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
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        allow_mismatches: Records that do not fit the FASTA are marked, and are no error.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        page: Also write OUT.html: what `genodiff report OUT --model RUN` draws.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
        json: One JSON line on stdout for each row.
    """
