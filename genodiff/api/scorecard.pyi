# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def scorecard(
    samples: typing.Any = None,
    *,
    run: str | pathlib.Path | None = None,
    real: typing.Any = None,
    train: typing.Any = None,
    most: int = 1000,
    html: str | pathlib.Path | None = None,
    seed: int = 1,
    offline: bool = False,
    motifs: str | pathlib.Path | None = None,
    embed: str | pathlib.Path | None = None,
    split: typing.Literal['test', 'valid'] = 'test',
    fasta: str | pathlib.Path | None = None,
    cnn: bool = False,
    device: str = 'auto',
    force: bool = False,
) -> dict[str, typing.Any]:
    """How near generated DNA is to real DNA, beside a floor and Markov sequence, as plain values.

    `samples` is a file, or sequences as strings or records; `most` of them are drawn by `seed` in
    one pass. Real sequence is the `split` of the data of `run` (a run folder; `fasta` is its genome
    where it has moved), or what `real` holds. Then `train`, a run folder or sequences, is what
    Markov models count and what copies are looked for in. `motifs` is a MEME, JASPAR or TRANSFAC
    file. `embed` is a run whose embeddings are compared (default: `run`). `cnn` adds a
    convolutional discriminator, which takes minutes.

    `sets` holds the same figures of the samples, of other real sequence of the same size, and of
    Markov sequence of orders 1, 5 and 8; `findings` says where samples are off the floor. `html` is
    a page to write, and `force` replaces a file there that genodiff did not write. Raises
    `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.scorecard("samples.fa", run="runs/demo")["findings"]

    Args:
        samples: FASTA file of generated DNA.
        run: Run whose held-out split is the real sequence, and whose train split is searched for
            copies; with --designs, the model that was not guided.
        real: FASTA file of real sequence, in place of a run's.
        train: With --real: FASTA file, or run, that the generator was trained on.
        most: Samples to measure; more are drawn from.
        html: Page to write, with pictures.
        seed: Seed of every random draw.
        offline: Never touch the network.
        motifs: MEME, JASPAR or TRANSFAC file of motifs to count.
        embed: Run whose embeddings are compared (default: that of --model).
        split: Split of the run's data that is held out.
        fasta: The run's FASTA file, where it has moved.
        cnn: A convolutional discriminator too (minutes).
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def compare_designs(
    designs: collections.abc.Mapping[str, typing.Any] | None = None,
    *,
    run: str | pathlib.Path | None = None,
    real: typing.Any = None,
    train: typing.Any = None,
    most: int = 1000,
    html: str | pathlib.Path | None = None,
    seed: int = 1,
    offline: bool = False,
    oracle: str | pathlib.Path | collections.abc.Callable[..., typing.Any] | None = None,
    judge: str | pathlib.Path | collections.abc.Callable[..., typing.Any] | None = None,
    form: typing.Literal['strings', 'ids', 'one-hot'] | None = None,
    label: str | None = None,
    lower: bool = False,
    repeats: int = 8,
    device: str = 'auto',
    force: bool = False,
) -> dict[str, typing.Any]:
    """A Pareto table of `designs`, sequences by the name of their method, as plain values.

    `oracle` is what guided them and `judge` an oracle that did not: callables,
    "module:function", or folders of fine-tuned models (with `label` for the log-odds of a class;
    `form` is what a callable takes). `lower` says that small scores are wanted. `run` is a model
    that was not guided: its bits per base, an upper bound from `repeats` masks, are the
    naturalness. `real` are natural sequences, of the designs' length or longer, and `train` what
    is searched for copies: sequences or a run. Of each set, `most` are drawn by `seed`.

    `rows` has a row for each method, then "real". `html` is a page to write. Raises `UsageError`,
    `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.compare_designs({"smc": "smc.fa", "ga": "ga.fa"}, real="promoters.fa")["rows"]

    Args:
        designs: NAME=FASTA, designs of a method; give it several times, with --real.
        run: Run whose held-out split is the real sequence, and whose train split is searched for
            copies; with --designs, the model that was not guided.
        real: FASTA file of real sequence, in place of a run's.
        train: With --real: FASTA file, or run, that the generator was trained on.
        most: Samples to measure; more are drawn from.
        html: Page to write, with pictures.
        seed: Seed of every random draw.
        offline: Never touch the network.
        oracle: With --designs: what guided them, MODULE:FUNCTION or a fine-tuned unit.
        judge: With --designs: an oracle that guided none of them.
        form: What the functions take [one-hot for a torch module, else strings].
        label: The class of fine-tuned oracles whose log-odds count.
        lower: With --designs: small scores are wanted.
        repeats: Masks of each sequence.
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """

def scorecard_or_designs(
    samples: typing.Any = None,
    designs: collections.abc.Mapping[str, typing.Any] | None = None,
    *,
    run: str | pathlib.Path | None = None,
    real: typing.Any = None,
    train: typing.Any = None,
    most: int = 1000,
    html: str | pathlib.Path | None = None,
    seed: int = 1,
    offline: bool = False,
    motifs: str | pathlib.Path | None = None,
    embed: str | pathlib.Path | None = None,
    split: typing.Literal['test', 'valid'] = 'test',
    fasta: str | pathlib.Path | None = None,
    cnn: bool = False,
    oracle: str | pathlib.Path | collections.abc.Callable[..., typing.Any] | None = None,
    judge: str | pathlib.Path | collections.abc.Callable[..., typing.Any] | None = None,
    form: typing.Literal['strings', 'ids', 'one-hot'] | None = None,
    label: str | None = None,
    lower: bool = False,
    repeats: int = 8,
    device: str = 'auto',
    force: bool = False,
) -> dict[str, typing.Any]:
    """Print the figures of samples, of real sequence and of Markov sequence.

    Args:
        samples: FASTA file of generated DNA.
        designs: NAME=FASTA, designs of a method; give it several times, with --real.
        run: Run whose held-out split is the real sequence, and whose train split is searched for
            copies; with --designs, the model that was not guided.
        real: FASTA file of real sequence, in place of a run's.
        train: With --real: FASTA file, or run, that the generator was trained on.
        most: Samples to measure; more are drawn from.
        html: Page to write, with pictures.
        seed: Seed of every random draw.
        offline: Never touch the network.
        motifs: MEME, JASPAR or TRANSFAC file of motifs to count.
        embed: Run whose embeddings are compared (default: that of --model).
        split: Split of the run's data that is held out.
        fasta: The run's FASTA file, where it has moved.
        cnn: A convolutional discriminator too (minutes).
        oracle: With --designs: what guided them, MODULE:FUNCTION or a fine-tuned unit.
        judge: With --designs: an oracle that guided none of them.
        form: What the functions take [one-hot for a torch module, else strings].
        label: The class of fine-tuned oracles whose log-odds count.
        lower: With --designs: small scores are wanted.
        repeats: Masks of each sequence.
        device: Where to compute: auto, cpu or cuda.
        force: Overwrite a file that genodiff did not write itself.
    """
