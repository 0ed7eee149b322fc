# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def embed(
    run: str | pathlib.Path,
    sequences: typing.Any,
    *,
    out: str | pathlib.Path,
    bed: str | pathlib.Path | None = None,
    region: collections.abc.Sequence[str] = (),
    features: collections.abc.Sequence[str] = (),
    window: int | None = None,
    stride: int | None = None,
    layer: int | collections.abc.Sequence[int] = (-1,),
    pool: typing.Literal['mean', 'max', 'center', 'none'] = 'mean',
    strand: typing.Literal['average', 'forward', 'both'] = 'average',
    batch_size: int = 32,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    shard: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write the embeddings of windows, with their provenance beside them.

    `run` is a run, a checkpoint or a published folder. `sequences` are strings, `SeqRecord`s or a
    file: each record is a window, unless `bed`, `region` or `features` say otherwise. A row of
    `bed` on - is read as its reverse complement, and so is a feature; with `features`, `bed` is GTF
    or GFF3. `genodiff.Model.embed` gives arrays in memory.

    With `relatives` (or a model that was loaded with them), four channels stand behind the
    network's: which share of the relatives' votes has the base itself, its transition, a
    transversion, or nothing.

    With `shard`, "i/n", the i-th of n parts of the windows is written, and `genodiff.merge` puts
    the parts together. Of a file, what is done is kept in OUT.partial, and the same call goes on
    after it; `fresh` starts anew. Values do not depend on the batch size. With `plan` nothing is
    computed or written, and windows, bases, shape and bytes are returned; else what OUT.json says.
    Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.embed("runs/demo", "reads.fa", out="reads.parquet", pool="max")

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        sequences: FASTA, GenBank or EMBL file, - for stdin; each record is a window unless --bed,
            --region, --features or --window says otherwise.
        out: Ends in .npz, .parquet, .zarr, .csv or .tsv.
        bed: BED file of regions; a row on - is read as its reverse complement.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        features: CDS, or CDS=dnaA: features of a GenBank or EMBL file, by type and name, in their
            own direction, with joined parts as one; with --bed, rows of that GTF or GFF3 file, each
            by itself; one or several.
        window: Cut into pieces of this many bases.
        stride: Bases from one piece to the next (default: --window).
        layer: Layer, 0 (embedding) to n_layer; -1 is the last; one or several [-1].
        pool: Over the bases of a window; none keeps each base.
        strand: Both strands averaged, the window as it stands, or both apart.
        batch_size: Windows at a time: changes the speed, not the figures.
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
