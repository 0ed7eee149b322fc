"""Labels at each base as a lesson of a fit: what a batch of windows costs, how good a network is.

A batch costs the mean over its known bases, however it is split into passes. The measure that
chooses the epoch is

    genes      f1 of coding bases, of the genes that are decoded
    classes    AUPRC, the mean over classes but `none`
    values     Pearson's correlation, the mean over tracks

What training makes small at each base, with unknown bases left out.

    cross-entropy    Σ w_y (−ln p_y) / Σ w_y over known bases, w a weight of each class
    poisson          the mean of exp(s) − v s over known values v; s is the logarithm of a rate
    mse              the mean of (s − v)² over known values

A batch without a known base costs 0, and has no gradient.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from genodiff.annotation.base_labels import NONE, Kind
from genodiff.annotation.gene_grammar import N_STATES, UNKNOWN, list_genes
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_metrics import compare_genes, measure_classes, measure_tracks
from genodiff.finetuning.base_windows import BaseWindows, Scored, join_cores
from genodiff.finetuning.fit_loop import Index, Lesson
from genodiff.finetuning.protocol import FitSettings


def class_cost(
    scores: Float[Tensor, "B L C"],
    labels: Int[Tensor, "B L"],
    weights: Float[Tensor, " C"] | None = None,
) -> Float[Tensor, ""]:
    """The cross-entropy of known bases."""
    known = labels != UNKNOWN
    found = labels[known].long()
    total = F.cross_entropy(scores[known], found, weight=weights, reduction="sum")
    if weights is None:
        return total / known.sum().clamp(min=1)
    return total / weights[found].sum().clamp(min=torch.finfo(total.dtype).tiny)


def poisson_cost(
    scores: Float[Tensor, "B L T"], values: Float[Tensor, "B L T"]
) -> Float[Tensor, ""]:
    """The Poisson likelihood of known values, without its constant."""
    known = values.isfinite()
    each = scores[known].exp() - values[known] * scores[known]
    return each.sum() / known.sum().clamp(min=1)


def square_cost(
    scores: Float[Tensor, "B L T"], values: Float[Tensor, "B L T"]
) -> Float[Tensor, ""]:
    """The mean square of known values' gaps."""
    known = values.isfinite()
    return (scores[known] - values[known]).square().sum() / known.sum().clamp(min=1)


VALUE_COSTS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor], Tensor]]] = {
    "poisson": (poisson_cost, torch.exp),
    "mse": (square_cost, lambda scores: scores),
}
"""Of each: the cost, and the values that scores mean."""


def balance_classes(counts: NDArray[np.int64], power: float) -> NDArray[np.float32]:
    """Weights n_c^−power of classes, whose mean over bases is 1; 0 for one that does not occur.

    Power 0 weighs bases alike, 1 classes alike.

    >>> balance_classes(np.array([8, 2, 0]), 1.0).tolist()
    [0.625, 2.5, 0.0]
    """
    weights = np.zeros(len(counts))
    there = counts > 0
    weights[there] = counts[there].astype(np.float64) ** -power
    return np.asarray(weights * counts.sum() / (weights @ counts), np.float32)


METRICS: dict[Kind, str] = {"genes": "f1", "classes": "auprc", "values": "pearson"}


class BaseTask(NamedTuple):
    """What is learned: kind and names of labels, the loss of values, and how genes end."""

    kind: Kind
    names: tuple[str, ...]
    loss: str = ""
    ends: str = "any"

    def read(self, scores: Tensor) -> Tensor:
        """What scores mean: logarithms of chances, or values."""
        if self.kind == "values":
            return VALUE_COSTS[self.loss][1](scores)
        return scores.log_softmax(-1)


