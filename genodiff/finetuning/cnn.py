"""The convolutional baseline of Genomic Benchmarks (Gresova et al. 2023), as described there.

An embedding of 100 dimensions, three convolutions of width 8 (16, 8 and 4 channels, each followed
by batch norm, ReLU and max-pooling by 2), and two linear layers, the first with 512 outputs. It is
trained as in the Caduceus paper's table: Adam, learning rate 1e-3, batches of 64, ten epochs, and
the epoch that is best on the validation part. Sequences are padded on the right; N and padding have
their own embeddings.

The embedding and the first convolution are computed as one convolution of one-hot letters: the same
function and gradients for a sixteenth of the work.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from genodiff.alphabet import LETTER_CODES
from genodiff.counter import Purpose, uniforms
from genodiff.finetuning.fit import (
    SavedPredictor,
    compute_loss,
    make_targets,
    measure_scale,
    probabilities,
)
from genodiff.tasks.examples import Examples

EPOCHS, BATCH, RATE = 10, 64, 1e-3
EMBEDDING, WIDTH, HIDDEN = 100, 8, 512
CHANNELS = (16, 8, 4)
SHORTEST = 64
"""Shorter inputs are padded to this, so that a position remains after three convolutions."""

_COUNT = "num_batches_tracked"  # of a batch norm: not saved
_LETTERS = 6  # A, C, G, T, any other, and padding
_ROWS = 1024  # sequences predicted at a time

Floats = NDArray[np.float64]


class Cnn(nn.Module):
    """The network, (B, L) letters → (B, outputs); initial weights depend only on the seed."""

    def __init__(self, length: int, n_out: int, seed: int) -> None:
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(_LETTERS, EMBEDDING))
        inputs = (EMBEDDING, *CHANNELS[:-1])
        self.convolutions = nn.ModuleList(
            nn.Conv1d(i, o, WIDTH) for i, o in zip(inputs, CHANNELS, strict=True)
        )
        self.norms = nn.ModuleList(nn.BatchNorm1d(o) for o in CHANNELS)
        for _ in CHANNELS:
            length = (length - WIDTH + 1) // 2
        self.hidden = nn.Linear(CHANNELS[-1] * length, HIDDEN)
        self.out = nn.Linear(HIDDEN, n_out)
        self._draw(seed)

    def _draw(self, seed: int) -> None:
        """Draw torch's initial weights (normal embedding, uniform in ±1/√fan-in) from counters."""
        layers = [m for m in self.modules() if isinstance(m, nn.Conv1d | nn.Linear)]
        with torch.no_grad():
            self.embedding.copy_(
                torch.special.ndtri(_uniforms(seed, 0, self.embedding).clamp(min=1e-16))
            )
            for i, layer in enumerate(layers):
                bound = 1 / math.sqrt(math.prod(layer.weight.shape[1:]))
                layer.weight.copy_(bound * (2 * _uniforms(seed, 2 * i + 1, layer.weight) - 1))
                if layer.bias is not None:
                    layer.bias.copy_(bound * (2 * _uniforms(seed, 2 * i + 2, layer.bias) - 1))

    def forward(self, letters: Tensor) -> Tensor:
        """Return the scores of each sequence."""
        x = F.one_hot(letters, _LETTERS).to(self.embedding.dtype).transpose(1, 2)
        for i, (convolution, norm) in enumerate(zip(self.convolutions, self.norms, strict=True)):
            assert isinstance(convolution, nn.Conv1d)
            if i:
                weight = convolution.weight
            else:
                weight = torch.einsum("oek,le->olk", convolution.weight, self.embedding)
            x = F.max_pool1d(F.relu(norm(F.conv1d(x, weight, convolution.bias))), 2)
        return self.out(self.hidden(x.flatten(1)))


def _uniforms(seed: int, index: int, like: Tensor) -> Tensor:
    return torch.from_numpy(uniforms(seed, Purpose.INIT, index, like.numel())).reshape(like.shape)


def count_weights(length: int, n_out: int) -> int:
    """Count the parameters of a network for sequences of at most `length` bases."""
    network = Cnn(max(SHORTEST, length), n_out, 0)
    return sum(parameter.numel() for parameter in network.parameters())


