"""The oracles of the demonstration: fine-tuned networks on one-hot arrays, and a ridge on words.

A fine-tuned unit as a torch module is what every method is given, so that a call is the same thing
for all of them: a sequence of 80 bases, forwards, or forwards and backwards where slopes are
wanted. `Counting` counts both.
"""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import torch
from judges import fit_ridge
from torch import Tensor, nn
from yeast import read_table

from genodiff.finetuning.fitted_model import load_fitted
from genodiff.finetuning.head import Classifier
from genodiff.scoring.one_hot import OneHotNetwork, encode_one_hot


class OneHotOracle(OneHotNetwork):
    """(N, 4, L) -> (N, 1): the value that a fine-tuned unit gives, differentiable."""

    def __init__(self, folder: Path) -> None:
        model = load_fitted(folder)
        classifier = model.network
        assert isinstance(classifier, Classifier)
        super().__init__(  # it needs the network and its alphabet
            SimpleNamespace(backbone=classifier.backbone, alphabet=model.alphabet),  # type: ignore[arg-type]
            "features",
        )
        self.classifier, self.scale = classifier.requires_grad_(False), model.card.scale
        self.eval()

    def forward(self, X: Tensor) -> Tensor:
        lengths = torch.full((len(X),), X.shape[2])
        scores = self._read(X.float(), lambda ids, sigma: self.classifier(ids, lengths))
        return scores * self.scale[1] + self.scale[0]


class Counting(nn.Module):
    """An oracle that counts its sequences; `sign` is -1 where small values are wanted."""

    def __init__(self, oracle: nn.Module, sign: int = 1) -> None:
        super().__init__()
        self.oracle, self.sign, self.calls = oracle, sign, 0

    def forward(self, X: Tensor) -> Tensor:
        self.calls += len(X)
        found: Tensor = self.sign * self.oracle(X)
        return found


@torch.no_grad()
def score(oracle: nn.Module, texts: list[str], batch: int = 256) -> np.ndarray:
    """The values (n,) of sequences of one length."""
    parts = [texts[i : i + batch] for i in range(0, len(texts), batch)]
    return np.concatenate([oracle(encode_one_hot(part))[:, 0].double().numpy() for part in parts])


class Ridge:
    """The third judge: words of 1 to 5 bases, fitted on a table's cores."""

    def __init__(self, table: Path) -> None:
        self.texts, self.values = read_table(table)

    def score(self, texts: list[str]) -> np.ndarray:
        return fit_ridge(self.texts, self.values, np.arange(len(self.texts)), texts)


def find_unit(folder: Path) -> Path:
    """The one unit of a sweep of fits."""
    (unit,) = (folder / "units").iterdir()
    return unit
