# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def evaluate(
    run: typing.Any,
    *,
    out: str | pathlib.Path = '',
    split: typing.Literal['test', 'valid', 'train', 'all'] = 'test',
    fasta: str | pathlib.Path | None = None,
    text: str | pathlib.Path | None = None,
    recipe: collections.abc.Sequence[str] | None = None,
    bed: str | pathlib.Path | None = None,
    repeats: int = 1,
    t_steps: collections.abc.Sequence[int] | None = None,
    max_windows: int | None = None,
    max_minutes: float | None = None,
    soft_masked: bool = True,
    baselines: bool = True,
    mixture: bool | None = None,
    context: typing.Literal['window', 'contig'] = 'window',
    memory: typing.Literal['on', 'off', 'exhaustive'] | None = None,
    order: str | None = None,
    order_options: collections.abc.Mapping[str, float] | None = None,
    order_evaluations: int | None = None,
    block: int | None = None,
    batch_size: int = 32,
    seed: int = 1,
    offline: bool = False,
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    strains: bool = False,
    domain: typing.Literal['dna', 'text'] | None = None,
    shard: str | None = None,
    keep: bool = True,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Score the split, print what was found and add it to RUN/eval.json.

    The answer is bits per base (of text: per byte) with interval and baselines, as plain values:
    the keys of `genodiff eval --json`; `nelbo_nats` is in nats per base. `run` may be a loaded
    model. `fasta`, `bed`, `text` and `recipe` take the place of the run's own data; several recipes
    ("NAME" or "NAME=FILE") give {"suite": {recipe: values}}. Of another genome the test split is
    scored by default, so that the Markov lines are fitted on its train part and nothing has seen
    what is scored; `split="all"` scores every base, beside lines of the run's own train split.
    `memory` "on" gives the network alone beside it.

    `keep` adds the result to RUN/eval.json, unless `run` is a published folder or one that you may
    not write to; `out`, a .json file, takes its place. A file there that holds no JSON object is
    replaced with `force` only. With `shard`, the draws of that part of the windows are written to
    `out`, and `genodiff.merge` makes the whole evaluation of them; what is done is kept in
    OUT.partial, and `fresh` starts anew. With `plan` nothing is scored, and what it would take is
    returned. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.evaluate("runs/demo", max_windows=100)["bits_per_base"]

    Args:
        run: Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model.
        out: File.json to add the evaluation to, in place of RUN/eval.json; with --shard the .npy
            file to write.
        split: Which split is scored; all: every base of the file.
        fasta: FASTA file in place of the one that the run was trained on.
        text: Text file or folder in place of the one that the run was trained on.
        recipe: Zero-shot: another text recipe, NAME or NAME=FILE_OR_FOLDER; again for several.
        bed: BED file whose 4th column names the splits; the strand is not used.
        repeats: Masks for each window: more make the interval narrower.
        t_steps: The bound of sampling in so many steps, e.g. 10 20: masks each window again
            (default: what the masks of the bound itself can tell, at no cost).
        max_windows: Score at most this many windows, evenly spread over the split.
        max_minutes: Score as many windows, evenly spread, as fit into about this time, which the
            baselines share; those that take more than half of it are left out.
        soft_masked: 0: soft-masked bases are seen but not counted.
        baselines: What counting achieves; counted on the train split, kept in the cache.
        mixture: Mixture of context orders 1 to 24 (default: where it takes little time).
        context: What a window sees: itself, or also the bases around it, in blocks of 65,536 bases
            (or eight windows, if that is more); a model of --block sees all before it.
        memory: on: the network with a memory of its training genome, beside the network alone
            (default: on for a run of train --memory); exhaustive: every place of the genome is
            tried, not only those that its index finds.
        order: Also the exact likelihood of drawing the windows in this order: left-to-right, both-
            ends, confidence, entropy-bounded, random, or another sampler's.
        order_options: A setting of the order, as at_once=4, bound=0.5 or steps=256 (default: one
            base with each evaluation); one or several.
        order_evaluations: Of a fixed order take so many evaluations of each window, evenly spread
            [all].
        block: Bases of a block, which knows all before it and nothing after it (default: as
            trained).
        batch_size: Windows at a time: changes the speed, not the figures.
        seed: Seed of every random draw.
        offline: Never touch the network.
        relatives: Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv),
            or what `genodiff data relatives` built; one or several. split:FILE reads each species
            of a file, or each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to
            the target (PAF, chain or MAF) instead of a search; a MAF alone is the genomes of its
            rows.
        strains: Also use genomes of the same species. Held-out evaluation is then not valid: the
            answers are in the reference set.
        domain: What the run is expected to hold.
        shard: i/n: the draws of the i-th of n parts, to --out; `genodiff merge` joins.
        keep: Add the result to RUN/eval.json.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """
