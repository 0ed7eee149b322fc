"""The numbers of a run's memory, fitted beside its network on windows of its valid split.

Windows are drawn from three classes: unique, touched and repeat. The class is the share of a window
in 24-mers that the train split has. Each window is masked several times, with k = 1..L bases in
strata. It counts as much as the valid split has of its class. The cost is the bound of the exact
count (`memory/fitting.py`). Nothing of the test split is read. `RUN/memory.json` keeps them:

    {"fingerprint": of the memory, "numbers": {...}, "effort": {...}, "fitted_on": {...}}

Whoever opens the memory of such a run takes them (`training_memory.py`). A run that is trained
beside its memory has its numbers from the beginning, and no such file.
"""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.data.kmers import measure_shared_cover, shared_kmers
from genodiff.data.store import Store
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.io import atomic
from genodiff.io.target import read_json_object
from genodiff.memory.fitting import fit_numbers
from genodiff.memory.numbers import MemoryNumbers
from genodiff.memory.search import is_effort
from genodiff.memory.tables import Floats
from genodiff.memory.text import NONE, Codes
from genodiff.runs.sealed_files import read_json
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import cut_windows, list_stretches, open_train_memory

CLASSES = ("unique", "touched", "repeat")
REPEAT = 0.25
"""The share of a window in 24-mers of the train split from which on it is a repeat."""
ROUNDS = ((1.6, 0.625), (1.25, 0.8))
_BATCH = 16
FILE = "memory.json"
_KEYS = ("fingerprint", "numbers", "effort", "fitted_on")
_log = logging.getLogger("genodiff")


class MaskedSample(NamedTuple):
    """Rows of masked windows, what stands there, each row's window, and each window's class."""

    masked: Codes
    clean: Codes
    window: NDArray[np.int64]
    kinds: NDArray[np.int64]


def fit_memory(
    model: TrainedModel, *, windows: int, draws: int, seed: int, offline: bool = False
) -> dict[str, Any]:
    """Fit the numbers and keep them in RUN/memory.json; what is written there.

    `windows` of each class, `draws` masks for each. Raises `UsageError` for a network that has its
    numbers from training, `DataError` and `CheckpointError` where the genome is not to be had.
    """
    if model.recalls:
        what = "the network was trained with its memory and these parameters"
        raise UsageError(what, fix="keep them")
    if model.objective.kind != "masked":
        what = f"a memory is for masked networks, and this is {model.objective.name}"
        raise UsageError(what, fix="give a masked network of DNA")
    opened = open_train_memory(model, offline=offline, fitted=False)
    rows = cut_windows(opened.store, "valid", model.config.data.seq_len)
    if not len(rows):
        what = f"has no window of {model.config.data.seq_len:,} known bases in its valid split"
        raise DataError(what, file=opened.store.path, fix="choose another valid split")
    kinds = classify(opened.store, rows)
    sample = draw_sample(rows, kinds, windows, draws, seed)
    _log.info("%s: fitting the memory on %s masked windows", model.run, f"{len(sample.masked):,}")
    # The windows of a class count as much as the split has of it.
    share = count_kinds(kinds) / np.maximum(count_kinds(sample.kinds), 1)
    said = read_network(model, sample.masked)
    given, weights = (opened.memory, sample.masked, sample.clean, said), share[sample.kinds]
    fitted = fit_numbers(*given, weights=weights, rounds=ROUNDS, tell=_log.info)
    fit = {
        "fingerprint": opened.told["fingerprint"],
        "numbers": fitted.numbers.model_dump(mode="json"),
        "effort": opened.told["effort"],
        "fitted_on": {
            "split": "valid", "windows": windows, "draws": draws, "seed": seed,
            "rows": len(sample.masked), "checkpoint": model.digest,
            "bits_alone": fitted.alone, "bits_before": fitted.before, "bits_after": fitted.after,
        },
    }  # fmt: skip
    atomic.write_json(model.run / FILE, fit)
    return fit


def classify(store: Store, windows: Codes) -> NDArray[np.int64]:
    """The class of each window: its number in CLASSES."""
    train = [codes for _, _, codes in list_stretches(store, "train")]
    cover = measure_shared_cover(list(windows), shared_kmers(list(windows), train))
    return np.where(cover >= REPEAT, 2, np.where(cover > 0, 1, 0))


def count_kinds(kinds: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many windows there are of each class."""
    return np.bincount(kinds, minlength=len(CLASSES))


def draw_sample(
    windows: Codes, kinds: NDArray[np.int64], n: int, draws: int, seed: int
) -> MaskedSample:
    """At most n windows of each class, each masked `draws` times, k in strata."""
    rng = np.random.default_rng(seed)
    of_class = (np.flatnonzero(kinds == c) for c in range(len(CLASSES)))
    window = np.concatenate([rng.permutation(some)[:n] for some in of_class]).repeat(draws)
    clean, masked = windows[window], []
    for row, x in enumerate(clean):
        k = 1 + int((row % draws + rng.random()) / draws * len(x))
        masked.append(np.where(rng.permutation(len(x)) < k, NONE, x).astype(np.uint8))
    return MaskedSample(np.stack(masked), clean, window, kinds[window])


def read_network(model: TrainedModel, masked: Codes) -> Floats:
    """(B, L, 4): what the network says of masked windows."""
    ids = np.array([*model.alphabet.targets, model.alphabet.mask_id])
    device = next(model.backbone.parameters()).device
    visible = torch.from_numpy((masked < NONE).mean(1))
    sigma = model.diffusion.sigma(model.diffusion.schedule.inverse(visible)).float()
    out = []
    with torch.no_grad():
        for first in range(0, len(masked), _BATCH):
            rows = slice(first, first + _BATCH)
            xt = torch.from_numpy(ids[masked[rows]]).to(device)
            logits = model.backbone(xt, sigma[rows].to(device))[..., list(model.alphabet.targets)]
            out.append(logits.double().softmax(-1).cpu().numpy())
    return np.concatenate(out)


def is_fitted(path: Path) -> bool:
    """Whether `fit_memory` wrote a file."""
    return read_json_object(path).keys() == set(_KEYS)


def read_fitted(run: Path) -> dict[str, Any] | None:
    """What is kept with a run, if anything. Raises `CheckpointError` for a damaged file."""
    path = run / FILE
    if not path.exists():
        return None
    told = read_json(path)
    if not set(_KEYS) <= told.keys() or not is_effort(told["effort"]):
        what, fix = "does not hold the numbers of a memory", "remove it, and fit them again"
        raise CheckpointError(what, file=path, fix=fix)
    MemoryNumbers.parse(told["numbers"], file=path, error=CheckpointError)
    return told
