# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def sample(
    run: str | pathlib.Path | None = None,
    *,
    out: str | pathlib.Path | None = None,
    line_width: int = 60,
    sidecar: str | pathlib.Path | None = None,
    label: str | None = None,
    guide: collections.abc.Mapping[str, typing.Any] | None = None,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    screen: str | collections.abc.Sequence[str] | None = None,
    screen_timeout: float | None = None,
    seed: int = 1,
    sampler: str | None = None,
    sampler_options: collections.abc.Mapping[str, float] | None = None,
    steps: int | typing.Literal['auto'] | None = 'auto',
    temperature: float = 1.0,
    top_p: float = 1.0,
    stride: int | None = None,
    allow_n: bool = False,
    batch_size: int | None = None,
    memory: typing.Literal['on', 'off', 'novel'] | None = None,
    block: int | None = None,
    fasta: str | pathlib.Path | None = None,
    n: int | None = None,
    length: int | None = None,
    template: str | pathlib.Path | None = None,
    bed: str | pathlib.Path | None = None,
    region: collections.abc.Sequence[str] = (),
    only_filled: bool = False,
    prompt: str | None = None,
    bits_lost: float | None = None,
    domain: typing.Literal['dna', 'text'] | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Write new sequences, or fillings of a template, with their provenance beside them.

    `run` is a run, a checkpoint or a published folder; None is the one run under runs/. What is
    written is FASTA (.gz is BGZF), of text a text file; "-" is stdout. New sequences are 16, of
    text 4. `template` is a FASTA file whose N and ? are filled, every other letter kept. With `bed`
    or `region` only these bases of the template are filled, whatever stands there and on whatever
    strand, and `only_filled` writes them alone. Of text, `prompt` is how each sample begins, and a
    template has gaps such as [[20]].

    `bits_lost` chooses the steps by the curve of the valid split. Record i depends on (`seed`, i)
    alone. `label` is a class of a run that was trained with labels: its law is drawn from. With cfg
    it is what the law of all is guided to. `screen` is handed all samples before anything is
    written, and nothing is kept in OUT.partial then.

    Finished records are kept in OUT.partial until `out` is there, and the same call goes on after
    them; `fresh` starts anew. With `plan` nothing is written, and evaluations and seconds are
    returned, with lines to read under "lines"; else what the sidecar says. Raises `UsageError`,
    `DataError`, `CheckpointError`, `MachineError`, `Interrupted`.

    >>> genodiff.sample("runs/demo", out="new.fa", n=4, length=200)

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model
            (default: the one run under runs/).
        out: The same, and of text the file to write.
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
        sampler: ancestral, first-hitting, confidence, entropy-bounded, strand-symmetric, remdm-cap,
            remdm-rescale, remdm-loop, p2, analytic, left-to-right, both-ends, uniform-ancestral
            [the objective's own].
        sampler_options: A setting of the sampler, as eta=0.1; one or several.
        steps: Steps per window (auto: 256, or --bits-lost).
        temperature: 1 is the model's own law, 0 its likeliest bases.
        top_p: Draw among the likeliest bases that hold this much probability.
        stride: New bases per window beyond the trained length (default: half of it).
        allow_n: Let N be drawn as well as A, C, G and T.
        batch_size: Records at a time: changes the speed, never the bytes.
        memory: on: with a memory of the training genome; novel: and no record copies more of it
            than 9 in 10 held-out sequences (default: on for a run of train --memory). Of --bed and
            --region each window leaves its own locus out; novel is not for them.
        block: Bases of a block, which knows all before it and nothing after it (default: as
            trained).
        fasta: FASTA file to write; - for stdout, .gz for BGZF. With --bed or --region and no
            --template: the genome that they are of.
        n: Sequences (default 16), or fillings of each template (default 1).
        length: Bases per sequence (default: the trained length); more grow by windows.
        template: FASTA file (- for stdin) whose N and ? are filled, every other letter kept.
        bed: BED file: fill these bases of --template alone, whatever stands there; N elsewhere
            stays. The strand column is not used: bases are filled in place.
        region: As --bed: chr1:1,000-2,000, 1-based and inclusive; one or several.
        only_filled: Write the regions of --bed and --region, not the genome.
        prompt: Of text: how each sample begins.
        bits_lost: Choose the steps: the fewest that lose so many bits per 1,000 bases, against one
            base at a time.
        domain: What the checkpoint is expected to hold.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """
