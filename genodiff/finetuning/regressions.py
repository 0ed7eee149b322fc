"""scikit-learn's fitted regressions as tensors and back, so that no pickle is ever written.

model0.coef, model0.intercept    of the first regression
model0.classes                   the numbers of its classes; without it, it gives values
model0.constant                  the one class that its train part had, in place of a regression
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, Ridge
from torch import Tensor

from genodiff.errors import CheckpointError


def regression_tensors(models: list[Any]) -> dict[str, Tensor]:
    """The tensors of fitted regressions; a number stands for a class that is always given."""
    found: dict[str, NDArray[Any]] = {}
    for i, model in enumerate(models):
        if not hasattr(model, "coef_"):
            found[f"model{i}.constant"] = np.array([int(model)], np.int64)
            continue
        found[f"model{i}.coef"] = np.atleast_2d(np.asarray(model.coef_, np.float64))
        found[f"model{i}.intercept"] = np.atleast_1d(np.asarray(model.intercept_, np.float64))
        if hasattr(model, "classes_"):
            found[f"model{i}.classes"] = np.asarray(model.classes_, np.int64)
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in found.items()}


def read_regressions(tensors: dict[str, Tensor]) -> list[Any]:
    """The regressions that `regression_tensors` wrote. Raises `CheckpointError` where one lacks."""
    numbers = sorted({int(name[5:].partition(".")[0]) for name in tensors if _is_ours(name)})
    if numbers != list(range(len(numbers))) or not numbers:
        raise CheckpointError("holds no whole regression", fix="use an undamaged folder")
    return [_regression(i, tensors) for i in numbers]


def _is_ours(name: str) -> bool:
    return name.startswith("model") and name[5:].partition(".")[0].isdecimal()


def _regression(i: int, tensors: dict[str, Tensor]) -> Any:
    if f"model{i}.constant" in tensors:
        return int(tensors[f"model{i}.constant"][0])
    coef, intercept = tensors[f"model{i}.coef"].numpy(), tensors[f"model{i}.intercept"].numpy()
    if f"model{i}.classes" not in tensors:
        ridge = Ridge()
        ridge.coef_, ridge.intercept_, ridge.n_features_in_ = coef[0], intercept[0], coef.shape[1]
        return ridge
    logistic = LogisticRegression()
    logistic.coef_, logistic.intercept_, logistic.n_features_in_ = coef, intercept, coef.shape[1]
    logistic.classes_ = tensors[f"model{i}.classes"].numpy()
    return logistic
