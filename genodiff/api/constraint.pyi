# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def constraint(
    genome: typing.Any,
    *,
    out: str | pathlib.Path,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    region: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    neutral: str | pathlib.Path | None = None,
    fdr: float = 0.05,
    maf: bool = False,
    formats: collections.abc.Sequence[str] | None = None,
    assembly: str | None = None,
    email: str = 'nobody@example.org',
    strains: bool = False,
    shard: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Compute the evolutionary constraint of each base from unaligned related genomes.

    No model, alignment, tree or annotation is needed. `genome` is a FASTA file. Each related genome
    is indexed and fitted at its first use. The output folder holds tracks: rejected substitutions
    (`rs`, GERP's scale), `phylop` (phyloP's CONACC scale), `conserved` (probability of the slow
    classes), `rate` (posterior mean; 1 is neutral), `coverage` and tree `length`; elements.bed,
    conserved elements with a false discovery rate; and a UCSC track hub. A base where no related
    genome lies has no value. Rate 1 is that of the sites of `neutral`, else of third codon
    positions or the fastest class of the fitted model.

    Work is saved in OUT.partial until `out` is there, and the same call resumes; `fresh` starts
    anew. With `plan` nothing is indexed, fitted or read. Returns the sidecar. Raises `UsageError`,
    `DataError`, `MachineError`.

    >>> genodiff.constraint("genome.fa", relatives=["relative.fa"], out="constraint")

    Args:
        genome: FASTA file of the genome.
        out: Folder to write; with --shard a .npy file of the part.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        bed: BED file of regions; tracks run along the genome.
        neutral: BED file of neutral sites, whose rate is 1.
        fdr: False discovery rate of conserved elements.
        maf: Also write the alignment that was scored, alignment.maf.
        formats: bigwig, bedgraph, bedgraph.gz, npz, parquet, wig, wig.gz; one or several [bigwig].
        assembly: UCSC's name of the genome for the hub (default: the hub brings the sequence).
        email: Address that stands in the hub.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """
