"""Defaults of torch that a surrounding script has set, kept out of what genodiff computes.

A script may have chosen another default type (`torch.set_default_dtype`), another default device
(`torch.set_default_device`, `with torch.device(...)`), or no gradients. Our numbers must not depend
on that: inside `own_defaults` a tensor without a type or a device of its own is float32 on the CPU,
and gradients can be had. Code of the user that we call (an oracle) runs in `users_defaults`.

Every function of the door enters it, since what computes below them is also Lightning's, and
torch's own loaders ask the defaults. A network's own forward, which users call as any module, names
types and devices itself. Where nothing is set this costs three questions to torch.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import Any

_users: ContextVar[tuple[Any, Any] | None] = ContextVar("_users", default=None)


class _OneType:
    """float32 as the default type, which all threads share: back when the last has left."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = threading.Lock(), 0, None

    @property
    def is_held(self) -> bool:
        return self._inside > 0

    @contextmanager
    def hold(self, torch: Any) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float32)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    torch.set_default_dtype(self._before)


_float32 = _OneType()


@contextmanager
def own_defaults() -> Iterator[None]:
    """float32, the CPU and gradients as in a fresh process, whatever the caller's script has set.

    It is a decorator as well. It does not import torch: without it nothing is set.

    >>> with own_defaults():
    ...     torch.zeros(2).dtype
    torch.float32
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "get_default_device"):  # it is just being imported
        yield
        return
    with ExitStack() as stack:
        dtype, device = torch.get_default_dtype(), torch.get_default_device()
        if dtype != torch.float32 or device.type != "cpu":
            token = _users.set((dtype, device))
            stack.callback(_users.reset, token)
        if dtype != torch.float32 or _float32.is_held:
            stack.enter_context(_float32.hold(torch))
        if device.type != "cpu":
            stack.enter_context(torch.device("cpu"))
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
        if not torch.is_grad_enabled():
            stack.enter_context(torch.enable_grad())
        yield


@contextmanager
def users_defaults() -> Iterator[None]:
    """Within `own_defaults`, what the caller's script has set, for code of its own."""
    kept = _users.get()
    if kept is None:
        yield
        return
    torch, (dtype, device) = sys.modules["torch"], kept
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            yield
    finally:
        torch.set_default_dtype(torch.float32)
