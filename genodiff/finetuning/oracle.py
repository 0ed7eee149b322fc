"""A fine-tuned model as an oracle: one number for each sequence.

For a class that is its log-odds, log p − log(1 − p), in nats; for regression it is the value.
"""

from collections.abc import Sequence

import numpy as np

from genodiff.errors import UsageError
from genodiff.finetuning.fitted_model import FittedModel
from genodiff.tasks.metrics import Floats

_LEAST = 1e-300  # a probability below it counts as this much


class FittedOracle:
    """Gives numbers for sequences of DNA, by a fine-tuned model and one of its classes."""

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