class CnnShape(NamedTuple):
    """The arguments that build a network, and the mean and scale of a regression's labels."""

    kind: str
    n_out: int
    length: int
    max_length: int
    mean: float = 0.0
    scale: float = 1.0


class CnnPredictor(SavedPredictor):
    """A fitted network."""

    form = "cnn"
    network: Cnn

    def __init__(self, network: Cnn, shape: CnnShape) -> None:
        self.network, self.shape = network, shape
        self.longest = min(shape.length, shape.max_length)

    def __call__(self, examples: Examples) -> Floats:
        return self._predict(examples.sequences, _ROWS)

    def predict(self, sequences: list[bytes], rows: int) -> Floats:
        return self._predict(sequences, 1)  # `rows` together would change the last bits

    def _predict(self, sequences: list[bytes], rows: int) -> Floats:
        shape, network, z = self.shape, self.network.eval(), self.encode(sequences)
        with torch.no_grad():
            scores = [network(z[i : i + rows].long()) for i in range(0, len(z), rows)]
        found = torch.cat([torch.zeros(0, shape.n_out), *scores]).double()
        return probabilities(shape.kind, found.numpy(), (shape.mean, shape.scale))

    def encode(self, sequences: list[bytes]) -> Tensor:
        """Encode sequences as letters, (n, length) uint8."""
        cut = [s[: self.shape.max_length] for s in sequences]
        return encode_letters(cut, self.shape.length)

    def tensors(self) -> dict[str, Tensor]:
        """See `SavedPredictor`: all but the counts of batches."""
        state = self.network.state_dict()
        return {name: t for name, t in state.items() if not name.endswith(_COUNT)}

    def about(self) -> dict[str, Any]:
        return self.shape._asdict()

    @classmethod
    def of(cls, about: dict[str, Any], tensors: dict[str, Tensor]) -> Self:
        """Rebuild a predictor from what was saved. Raises `RuntimeError` if a tensor is missing."""
        shape = CnnShape(**about)
        network = Cnn(shape.length, shape.n_out, 0)
        counts = {name: t for name, t in network.state_dict().items() if name.endswith(_COUNT)}
        network.load_state_dict(counts | tensors)
        return cls(network.eval(), shape)


def fit_cnn(
    kind: str, n_out: int, max_length: int, train: Examples, valid: Examples, seed: int, *,
    loss: Callable[[NDArray[np.generic], Floats], float],
) -> CnnPredictor:  # fmt: skip
    """Fit a network; keep the epoch with the smallest `loss(labels, predicted)` on `valid`."""
    length = max(SHORTEST, min(max_length, int(train.lengths.max())))
    network = Cnn(length, n_out, seed)
    shape = CnnShape(kind, n_out, length, max_length, *measure_scale(kind, train.labels))
    predict = CnnPredictor(network, shape)
    x = predict.encode(train.sequences)
    targets = make_targets(kind, train.labels, (shape.mean, shape.scale))
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    best: tuple[float, dict[str, Tensor]] | None = None
    for epoch in range(EPOCHS):
        network.train()
        order = np.argsort(uniforms(seed, Purpose.FINETUNE_ORDER, epoch, train.n), kind="stable")
        for start in range(0, train.n, BATCH):
            rows = torch.from_numpy(order[start : start + BATCH])
            if len(rows) < 2 and train.n > 1:  # too few for batch norm
                continue
            optimizer.zero_grad()
            compute_loss(kind, network(x[rows].long()), targets[rows], "mean").backward()
            optimizer.step()
        value = loss(valid.labels, predict(valid))
        if best is None or value < best[0]:
            best = value, {name: t.clone() for name, t in network.state_dict().items()}
    if best is not None:
        network.load_state_dict(best[1])
    network.eval()
    return predict


def encode_letters(sequences: list[bytes], length: int) -> Tensor:
    """Encode letters as uint8, (n, length): 0 to 3 for A, C, G, T, 4 for any other, then padding.

    Longer sequences are truncated.
    """
    found = np.full((len(sequences), length), _LETTERS - 1, np.uint8)
    for row, sequence in zip(found, sequences, strict=True):
        cut = sequence[:length]
        row[: len(cut)] = LETTER_CODES[np.frombuffer(cut, np.uint8)]
    return torch.from_numpy(found)
