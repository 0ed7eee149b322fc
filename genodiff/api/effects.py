"""The effect of sequence changes on a model's output: `genodiff.substitution_effect` and others.

Sequences are strings of one length, or a one-hot array (N, 4, L) of A, C, G, T. A model is any
`torch.nn.Module` from such an array to a tensor of N rows, or a `genodiff.Model`. The functions
have the arguments and results of tangermeme's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from genodiff.errors import UsageError
from genodiff.kernels.defaults import own_defaults

if TYPE_CHECKING:
    from torch import Tensor

    from genodiff.scoring.one_hot import OneHotNetwork


class Effect(NamedTuple):
    """The model's outputs before and after the change, N rows each."""

    y_before: Tensor
    y_after: Tensor


def one_hot_network(
    model: Any,
    *,
    outputs: Literal["log_likelihood", "features", "logits"] = "log_likelihood",
    every: int = 8,
) -> OneHotNetwork:
    """Wrap a `genodiff.Model` as a differentiable module on one-hot arrays (N, 4, L).

    `outputs`: "log_likelihood" (N, 1) is the sum over bases of log p(base | the others) in nats,
    with every `every`-th base masked in one pass; "features" (N, D) is the mean input of a head;
    "logits" (N, 4, L) are those of each base. A column of zeros is a masked base. Raises
    `UsageError` for a model of text.
    """
    from genodiff.scoring.one_hot import OneHotNetwork

    trained = getattr(model, "trained", model)
    if not hasattr(trained, "backbone"):
        what = f"an object of type {type(model).__name__} is no model of genodiff"
        raise UsageError(what, fix="give what genodiff.load returns")
    return OneHotNetwork(trained, outputs, every)


def substitution_effect(
    model: Any,
    sequences: Any,
    substitutions: Sequence[Sequence[int | str]] | Tensor,
    *,
    batch_size: int = 32,
) -> Effect:
    """Outputs before and after `substitutions`: rows (sequence, position, base), from 0.

    A base is a letter or its index in ACGT. All rows of one sequence are applied together. Raises
    `UsageError` for rows outside the sequences, and for two at one position.
    """
    from genodiff.scoring.sequence_edits import read_edits, substitute_bases

    array = _read_array(sequences)
    edits = read_edits(substitutions, array.shape, bases=True)
    return _compare(model, array, substitute_bases(array, edits), batch_size)


def deletion_effect(
    model: Any,
    sequences: Any,
    deletions: Sequence[Sequence[int]] | Tensor,
    *,
    left: bool = False,
    batch_size: int = 32,
) -> Effect:
    """Outputs before and after `deletions`: rows (sequence, position), from 0.

    All sequences have one length: the given length minus the largest number of deletions in one of
    them. Longer ones are cut on the right, with `left` on the left. Raises `UsageError` for rows
    outside the sequences, and if nothing would be left.
    """
    from genodiff.scoring.sequence_edits import delete_bases, keep_length, read_edits

    array = _read_array(sequences)
    edits = read_edits(deletions, array.shape, bases=False)
    after = delete_bases(array, edits, left=left)
    return _compare(model, keep_length(array, after.shape[2], left=left), after, batch_size)


def insertion_effect(
    model: Any,
    sequences: Any,
    insertions: Sequence[Sequence[int | str]] | Tensor,
    *,
    left: bool = False,
    batch_size: int = 32,
) -> Effect:
    """Outputs before and after `insertions`: rows (sequence, position, base), from 0.

    A base is inserted before the base at this position of the given sequence. The length is
    unchanged: excess bases are cut on the right, with `left` on the left. Raises `UsageError` for
    rows outside the sequences.
    """
    from genodiff.scoring.sequence_edits import insert_bases, read_edits

    array = _read_array(sequences)
    edits = read_edits(insertions, array.shape, bases=True)
    return _compare(model, array, insert_bases(array, edits, left=left), batch_size)


@own_defaults()
def _read_array(sequences: Any) -> Tensor:
    """(N, 4, L) as float32, of strings or of an array."""
    import torch

    from genodiff.io.sequences import read_records
    from genodiff.scoring.one_hot import encode_one_hot

    kind = getattr(getattr(sequences, "dtype", None), "kind", None)
    if not isinstance(sequences, torch.Tensor) and kind not in [*"biuf"]:
        sequences = encode_one_hot([one.sequence for one in read_records(sequences)])
    array = torch.as_tensor(sequences)
    if array.ndim != 3 or array.shape[1] != 4 or not len(array):
        what = f"the array has the shape {tuple(array.shape)}"
        raise UsageError(what, fix="give (sequences, 4, length), with one sequence at least")
    return array.float()


def _compare(model: Any, before: Tensor, after: Tensor, batch_size: int) -> Effect:
    import torch

    if batch_size < 1:
        raise UsageError(f"batch size {batch_size} is below 1", fix="give 1 or more")
    network = model if isinstance(model, torch.nn.Module) else one_hot_network(model)
    at = next(network.parameters(), before).device
    training = network.training
    network.eval()
    try:
        with torch.no_grad():
            found = [
                torch.cat([network(some.to(at)).cpu() for some in array.split(batch_size)])
                for array in (before, after)
            ]
    finally:
        network.train(training)
    return Effect(*found)
