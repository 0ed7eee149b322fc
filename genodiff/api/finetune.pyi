# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def finetune(
    what: str | pathlib.Path,
    *,
    test: str | pathlib.Path | None = None,
    test_share: float | None = None,
    valid: str | pathlib.Path | None = None,
    sequence: str | None = None,
    label: collections.abc.Sequence[str] = (),
    kind: typing.Literal['binary', 'multiclass', 'multilabel', 'regression'] | None = None,
    similarity: float | None = None,
    drop_missing: bool = False,
    name: str | None = None,
    metric: str | None = None,
    split: typing.Literal['official', 'chrom-holdout', 'dedup', 'homology', 'local', 'partial'] = 'official',
    data: str | pathlib.Path | None = None,
    reference: collections.abc.Mapping[str, str] | None = None,
    task: str = 'all',
    model: collections.abc.Sequence[str] = ('baselines', 'scratch'),
    method: typing.Literal['full', 'frozen', 'probe'] | collections.abc.Sequence[typing.Literal['full', 'frozen', 'probe']] = ('full',),
    max_train: int | None = None,
    seeds: int = 5,
    jobs: int = 1,
    out: str | pathlib.Path | None = None,
    protocol: typing.Literal['paper', 'mdlm'] = 'paper',
    margin: float | None = None,
    grid: bool = False,
    search: int = 0,
    exclude_overlap: typing.Literal['some', 'half', 'all'] | None = None,
    keep_weights: bool | None = None,
    offline: bool = False,
    rc: typing.Literal['auto', 'conjoin', 'average', 'augment', 'none'] | None = None,
    epochs: int | None = None,
    max_steps: int | None = None,
    batch_size: int | None = None,
    lr: float | None = None,
    weight_decay: float | None = None,
    head: str | None = None,
    parts: int | None = None,
    shift: int | None = None,
    dropout: float | None = None,
    mask_share: float | None = None,
    patience: int | None = None,
    ema: float | None = None,
    adapter: str | None = None,
    adapt: int | None = None,
    precision: typing.Literal['fp32', 'bf16'] | None = None,
    max_length: int | None = None,
    device: str = 'auto',
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Fit every model to every task with every seed; what was found, as plain values.

    `what` is a suite (genomic-benchmarks, gue, nt, glue, ...), or your own labelled sequences: a
    table or FASTA with its `test` (and `valid`) part, or a folder or zip with both. `task`, `data`
    (the folder of a suite's files) and `reference` (NAME → FASTA) are for suites; `name`,
    `sequence`, `label`, `kind`, `metric`, `test_share` and `drop_missing` for your own. Validation
    on seed 1 chooses the `head` where it is None or "auto", on more seeds where it has few
    examples.

    The folder `out` is resumed where it exists. Returned are `out`, `rows` (those of its
    results.jsonl that belong to this plan), `files` (RESULTS.md and report.html) and `comparisons`:
    of each task, paired differences with 95 % intervals over seeds and test examples, Holm's
    corrected p values, and a verdict. `ensembles` are rows too: the mean of the predictions of a
    line's seeds, as one answer.

    `keep_weights`: None keeps each new fit for `genodiff.predict`, True fits those again that are
    done without, False keeps none. With `plan` nothing is trained or written, and units, seconds
    and bytes are returned. Raises `UsageError`, `DataError`, `CheckpointError`, `GenodiffError`
    where a unit failed.

    >>> genodiff.finetune("train.csv", test="test.csv", model=["yeast", "baselines"])["rows"]

    Args:
        what: A suite (genomic-benchmarks, gue, nt, glue, ...), or own sequences.
        test: The test part; not needed where the first has both, or with --test-share.
        test_share: The share of one table that tests, such as 0.2: sequences that are alike stay
            together, and the same ones test each time.
        valid: A validation part for every seed, in place of 10 % of train.
        sequence: Column of sequences.
        label: Column of labels; several make a multi-label task.
        kind: What the labels are.
        similarity: With --split homology: sequences are alike from this share of 24-mers on [0.5].
        drop_missing: Leave out, and count, rows without a label, a sequence or a position (empty,
            NA, nan, inf).
        name: What the task is called.
        metric: What chooses the epoch and heads the table.
        split: Which split is used: as published, without equal and overlapping sequences (dedup),
            or with alike sequences (homology) or chromosomes held apart; local and partial are not
            comparable with published numbers.
        data: Folder with the suite's data.
        reference: NAME=FASTA of a genome; repeatable: --reference hg38=hg38.fa.
        task: Name of a task, several with commas, or all.
        model: Repeatable: RUN or NAME=RUN, scratch, scratch:PRESET, adapted:RUN, a baseline's name,
            or baselines [baselines, scratch].
        method: What is trained: all weights (full), the head alone (frozen), or a regression on
            frozen features (probe); repeatable [full].
        max_train: Train on at most this many examples, drawn once and the same for all models.
        seeds: Run seeds 1 to N; each has its own 90/10 split and order.
        jobs: Fits that run in parallel, on the CPU cores or the GPUs.
        out: Folder of the sweep (default: runs/finetune-SUITE); an existing one is resumed.
        protocol: The Caduceus paper's settings, or MDLM's 16,000 steps.
        margin: Call two models equivalent where their difference is shown to be within this margin.
        grid: Try the paper's grid; choose by validation over all seeds.
        search: Let optuna try this many settings on the first seed's validation part.
        exclude_overlap: Leave out, for all models alike, the test sequences that pretraining saw:
            some, half [half, where no word follows] or all of their 24-mers.
        keep_weights: Keep each fit for `genodiff predict` [every new one]; when given, one that is
            done without is fitted again. --no-keep keeps none.
        offline: Never touch the network.
        rc: Reverse complement. auto: none for oriented tasks, conjoin for networks of both strands
            (PS), else average.
        epochs: Passes over the train part.
        max_steps: Maximum number of steps, in place of epochs.
        batch_size: Examples per step.
        lr: Highest learning rate.
        weight_decay: AdamW's weight decay.
        head: How the features of positions are pooled: mean, parts, attention, conv, or auto, which
            validation chooses once for all seeds [auto].
        parts: Head parts: the number of stretches whose means are read [7].
        shift: Training leaves out up to this many bases at each end, drawn anew each epoch.
        dropout: Share of pooled features dropped in training.
        mask_share: Training hides this share of the bases, drawn anew each epoch.
        patience: Stop after this many epochs without a better validation.
        ema: Decay of an average of the weights over steps, such as 0.998; validation judges it, and
            it is kept.
        adapter: Train few weights of a trained network in the place of all, with method full: lora,
            dora, or with options, lora:r=8,alpha=16,on=in_proj+out_proj. What is kept is merged.
        adapt: Models adapted:RUN: steps of masked diffusion on the task's train sequences, without
            labels, before each fit [500].
        precision: Number format; bf16 uses autocast.
        max_length: Read at most this many bases, or tokens of text (default: the task's).
        device: Where to compute: auto, cpu or cuda.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """
