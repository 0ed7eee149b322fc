"""What stands for CUDA graphs on a CPU: recordings in one place, and some that have a fault."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor


class Played:
    """A recording that is right: the function on inputs that are copied to a fixed place."""

    def __init__(self, function: Callable[..., Any], inputs: Sequence[Tensor]) -> None:
        self.function, self.inputs = function, [x.clone() for x in inputs]
        self.outputs = [x.clone() for x in function(*self.inputs)]
        self.plays = 0

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        self.plays += 1
        for own, given in zip(self.inputs, inputs, strict=True):
            own.copy_(given)
        for own, new in zip(self.outputs, self.function(*self.inputs), strict=True):
            own.copy_(new)
        return tuple(self.outputs)


class Unrecordable(Played):
    """Recording fails, as where the host waits for the device."""

    def __init__(self, *_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nmore lines")


class Breaking(Played):
    """The second play fails."""

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        if self.plays:
            raise RuntimeError("out of memory")
        return super().__call__(inputs)


class Stale(Played):
    """It goes on with the inputs that it was recorded with."""

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return super().__call__(self.inputs)


class Rounding(Played):
    """The last output is off by one last digit, from the third play on."""

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        *rest, last = super().__call__(inputs)
        if self.plays > 2:
            last.mul_(1 + 2**-23)
        return (*rest, last)


class Late(Played):
    """Right until it is believed, then stale."""

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        return super().__call__(inputs if self.plays < 5 else self.inputs)


def not_faster(*_: Any) -> None:
    """No recording: it would not be faster."""
