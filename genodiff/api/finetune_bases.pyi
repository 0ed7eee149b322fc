# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def finetune_bases(
    run: str | pathlib.Path,
    fasta: str | pathlib.Path,
    *,
    out: str | pathlib.Path,
    genes: str | pathlib.Path | None = None,
    classes: str | pathlib.Path | None = None,
    track: collections.abc.Sequence[str] = (),
    types: collections.abc.Sequence[str] = (),
    all_as: str = '',
    stranded: bool = False,
    mask_shared: bool = False,
    fill: bool = False,
    within: str | pathlib.Path | None = None,
    valid: collections.abc.Sequence[str] = (),
    test: collections.abc.Sequence[str] = (),
    head: typing.Literal['linear', 'conv', 'unet'] = 'conv',
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    chain: bool = False,
    ends: typing.Literal['codons', 'any'] = 'codons',
    loss: typing.Literal['poisson', 'mse'] | None = None,
    class_power: float = 0.0,
    core: int = 4096,
    context: int = 1024,
    method: typing.Literal['full', 'frozen'] = 'full',
    adapter: str | None = None,
    scratch: bool = False,
    epochs: int = 3,
    max_steps: int | None = None,
    batch_size: int = 4,
    lr: float = 0.001,
    patience: int | None = None,
    ema: float = 0.0,
    seed: int = 0,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Fine-tune a network to label each base of a genome, and keep the model in the folder `out`.

    `fasta` is the genome. One of three says what its bases are: `genes` (GFF3, GTF, GenBank or
    BED12; the states of coding genes, on both strands), `classes` (the names of BED rows, or rows
    of GFF3 and GTF of the `types`) or `track` (NAME=FILE, bigWig or bedGraph; NAME+ and NAME- are
    the strands of one). Contigs that a file says nothing of are unknown, and so are letters other
    than A, C, G and T. `within` keeps the labels of intervals alone.

    Labels are learned in windows: a scored core, with context on both sides that is read only.
    `valid` chooses the epoch, `test` is measured once, at the end; both are contigs or parts of
    them, which training never sees the labels of. Without `valid` it is the last tenth of each
    contig. With `relatives` the head also reads how many of them have each base, which `predict`
    then needs as well. With `chain`, genes are learned as one path (a conditional random field).

    A fit that is stopped goes on from OUT.partial to the same bits. What is returned is what
    OUT/labeller.json says. `genodiff predict` and `genodiff.load` read the folder. Raises
    `UsageError`, `DataError` with file and line, `CheckpointError`, `MachineError`.

    >>> genodiff.finetune_bases("yeast", "genome.fa", genes="genes.gff3", out="runs/genes",
    ...                         test=["chrXVI"], epochs=2)

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        fasta: The genome: a FASTA file.
        out: Folder of the model.
        genes: Coding genes: GFF3, GTF, GenBank, EMBL or BED12.
        classes: Classes of bases: BED by its names, or GFF3 and GTF with --types.
        track: NAME=FILE: values of bases, bigWig or bedGraph; one or several.
        types: Rows of --classes that are read, such as exon.
        all_as: One name for all rows of --classes.
        stranded: Two classes of each: on + and on -.
        mask_shared: Bases of two classes are unknown; without it they are an error.
        fill: A base without a value has 0 where its --track has any on the contig.
        within: BED file: labels elsewhere are unknown.
        valid: What chooses the epoch: a contig, or a part of one (chr1:1-50,000); one or several
            [the last tenth of each].
        test: What is measured at the end: a contig, or a part of one (chr1:1-50,000); one or
            several.
        head: What reads the network's features.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        chain: Genes as one path: the steps between states are learned, too (CRF).
        ends: Genes begin with ATG and end with a stop codon, or anywhere.
        loss: Of --track: poisson (counts, the default) or mse (any values).
        class_power: Weight of a class: 0 weighs bases alike, 1 classes alike.
        core: Scored bases of a window.
        context: Bases beside the core, on each side.
        method: full: all weights; frozen: the head alone.
        adapter: Few weights in the place of all: lora, or lora:r=8,on=in_proj+out_proj.
        scratch: Random weights in the place of RUN's.
        epochs: Passes over the training windows.
        max_steps: Steps at most, in place of epochs.
        batch_size: Windows of a step.
        lr: Highest learning rate.
        patience: Stop after so many epochs without a better validation.
        ema: Decay of the average of weights that is judged and kept.
        seed: Seed of every random draw.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """
