"""What a scan saves for the backward pass, and that its cost grows no faster than the length."""

import time
from typing import Any

import pytest
import torch
from scans import PROVIDERS, Problem, count_saved
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from genodiff.kernels import torch_scan
from genodiff.kernels.scan import selective_scan


def saved_bytes(provider: str, length: int) -> int:
    inputs = Problem(8, length, 256, 16).inputs
    x = {name: value.float().requires_grad_() for name, value in inputs.items()}
    return count_saved(lambda: selective_scan(**x, delta_softplus=True, provider=provider))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_at_most_two_and_a_half_kilobytes_per_token_are_saved(provider):
    per_token = (saved_bytes(provider, 512) - saved_bytes(provider, 256)) / (8 * 256)
    assert 2048 < per_token <= 2560  # u and the step sizes alone are 2,048


class Written(TorchDispatchMode):
    """Counts the numbers that operations write, and notes the largest tensor made."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = self.largest = self.made = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for x in out if isinstance(out, tuple | list) else (out,):
            if isinstance(x, Tensor) and not func.is_view:
                self.numbers += x.numel()
                self.largest = max(self.largest, x.numel())
                self.made += 0 if func._schema.is_mutable else x.numel()
        return out


def written(length: int, grad: bool) -> Written:
    """The torch scan at 8 channels and 16 states, in blocks of 128 steps."""
    p = Problem(1, length, 8, 16)
    x = {name: value.float().requires_grad_() for name, value in p.inputs.items()}
    with torch.set_grad_enabled(grad), pytest.MonkeyPatch.context() as patch, Written() as count:
        patch.setattr(torch_scan, "_NUMBERS", 2**14)
        y = selective_scan(**x, delta_softplus=True, provider="torch")
        if grad:
            y.sum().backward()
    return count


def test_twice_the_length_is_twice_the_work():
    short, long = written(2**12, grad=True), written(2**13, grad=True)
    assert long.numbers / short.numbers == pytest.approx(2, rel=0.02)


def test_no_tensor_of_length_times_channels_times_states_exists():
    length = 2**14
    assert written(length, grad=True).largest <= length * 16
    assert written(length, grad=False).largest <= length * 16


def test_without_gradients_nothing_is_kept():
    inputs = Problem(1, 64, 8, 16).inputs
    x = {name: value.float().requires_grad_() for name, value in inputs.items()}
    with torch.no_grad():
        assert selective_scan(**x, delta_softplus=True, provider="torch").grad_fn is None
    length = 2**13
    made = [written(length, grad=False).made, written(2 * length, grad=False).made]
    # y and four passing tensors of its size; step sizes and states would make it 6.1.
    assert made[1] - made[0] < 5.5 * length * 8


@pytest.mark.slow
def test_the_torch_scan_is_much_faster_than_the_loop_over_a_long_sequence():
    p = Problem(1, 4096, 256, 16)
    seconds: dict[str, list[float]] = {"naive": [], "torch": []}
    for _ in range(3):
        for provider, found in seconds.items():
            start = time.process_time()
            p.solve(provider, torch.float32)
            found.append(time.process_time() - start)
    assert min(seconds["torch"]) * 2 < min(seconds["naive"]), seconds
