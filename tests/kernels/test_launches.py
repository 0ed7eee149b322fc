"""How often a step calls the GPU: counted on one that is faked."""

from typing import Any

import pytest
import torch
from fake_gpu import Memory, fake_gpu

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import PRESETS


def count(rows: int, preset: str = "caduceus-ph-470k") -> dict[str, int]:
    """Launches of the kernels in the step of a network with one layer."""
    with fake_gpu() as kernels:
        settings = PRESETS[preset].model_copy(update={"n_layer": 1})
        network = settings.build(DNA.padded_size)
        network(torch.zeros(rows, 1024, dtype=torch.int64)).float().sum().backward()
        return dict(kernels.launches)


@pytest.mark.few(1)
@pytest.mark.parametrize("preset", ["caduceus-ph-470k", "mamba-470k"])
def test_both_directions_go_in_one_launch_of_each_kernel(preset):
    # The convolution and B and C are made again in the backward pass; the last norm is the second.
    once = ("scan_forward", "gate_forward", "gate_backward", "scan_backward", "unstage")
    weights = ("pack_weights", "sum_weights")
    again = ("norm_forward", "norm_backward", "conv_forward", "stage")
    wanted = dict.fromkeys((*once, *weights, "conv_slope", "conv_backward"), 1) | dict.fromkeys(
        again, 2
    )
    assert count(256, preset) == wanted


def test_time_is_split_only_where_both_directions_leave_the_machine_empty():
    assert "scan_chain" not in count(128)  # 131,072 tokens: one direction alone would be split
    assert count(16)["scan_chain"] == 2


def test_a_step_makes_at_most_half_the_launches_of_the_first_gpu_path():
    """Of 470k at 16 × 1,024 with its loss, torch's launches included: 469 at commit a412c8a."""
    with fake_gpu() as kernels:
        network: Any = PRESETS["caduceus-ph-470k"].build(DNA.padded_size)
        with Memory() as torch_:
            logits = network(torch.zeros(16, 1024, dtype=torch.int64))
            logits.float().logsumexp(-1).mean().backward()
    ours, theirs = sum(kernels.launches.values()), torch_.launches
    assert ours + theirs <= 469 // 2
    assert (ours, theirs) == (78, 100)
