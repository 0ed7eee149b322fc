"""A convolutional network whose shape and rates are chosen by validation: the CNN of the sequence.

Motif detectors of a chosen width, a second convolution over them, the largest and the mean
activation in each of a chosen number of stretches, and a linear layer. One stretch asks whether a
motif stands anywhere; more ask where. With `both_strands` a training sequence is turned at random,
and a prediction is the mean of the scores of both strands. AdamW with a cosine; the best epoch on
the validation part.

It follows the plan of DeepBind and Basset (Alipanahi et al., 2015; Kelley et al., 2016).
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn

from genodiff.counter import Purpose, uniforms
from genodiff.finetuning.fit import probabilities
from genodiff.settings import Settings
from genodiff.tasks.examples import Examples

Floats = NDArray[np.float64]

SECOND_WIDTH, POOL = 7, 4

_CODES = np.full(256, 4, np.uint8)  # N, the ambiguity codes and padding
_CODES[list(b"ACGT")] = range(4)
_TURNED = torch.tensor([3, 2, 1, 0, 4])


class MotifSettings(Settings):
    """Everything that decides a network and its fit but the data and the seed."""

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
    """(B, L) letters → (B, outputs). The first tensors drawn depend on the seed alone."""

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
        """Scores as they are predicted: of both strands, their mean."""
        here = self(letters)
        return (here + self(turn(letters))) / 2 if self.settings.both_strands else here


def turn(letters: Tensor) -> Tensor:
    """The reverse complement of each row; padding goes to the front."""
    return _TURNED[letters.flip(-1)]


class MotifPredictor:
    """A fitted network as a function of examples."""

    form: ClassVar[Literal["motif-cnn"]] = "motif-cnn"

    def __init__(self, network: MotifCnn, about: dict[str, Any]) -> None:
        self.network, self._about = network, about

    def __call__(self, examples: Examples) -> Floats:
        """Predictions as `metrics` reads them."""
        return self.predict(examples.sequences, 512)

    def predict(self, sequences: list[bytes], rows: int) -> Floats:
        """The same for sequences, so many at a time, which changes the last bits."""
        about, network = self._about, self.network.eval()
        z = _encode(sequences, about["length"])
        with torch.no_grad():
            scores = [network.score(z[i : i + rows].long()) for i in range(0, len(z), rows)]
        found = torch.cat([torch.zeros(0, about["n_out"]), *scores]).double()
        scale = (about["mean"], about["scale"]) if about["kind"] == "regression" else (0.0, 1.0)
        return probabilities(about["kind"], found.numpy(), scale)

    @property
    def longest(self) -> int:
        """Bases that are read of a sequence."""
        return int(self._about["length"])

    def tensors(self) -> dict[str, Tensor]:
        """What is kept of it; batches are not counted."""
        state = self.network.state_dict()
        return {name: t for name, t in state.items() if not name.endswith("num_batches_tracked")}

    def about(self) -> dict[str, Any]:
        """What is kept beside the tensors."""
        return self._about | {"settings": self.network.settings.model_dump(mode="json")}

    @classmethod
    def of(cls, about: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """The predictor that `about` and `tensors` describe."""
        network = MotifCnn(MotifSettings.parse(about["settings"]), about["n_out"], 0)
        network.load_state_dict(tensors, strict=False)
        return cls(network.eval(), {k: v for k, v in about.items() if k != "settings"})


def fit_motif_cnn(
    kind: str, n_out: int, max_length: int, train: Examples, valid: Examples, seed: int, *,
    settings: MotifSettings, loss: Callable[[NDArray[np.generic], Floats], float],
    share: float = 1.0,
) -> MotifPredictor:  # fmt: skip
    """The network of the epoch with the least `loss(labels, predicted)` on `valid`.

    `share` of the epochs are run, with a cosine of that length.
    """
    least = POOL * settings.stretches
    length = max(least, settings.width, min(max_length, int(train.lengths.max())))
    network = MotifCnn(settings, n_out, seed)
    optimizer = torch.optim.AdamW(
        network.parameters(), lr=settings.rate, weight_decay=settings.decay
    )
    x, labels = _encode(train.sequences, length), torch.from_numpy(train.labels)
    about: dict[str, Any] = {"kind": kind, "n_out": n_out, "length": length}
    values = kind == "regression"
    about["mean"] = float(train.labels.mean()) if values else 0.0
    about["scale"] = (float(train.labels.std()) or 1.0) if values else 1.0
    predict = MotifPredictor(network, about)
    epochs = max(1, round(settings.epochs * share))
    per_epoch = math.ceil(train.n / settings.batch)
    best: tuple[float, dict[str, Tensor]] | None = None
    for epoch in range(epochs):
        network.train()
        order = np.argsort(uniforms(seed, Purpose.FINETUNE_ORDER, epoch, train.n), kind="stable")
        turned = torch.from_numpy(
            uniforms(seed, Purpose.FINETUNE_STRAND, epoch, train.n) < 0.5 * settings.both_strands
        )
        for i in range(per_epoch):
            rows = torch.from_numpy(order[i * settings.batch : (i + 1) * settings.batch])
            if len(rows) < 2 and train.n > 1:  # a batch norm of one is undefined
                continue
            done = (epoch + i / per_epoch) / epochs
            optimizer.param_groups[0]["lr"] = settings.rate * (1 + math.cos(math.pi * done)) / 2
            letters = x[rows].long()
            letters = torch.where(turned[rows, None], turn(letters), letters)
            optimizer.zero_grad()
            kept = _draw_dropout(network, len(rows), seed, epoch * per_epoch + i)
            _train_loss(kind, network(letters, kept), labels[rows], about).backward()
            optimizer.step()
        value = loss(valid.labels, predict(valid))
        if best is None or value < best[0]:
            best = value, {name: t.clone() for name, t in network.state_dict().items()}
    if best is not None:
        network.load_state_dict(best[1])
    network.eval()
    return predict


def _draw_dropout(network: MotifCnn, rows: int, seed: int, step: int) -> Tensor | None:
    share, width = network.settings.dropout, network.out.in_features
    if not share:
        return None
    drawn = torch.from_numpy(uniforms(seed, Purpose.FINETUNE_DROPOUT, step, rows * width))
    return (drawn.reshape(rows, width) >= share).float() / (1 - share)


def _encode(sequences: list[bytes], length: int) -> Tensor:
    """(n, length) letters, padded on the right."""
    found = np.full((len(sequences), length), 4, np.uint8)
    for row, sequence in zip(found, sequences, strict=True):
        cut = sequence[:length]
        row[: len(cut)] = _CODES[np.frombuffer(cut, np.uint8)]
    return torch.from_numpy(found)


def _train_loss(kind: str, scores: Tensor, labels: Tensor, about: dict[str, Any]) -> Tensor:
    if kind == "regression":
        wanted = (labels - about["mean"]) / about["scale"]
        return F.mse_loss(scores[:, 0], wanted.to(scores.dtype))
    if kind == "multilabel":
        return F.binary_cross_entropy_with_logits(scores, labels.to(scores.dtype))
    return F.cross_entropy(scores, labels)
