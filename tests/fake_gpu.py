"""A GPU that is not there: shapes and sizes of what the Triton path would do, and no numbers.

torch's fake tensors have no memory, so that real sizes cost nothing. Kernel launches are counted
and do nothing. Products are under the CPU's autocast, which stands for the GPU's.
"""

import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from genodiff.kernels import dispatch, library, norm
from genodiff.kernels.triton import launch, mixer, scan, weights


class Kernels:
    """In the place of the compiled kernels: `launches` counts them by name."""

    interpreted, T, BE = False, 16, 32

    def __init__(self) -> None:
        self.launches: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        def launch(*_: Any, **__: Any) -> None:
            self.launches[name] += 1

        return _Grid(launch)


class _Grid:
    def __init__(self, run: Any) -> None:
        self.run = run

    def __getitem__(self, grid: Any) -> Any:
        return self.run


# Operations that are no views and launch nothing on a GPU.
_NO_LAUNCH = {
    "device", "promote_types", "detach", "empty", "empty_like", "empty_strided", "new_empty",
    "new_empty_strided", "lift_fresh", "_unsafe_view",
}  # fmt: skip


class Memory(TorchDispatchMode):
    """Bytes of all tensors made within: `now`, and the `peak`; and torch's `launches`."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.now = self.peak = self.launches = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.launches += not (func.is_view or str(func).split(".")[1] in _NO_LAUNCH)
        for tensor in tree_iter(out):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.sizes:
                    self.sizes[storage._cdata] = storage.nbytes()
                    self.now += storage.nbytes()
                    self.peak = max(self.peak, self.now)
                    weakref.finalize(storage, self._let_go, storage._cdata)
        return out

    def _let_go(self, at: int) -> None:
        self.now -= self.sizes.pop(at)


@contextmanager
def fake_gpu(precision: str = "bf16") -> Iterator[Kernels]:
    """Within, networks are built and run as on a GPU; no number is computed."""
    kernels = Kernels()
    with pytest.MonkeyPatch.context() as patch:
        for module in (mixer, norm, scan, weights):
            patch.setattr(module, "kernels", lambda: kernels)
        patch.setattr(launch, "fits", lambda *_, **__: True)
        patch.setattr(library, "fits", lambda *_: False)
        triton = dispatch.PROVIDERS["triton"]
        patch.setattr(dispatch, "select_provider", lambda *_, **__: triton)
        with (
            FakeTensorMode(allow_non_fake_inputs=True),
            torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"),
        ):
            yield kernels
