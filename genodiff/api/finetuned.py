"""A fine-tuned model, as `genodiff.load` gives it."""

from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import nn

from genodiff.alphabet import Alphabet
from genodiff.api.model import Model
from genodiff.errors import UsageError
from genodiff.finetuning.fitted_model import FittedModel
from genodiff.finetuning.kept_labeller import KeptLabeller
from genodiff.kernels.defaults import own_defaults


def _refuse_to(does: str) -> Any:
    """A method of language models alone."""

    def refuse(self: "FinetunedModel", *args: Any, **options: Any) -> NoReturn:
        """Raises `UsageError`."""
        self._refuse(does)

    return refuse


class FinetunedModel(Model):
    """A fine-tuned model: `predict` returns classes or values, and `labels` are the classes' names.

    Methods of a language model (`sample`, `infill`, `embed`, `bits`, `config`) raise `UsageError`;
    use the run that it was tuned from.
    """

    def __init__(self, fitted: FittedModel | KeptLabeller) -> None:
        self._fitted, self.memory = fitted, None

    def __repr__(self) -> str:
        labels = f", classes {', '.join(self.labels)}" if self.labels else ""
        return f"<genodiff.FinetunedModel {self.path}{labels}>"

    @property
    def fitted(self) -> FittedModel | KeptLabeller:
        """The model as internal functions take it."""
        return self._fitted

    @property
    def inner(self) -> FittedModel:
        """The model as lower rooms take it. Raises `UsageError` for one that labels bases."""
        if isinstance(self._fitted, KeptLabeller):
            self._refuse("is read for maps")
        return self._fitted

    @property
    def path(self) -> Path:
        """The unit's folder."""
        return self._fitted.folder

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the probabilities; none for regression."""
        return self._fitted.labels

    @property
    def alphabet(self) -> Alphabet:
        """Tokens and their ids. Raises `UsageError` for a model without a network."""
        if self._fitted.alphabet is None:
            self._refuse("has an alphabet")
        return self._fitted.alphabet

    @property
    def digest(self) -> str:
        """The first 12 hex digits of the sha256 of the weights."""
        return self._fitted.digest

    @property
    def network(self) -> nn.Module:  # type: ignore[override]
        """The `torch.nn.Module`: ids (B, L) and lengths (B,) → scores (B, classes).

        Raises `UsageError` for a regression on k-mers.
        """
        if self._fitted.network is None:
            raise UsageError("a regression on k-mers has no network", fix="use predict")
        return self._fitted.network

    @property
    def device(self) -> torch.device:
        """Device of the network."""
        return next(self.network.parameters()).device

    @own_defaults()
    def predict(  # type: ignore[override]
        self,
        sequences: Any = None,
        *,
        column: tuple[str, ...] | list[str] = (),
        fasta: str | Path | None = None,
        region: tuple[str, ...] | list[str] = (),
        batch_size: int = 64,
    ) -> Any:
        """Predict labels; returns a frame with name, prediction, and a p_CLASS for each class.

        `sequences` are strings, `SeqRecord`s, a mapping from names or a file: FASTA, a table
        (`column` names its sequences) or a BED file of a genome (`fasta`), whose rows on - are read
        as their reverse complement. Without them, `region` (chr1:1,000-2,000) selects parts of the
        genome. The batch size affects the speed only. A model of `finetune bases` returns an array
        (bases, labels) for each sequence, by name. Raises `DataError` for an invalid record.
        """
        return self._fitted.predict(
            sequences, column=column, fasta=fasta, region=region, batch_size=batch_size
        )

    sample, infill, embed = map(_refuse_to, ("samples", "fills gaps", "embeds"))
    bits, encode = map(_refuse_to, ("has a likelihood", "encodes"))
    trained = property(_refuse_to("samples and has a likelihood"))
    config = property(_refuse_to("has the settings of a run"))
    objective = property(_refuse_to("has an objective"))
    step = property(_refuse_to("has a training step"))

    def _refuse(self, does: str) -> NoReturn:
        what = f"{self.path}: a fine-tuned model predicts; its language model {does}"
        raise UsageError(what, fix="load the run that it was tuned from")
