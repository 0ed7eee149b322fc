"""Labels at each base as a lesson of a fit: what a batch of windows costs, how good a network is.

What training makes small at each base, with unknown bases left out; a batch costs the mean over its
known bases, however it is split into passes.

    cross-entropy    Σ w_y (−ln p_y) / Σ w_y over known bases, w a weight of each class
    poisson          the mean of exp(s) − v s over known values v; s is the logarithm of a rate
    mse              the mean of (s − v)² over known values

A batch without a known base costs 0, and has no gradient. How good labels are is measured by

    classes    AUPRC of each class against all others, over known bases; the mean over classes but
               `none` chooses the epoch
    values     Pearson's correlation of each track, over its known values; the mean chooses
    genes      sensitivity TP / (TP + FN) and precision TP / (TP + FP) of coding bases, of exons and
               of whole genes, as they are decoded; f1 of bases chooses. A base is right on its
               strand; an exon (its coding part) by its strand and both ends; a gene by its strand
               and all its exons.

Source of the levels: Burset and Guigó, 1996 (what they call specificity is the precision here).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from genodiff.annotation.base_labels import NONE, Kind
from genodiff.annotation.gene_grammar import N_STATES, UNKNOWN, CodingGene, list_genes
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_windows import BaseWindows, Scored, join_cores
from genodiff.finetuning.fit_loop import Index, Lesson
from genodiff.finetuning.protocol import FitSettings
from genodiff.tasks.metrics import measure


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


def value_cost(
    loss: str, scores: Float[Tensor, "B L T"], values: Float[Tensor, "B L T"]
) -> Float[Tensor, ""]:
    """The Poisson likelihood (without its constant), or the mean square, of known values."""
    known = values.isfinite()
    s, v = scores[known], values[known]
    each = s.exp() - v * s if loss == "poisson" else (s - v).square()
    return each.sum() / known.sum().clamp(min=1)


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
            return scores.exp() if self.loss == "poisson" else scores
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
            return value_cost(self.task.loss, scores, labels)
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
    """How good a network's scores of all cores are, by name of the measure."""
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


Genes = Mapping[str, Sequence[CodingGene]]
StrandParts = tuple[int, tuple[tuple[int, int], ...]]
"""The strand of an exon or a gene, and its coding parts."""


class Rates(NamedTuple):
    """How many are true, how many are said, and how many of those are right."""

    true: int
    said: int
    right: int

    @property
    def sensitivity(self) -> float:
        """The share of the true that is found; NaN where there is none."""
        return self.right / self.true if self.true else float("nan")

    @property
    def precision(self) -> float:
        """The share of the said that is right; NaN where nothing is said."""
        return self.right / self.said if self.said else float("nan")

    @property
    def f1(self) -> float:
        """The harmonic mean of both; 0 where nothing is right."""
        both = self.true + self.said
        return 2 * self.right / both if both else float("nan")


class GeneRates(NamedTuple):
    """The rates at the three levels."""

    bases: Rates
    exons: Rates
    genes: Rates


def compare_genes(true: Genes, said: Genes, known: Mapping[str, NDArray[np.bool_]]) -> GeneRates:
    """Genes that are said against the true ones, on the contigs that are `known`.

    An exon, and a gene with its introns, is judged where all its bases are known.
    """
    levels = np.zeros((3, 3), np.int64)
    for contig, judged in known.items():
        some = [list(of.get(contig, ())) for of in (true, said)]
        coding = [_mark_bases(genes, judged) for genes in some]
        parts = [[(gene.strand, (one,)) for gene in genes for one in gene.parts] for genes in some]
        exons = [_keep_known(of, judged) for of in parts]
        whole = [_keep_known(((g.strand, g.parts) for g in genes), judged) for genes in some]
        right = np.count_nonzero(coding[0] & coding[1])
        levels += np.array(
            [
                (*(np.count_nonzero(of) for of in coding), right),
                (*map(len, exons), len(exons[0] & exons[1])),
                (*map(len, whole), len(whole[0] & whole[1])),
            ]
        )
    return GeneRates(*(Rates(*map(int, row)) for row in levels))


def _keep_known(spans: Iterable[StrandParts], judged: NDArray[np.bool_]) -> set[StrandParts]:
    """Those of which every base from the first to the last is judged."""
    return {
        (strand, parts)
        for strand, parts in spans
        if parts[-1][1] <= len(judged) and judged[parts[0][0] : parts[-1][1]].all()
    }


def _mark_bases(genes: Iterable[CodingGene], judged: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which judged bases are coding, on each strand: (2, L)."""
    marks = np.zeros((2, len(judged)), bool)
    for gene in genes:
        for start, end in gene.parts:
            marks[int(gene.strand < 0), start:end] = True
    return marks & judged


def measure_classes(
    labels: NDArray[np.integer], scores: NDArray[np.floating], names: Sequence[str]
) -> dict[str, float]:
    """AUPRC of each class by (N,) labels and (N, C) scores; NaN of a class that is at no base.

    Scores of one class need to be comparable between bases: chances, not logits.
    """
    known = labels != UNKNOWN
    truth, found = labels[known], scores[known].astype(np.float64)
    return {
        name: measure("auprc", "multilabel", truth[:, None] == number, found[:, number, None])
        for number, name in enumerate(names)
    }


def measure_tracks(
    values: NDArray[np.floating], predicted: NDArray[np.floating], names: Sequence[str]
) -> dict[str, float]:
    """Pearson's correlation of each track by (N, T) values; NaN of one that does not vary."""
    found = {}
    for number, name in enumerate(names):
        known = np.isfinite(values[:, number])
        pair = (of[known, number].astype(np.float64) for of in (values, predicted))
        found[name] = measure("pearson", "regression", *pair)
    return found
