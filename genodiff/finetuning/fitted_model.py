"""A fine-tuned model that was kept: it predicts for new sequences, as its fit's test pass did.

Sequences are cut to what the fit read, both strands are read as the protocol says, and scores
become probabilities (values, for regression) by the same functions. On a CPU the answer for a
sequence has the same bits whatever stands beside it: only features are computed together, by
kernels whose rows do not depend on each other, and each row is pooled and scored by itself. The
test pass pools whole batches, so it agrees to the rounding of float32.

Predictions are tables, of one model or the mean of several seeds', a chunk of rows at a time:

name          of the sequence
prediction    the most probable class; all classes from 0.5 (multi-label); the value (regression)
p_CLASS       the probability of each class, in float32; none for regression
spread        of an ensemble: the standard deviation between seeds, of the probability of the
              predicted class (multi-label: the largest of all classes), or of the value
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from torch import nn

from genodiff.alphabet import Alphabet
from genodiff.backbones.settings import TO_FILL
from genodiff.errors import CheckpointError, GenodiffError, UsageError
from genodiff.finetuning.batches import Encoder, SentenceEncoder
from genodiff.finetuning.cnn import CnnPredictor
from genodiff.finetuning.count_regression import KmerPredictor
from genodiff.finetuning.fit import NetworkPredictor, SavedPredictor
from genodiff.finetuning.head import Classifier
from genodiff.finetuning.predictor_files import PredictorCard, read_predictor, rebuilding
from genodiff.finetuning.unit import MODEL
from genodiff.finetuning.unit_selection import UnitChoice, find_units
from genodiff.io.sequences import Sequences
from genodiff.runs.feed import open_model_tokenizer
from genodiff.runs.model import fill_module
from genodiff.runs.sealed_files import AGAIN, read_tensors
from genodiff.tasks.metrics import Floats
from genodiff.tasks.unlabelled import Query, QuerySource, read_queries

CHUNK = 1024
"""Sequences that are held at a time."""

THRESHOLD = 0.5
"""A yes/no answer is yes from this probability."""

_LEAST = 1e-300  # a probability below it counts as this much, in log-odds


class FittedModel:
    """A fine-tuned model with the weights of its best epoch, ready to predict."""

    def __init__(self, folder: Path, card: PredictorCard, predictor: SavedPredictor) -> None:
        self.folder, self.card, self._predictor = folder, card, predictor

    @property
    def network(self) -> nn.Module | None:
        """Its backbone and head, or the CNN; None for a regression on k-mers."""
        return self._predictor.network

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the probabilities; none for regression."""
        return self.card.classes

    @property
    def alphabet(self) -> Alphabet | None:
        """Tokens and their ids; None where no language model is in it."""
        return None if self.card.network is None else self.card.network.read_alphabet()

    @property
    def digest(self) -> str:
        """The first 12 hex digits of the sha256 of the weights."""
        return self.card.weights_sha256[:12]

    def predict(
        self, sequences: Sequences | None = None, *, batch_size: int = 64, **where: Any
    ) -> pl.DataFrame:
        """The predictions for sequences: a frame with name, prediction, and a p_CLASS per class.

        `sequences` is what `genodiff predict` reads (see `genodiff.tasks.unlabelled`): a path,
        strings, `Bio.SeqRecord`s, a mapping from names. `where` is as in `source`. Raises
        `DataError` for a faulty record.
        """
        queries = read_queries(sequences, self.source(**where))
        return pl.concat(predict_queries([self], queries, batch_size=batch_size))

    def source(
        self,
        column: Sequence[str] = (),
        fasta: str | Path | None = None,
        region: Sequence[str] = (),
    ) -> QuerySource:
        """How files are read for this model.

        `column` names the columns of a table, `fasta` is the genome of a BED file, whose rows on -
        are read as their reverse complement, or of `region`, which is then all that is read.
        """
        domain, n_texts = self.card.domain, self.card.n_texts
        return QuerySource(tuple(column), fasta, domain, n_texts, tuple(region))

    def cuts(self, sequence: bytes) -> bool:
        """Whether a sequence of DNA is longer than what is read of it."""
        return self.card.domain == "dna" and len(sequence) > self.card.max_length

    def score(self, sequences: list[bytes], *, batch_size: int = 64) -> Floats:
        """Predictions in float64: probabilities (n, classes), or values (n,) for regression.

        Sequences are upper-case DNA, or UTF-8 text. `batch_size` changes the speed alone. Raises
        `GenodiffError` for a network whose scores are not finite.
        """
        if batch_size < 1:
            raise UsageError(f"--batch-size {batch_size} is below 1", fix="give 1 or more")
        found = self._predictor.predict(sequences, batch_size)
        if not np.isfinite(found).all():
            fix = "fit it with a lower --lr"
            raise GenodiffError("the scores are not finite", file=self.folder, fix=fix)
        return found


