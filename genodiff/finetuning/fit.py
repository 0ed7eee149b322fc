"""One fit: a network with its head on a train part, its best epoch chosen on a validation part.

The loss is a mean over the batch:

    classes          cross-entropy
    yes/no answers   binary cross-entropy, the mean over answers
    values           squared error of the standardised value
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from genodiff.errors import GenodiffError
from genodiff.finetuning.batches import EncodedPart, draw_hidden, dropout_draws
from genodiff.finetuning.fit_loop import Epoch, FitLoop, Index, Lesson
from genodiff.finetuning.fit_loop import Tick as Tick
from genodiff.finetuning.fit_loop import Watch as Watch
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.protocol import FitSettings
from genodiff.tasks.metrics import Floats, measure


class FitOptions(NamedTuple):
    """How a fit runs and is judged: the kind of task, its metric, the settings and the seed."""

    kind: str
    metric: str
    settings: FitSettings
    seed: int


class FitResult(NamedTuple):
    """A fit's outcome; the classifier holds the weights of its best epoch."""

    classifier: Classifier
    best_epoch: int
    valid: float
    history: list[Epoch]
    seconds: float
    scale: tuple[float, float]
    trained: int


def sum_loss(kind: str, scores: Tensor, labels: Tensor) -> Tensor:
    """The loss summed over examples."""
    if kind == "regression":
        return F.mse_loss(scores[:, 0], labels.float(), reduction="sum")
    if kind == "multilabel":
        found = F.binary_cross_entropy_with_logits(scores, labels.float(), reduction="sum")
        return found / scores.shape[1]
    return F.cross_entropy(scores, labels, reduction="sum")


def count_outputs(kind: str, classes: tuple[str, ...]) -> int:
    """Scores that a task's head gives."""
    return 1 if kind == "regression" else len(classes)


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
) -> Floats:
    """The scores of every example, (n, n_out), in order.

    Batches hold examples of similar length. Batches and `extra` padding change scores by float32
    rounding only.
    """
    device = classifier.device
    order = np.argsort(-part.lengths, kind="stable")
    out = np.empty((part.n, classifier.weight.shape[0]))
    classifier.eval()
    if batch_size is None:
        passes = classifier.split(part.lengths) if part.n else []
    else:
        passes = [slice(i, i + batch_size) for i in range(0, part.n, batch_size)]
    for some in passes:
        rows = order[some]
        x0, lengths = part.collate(rows, extra)
        with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
            scores = classifier.predict(x0.to(device), lengths.to(device))
        out[rows] = scores.double().cpu().numpy()
    if not np.isfinite(out).all():
        fix = "lower --lr, or use --precision fp32"
        raise GenodiffError("the network's scores are not finite", fix=fix)
    return out


class _SequenceLesson(Lesson):
    """Sequences with a label each."""

    network: Classifier

    def __init__(
        self, classifier: Classifier, train: EncodedPart, valid: EncodedPart, options: FitOptions
    ) -> None:
        super().__init__(classifier, options.settings, options.seed)
        self.kind, self.metric = options.kind, options.metric
        self.train, self.valid, self.lengths = train, valid, train.lengths
        self.scale = measure_scale(options.kind, train.labels)

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
            targets = _targets(self.kind, train.labels[here], self.scale).to(device)
            loss = sum_loss(self.kind, scores.float(), targets)
            (loss / len(rows)).backward()
            total += float(loss.detach())
        return total

    def judge(self, network: Classifier) -> tuple[float, float]:
        valid, scale = self.valid, self.scale
        raw = raw_scores(network, valid, bf16=self.settings.precision == "bf16")
        found = probabilities(self.kind, raw, scale)
        value = measure(self.metric, self.kind, valid.labels, found)
        targets = _targets(self.kind, valid.labels, scale)
        return float(sum_loss(self.kind, torch.from_numpy(raw), targets)) / valid.n, value


def fit(
    classifier: Classifier,
    train: EncodedPart,
    valid: EncodedPart,
    options: FitOptions,
    *,
    state: Path | None = None,
    identity: str = "",
    watch: Watch | None = None,
) -> FitResult:
    """Train on `train`, keep the epoch whose metric on `valid` is best (the first of equals).

    With `state`, go on from that file if it exists, and keep it up to date. Raises as
    `FitLoop.run`.
    """
    lesson = _SequenceLesson(classifier, train, valid, options)
    loop = FitLoop(lesson)
    history = list(loop.run(state=state, identity=identity, watch=watch))
    best = loop.best_epoch
    return FitResult(
        classifier, best, history[best].valid, history, loop.seconds, lesson.scale, loop.trained
    )


def _targets(kind: str, labels: NDArray[Any], scale: tuple[float, float]) -> Tensor:
    if kind == "regression":
        labels = (labels - scale[0]) / scale[1]
    return torch.from_numpy(np.ascontiguousarray(labels))
