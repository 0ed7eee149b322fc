"""Which GPU a run computes on."""

import pytest

from genodiff.training.ranks import World
from genodiff.training.trainer import choose_devices


@pytest.mark.parametrize(
    ("device", "world", "chosen"),
    [
        ("cuda:1", World(0, 1, 1), [1]),
        ("cuda", World(0, 1, 1), 1),
        ("cpu", World(0, 1, 1), 1),
        ("cuda:0", World(1, 4, 2), 2),  # torchrun deals the GPUs
    ],
)
def test_a_numbered_gpu_is_the_one_that_is_used(device, world, chosen):
    assert choose_devices(device, world) == chosen
