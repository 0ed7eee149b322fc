"""A convolutional network tuned by validation: the CNN baseline on the sequence.

Motif detectors of a chosen width, a second convolution, the maximum and the mean activation in each
of a chosen number of stretches, and a linear layer. One stretch detects a motif anywhere; more
stretches locate it. With `both_strands` a training sequence is reverse-complemented at random, and
a prediction is the mean of the scores of both strands. AdamW with a cosine schedule; the best epoch
on the validation part.

The architecture follows DeepBind and Basset (Alipanahi et al., 2015; Kelley et al., 2016).
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from genodiff.counter import Purpose, uniforms
from genodiff.finetuning.cnn import CnnPredictor, CnnShape, keep_best_epoch
from genodiff.finetuning.fit import measure_scale
from genodiff.settings import Settings
from genodiff.tasks.examples import Examples

Floats = NDArray[np.float64]

SECOND_WIDTH, POOL = 7, 4

_TURNED = torch.tensor([3, 2, 1, 0, 4])


class MotifSettings(Settings):
    """All settings of a network and its fit, except data and seed."""

    filters: Annotated[int, Field(ge=1)] = 64
    width: Annotated[int, Field(ge=3)] = 13
    stretches: Annotated[int, Field(ge=1)] = 1
    both_strands: bool = True
    rate: Annotated[float, Field(gt=0)] = 2e-3
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.2
    decay: Annotated[float, Field(ge=0)] = 0.01
    epochs: Annotated[int, Field(ge=1)] = 16
    batch: Annotated[int, Field(ge=2)] = 64


class MotifCnn(nn.Module):
    """(B, L) letters → (B, outputs). The first tensors drawn depend only on the seed."""

    def __init__(self, settings: MotifSettings, n_out: int, seed: int) -> None:
        super().__init__()
        f = settings.filters
        self.settings = settings
        self.motifs = nn.Conv1d(4, f, settings.width, padding=settings.width // 2, bias=False)
        self.pairs = nn.Conv1d(f, f, SECOND_WIDTH, padding=SECOND_WIDTH // 2, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm1d(f), nn.BatchNorm1d(f)])
        self.out = nn.Linear(2 * f * settings.stretches, n_out)
        with torch.no_grad():
            for i, weight in enumerate((self.motifs.weight, self.pairs.weight, self.out.weight)):
                bound = math.sqrt(3 / math.prod(weight.shape[1:]))
                drawn = torch.from_numpy(uniforms(seed, Purpose.INIT, i, weight.numel()))
                weight.copy_(bound * (2 * drawn.reshape(weight.shape) - 1))
            self.out.bias.zero_()

    def forward(self, letters: Tensor, kept: Tensor | None = None) -> Tensor:
        """Scores of each sequence; `kept` multiplies the pooled features (dropout)."""
        x = F.one_hot(letters, 5)[..., :4].to(self.motifs.weight.dtype).transpose(1, 2)
        x = F.max_pool1d(F.relu(self.norms[0](self.motifs(x))), POOL)
        x = F.relu(self.norms[1](self.pairs(x)))
        n = self.settings.stretches
        pooled = torch.cat([F.adaptive_max_pool1d(x, n), F.adaptive_avg_pool1d(x, n)], 1).flatten(1)
        return self.out(pooled if kept is None else pooled * kept)

    def score(self, letters: Tensor) -> Tensor:
        """Prediction scores: the mean of both strands."""
        here = self(letters)
        return (here + self(turn(letters))) / 2 if self.settings.both_strands else here


def turn(letters: Tensor) -> Tensor:
    """Reverse-complement each row; padding goes to the front."""
    return _TURNED[letters.flip(-1)]


class MotifPredictor(CnnPredictor):
    """A fitted network as a function of examples. Padding is encoded like N."""

    form: ClassVar[Literal["cnn", "motif-cnn"]] = "motif-cnn"
    padding: ClassVar[int] = 4
    at_once: ClassVar[int] = 512

    def about(self) -> dict[str, Any]:
        """Metadata saved beside the tensors."""
        kept = {name: x for name, x in super().about().items() if name != "max_length"}
        return kept | {"settings": self.network.settings.model_dump(mode="json")}

    @classmethod
    def of(cls, about: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """Restore the predictor from `about` and `tensors`."""
        network = MotifCnn(MotifSettings.parse(about["settings"]), about["n_out"], 0)
        network.load_state_dict(tensors, strict=False)
        known = {name: x for name, x in about.items() if name != "settings"}
        return cls(network.eval(), CnnShape(**known, max_length=about["length"]))


def fit_motif_cnn(
    kind: str, n_out: int, max_length: int, train: Examples, valid: Examples, seed: int, *,
    settings: MotifSettings, loss: Callable[[NDArray[np.generic], Floats], float],
    share: float = 1.0,
) -> MotifPredictor:  # fmt: skip
    """Fit the network; returns that of the epoch with the lowest `loss(labels, predicted)` on
    `valid`.

    `share` of the epochs are run, with a cosine of that length.
    """
    least = POOL * settings.stretches
    length = max(least, settings.width, min(max_length, int(train.lengths.max())))
    network = MotifCnn(settings, n_out, seed)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.rate, weight_decay=settings.decay
    )
    shape = CnnShape(kind, n_out, length, length, *measure_scale(kind, train.labels))
    predict = MotifPredictor(network, shape)
    x = predict.encode(train.sequences)
    epochs = max(1, round(settings.epochs * share))
    per_epoch = math.ceil(train.n / settings.batch)

    @lru_cache(1)
    def draw_turned(epoch: int) -> Tensor:
        drawn = uniforms(seed, Purpose.FINETUNE_STRAND, epoch, train.n)
        return torch.from_numpy(drawn < 0.5 * settings.both_strands)

    def score(rows: Tensor, epoch: int, step: int) -> Tensor:
        done = (epoch + step / per_epoch) / epochs
        optimizer.param_groups[0]["lr"] = settings.rate * (1 + math.cos(math.pi * done)) / 2
        letters = x[rows].long()
        letters = torch.where(draw_turned(epoch)[rows, None], turn(letters), letters)
        kept = _draw_dropout(network, len(rows), seed, epoch * per_epoch + step)
        scores: Tensor = network(letters, kept)
        return scores

    keep_best_epoch(
        predict, optimizer, train, valid, seed,
        score=score, loss=loss, epochs=epochs, batch=settings.batch,
    )  # fmt: skip
    return predict


def _draw_dropout(network: MotifCnn, rows: int, seed: int, step: int) -> Tensor | None:
    share, width = network.settings.dropout, network.out.in_features
    if not share:
        return None
    drawn = torch.from_numpy(uniforms(seed, Purpose.FINETUNE_DROPOUT, step, rows * width))
    return (drawn.reshape(rows, width) >= share).float() / (1 - share)
