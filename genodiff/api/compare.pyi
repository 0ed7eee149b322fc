# Made by `python -m tests.jobs.stubs` of the requests; a test compares.

import collections.abc
import pathlib
import typing

def compare(
    runs: collections.abc.Sequence[str | pathlib.Path],
    *,
    fasta: str | pathlib.Path | None = None,
    bed: str | pathlib.Path | None = None,
    text: str | pathlib.Path | None = None,
    split: typing.Literal['test', 'valid', 'train', 'all'] = 'test',
    max_windows: int | None = None,
    repeats: int = 1,
    against: str | None = None,
    margin: float | None = None,
    out: str | pathlib.Path | None = None,
    seed: int = 1,
    offline: bool = False,
    device: str = 'auto',
    plan: bool = False,
    force: bool = False,
) -> dict[str, typing.Any]:
    """Two or more finished runs scored on the same bases; the results as plain values.

    The row of a run has bits per base (of text: per byte) with its interval, and its paired
    difference from the run `against` (default: the first); `pairs` has every two runs, with p
    values, Holm's correction and a verdict; runs are called equivalent only where their difference
    is shown to be within ±`margin` bits.

    Differences are paired by window. Runs of other lengths read the same bases in windows of their
    own; text of other tokens is refused. `out` (default: under runs/) holds table.md, compare.html,
    results.json and the figures of all windows, so the same comparison again only reads; files
    there that genodiff did not write are replaced with `force` only. With `plan` nothing is scored,
    and what it would take is returned. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.

    >>> genodiff.compare(["runs/a", "runs/b"], margin=0.01)["pairs"]

    Args:
        runs: Two or more run folders.
        fasta: FASTA in place of the first run's.
        bed: BED file whose 4th column names the splits; the strand is not used.
        text: File or folder of text in place of the first run's.
        split: Which split of the first run's data finished runs are scored on.
        max_windows: At most so many windows, evenly spread.
        repeats: Masks for each window.
        against: Run that the others are set against (default: the first).
        margin: Call two models equivalent where their difference is shown to be within this margin.
        out: Where tables go (default: runs/compare-RUN-RUN).
        seed: Seed of every random draw.
        offline: Never touch the network.
        device: Where to compute: auto, cpu or cuda.
        plan: Say what would be done, and stop.
        force: Overwrite a file that genodiff did not write itself.
    """
