"""Problems for scans: inputs of any shape, all gradients, the truth in float64."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from genodiff.kernels import dispatch, library
from genodiff.kernels.direction import ScanInputs
from genodiff.kernels.naive import ScanFunction, naive_scan
from genodiff.kernels.scan import selective_scan

MISSING = library.find_missing()
needs_library = pytest.mark.skipif(MISSING is not None, reason=f"no C library here: {MISSING}")
PROVIDERS = [p.name for p in dispatch.PROVIDERS.values() if p.available and p.name != "naive"]


def draw(*shape: int, seed: int = 0) -> Tensor:
    """Normal numbers in float64 that depend on the shape and the seed."""
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def differentiate(
    function: Callable[..., Tensor],
    inputs: Sequence[Tensor],
    gy: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> list[Tensor]:
    """The output on inputs of a dtype, and the gradients of all; without `gy`, of a sum."""
    given = [x.detach().to(dtype or x.dtype, copy=True).requires_grad_() for x in inputs]
    y = function(*given)
    return [y.detach(), *torch.autograd.grad((y if gy is None else y * gy.to(y)).sum(), given)]


def call_scan(run: ScanFunction, **x: Any) -> tuple[Tensor, Tensor]:
    """An implementation, called as `naive_scan` is, by names."""
    how = (x.pop("delta_softplus", False), x.pop("reverse", False))
    z, x["bias"] = x.pop("z", None), x.pop("delta_bias", None)
    y, state = run(ScanInputs(**{"D": None} | x), *how)
    return (y if z is None else y * F.silu(z)), state


def count_saved(run: Callable[[], Any]) -> int:
    """Bytes of all distinct tensors that wait for the backward pass of what `run` computes."""
    seen: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        seen[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        run()
    return sum(seen.values())


@dataclass
class Problem:
    """A scan's inputs in float64, and what flows back into its outputs."""

    batch: int
    length: int
    channels: int
    states: int
    seed: int = 0
    D: bool = True
    z: bool = False
    delta_bias: bool = True
    delta_softplus: bool = True
    reverse: bool = False
    h0: bool = False
    decay: float = 1.0  # multiplies A
    dt_shift: float = -2.0
    inputs: dict[str, Tensor] = field(init=False)

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(self.seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        b, t, e, n = self.batch, self.length, self.channels, self.states
        delta = (
            normal(b, t, e)
            if self.delta_softplus
            else torch.rand(b, t, e, generator=generator, dtype=torch.float64)
        )
        self.inputs = {
            "u": normal(b, t, e), "delta": delta, "A": -self.decay * torch.exp(normal(e, n)),
            "B": normal(b, t, n), "C": normal(b, t, n),
            "D": normal(e), "z": normal(b, t, e), "delta_bias": 0.3 * normal(e) + self.dt_shift,
            "h0": normal(b, e, n),
        }  # fmt: skip
        # float32 values in float64, so that a float32 run answers for its arithmetic alone
        self.inputs = {name: value.float().double() for name, value in self.inputs.items()}
        for name in ("D", "z", "delta_bias", "h0"):
            if not getattr(self, name):
                del self.inputs[name]
        self.gy, self.g_state = normal(b, t, e).float().double(), normal(b, e, n).float().double()

    def solve(
        self,
        scan: str | Callable[..., Any],
        dtype: torch.dtype = torch.float64,
        low: torch.dtype | None = None,
        device: str = "cpu",
    ) -> dict[str, Tensor]:
        """y, the last state, and the gradient of every input, as float64, by a provider or a scan.

        With `low`, inputs that vary in time are of that dtype.
        """
        timed = ("u", "delta", "B", "C", "z")
        x = {
            name: value.to(device, low if low and name in timed else dtype).requires_grad_()
            for name, value in self.inputs.items()
        }
        if isinstance(scan, str) and scan != "naive":
            scan = partial(selective_scan, return_state=True, provider=scan)
        scan = naive_scan if isinstance(scan, str) else scan
        y, state = scan(**x, delta_softplus=self.delta_softplus, reverse=self.reverse)
        gy, g_state = (g.to(device) for g in (self.gy, self.g_state))
        loss = (y.double() * gy).sum() + (state.double() * g_state).sum()
        grads = torch.autograd.grad(loss, list(x.values()))
        found = {"y": y, "state": state} | {f"d{name}": g for name, g in zip(x, grads, strict=True)}
        return {name: value.detach().double().cpu() for name, value in found.items()}


def differences(got: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, float]:
    """The relative error of each tensor, in norm."""
    assert got.keys() == wanted.keys()
    return {
        name: float((got[name] - wanted[name]).norm() / wanted[name].norm().clamp(min=1e-25))
        for name in wanted
    }
