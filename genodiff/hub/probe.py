"""A probe of a network before anyone trusts it.

Logits must be finite, strands must agree; the bits that it pays for a known sequence are measured.

The probe is the consensus of the human repeat AluY, which a model of the human genome knows by
heart and any model of DNA should not pay much more than 2 bits a base for. Weights that are random,
wrongly tied or read with permuted ids pay far more.
"""

from math import log
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from genodiff.alphabet import Alphabet
from genodiff.backbones.backbone import Backbone
from genodiff.errors import CheckpointError

ALU_Y = (
    "GGCCGGGCGCGGTGGCTCACGCCTGTAATCCCAGCACTTTGGGAGGCCGAGGCGGGCGGATCACGAGGTCAGGAGATCGAGACCATCCCGGCTAAAACGGTGAAACCCCGTCTCTACTAAAAATACAAAA"
    "AATTAGCCGGGCGTGGTGGCGGGCGCCTGTAGTCCCAGCTACTCGGGAGGCTGAGGCAGGAGAATGGCGTGAACCCGGGAGGCGGAGCTTGCAGTGAGCCGAGATCGCGCCACTGCACTCCAGCCTGGGC"
    "GACAGAGCGAGACTCCGTCTC"
)
_EVERY = 7  # one base in seven is masked, about the share under which such networks were trained
_TOLERANCE = 1e-4
SANE_BITS = 2.5


def make_probe_sequence(alphabet: Alphabet) -> Tensor:
    """The probe's ids: the repeat for DNA, for text tokens from all over the vocabulary."""
    if alphabet.domain == "dna":
        return torch.from_numpy(alphabet.encode(ALU_Y)).long()
    return torch.tensor(alphabet.targets)[torch.arange(64) * 7919 % len(alphabet.targets)]


def compute_probe_logits(backbone: nn.Module, alphabet: Alphabet) -> Tensor:
    """The network's answer to the probe with its bases masked in turn: (7, L, V)."""
    x0 = make_probe_sequence(alphabet)
    rows = x0.repeat(_EVERY, 1)
    for i in range(_EVERY):
        rows[i, i::_EVERY] = alphabet.mask_id
    with torch.no_grad():
        found: Tensor = backbone(rows, torch.full((_EVERY,), -log(1 - 1 / _EVERY)))
    return found


def probe_network(backbone: Backbone, alphabet: Alphabet) -> dict[str, Any]:
    """The probe's figures: `bits_per_base`, and of a network of both strands `strands_differ`.

    That is the largest difference of logits(x) and the turned logits(rc x), relative. Raises
    `CheckpointError` for logits that are not finite, or strands that disagree.
    """
    logits = compute_probe_logits(backbone, alphabet)
    if not bool(torch.isfinite(logits).all()):
        fix = "use undamaged weights"
        raise CheckpointError("the network's logits are not finite on a probe sequence", fix=fix)
    x0 = make_probe_sequence(alphabet)
    logp = F.log_softmax(logits[..., list(alphabet.targets)].double(), -1)
    place = torch.searchsorted(torch.tensor(alphabet.targets), x0)
    own = logp.gather(-1, place.repeat(_EVERY, 1)[..., None])[..., 0]
    at = torch.arange(len(x0))
    bits = float(-own[at % _EVERY, at].mean() / log(2))
    differ = None
    if backbone.paired:
        complement, sigma = torch.tensor(alphabet.complement), torch.full((1,), 0.1)
        with torch.no_grad():
            given = backbone(x0[None], sigma)
            turned = backbone(complement[x0].flip(0)[None], sigma).flip(1)[..., complement]
        differ = float((given - turned).abs().max() / given.abs().max().clamp(min=1.0))
        if differ > _TOLERANCE:
            what = f"the two strands disagree by {differ:.1e}, though the network must treat them "
            fix = "check complement_map and the order of the vocabulary"
            raise CheckpointError(f"{what}alike", fix=fix)
    sequence = "AluY consensus" if alphabet.domain == "dna" else "tokens of the vocabulary"
    return {"bits_per_base": round(bits, 4), "strands_differ": differ, "sequence": sequence}
