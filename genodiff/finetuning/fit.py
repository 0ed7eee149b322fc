"""One fit: a network with its head on a train part, its best epoch chosen on a validation part.

With `ema`, validation judges an exponential moving average of the weights, and that is kept
(Polyak and Juditsky, 1992; the decay rises to its value from (1 + n) / (10 + n) at update n).

There is no test part here: `fit` cannot see one. Every draw is a function of (seed, epoch,
example). So the state of a fit is the weights, AdamW's moments and a few numbers. It is one file,
written atomically at the end of every epoch and every minute. A fit that is killed goes on to the
same bits on the same machine.

The loss is a mean over the batch:

    classes          cross-entropy
    yes/no answers   binary cross-entropy, the mean over answers
    values           squared error of the standardised value
"""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import AdamW

from genodiff.errors import GenodiffError, Interrupted
from genodiff.finetuning.batches import (
    EncodedPart,
    draw_hidden,
    draw_turned,
    dropout_draws,
    shuffle_batches,
    split_passes,
)
from genodiff.finetuning.fit_state import SAVE_SECONDS, FitState, read_state, write_state
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.work_clock import WorkClock
from genodiff.runs.model import collect_tensors, fill_module
from genodiff.tasks.metrics import Floats, is_better, measure
from genodiff.training.optimizer import WeightAverage, has_weight_decay, read_moments, set_moments


class Epoch(NamedTuple):
    """The result of an epoch: losses in nats per example, and the validation metric.

    For regression the loss is that of the standardised value.
    """

    epoch: int
    step: int
    train_loss: float
    valid_loss: float
    valid: float


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


class Tick(NamedTuple):
    """Where a fit is, for a progress line."""

    epoch: int
    epochs: int
    step: int
    steps: int
    seconds: float
    valid: float | None


Watch = Callable[[Tick], None]


def sum_loss(kind: str, scores: Tensor, labels: Tensor) -> Tensor:
    """The loss summed over examples."""
    if kind == "regression":
        return F.mse_loss(scores[:, 0], labels.float(), reduction="sum")
    if kind == "multilabel":
        return (
            F.binary_cross_entropy_with_logits(scores, labels.float(), reduction="sum")
            / scores.shape[1]
        )
    return F.cross_entropy(scores, labels, reduction="sum")


def count_outputs(kind: str, classes: tuple[str, ...]) -> int:
    """Scores that a task's head gives."""
    return 1 if kind == "regression" else len(classes)


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
    device = classifier.weight.device
    order = np.argsort(-part.lengths, kind="stable")
    size = batch_size or max(1, part.n)
    out = np.empty((part.n, classifier.weight.shape[0]))
    classifier.eval()
    strands = 2 if classifier.paired else 1
    for i in range(0, part.n, size):
        rows = order[i : i + size]
        parts = (
            split_passes(part.lengths[rows], device.type, strands)
            if batch_size is None
            else [slice(0, len(rows))]
        )
        for some in parts:
            x0, lengths = part.collate(rows[some], extra)
            with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                scores = classifier.predict(x0.to(device), lengths.to(device))
            out[rows[some]] = scores.double().cpu().numpy()
    if not np.isfinite(out).all():
        raise GenodiffError(
            "the network's scores are not finite", fix="lower --lr, or use --precision fp32"
        )
    return out