def load_fitted(
    path: str | Path, choice: UnitChoice = UnitChoice(), *, device: str = "cpu"
) -> FittedModel:
    """The fine-tuned model in a unit's folder, or the one of a sweep's folder that is meant.

    Everything is judged before it is believed. Raises `CheckpointError` for a folder that is
    damaged or keeps nothing, `UsageError` where several models are meant.
    """
    return read_fitted(find_units(path, choice)[0], device=device)


def read_fitted(folder: Path, *, device: str = "cpu") -> FittedModel:
    """The model in a unit's own folder. Raises `CheckpointError`."""
    card = read_predictor(folder)
    tensors = read_tensors(folder / MODEL, None, card.weights_sha256)
    with rebuilding(folder):
        if card.form == "cnn":
            return FittedModel(folder, card, CnnPredictor.of(card.about, tensors))
        if card.form == "kmer-lr":
            return FittedModel(folder, card, KmerPredictor.of(card.about, tensors))
        if card.network is None or card.settings is None:
            raise CheckpointError("has no network in its description", fix=AGAIN)
        alphabet, settings = card.network.read_alphabet(), card.settings
        build = card.network.settings.build
        backbone = build(alphabet.padded_size, alphabet.complement, seed=TO_FILL)
        n_out, options = max(1, len(card.classes)), card.about.get("head")
        network = Classifier(backbone, n_out, settings, alphabet.complement, options=options)
        fill_module(network, tensors)
        encoder: Encoder = alphabet
        if card.domain == "text":
            encoder = SentenceEncoder(open_model_tokenizer(folder, alphabet))
        network, bf16 = network.to(device).eval(), settings.precision == "bf16"
        kind, longest, scale = card.kind, card.max_length, card.scale
        predictor = NetworkPredictor(network, encoder, kind, longest, bf16=bf16, scale=scale)
        return FittedModel(folder, card, predictor)


def score_queries(
    models: Sequence[FittedModel], queries: Iterable[Query], *, batch_size: int = 64
) -> Iterator[tuple[list[str], Floats]]:
    """Names and scores (models, n, classes) of chunks of sequences; of a regression (models, n).

    Raises `CheckpointError` where models do not answer the same question.
    """
    first = models[0].card
    for other in models[1:]:
        if (other.card.kind, other.card.classes) != (first.kind, first.classes):
            what = "predicts other classes than the first model of the ensemble"
            fix = "average seeds of one task and one model"
            raise CheckpointError(what, file=other.folder, fix=fix)
    rest = iter(queries)
    longest = max(model.card.max_length for model in models)
    cut = longest if first.domain == "dna" else None
    while some := [(q.name, q.sequence[:cut]) for q in islice(rest, CHUNK)]:
        sequences = [sequence for _, sequence in some]
        scores = np.stack([model.score(sequences, batch_size=batch_size) for model in models])
        yield [name for name, _ in some], scores


def predict_queries(
    models: Sequence[FittedModel], queries: Iterable[Query], *, batch_size: int = 64
) -> Iterator[pl.DataFrame]:
    """A frame for each chunk of the sequences, in their order; the mean where there are several."""
    for names, scores in score_queries(models, queries, batch_size=batch_size):
        yield make_frame(names, scores, models[0].card)


