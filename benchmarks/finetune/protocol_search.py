"""Settings of a fine-tuning chosen by validation within minutes, through `genodiff finetune`.

Whole fits of seed 1, the likeliest settings first: those of the protocol, longer fits that average
their weights and hide bases, then a grid in a fixed order. The best on validation is taken, the
first of equals, and its flags are given to the fits of all seeds. No test part decides anything.

RESULTS.md was made when this was `genodiff finetune --budget`, with trials in short, a rule of one
standard error and a second look at the heads beside it.
"""

import json
import math
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from genodiff.counter import Purpose, uniforms
from genodiff.tasks.metrics import is_better

LEAST_LONG = 1_000
"""Steps of the longest fits that are tried, at least."""
EMA = 0.998
"""The decay of the average of weights that longer fits are tried with."""

Flags = dict[str, Any]


def list_protocols(
    lr: float, epochs: int, steps: int, *, turns: bool, reads_places: bool = False
) -> list[Flags]:
    """What differs from the protocol in each candidate; `steps` are those of its whole fit.

    With `turns`, strands are tried one-sided and sequences shifted. A head that reads places is
    tried without shifts first, which blur them. Longer fits stop early.
    """
    axes: dict[str, tuple[Any, ...]] = {
        "lr": (None, 3 * lr, lr / 3), "epochs": (None, 2 * epochs),
        "weight_decay": (None, 0.01), "dropout": (None, 0.2),
    }  # fmt: skip
    if turns:
        axes |= {"shift": (None, 4), "rc": (None, "none")}
    points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    order = np.argsort(uniforms(0, Purpose.FINETUNE_SPLIT, 2, len(points) - 1), kind="stable")
    longer: Flags = {"epochs": 2 * epochs, "dropout": 0.3, "ema": EMA}
    first = [longer, longer | {"mask_share": 0.1}]
    if turns:
        shifted = [one | {"shift": 4} for one in first]
        first = first + shifted if reads_places else shifted
    most = math.ceil(LEAST_LONG * epochs / steps)
    if most > 2 * epochs:
        first = [{"epochs": most}, {"epochs": most, "dropout": 0.3}, *first]
    found = [{}, *first, *(points[i] for i in order + 1)]
    named = [{k: v for k, v in one.items() if v is not None} for one in found]
    patience = {"patience": max(3, epochs // 2)}
    return [one | patience if "epochs" in one else one for one in named]


def as_words(flags: Flags) -> Iterator[object]:
    """The flags as words of the command line."""
    for name, value in flags.items():
        yield from (f"--{name.replace('_', '-')}", value)


def choose(
    protocols: list[Flags],
    fit: Callable[[Flags], tuple[float, float]],
    metric: str,
    minutes: float,
    record: Path,
) -> Flags:
    """The best protocol of those that are tried within the minutes; the first one always is.

    `fit` gives (validation value, seconds). What was tried is kept in `record` and not tried again.
    """
    known = json.loads(record.read_text()) if record.exists() else []
    for flags in protocols[len(known) :]:
        seconds = [one["seconds"] for one in known]
        if known and sum(seconds) + max(seconds) > 60 * minutes:
            break
        valid, took = fit(flags)
        known.append({"flags": flags, "valid": valid, "seconds": took})
        record.write_text(json.dumps(known, indent=1) + "\n")
    best = known[0]
    for one in known[1:]:
        if is_better(metric, one["valid"], best["valid"]):
            best = one
    chosen: Flags = best["flags"]
    return chosen
