"""DNA as one-hot arrays (N, 4, L) of A, C, G, T, and networks that take them.

A column of zeros is a base that is not known: N in letters, and the mask to a network. A column may
also hold shares of several bases; a network then reads the mean of their embeddings, and gradients
with respect to the array are those of this mean. That is what attribution methods need.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from genodiff.alphabet import DNA
from genodiff.errors import DataError, UsageError
from genodiff.runs.trained_model import TrainedModel

Outputs = Literal["log_likelihood", "features", "logits"]
OUTPUTS: tuple[Outputs, ...] = ("log_likelihood", "features", "logits")


def encode_one_hot(sequences: Sequence[str | bytes]) -> Float[Tensor, "N 4 L"]:
    """Sequences of one length as an array; any letter but A, C, G, T is a column of zeros.

    Raises `DataError` for letters that are no DNA and for several lengths.
    """
    rows = [DNA.encode(sequence) for sequence in sequences]
    if len({len(row) for row in rows}) > 1:
        raise DataError("the sequences have several lengths", fix="give sequences of one length")
    ids = torch.from_numpy(np.stack(rows).astype(np.int64)) if rows else torch.zeros(0, 0)
    return torch.stack([ids == target for target in DNA.targets], 1).float()


class OneHotNetwork(nn.Module):
    """A model's network on one-hot arrays, differentiable: a model as tangermeme takes it.

    Of a log-likelihood, a network that reads one strand is asked on both.
    """

    def __init__(
        self, model: TrainedModel, outputs: Outputs = "log_likelihood", every: int = 8
    ) -> None:
        super().__init__()
        if model.alphabet.domain != "dna":
            what = f"the model is of {model.alphabet.domain}, and one-hot arrays are of DNA"
            raise UsageError(what, fix="give a run of DNA")
        if outputs not in OUTPUTS:
            raise UsageError(f"'{outputs}' is no output", fix=f"give one of {', '.join(OUTPUTS)}")
        if every < 2:
            raise UsageError(f"every {every} is below 2", fix="give 2 or more")
        if not isinstance(getattr(model.backbone, "embedding", None), Tensor):
            raise UsageError("the network has no table of embeddings", fix="give another run")
        self.backbone, self.outputs, self.every = model.backbone, outputs, every
        alphabet = model.alphabet
        self._targets, self._mask_id = list(alphabet.targets), alphabet.mask_id
        self._turned = (
            [self._targets.index(alphabet.complement[i]) for i in self._targets]
            if alphabet.complement is not None
            else None
        )

    def forward(self, X: Float[Tensor, "N 4 L"]) -> Tensor:
        """`outputs` of each row. Raises `UsageError` for an array of another shape."""
        if X.ndim != 3 or X.shape[1] != len(self._targets):
            what = f"the array has the shape {tuple(X.shape)}"
            raise UsageError(what, fix="give (sequences, 4, length)")
        X = X.to(self._table.dtype)
        if self.outputs == "features":
            return self._read(X, self.backbone.features).mean(1)
        if self.outputs == "logits":
            return self._read(X, self.backbone)[..., self._targets].transpose(1, 2)
        total = self._log_likelihood(X)
        if self._turned is not None and not self.backbone.paired:
            total = (total + self._log_likelihood(self._turn(X))) / 2
        return total[:, None]

    @property
    def _table(self) -> Tensor:
        table = self.backbone.embedding
        assert isinstance(table, Tensor)  # judged at the start
        return table

    def _log_likelihood(self, X: Tensor) -> Tensor:
        at = torch.arange(X.shape[2], device=X.device) % self.every
        total = X.new_zeros(len(X))
        for phase in range(min(self.every, X.shape[2])):
            hidden = at == phase
            logits = self._read(X * ~hidden, self.backbone)[:, hidden][..., self._targets]
            total = total + (logits.log_softmax(-1) * X[..., hidden].transpose(1, 2)).sum((1, 2))
        return total

    def _read(self, X: Tensor, read: Callable[..., Tensor]) -> Tensor:
        """What `read` gives for ids whose embeddings are those of `X`."""
        ids = torch.tensor(self._targets, device=X.device)[X.argmax(1)]
        ids = ids.masked_fill(X.sum(1) == 0, self._mask_id)
        with _SoftEmbedding(self._table, lambda rows: self._embed(X, rows)):
            return read(ids, X.new_zeros(len(X)))

    def _embed(self, X: Tensor, rows: int) -> Tensor:
        """(rows, L, D): of the strands one after the other, where the network reads both."""
        both = X if rows == len(X) else torch.cat([X, self._turn(X)])
        weights = both.transpose(1, 2)
        known = weights @ self._table[self._targets]
        return known + (1 - weights.sum(-1, keepdim=True)) * self._table[self._mask_id]

    def _turn(self, X: Tensor) -> Tensor:
        return X.flip(2)[:, self._turned]


def one_hot_network(
    model: Any, *, outputs: Outputs = "log_likelihood", every: int = 8
) -> OneHotNetwork:
    """Wrap a `genodiff.Model` as a differentiable module on one-hot arrays (N, 4, L).

    `outputs`: "log_likelihood" (N, 1) is the sum over bases of log p(base | the others) in nats,
    with every `every`-th base masked in one pass; "features" (N, D) is the mean input of a head;
    "logits" (N, 4, L) are those of each base, meaningful where it is masked: a column of zeros.
    Raises `UsageError` for a model of text.
    """
    trained = getattr(model, "trained", model)
    if not hasattr(trained, "backbone"):
        what = f"an object of type {type(model).__name__} is no model of genodiff"
        raise UsageError(what, fix="give what genodiff.load returns")
    return OneHotNetwork(trained, outputs, every)


class _SoftEmbedding(TorchFunctionMode):
    """Gives `embed(rows)` in place of rows of one table."""

    def __init__(self, table: Tensor, embed: Callable[[int], Tensor]) -> None:
        super().__init__()
        self._table, self._embed = table, embed

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.embedding and len(args) > 1 and args[1] is self._table:
            return self._embed(len(args[0]))
        return func(*args, **(kwargs or {}))