def make_frame(names: list[str], scores: Floats, card: PredictorCard) -> pl.DataFrame:
    """The table of `scores`: (models, n, classes), or (models, n) for regression."""
    several = len(scores) > 1
    mean = scores.mean(0) if several else scores[0]
    spread = scores.std(0, ddof=1) if several else mean
    answers: Any = mean.astype(np.float32)
    if card.kind == "multilabel":
        classes, spread = np.array(card.classes), spread.max(1)
        answers = [classes[row >= THRESHOLD].tolist() for row in mean]
    elif card.kind != "regression":
        best = mean.argmax(1)
        answers, spread = [card.classes[i] for i in best], spread[np.arange(len(mean)), best]
    columns: dict[str, Any] = {"name": names, "prediction": pl.Series(answers)}
    if card.kind != "regression":
        columns |= {
            column: pl.Series(mean[:, i].astype(np.float32))
            for i, column in enumerate(name_columns(card))
        }
    if several:
        columns["spread"] = pl.Series(spread.astype(np.float32))
    return pl.DataFrame(columns, schema_overrides={"name": pl.String})


def name_columns(card: PredictorCard) -> list[str]:
    """The column of each class's probability."""
    return [f"p_{name}" for name in card.classes]


def make_rows(frame: pl.DataFrame, card: PredictorCard) -> Iterator[dict[str, Any]]:
    """The rows of a frame as JSON has them: name, prediction, probabilities, spread."""
    columns = name_columns(card)
    for row in frame.iter_rows(named=True):
        probabilities = {
            name: _short(row[column]) for name, column in zip(card.classes, columns, strict=True)
        }
        answer = row["prediction"]
        found = {
            "name": row["name"],
            "prediction": _short(answer) if card.kind == "regression" else answer,
            "probabilities": probabilities,
        }
        yield found | ({"spread": _short(row["spread"])} if "spread" in row else {})


def _short(value: float) -> float:
    """A float32 with as few decimals as tell it apart."""
    return float(str(np.float32(value)))


class FittedOracle:
    """One number for each sequence of DNA: the log-odds of a class, in nats, or the value.

    The log-odds are log p − log(1 − p).
    """

    def __init__(self, model: FittedModel, label: str | None, *, batch_size: int = 64) -> None:
        """Raises `UsageError` for a model of text and for a `label` that is no class of it."""
        if model.card.domain != "dna":
            raise UsageError("the model is of text, and maps are of DNA", fix="give a model of DNA")
        self.model, self.batch_size = model, batch_size
        self._column: int | None = None  # that of the class
        if model.card.kind != "regression":
            if label not in model.labels:
                what = "--label is missing: a map shows one class"
                if label is not None:
                    what = f"'{label}' is no class of the model"
                raise UsageError(what, fix=f"give one of {', '.join(model.labels)}")
            self._column = model.labels.index(label)
        elif label is not None:
            what = "--label is of classes, and this is a regression"
            raise UsageError(what, fix="leave it out")

    @property
    def is_regression(self) -> bool:
        """Whether the numbers are values, in the unit of the labels."""
        return self._column is None

    def check(self, lengths: Sequence[int]) -> None:
        """Raises `UsageError` where a sequence of one of the `lengths` would be cut."""
        longest = max(lengths, default=0)
        if self.model.cuts(b"N" * longest):
            read = f"{self.model.card.max_length:,}"
            what = f"a region has {longest:,} bases, and the fit reads {read}"
            raise UsageError(what, fix=f"give regions of {read} or fewer")

    def __call__(self, sequences: list[bytes]) -> Floats:
        """(n,) for n sequences in upper case. Raises `GenodiffError` for values not finite."""
        found = self.model.score(sequences, batch_size=self.batch_size)
        if self._column is None:
            return found
        own = found[:, self._column]
        # A sum of the others keeps the digits that 1 − p loses where p is near 1.
        several = self.model.card.kind == "multilabel"
        others = 1 - own if several else np.delete(found, self._column, 1).sum(1)
        odds: Floats = np.log(np.maximum(own, _LEAST)) - np.log(np.maximum(others, _LEAST))
        return odds