class BaseLesson(Lesson):
    """Windows with a label at each base."""

    network: BaseLabeller

    def __init__(
        self,
        network: BaseLabeller,
        windows: tuple[BaseWindows, BaseWindows],
        task: BaseTask,
        settings: FitSettings,
        seed: int,
        *,
        class_power: float = 0.0,
    ) -> None:
        """`windows` are those to learn from and those that choose the epoch."""
        super().__init__(network, settings, seed)
        self.train, self.valid = windows
        self.task, self.metric = task, METRICS[task.kind]
        width = self.train.core + 2 * self.train.context
        self.lengths = np.full(len(self.train), width, np.int64)
        self.weights: Tensor | None = None
        if class_power:
            counts = np.zeros(len(task.names), np.int64)
            for here in (self.train.labels.cut(*span) for span in self.train.cores):
                counts += np.bincount(here[here != UNKNOWN], minlength=len(counts))
            self.weights = torch.from_numpy(balance_classes(counts, class_power)).to(network.device)

    def learn(self, rows: Index, epoch: int, turned: NDArray[np.bool_] | None) -> float:
        batch = self.train.collate(rows, None if turned is None else turned[rows])
        whole, total = self._weigh(torch.from_numpy(batch.labels)), 0.0
        device, bf16 = self.network.device, self.settings.precision == "bf16"
        for some in self.network.split(self.lengths[rows]):
            ids, labels = (torch.from_numpy(part[some]).to(device) for part in batch)
            lengths = torch.full((len(ids),), ids.shape[1], device=device)
            with torch.autocast(device.type, torch.bfloat16, enabled=bf16):
                scores = self.network(ids, lengths)
            share = self._weigh(labels) / max(whole, 1e-30)
            cost = self._cost(scores.float(), labels) * share
            cost.backward()
            total += float(cost.detach())
        return total * len(rows)

    @torch.no_grad()
    def judge(self, network: BaseLabeller) -> tuple[float, float]:
        scored = list(score_cores(network, self.valid))
        cost = weight = 0.0
        for span, scores in scored:
            labels = torch.from_numpy(self.valid.labels.cut(*span))[None]
            here = self._weigh(labels)
            cost += here * float(self._cost(torch.from_numpy(scores)[None], labels, network))
            weight += here
        found = measure_bases(network, self.valid, self.task, scored)
        return cost / max(weight, 1e-30), choose(found, self.task)

    def _cost(self, scores: Tensor, labels: Tensor, network: BaseLabeller | None = None) -> Tensor:
        chain = (network or self.network).chain
        if chain is not None:
            return chain.cost(scores.to(chain.weight.device), labels.to(chain.weight.device).long())
        if self.task.kind == "values":
            return VALUE_COSTS[self.task.loss][0](scores, labels)
        weights = None if self.weights is None else self.weights.to(scores.device)
        return class_cost(scores, labels, weights)

    def _weigh(self, labels: Tensor) -> float:
        """How much the known labels weigh together."""
        if self.task.kind == "values":
            return float(labels.isfinite().sum())
        known = labels[labels != UNKNOWN].long()
        if self.weights is None:
            return float(len(known))
        return float(self.weights.to(labels.device)[known].double().sum())


def score_cores(network: BaseLabeller, windows: BaseWindows) -> Iterator[Scored]:
    """The core of each window in its order, and its scores."""
    return network.score_cores(windows.genome, windows.cores, windows.core, windows.context)


def measure_bases(
    network: BaseLabeller,
    windows: BaseWindows,
    task: BaseTask,
    scored: Iterable[Scored] | None = None,
) -> dict[str, float]:
    """How good a network's scores of all cores are, by name of the measure (see `base_metrics`)."""
    scored = score_cores(network, windows) if scored is None else scored
    read = [(span, task.read(torch.from_numpy(some)).numpy()) for span, some in scored]
    if task.kind == "genes":
        return _measure_genes(network, windows, read, task.ends)
    truth = np.concatenate([windows.labels.cut(*span) for span, _ in read])
    found = np.concatenate([scores for _, scores in read])
    if task.kind == "classes":
        return measure_classes(truth, np.exp(found), task.names)
    return measure_tracks(truth, found, task.names)


def choose(found: dict[str, float], task: BaseTask) -> float:
    """The one measure that chooses the epoch."""
    if task.kind == "genes":
        return found["base f1"]
    some = [value for name, value in found.items() if name != NONE and np.isfinite(value)]
    return float(np.mean(some)) if some else float("nan")


def _measure_genes(
    network: BaseLabeller, windows: BaseWindows, scored: list[Scored], ends: str
) -> dict[str, float]:
    labels, genome = windows.labels, windows.genome
    true, said, known = {}, {}, {}
    for (contig, start, end), scores in join_cores(scored):
        name, path = f"{contig}:{start}", labels.cut(contig, start, end)
        around = np.pad(path, 1)  # a gene beside what is unknown may be part of another
        true[name] = [
            gene
            for gene in list_genes(path)
            if UNKNOWN not in around[[gene.parts[0][0], gene.parts[-1][1] + 1]]
        ]
        letters = genome.fetch(contig, start, end) if ends == "codons" else None
        said[name] = list_genes(network.decode(scores, letters))
        known[name] = labels.known(path)
    rates = compare_genes(true, said, known)
    return {
        f"{level[:-1]} {what}": getattr(getattr(rates, level), what)
        for level in rates._fields
        for what in ("sensitivity", "precision", "f1")
    }


def count_steps(windows: BaseWindows) -> NDArray[np.int64]:
    """How often a state follows another among known labels of cores: (from, to)."""
    total = np.zeros(N_STATES**2, np.int64)
    for span in windows.cores:
        here = windows.labels.cut(*span)
        known = (here[:-1] != UNKNOWN) & (here[1:] != UNKNOWN)
        pairs = N_STATES * here[:-1].astype(np.int64) + here[1:]
        total += np.bincount(pairs[known], minlength=len(total))
    return total.reshape(N_STATES, N_STATES)
