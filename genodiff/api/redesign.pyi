# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def redesign(
    run: str | pathlib.Path | None = None,
    *,
    out: str | pathlib.Path,
    line_width: int = 60,
    sidecar: str | pathlib.Path | None = None,
    label: str | None = None,
    guide: collections.abc.Mapping[str, typing.Any] | None = None,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    screen: str | collections.abc.Sequence[str] | None = None,
    screen_timeout: float | None = None,
    seed: int = 1,
    rules: collections.abc.Mapping[str, typing.Any] | None = None,
    sampler: str | None = None,
    steps: int | None = None,
    temperature: float = 1.0,
    from_noise: float | None = None,
    stride: int | None = None,
    batch_size: int | None = None,
    most_states: int | None = None,
    oracle_flank: int = 0,
    memory: typing.Literal['on', 'off'] | None = None,
    fasta: str | pathlib.Path | None = None,
    circular: collections.abc.Sequence[str] = (),
    bed: str | pathlib.Path | None = None,
    region: collections.abc.Sequence[str] = (),
    template: str | pathlib.Path | None = None,
    n: int | None = None,
    constraints: str | pathlib.Path | None = None,
    vcf: str | pathlib.Path | None = None,
    changes: str | pathlib.Path | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Design regions anew, and write the designs with their edits as VCF and BED.

    The regions `bed` and `region` of the genome `fasta` are designed anew, their flanks being kept.
    `circular` are contigs that go round, beside those of which the file says so. Designs are edits
    along the genome: the strand of a row is not used. Or the open letters of `template` are, N as
    any base and an IUPAC code as its set. `constraints` is a YAML or JSON file of rules. Every
    design satisfies all. What cannot be met is a `UsageError` with a minimal conflict, before the
    network runs.

    Of a genome, the edits go to the files `vcf` (default OUT.vcf), with a sample for each design,
    and `changes` (default OUT.bed).

    `label` is a class of a run that was trained with labels, as in `genodiff.sample`. With a
    `guide` every design satisfies the constraints and is guided. An oracle sees each region, and
    `oracle_flank` bases on both sides of it; of a template, all of it. The network may remember its
    training genome, but for each region's own locus.

    Finished designs are kept in OUT.partial until `out` is there, and the same call goes on after
    them; `fresh` starts anew. With `plan` nothing is drawn. What is returned is what the sidecar
    says. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`, `Interrupted`.

    >>> genodiff.redesign("runs/demo", out="d.fa", fasta="g.fa", region=["chr1:101-160"], n=2)

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model
            (default: the one run under runs/).
        out: FASTA file to write; - for stdout, .gz for BGZF.
        line_width: Bases per line; 0: one line per sequence.
        sidecar: Where the sidecar goes (default: OUT.json, beside the file).
        label: Draw from this class of a run with labels; with cfg, guide to it.
        guide: Guidance by the settings of `genodiff.generate.guide_settings.GuideSettings`, such as
            {"guidance": "smc", "oracle": score}.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        screen: Command that sees the FASTA file, as its last argument, before anything is written;
            another exit status than 0 refuses it.
        screen_timeout: Seconds that --screen may take [no limit].
        seed: Seed of every random draw.
        rules: Constraints by the names of the flags, such as {"avoid": ["GGTCTC"], "max_edits": 5}.
        sampler: ancestral, confidence, first-hitting [the objective's own].
        steps: Steps per window (256).
        temperature: 1 is the model's own law.
        from_noise: Begin with what stands there, noised to this time (0.1: little, 1: all of it),
            in place of nothing.
        stride: New bases per window beyond the trained length (default: half of it).
        batch_size: Records at a time: changes the speed, never the bytes.
        most_states: States that the constraints of a region may need (default 8,388,608).
        oracle_flank: Bases on both sides of a region that the oracle sees too.
        memory: on: with a memory of the training genome, each window's own locus left out (default:
            on for a run of train --memory).
        fasta: The genome that the regions are of.
        circular: A contig that goes round; a GenBank file or [topology=circular] in a FASTA header
            says so by itself. Constraints and windows cross its origin, and so may a region,
            pX:290-10.
        bed: BED file of regions to design. The strand column is not used: designs are edits along
            the genome, and --protein says which way a gene is read.
        region: As --bed: chr1:1,000-2,000, 1-based and inclusive; one or several.
        template: FASTA file in which N is any base, an IUPAC code one of its set.
        n: Designs of each region (default 1).
        constraints: YAML or JSON file with more constraints.
        vcf: The edits, a sample for each design (default: OUT.vcf).
        changes: BED file of what changed (default: OUT.bed).
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """
