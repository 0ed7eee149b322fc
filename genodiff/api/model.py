"""A loaded model and what it does: `genodiff.Model`."""

from genodiff.alphabet import Alphabet
from genodiff.runs.config import RunConfig
from genodiff.runs.model import TrainedModel


class Model:
    """A trained model, as `genodiff.load` gives it."""

    def __init__(self, trained: TrainedModel) -> None:
        self._trained = trained

    @property
    def alphabet(self) -> Alphabet:
        """Tokens and their ids; `alphabet.encode("ACGT")` gives ids, `alphabet.decode` letters."""
        return self._trained.alphabet

    @property
    def config(self) -> RunConfig:
        """All settings of the run."""
        return self._trained.config
