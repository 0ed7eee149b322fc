"""Streaming: the pieces of a sequence give the logits of one pass over the whole."""

from typing import Any

import pytest
import torch

from genodiff.alphabet import DNA
from genodiff.backbones.caduceus import CaduceusSettings
from genodiff.backbones.streaming import KEEP, stream

SHAPES: list[dict[str, Any]] = [
    {},
    {"strands": "single"},
    {"alternate_strands": True, "n_layer": 3},
    {"alternate_strands": True, "n_layer": 2},
    {"bidirectional_strategy": "ew_multiply"},
    {"tie_directions": False, "strands": "single", "proj_bias": True},
    {"bidirectional": False, "strands": "single"},
    {"bidirectional": False, "alternate_strands": True},
    {"d_conv": 1, "d_state": 3, "norm": "layer", "tie_head": False, "strands": "single"},
]


@pytest.mark.few(3)
@pytest.mark.parametrize("keep", [0, KEEP])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_pieces_give_what_the_whole_gives(shape, keep):
    settings = CaduceusSettings(**{"d_model": 12, "n_layer": 2, "d_state": 4} | shape)
    network = settings.build(16, DNA.complement, seed=3).double().eval()
    with torch.no_grad():
        for parameter in network.parameters():
            wave = torch.sin(torch.arange(parameter.numel(), dtype=torch.float64))
            parameter.add_(0.3 * wave.reshape(parameter.shape))
    xt = torch.from_numpy(DNA.encode("ACGTNACCGTTGACGTATGCA")).long()
    xt[5:9] = DNA.mask_id
    whole = network(xt[None])[0]
    for piece in (2, 10) if keep else (11, 1000):
        found = list(stream(network, xt, piece=piece, keep=keep))
        assert [start for start, _ in found] == list(range(0, len(xt), piece))
        assert torch.cat([logits for _, logits in found]) == pytest.approx(
            whole.detach(), abs=1e-10
        )


def test_a_sequence_without_bases_has_no_pieces_and_a_piece_has_bases():
    network = CaduceusSettings(d_model=8, n_layer=1).build(16, DNA.complement)
    assert list(stream(network, torch.empty(0, dtype=torch.long))) == []
    with pytest.raises(ValueError, match="0 bases"):
        list(stream(network, torch.zeros(3, dtype=torch.long), piece=0))
