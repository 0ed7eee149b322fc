"""Sequences with a label each as a lesson of a fit, and what is fitted as a function of examples.

The loss is a mean over the batch:

    classes          cross-entropy
    yes/no answers   binary cross-entropy, the mean over answers
    values           squared error of the standardised value
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from genodiff.errors import GenodiffError
from genodiff.finetuning.batches import EncodedPart, Encoder, draw_hidden, dropout_draws, encode
from genodiff.finetuning.fit_loop import Index, Lesson
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.protocol import FitSettings
from genodiff.kernels.dispatch import select_provider
from genodiff.runs.model import collect_tensors
from genodiff.tasks.examples import Examples
from genodiff.tasks.metrics import Floats, measure

Predict = Callable[[Examples], Floats]
"""Predictions of examples: probabilities (n, classes), or values (n,) for regression."""
_SEPARATE_ROWS = ("caduceus", "mamba")
"""Networks whose features, by the C kernels, do not depend on the other rows of a batch."""
_NATIVE = "native"


def compute_loss(kind: str, scores: Tensor, targets: Tensor, reduction: str = "sum") -> Tensor:
    """The loss, summed over examples or their mean; `targets` are those of `make_targets`."""
    if kind == "regression":
        return F.mse_loss(scores[:, 0], targets.float(), reduction=reduction)
    if kind == "multilabel":
        found = F.binary_cross_entropy_with_logits(scores, targets.float(), reduction=reduction)
        return found / scores.shape[1] if reduction == "sum" else found
    return F.cross_entropy(scores, targets, reduction=reduction)


def make_targets(kind: str, labels: NDArray[Any], scale: tuple[float, float]) -> Tensor:
    """The labels of examples; values are standardised by `scale`."""
    if kind == "regression":
        labels = (labels - scale[0]) / scale[1]
    return torch.from_numpy(np.ascontiguousarray(labels))


def measure_scale(kind: str, labels: NDArray[Any]) -> tuple[float, float]:
    """Mean and standard deviation of a value in the train part; (0, 1) for classes."""
    if kind != "regression":
        return 0.0, 1.0
    return float(labels.mean()), float(labels.std()) or 1.0


def probabilities(kind: str, scores: Floats, scale: tuple[float, float] = (0.0, 1.0)) -> Floats:
    """Raw scores as predictions: probabilities, or values in their own unit."""
    if kind == "regression":
        return scores[:, 0] * scale[1] + scale[0]
    if kind == "multilabel":
        return 1 / (1 + np.exp(-scores))
    shifted = np.exp(scores - scores.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


@torch.no_grad()
def raw_scores(
    classifier: Classifier,
    part: EncodedPart,
    *,
    batch_size: int | None = None,
    extra: int = 0,
    bf16: bool = False,
    by_row: bool = False,
) -> Floats:
    """The scores of every example, (n, n_out), in order.

    Batches hold examples of similar length. Batches and `extra` padding change scores by float32
    rounding only; with `by_row` features alone are computed in batches, the rest row by row. Raises
    `GenodiffError` for scores that are not finite.
    """
    device = classifier.device
    order = np.argsort(-part.lengths, kind="stable")
    out = np.empty((part.n, classifier.weight.shape[0]))
    size = batch_size or max(1, part.n)
    classifier.eval()
    for first in range(0, part.n, size):
        batch = order[first : first + size]
        for some in classifier.split(part.lengths[batch]):
            rows = batch[some]
            x0, lengths = (tensor.to(device) for tensor in part.collate(rows, extra))
            with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                if by_row:
                    each = classifier.pooled_rows(x0, lengths)
                    scores = torch.cat([classifier.scores_of(row) for row in each])
                else:
                    scores = classifier.predict(x0, lengths)
            out[rows] = scores.double().cpu().numpy()
    if not np.isfinite(out).all():
        fix = "lower --lr, or use --precision fp32"
        raise GenodiffError("the network's scores are not finite", fix=fix)
    return out


class SequenceLesson(Lesson):
    """Sequences with a label each: of a `kind` of task, judged by a `metric` on `valid`."""

    network: Classifier

    def __init__(
        self,
        classifier: Classifier,
        parts: tuple[EncodedPart, EncodedPart],
        kind: str,
        metric: str,
        settings: FitSettings,
        seed: int,
    ) -> None:
        """`parts` are those to learn from and those that choose the epoch."""
        super().__init__(classifier, settings, seed)
        self.kind, self.metric = kind, metric
        self.train, self.valid = parts
        self.lengths, self.scale = self.train.lengths, measure_scale(kind, self.train.labels)

    def begin_epoch(self, epoch: int) -> None:
        """See `Lesson`: with `shift`, the examples are cut anew."""
        shift = self.settings.shift
        self.shown = self.train.crop(self.seed, epoch, shift) if shift else self.train

    def learn(self, rows: Index, epoch: int, turned: NDArray[np.bool_] | None) -> float:
        settings, classifier, train = self.settings, self.network, self.shown
        total, device = 0.0, classifier.device
        for some in classifier.split(train.lengths[rows]):
            here = rows[some]
            x0, lengths = (t.to(device) for t in train.collate(here))
            if turned is not None:
                chosen = torch.from_numpy(turned[here]).to(device)[:, None]
                x0 = torch.where(chosen, classifier.other_strand(x0, lengths), x0)
            if settings.mask_share:
                hidden = draw_hidden(self.seed, epoch, here, x0.shape[1], settings.mask_share)
                x0 = x0.masked_fill(hidden.to(device) & (x0 != train.pad_id), train.mask_id)
            dropped = None
            if settings.dropout:
                width = classifier.weight.shape[1]
                dropped = dropout_draws(self.seed, epoch, here, width).to(device)
            with torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
                scores = classifier(x0, lengths, dropped)
            targets = make_targets(self.kind, train.labels[here], self.scale).to(device)
            loss = compute_loss(self.kind, scores.float(), targets)
            (loss / len(rows)).backward()
            total += float(loss.detach())
        return total

    def judge(self, network: Classifier) -> tuple[float, float]:
        valid, scale = self.valid, self.scale
        raw = raw_scores(network, valid, bf16=self.settings.precision == "bf16")
        found = probabilities(self.kind, raw, scale)
        value = measure(self.metric, self.kind, valid.labels, found)
        targets = make_targets(self.kind, valid.labels, scale)
        return float(compute_loss(self.kind, torch.from_numpy(raw), targets)) / valid.n, value


class SavedPredictor(ABC):
    """A fitted predictor that can be saved: the tensors, and what its form needs beside them.

    `longest` bases (or tokens) of a sequence are read. `scale` is (mean, standard deviation) of the
    values in train, for regression, and `n_texts` how many sentences a text has.
    """

    form: ClassVar[Literal["network", "cnn", "kmer-lr"]]
    longest: int
    scale = (0.0, 1.0)
    n_texts = 1
    network: nn.Module | None = None

    @abstractmethod
    def __call__(self, examples: Examples) -> Floats:
        """Predictions of a whole part, in the form that `metrics` reads."""

    @abstractmethod
    def predict(self, sequences: list[bytes], rows: int) -> Floats:
        """Predictions of new sequences, `rows` at a time; each is as it would be alone."""

    @abstractmethod
    def tensors(self) -> dict[str, Tensor]:
        """The tensors to save."""

    @abstractmethod
    def about(self) -> dict[str, Any]:
        """The plain values to save beside them."""

    def count_cut(self, examples: Examples) -> int:
        """How many examples would be shortened."""
        return 0


class NetworkPredictor(SavedPredictor):
    """A network with its head."""

    form = "network"
    network: Classifier

    def __init__(
        self,
        network: Classifier,
        encoder: Encoder,
        kind: str,
        longest: int,
        *,
        bf16: bool,
        scale: tuple[float, float] = (0.0, 1.0),
        n_texts: int = 1,
    ) -> None:
        self.network, self.encoder, self.kind, self.longest = network, encoder, kind, longest
        self.bf16, self.scale, self.n_texts = bf16, scale, n_texts

    def __call__(self, examples: Examples) -> Floats:
        part = encode(examples, self.encoder, self.longest)
        return probabilities(self.kind, raw_scores(self.network, part, bf16=self.bf16), self.scale)

    def predict(self, sequences: list[bytes], rows: int) -> Floats:
        """See `SavedPredictor`: features are computed in batches, the rest row by row."""
        network, nothing = self.network, np.zeros(len(sequences), np.int64)
        part = encode(Examples(sequences, nothing, []), self.encoder, self.longest)
        separate = (
            network.backbone.settings.kind in _SEPARATE_ROWS  # type: ignore[union-attr, operator]
            and select_provider(device="cpu").name == _NATIVE
        )
        size = rows if network.device.type != "cpu" or separate else 1
        scores = raw_scores(network, part, batch_size=size, bf16=self.bf16, by_row=True)
        return probabilities(self.kind, scores, self.scale)

    def tensors(self) -> dict[str, Tensor]:
        return collect_tensors(self.network)

    def about(self) -> dict[str, Any]:
        return {"head": self.network.pooling.sizes}

    def count_cut(self, examples: Examples) -> int:
        return encode(examples, self.encoder, self.longest).cut