class _Run:
    """The mutable state of a fit."""

    def __init__(
        self, classifier: Classifier, options: FitOptions, scale: tuple[float, float]
    ) -> None:
        settings = options.settings
        self.options, self.scale = options, scale
        named = [
            (name, parameter)
            for name, parameter in classifier.named_parameters()
            if parameter.requires_grad and not (classifier.frozen and name.startswith("backbone."))
        ]
        groups: list[dict[str, Any]] = [
            {
                "params": [p for n, p in named if has_weight_decay(n, p)],
                "weight_decay": settings.weight_decay,
            },
            {"params": [p for n, p in named if not has_weight_decay(n, p)], "weight_decay": 0.0},
        ]
        self.classifier = classifier
        self.optimizer = AdamW(
            [g for g in groups if g["params"]], lr=settings.lr, betas=settings.betas, fused=True
        )
        self.average = WeightAverage(classifier, settings.ema) if settings.ema else None
        self.epoch, self.batch, self.step, self.loss, self.seconds = 0, 0, 0, 0.0, 0.0
        self.history: list[Epoch] = []
        self.best_epoch = 0
        self.best: dict[str, Tensor] = {}

    @property
    def judged(self) -> Classifier:
        """The network whose weights validation judges: their average, where there is one."""
        return self.classifier if self.average is None else self.average.module

    def save(self, path: Path, identity: str) -> None:
        groups = {
            "now": collect_tensors(self.classifier),
            "best": self.best,
            "adam": read_moments(self.optimizer, self.classifier),
        }
        if self.average is not None:
            groups["average"] = collect_tensors(self.average.module)
        counters = {
            "epoch": self.epoch, "batch": self.batch, "step": self.step, "loss": self.loss,
            "seconds": self.seconds,
            "best_epoch": self.best_epoch, "history": [list(e) for e in self.history],
        }  # fmt: skip
        write_state(path, FitState(groups, counters), identity)

    def load(self, path: Path, identity: str) -> None:
        averaged = () if self.average is None else ("average",)
        groups, counters = read_state(path, identity, ("now", "best", "adam", *averaged))
        fill_module(self.classifier, groups["now"])
        set_moments(self.optimizer, self.classifier, groups["adam"])
        self.best = {k: v.to(self.classifier.weight.device) for k, v in groups["best"].items()}
        self.epoch, self.batch, self.step = counters["epoch"], counters["batch"], counters["step"]
        self.loss, self.seconds = counters["loss"], counters["seconds"]
        self.best_epoch = counters["best_epoch"]
        if self.average is not None:
            fill_module(self.average.module, groups["average"])
            self.average.updates = self.step
        self.history = [Epoch(*row) for row in counters["history"]]


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

    With `state`, go on from that file if it exists, and keep it up to date. `identity` names the
    fit that a state belongs to. `watch` is called after every step and may raise `Interrupted` to
    save and stop. Raises `GenodiffError` for a loss that is not finite, `CheckpointError` for a
    foreign or corrupt state.
    """
    settings, seed = options.settings, options.seed
    scale = _scale(options.kind, train.labels)
    run, device = _Run(classifier, options, scale), classifier.weight.device
    per_epoch = math.ceil(train.n / settings.batch_size)
    steps = settings.steps(train.n)
    epochs = math.ceil(steps / per_epoch)
    if state is not None and state.exists():
        run.load(state, identity)
    clock, saved = WorkClock(run.seconds, device.type), time.monotonic()
    while run.epoch < epochs and not _given_up(run):
        shown = train.crop(seed, run.epoch, settings.shift) if settings.shift else train
        batches = shuffle_batches(train.lengths, settings.batch_size, seed, run.epoch)
        flips = (
            draw_turned(seed, run.epoch, train.n)
            if classifier.strands in ("average", "augment")
            else None
        )
        while run.batch < len(batches) and run.step < steps:
            rows = batches[run.batch]
            for group in run.optimizer.param_groups:
                group["lr"] = settings.learning_rate(run.step, steps)
            run.loss += _step(run, shown, rows, flips)
            run.batch += 1
            run.step += 1
            run.seconds = clock.seconds
            if state is not None and time.monotonic() - saved > SAVE_SECONDS:
                run.save(state, identity)
                saved = time.monotonic()
            if watch is not None:
                try:
                    watch(
                        Tick(
                            run.epoch,
                            epochs,
                            run.step,
                            steps,
                            run.seconds,
                            run.history[-1].valid if run.history else None,
                        )
                    )
                except Interrupted:
                    if state is not None:
                        run.save(state, identity)
                    raise
        _close_epoch(run, valid, sum(map(len, batches[: run.batch])))
        run.seconds = clock.seconds
        if state is not None:
            run.save(state, identity)
            saved = time.monotonic()
    fill_module(classifier, {k: v.to(device) for k, v in run.best.items()})
    return FitResult(
        classifier.eval(),
        run.best_epoch,
        run.history[run.best_epoch].valid,
        run.history,
        run.seconds,
        scale,
        sum(p.numel() for group in run.optimizer.param_groups for p in group["params"]),
    )


def _given_up(run: _Run) -> bool:
    patience = run.options.settings.patience
    return patience is not None and len(run.history) - 1 - run.best_epoch >= patience


def _scale(kind: str, labels: NDArray[Any]) -> tuple[float, float]:
    """Mean and standard deviation of a value in the train part; (0, 1) for classes."""
    if kind != "regression":
        return 0.0, 1.0
    return float(labels.mean()), float(labels.std()) or 1.0


def _targets(kind: str, labels: NDArray[Any], scale: tuple[float, float]) -> Tensor:
    return torch.from_numpy(
        (labels - scale[0]) / scale[1] if kind == "regression" else np.ascontiguousarray(labels)
    )


def _step(
    run: _Run, train: EncodedPart, rows: NDArray[np.int64], flips: NDArray[np.bool_] | None
) -> float:
    """One step on the examples at `rows`; returns the loss summed over them."""
    kind, _, settings, seed = run.options
    classifier, device = run.classifier.train(), run.classifier.weight.device
    total = 0.0
    for some in split_passes(train.lengths[rows], device.type, 2 if classifier.paired else 1):
        here = rows[some]
        x0, lengths = (t.to(device) for t in train.collate(here))
        if flips is not None:
            x0 = torch.where(
                torch.from_numpy(flips[here]).to(device)[:, None],
                classifier.other_strand(x0, lengths),
                x0,
            )
        if settings.mask_share:
            hidden = draw_hidden(seed, run.epoch, here, x0.shape[1], settings.mask_share)
            x0 = x0.masked_fill(hidden.to(device) & (x0 != train.pad_id), train.mask_id)
        dropped = (
            dropout_draws(seed, run.epoch, here, classifier.weight.shape[1]).to(device)
            if settings.dropout
            else None
        )
        with torch.autocast(device.type, torch.bfloat16, enabled=settings.precision == "bf16"):
            scores = classifier(x0, lengths, dropped)
        loss = sum_loss(
            kind, scores.float(), _targets(kind, train.labels[here], run.scale).to(device)
        )
        (loss / len(rows)).backward()
        total += float(loss.detach())
    norm = float(torch.nn.utils.clip_grad_norm_(classifier.parameters(), settings.clip))
    if not (math.isfinite(norm) and math.isfinite(total)):
        raise GenodiffError(
            f"step {run.step + 1}: the loss or its gradient is not finite",
            fix="lower --lr, or use --precision fp32",
        )
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    if run.average is not None:
        run.average.update(run.classifier)
    return total


def _close_epoch(run: _Run, valid: EncodedPart, seen: int) -> None:
    """Validate, note the epoch, keep its weights if it is the best so far."""
    kind, metric, settings, _ = run.options
    raw = raw_scores(run.judged, valid, bf16=settings.precision == "bf16")
    value = measure(metric, kind, valid.labels, probabilities(kind, raw, run.scale))
    loss = (
        float(sum_loss(kind, torch.from_numpy(raw), _targets(kind, valid.labels, run.scale)))
        / valid.n
    )
    run.history.append(Epoch(run.epoch, run.step, run.loss / max(1, seen), loss, value))
    if len(run.history) == 1 or is_better(metric, value, run.history[run.best_epoch].valid):
        run.best_epoch = run.epoch
        run.best = {k: v.clone() for k, v in collect_tensors(run.judged).items()}
    run.epoch, run.batch, run.loss = run.epoch + 1, 0, 0.0
