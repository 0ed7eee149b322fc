"""Which bases a prediction rests on: in-silico mutagenesis of one sequence.

m_{i,b} = z_c(x with base b at i) − z_c(x), for every base b at every place i of a stretch, z_c
being the score of the class c that is asked about, minus the mean score of the other classes. What
is shown is −mean_{b ≠ x_i} m_{i,b}: high where changes cost most.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.alphabet import Alphabet
from genodiff.finetuning.batches import split_passes
from genodiff.finetuning.head import Classifier

LONGEST = 120


@torch.no_grad()
def mutagenesis(
    classifier: Classifier, alphabet: Alphabet, sequence: bytes, label: int, longest: int = LONGEST
) -> tuple[int, NDArray[np.float64]]:
    """(start, m): the changes m (n, targets) of the class's score.

    They cover the `longest` bases in the middle of the sequence.
    """
    ids = np.array(alphabet.encode(sequence), np.int64)
    start = max(0, (len(ids) - longest) // 2)
    n = min(longest, len(ids))
    targets = np.array(alphabet.targets)
    rows = np.tile(ids, (1 + n * len(targets), 1))
    rows[1 + np.arange(n * len(targets)), start + np.repeat(np.arange(n), len(targets))] = np.tile(
        targets, n
    )
    device, lengths = classifier.weight.device, np.full(len(rows), len(ids))
    classifier.eval()
    scores = []
    for some in split_passes(lengths, device.type, 2 if classifier.paired else 1):
        x0 = torch.from_numpy(rows[some]).to(device)
        scores.append(
            classifier.predict(x0, torch.full((len(x0),), len(ids), device=device))
            .double()
            .cpu()
            .numpy()
        )
    z = np.concatenate(scores)
    if z.shape[1] > 1:
        others = np.delete(z, label, axis=1).mean(1)
        margin = z[:, label] - others
    else:
        margin = z[:, 0]
    return start, (margin[1:] - margin[0]).reshape(n, len(targets))


def explain_sequence(
    classifier: Classifier, alphabet: Alphabet, sequence: bytes, label: int, probability: float
) -> dict[str, Any]:
    """What a report draws: the bases of the stretch, and the mean cost of a change at each."""
    start, change = mutagenesis(classifier, alphabet, sequence, label)
    bases = sequence[start : start + len(change)].decode("ascii")
    cost = -change.sum(1) / (change.shape[1] - 1)
    return {
        "start": start, "length": len(sequence), "bases": bases, "cost": cost.round(5).tolist(),
        "label": label,
        "probability": probability,
    }  # fmt: skip
