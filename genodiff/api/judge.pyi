# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def judge(
    samples: typing.Any,
    *,
    judge: str | pathlib.Path,
    reference: bool = True,
    repeats: int = 8,
    seed: int = 1,
    offline: bool = False,
    device: str = 'auto',
) -> dict[str, typing.Any]:
    """Perplexity of samples under the model in `judge`, with entropy and diversity, plain values.

    `samples` is a file as `genodiff sample` writes it, or sequences of DNA as strings or records.
    `figure` is "exact" of an autoregressive judge, and "bound" of a masked one: perplexity is then
    at most so much, estimated from `repeats` masks for each window. `real` holds the same of as
    many real windows of the judge's test split, `sampling` what the samples' sidecar says. Raises
    `UsageError`, `DataError`, `CheckpointError`.

    >>> genodiff.judge("samples.fa", judge="runs/ar")["samples"]["perplexity"]

    Args:
        samples: FASTA of DNA, or text with <|endoftext|> lines between samples, as `sample` writes
            it.
        judge: Run folder of the judge: autoregressive (exact) or masked (an upper bound).
        reference: The same figures of as many real windows of the judge's test split.
        repeats: Masks for each window, where the judge is masked.
        seed: Seed of every random draw.
        offline: Never touch the network.
        device: Where to compute: auto, cpu or cuda.
    """
