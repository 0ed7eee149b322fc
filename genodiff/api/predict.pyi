# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def predict(
    run: str | pathlib.Path,
    sequences: typing.Any = None,
    *,
    out: str | pathlib.Path = '',
    form: typing.Literal['csv', 'tsv', 'jsonl', 'parquet'] | None = None,
    column: collections.abc.Sequence[str] = (),
    fasta: str | pathlib.Path | None = None,
    region: collections.abc.Sequence[str] = (),
    relatives: collections.abc.Sequence[str | pathlib.Path] = (),
    task: str | None = None,
    model: str | None = None,
    method: str | None = None,
    setting: str | None = None,
    seed: int | None = None,
    ensemble: bool = False,
    batch_size: int = 64,
    shard: str | None = None,
    device: str = 'auto',
    fresh: bool = False,
    plan: bool = False,
    force: bool = False,
    json: bool = False,
) -> typing.Any:
    """The predictions of a fine-tuned model for sequences without labels.

    `run` is the folder of a sweep or of one unit. Of a sweep with several models, `task`, `model`,
    `method`, `setting` and `seed` say which. With `ensemble` the mean of all its seeds is given,
    and `spread`, the standard deviation between them. `sequences` are strings, `SeqRecord`s, a
    mapping from names, or a file ("-" is stdin): FASTA or GenBank, a table (.csv, .tsv, .parquet;
    `column` names its column of sequences), intervals (.bed) of a genome (`fasta`), and for models
    of text sentences, one a line or in a table. A row of BED on - is read as its reverse
    complement. In place of `sequences`, `region` (chr1:1,000-2,000, 1-based and inclusive) says
    which parts of the genome are read.

    Without `out` a frame is returned: name, prediction, and p_CLASS (float32) for each class. With
    `out` (.csv, .tsv, .jsonl, .parquet, "-" for stdout in the format `form`) they are written, in
    bounded memory, with OUT.json beside them, and what that says is returned. What is predicted is
    kept in OUT.partial until `out` is there, and the same call goes on after it.

    A model of `finetune bases` reads a genome (FASTA) and labels each of its bases. `out` is then
    x.gff3 or x.bed, or a folder that has these and a bigWig of each class, strand or track; with
    `shard` a .npy file of a part. Without `out` it is an array of each sequence, (bases, labels).

    Sequences longer than what the fit read are cut as its own were. A file is read to its end
    before the first prediction, so that a fault in it comes at once. On a CPU the values have the
    same bits at any `batch_size` and in any company. Raises `UsageError`, `DataError` with file and
    line, `CheckpointError`, `MachineError`.

    >>> genodiff.predict("runs/labels", ["ACGTACGT", "TTTT"], seed=1)

    Args:
        run: Folder of a sweep, of a unit (one task, model, setting and seed of it), or of `finetune
            bases`.
        sequences: File of sequences; - is stdin (FASTA).
        out: Output: .csv, .tsv, .parquet, .jsonl, or - for CSV on stdout; of a model that labels
            bases a folder, .gff3 or .bed.
        form: The format of stdout [csv].
        column: Column of sequences of a table [sequence, seq]; twice for pairs of sentences.
        fasta: The genome of a BED file, or of --region.
        region: chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.
        relatives: Of a model that labels bases with relatives: their genomes, where they are not
            where they were in training.
        task: Task, where a sweep has several.
        model: Model's name in the sweep, or RUN itself.
        method: full, probe or baseline.
        setting: paper, own, grid, ...
        seed: Seed of the fit, where a sweep has several.
        ensemble: Mean of all seeds, with their spread (standard deviation).
        batch_size: Sequences at a time: changes the speed alone.
        shard: i/n: the i-th of n parts; `genodiff merge` joins them.
        device: Where to compute: auto, cpu or cuda.
        fresh: Do not go on after what is kept in OUT.partial.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
        json: One JSON line on stdout for each row.
    """
