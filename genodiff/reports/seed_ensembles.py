"""Ensembles of seeds: the mean of a line's predictions over its seeds, as one answer.

The predictions are those that each seed's unit has kept, so the test part is not read again. An
ensemble is a line of its own. It is one answer, not a mean of scores, so its interval is over test
examples alone, and it is not among the comparisons.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from genodiff.tasks.metrics import measure

NETWORK_BASELINES = ("cnn", "cnn-tuned")
"""Baselines whose seeds are averaged too, as those of networks are."""


def can_average(row: dict[str, Any]) -> bool:
    """Whether the seeds of a row's line are networks."""
    return row["method"] != "baseline" or row["model"] in NETWORK_BASELINES


def average_seeds(
    rows: Sequence[dict[str, Any]], given: Sequence[tuple[Any, Any, Any]], about: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Any, Any, Any]]:
    """(row, (predictions, truth, lengths)) of the mean over seeds.

    The row has the fields of the first seed's row. `ensemble` is the number of seeds, `keys` are
    those of their rows, and `seconds` is the sum of theirs. There is no validation value: each seed
    has a validation part of its own.
    """
    predicted = np.mean([p for p, _, _ in given], axis=0)
    _, truth, lengths = given[0]
    values = {m: measure(m, about["kind"], truth, predicted) for m in rows[0]["metrics"]}
    row = rows[0] | {
        "ensemble": len(rows),
        "keys": [r["key"] for r in rows],
        "value": values[rows[0]["metric"]],
        "metrics": values,
        "valid": None,
        "seconds": float(sum(r["seconds"] for r in rows)),
    }
    return row, (predicted, truth, lengths)
