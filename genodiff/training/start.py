"""A warm start: weights that a run begins from, and the proof that they arrived.

The weights' hash is part of the run's identity (`init_sha256`), so that a run can be resumed
without its source and never from another one. Averaging begins from the same weights; the moments
of the optimiser begin at zero.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from torch import Tensor, nn

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import BackboneSettings
from genodiff.errors import CheckpointError, UsageError
from genodiff.runs.config import RunConfig
from genodiff.runs.model import fill_module

TOLERANCE = 1e-5
# Settings that change no weight and no logit.
_OF_TRAINING = {"checkpointing", "recompute_states", "dropout"}


class WarmStart(NamedTuple):
    """Weights under our names, their network, and a comparison with its source."""

    path: str
    digest: str  # sha256 (hex)
    settings: BackboneSettings
    vocabulary: str  # fingerprint of the alphabet
    tensors: dict[str, Tensor]
    parity: Callable[[nn.Module], float]  # largest difference of logits on a probe, relative
    record: dict[str, Any]  # for the provenance

    def check(self, config: RunConfig) -> None:
        """Raises `UsageError` where the configuration's network is not that of the weights."""
        both = (self.settings, config.backbone)
        theirs, ours = (one.model_dump(mode="json", exclude=_OF_TRAINING) for one in both)
        if theirs.get("kind") != ours.get("kind"):
            differing = [f"a {theirs['kind']}, not a {ours['kind']}"]
        else:
            other = [name for name, value in theirs.items() if value != ours.get(name)]
            differing = [f"{name}: {theirs[name]}, not {ours.get(name)}" for name in other]
        if differing:
            what = f"--init holds another network than requested ({'; '.join(differing[:3])})"
            fix = "leave out --preset and the network's settings, or give other weights"
            raise UsageError(what, file=self.path, fix=fix)


def start_from_weights(backbone: nn.Module, start: WarmStart, alphabet: Alphabet) -> float:
    """Put the weights into the network; return how far its logits are from the source's.

    Raises `CheckpointError` where that is more than rounding: nothing is trained from weights that
    did not arrive.
    """
    if alphabet.fingerprint() != start.vocabulary:
        what = f"is of another vocabulary than '{alphabet.name}'"
        raise CheckpointError(what, file=start.path, fix="give weights of the same vocabulary")
    tensors = dict(start.tensors)
    for name in ("classes", "recalled"):  # zeros: they are learnt from here on
        table = getattr(backbone, name, None)
        if table is not None and name not in tensors:
            tensors[name] = table.detach()
    fill_module(backbone, tensors)
    differ = start.parity(backbone)
    if not differ <= TOLERANCE:
        what = "the network that would be trained answers a probe otherwise than its source "
        fix = "give settings that do not change the network"
        raise CheckpointError(f"{what}(by {differ:.1e})", file=start.path, fix=fix)
    return differ
