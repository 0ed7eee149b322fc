# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def ism(
    run: str | pathlib.Path,
    sequences: typing.Any,
    *,
    out: str | pathlib.Path,
    region: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    context: int | None = None,
    unit: typing.Literal['nats', 'bits'] = 'nats',
    memory: typing.Literal['on', 'off'] | None = None,
    batch_size: int = 8,
    genes: str | pathlib.Path | None = None,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    label: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write the scores of all substitutions of regions.

    `sequences` is a FASTA file, or strings and records. `region` or `bed` say which part; without
    them each sequence is a region. A row of `bed` on - is read as its reverse complement: its
    scores run in the row's direction, and its bases are of that strand; positions are the genome's.

    A score is log p(base | all others) − log p(reference | all others) in `unit`, what `genodiff
    score --exact` gives for the same SNV. `memory` "on" mixes in what the training genome holds,
    but for each window's own locus. With a fine-tuned model it is the change of the log-odds of the
    class `label`, or of the value of a regression, of the region by itself.

    Rows are kept in OUT.partial until `out` is there, and the same call goes on after them; `fresh`
    starts anew. With `plan` nothing is computed, and evaluations are counted. What is returned is
    what the sidecar OUT.json says. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.

    >>> genodiff.ism("runs/demo", "genome.fa", out="map.html", region=["chr1:1,000-1,200"])

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        sequences: FASTA file; each record is a region unless --region or --bed says so.
        out: .tsv, .parquet, .npz, .svg, .png, .pdf or .html; - for a table on stdout.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        bed: BED file of regions; a row on - is read as its reverse complement.
        context: Bases of a window (default: the trained length).
        unit: Unit of what is written; 1 bit is 0.69 nats.
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        batch_size: Windows at a time: changes the speed, never the map.
        genes: GFF3, GTF, BED or GenBank file whose genes are drawn below the picture.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        label: Of a fine-tuned classifier: the class whose log-odds change.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def dependencies(
    run: str | pathlib.Path,
    sequences: typing.Any,
    *,
    out: str | pathlib.Path,
    region: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    context: int | None = None,
    unit: typing.Literal['nats', 'bits'] = 'nats',
    memory: typing.Literal['on', 'off'] | None = None,
    batch_size: int = 8,
    genes: str | pathlib.Path | None = None,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    every: int = 16,
    exact: bool = False,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write the dependency maps of regions.

    `sequences` is a FASTA file, or strings and records. `region` or `bed` say which part, at most
    1,024 bases each; without them each sequence is a region. A row of `bed` on - is read as its
    reverse complement, as in `genodiff.ism`.

    The dependency of target j on source i is the largest change of the log-odds of any base at j,
    with j masked, by putting another base at i, in `unit`. Targets `every` bases apart are masked
    together, and what that changes is measured and told; `exact` masks each by itself.

    Rows are kept in OUT.partial until `out` is there, and the same call goes on after them; `fresh`
    starts anew. With `plan` nothing is computed, and evaluations are counted. What is returned is
    what the sidecar OUT.json says. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.

    >>> genodiff.dependencies("runs/demo", "genome.fa", out="map.html", region=["chr1:1-200"])

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        sequences: FASTA file; each record is a region unless --region or --bed says so.
        out: .tsv, .parquet, .npz, .svg, .png, .pdf or .html; - for a table on stdout.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        bed: BED file of regions; a row on - is read as its reverse complement.
        context: Bases of a window (default: the trained length).
        unit: Unit of what is written; 1 bit is 0.69 nats.
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        batch_size: Windows at a time: changes the speed, never the map.
        genes: GFF3, GTF, BED or GenBank file whose genes are drawn below the picture.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        every: Targets this many bases apart are masked together; what that changes is told.
        exact: Mask each target by itself: 3 evaluations a pair.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """

def tracks(
    run: str | pathlib.Path,
    sequences: typing.Any,
    *,
    out: str | pathlib.Path,
    region: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    every: int | None = None,
    context: int | None = None,
    memory: typing.Literal['on', 'off'] | None = None,
    batch_size: int = 8,
    formats: collections.abc.Sequence[str] | None = None,
    genome: str | None = None,
    email: str = 'nobody@example.org',
    genes: str | pathlib.Path | None = None,
    track: collections.abc.Sequence[str] = (),
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    shard: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write the tracks of a genome, or of regions of it.

    Tracks are p(A), p(C), p(G) and p(T) given all other bases, the heights of a logo, entropy,
    information and the surprisal of the reference, in bits; with `relatives` also what these say
    alone, how many of their votes agree, and each relative. `sequences` is a FASTA file, or strings
    and records. `region` or `bed` say which part; without them all is read. Each base is read once,
    wherever regions overlap. Tracks run along the genome: the strand of a row is not used.

    A hub is for UCSC's `genome`, such as hg38, whose names its contigs then have, or without it
    brings its own sequence; `email` stands in it. Each base is masked by itself, or with `every=m`
    each m-th base of a tile at once, which is quicker; how far the two differ is measured and told.

    What is read is kept in OUT.partial until `out` is there, and the same call goes on after it;
    `fresh` starts anew. With `plan` nothing is computed. `force` renames a folder that genodiff did
    not write. What is returned is what the sidecar says. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.

    >>> genodiff.tracks("runs/demo", "genome.fa", out="tracks", region=["chr1:1,000-9,000"])

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        sequences: FASTA file; all of it is read unless --region or --bed says so.
        out: Folder to write; with --shard a .npy file of the part.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        bed: BED file of regions; the strand column is not used: tracks run along the genome.
        every: Mask every N-th base in one pass (approximate; default: each by itself). Smaller N is
            faster: 8 needs 8 passes per window, 64 needs 64.
        context: Bases of a window (default: the trained length).
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        batch_size: Windows at a time: changes the speed, never the map.
        formats: bigwig, bedgraph, bedgraph.gz, npz, parquet, svg, png, pdf, html, wig, wig.gz;
            bigwig comes with a track hub, svg, png and pdf are of one region; one or several
            [bigwig, and html up to 100,000 bases].
        genome: UCSC's name of the genome, such as hg38, for the hub, whose names contigs then have
            (default: the hub brings the sequence).
        email: Address that stands in the hub.
        genes: GFF3, GTF, BED or GenBank file whose genes are drawn below the picture.
        track: NAME=FILE: values that are drawn below, bigWig or bedGraph; or a folder that
            `genodiff predict` wrote: all its values, and its genes; one or several.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """
