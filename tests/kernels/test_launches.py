"""How often a step calls the GPU: counted on one that is faked."""

import pytest
import torch
from fake_gpu import fake_gpu

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS


def count(rows: int, preset: str = "caduceus-ph-470k") -> dict[str, int]:
    """Launches of the kernels in the step of a network with one layer."""
    with fake_gpu() as kernels:
        settings = PRESETS[preset].model_copy(update={"n_layer": 1})
        network = settings.build(DNA.padded_size)
        network(torch.zeros(rows, 1024, dtype=torch.int64)).float().sum().backward()
        return dict(kernels.launches)


@pytest.mark.parametrize("preset", ["caduceus-ph-470k", "mamba-470k"])
def test_both_directions_go_in_one_launch_of_each_kernel(preset: str) -> None:
    # The convolution and B and C are made again in the backward pass; the last norm is the second.
    once = ("scan_forward", "gate_forward", "gate_backward", "scan_backward", "unstage")
    again = ("norm_forward", "norm_backward", "conv_forward", "stage")
    wanted = dict.fromkeys((*once, "conv_slope", "conv_backward"), 1) | dict.fromkeys(again, 2)
    assert count(256, preset) == wanted


def test_time_is_split_only_where_both_directions_leave_the_machine_empty() -> None:
    assert "scan_chain" not in count(128)  # 131,072 tokens: one direction alone would be split
    assert count(16)["scan_chain"] == 2
