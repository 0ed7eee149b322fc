"""A function of tensors whose GPU launches are played back as one CUDA graph, where that is faster.

A network at a small batch has launches that take the CPU longer than the GPU. A graph holds them
all. Where the GPU takes longer a graph would gain a few hundredths and cost memory: there is none.
What it could get wrong (inputs that are not those of this call, weights that have moved) gives
numbers that look right. So nothing is believed: the first calls are run as they are, then a graph
is recorded, and its first results are compared with the function's own, bit for bit, on the inputs
of those calls; later every thousandth is. At a difference or an error the function is run as it is
from then on, and one line says why. The result of a call that is compared is the function's own, so
a run gives the same bits with graphs and without.
"""

import logging
import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from genodiff.errors import UsageError

_log = logging.getLogger("genodiff")

VARIABLE = "GENODIFF_CUDA_GRAPH"
_WARM = 3  # calls as they are: kernels are compiled, tables and workspaces made
_CHECKED = 3  # results of a graph that are compared before it is believed
_EVERY = 1000  # then one in so many
_MOST = 8  # graphs: shapes beyond are run as they are
_BEHIND = 0.1  # of the time that launches take: a GPU that ends within it waits for them

Outputs = tuple[Tensor, ...]


Recording = Callable[[Sequence[Tensor]], Outputs]
"""A function recorded once: its outputs for inputs of these shapes, in memory that the next call
writes over.
"""

Recorder = Callable[[Callable[..., Outputs], Sequence[Tensor]], Recording | None]
"""What makes a recording of a function and inputs, or None where one would not be faster."""


@contextmanager
def keep_no_casts() -> Iterator[None]:
    """A context in which autocast casts weights wherever they are used.

    A graph would play on with copies that were cast once, and whose memory is gone. And the
    gradients of a weight that is used twice add up in float32, not in bfloat16.
    """
    kept = torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        torch.set_autocast_cache_enabled(kept)


class CudaRecording:
    """A function as a CUDA graph.

    A graph knows addresses alone. So the function is kept as long as the graph is, with the weights
    and tables that it holds.
    """

    def __init__(self, function: Callable[..., Outputs], inputs: Sequence[Tensor]) -> None:
        self._function, self._inputs = function, [x.clone() for x in inputs]
        aside, own = torch.cuda.Stream(inputs[0].device), torch.cuda.current_stream()
        self._graph = torch.cuda.CUDAGraph()
        # Of this thread alone: another one pins memory for the next batches meanwhile.
        mode = "thread_local"
        with keep_no_casts():
            aside.wait_stream(own)
            with torch.cuda.stream(aside):  # libraries make their workspaces on this stream
                function(*self._inputs)
            own.wait_stream(aside)
            with torch.cuda.graph(self._graph, stream=aside, capture_error_mode=mode):
                self._outputs = function(*self._inputs)

    def __call__(self, inputs: Sequence[Tensor]) -> Outputs:
        for own, given in zip(self._inputs, inputs, strict=True):
            own.copy_(given, non_blocking=True)
        self._graph.replay()
        return self._outputs


def record_if_late(function: Callable[..., Outputs], inputs: Sequence[Tensor]) -> Recording | None:
    """A recording where the GPU waits for the function's launches, None where they wait for it."""
    torch.cuda.synchronize(inputs[0].device)
    began = time.perf_counter()
    function(*inputs)
    launched = time.perf_counter()
    torch.cuda.synchronize(inputs[0].device)
    behind = time.perf_counter() - launched
    return CudaRecording(function, inputs) if behind < _BEHIND * (launched - began) else None


_RECORDERS: dict[str, Recorder | None] = {
    "auto": record_if_late, "on": CudaRecording, "off": None
}  # fmt: skip


def find_recorder(device: str) -> Recorder | None:
    """What records graphs on this device; None where none are wanted, or none can be.

    The environment variable GENODIFF_CUDA_GRAPH says where: auto (where launches take longer than
    the GPU; so too where it is not set), on or off. Raises `UsageError` for another value.
    """
    asked = os.environ.get(VARIABLE) or "auto"
    if asked not in _RECORDERS:
        raise UsageError(
            f"{VARIABLE} is '{asked}'", fix=f"set it to {', '.join(_RECORDERS)}, or unset it"
        )
    return _RECORDERS[asked] if device.startswith("cuda") else None


@dataclass
class _ShapeOfCalls:
    """What is known of the calls of one shape."""

    recording: Recording | None = None
    at: tuple[int, ...] = ()  # where the weights are that the recording reads
    runs: int = 0
    played: int = 0
    left: bool = False  # whether a recording would not be faster


class Captured:
    """A function of tensors, without effects, that gives new tensors.

    `weights` are the tensors that it reads besides its inputs, which may change in place. `what`
    names it in messages. `static`, where it is given, is handed to the function too: what it is
    told besides tensors.
    """

    def __init__(
        self,
        function: Callable[..., Outputs],
        weights: Callable[[], Iterable[Tensor]],
        what: str,
        record: Recorder = CudaRecording,
    ) -> None:
        self._function, self._weights, self._what, self._record = function, weights, what, record
        self._shapes: dict[Hashable, _ShapeOfCalls] = {}
        self.fault = ""
        """Why no graph is used any more."""
        self.played = 0
        """Results that were a graph's."""

    def __call__(self, *inputs: Tensor, static: Hashable = None) -> Outputs:
        """The function's result, in memory of its own."""

        def run(*given: Tensor) -> Outputs:
            return self._function(*given) if static is None else self._function(*given, static)

        shape = None if self.fault else self._find_shape(inputs, static)
        if shape is None:
            return run(*inputs)
        try:
            found = self._play(shape, run, inputs)
        except Exception as fault:  # whatever it is, the function itself is still there
            self._give_up(f"{type(fault).__name__}: {str(fault).strip().partition(chr(10))[0]}")
            found = None
        if found is None:
            return run(*inputs)
        if shape.played > _CHECKED and shape.played % _EVERY:
            self.played += 1
            return found
        wanted = run(*inputs)
        different = _find_difference(found, wanted)
        if different:
            self._give_up(different)
        elif shape.played == _CHECKED:
            _log.info("%s is replayed as one CUDA graph: it gave the same bits", self._what)
        return wanted

    def _find_shape(self, inputs: Sequence[Tensor], static: Hashable) -> _ShapeOfCalls | None:
        kind = inputs[0].device.type
        modes = (
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind),
        )  # fmt: skip
        key = (tuple((x.shape, x.dtype, x.device) for x in inputs), static, modes)
        if key not in self._shapes and len(self._shapes) < _MOST:
            self._shapes[key] = _ShapeOfCalls()
        return self._shapes.get(key)

    def _play(self, shape: _ShapeOfCalls, run: Any, inputs: Sequence[Tensor]) -> Outputs | None:
        """A copy of what the graph gives; None while the function is to be run as it is."""
        at = tuple(x.data_ptr() for x in self._weights())
        if at != shape.at:  # a graph would read what was at the old places
            shape.recording, shape.at, shape.runs, shape.played = None, at, 0, 0
        shape.runs += 1
        if shape.left or shape.runs <= _WARM:
            return None
        if shape.recording is None:
            shape.recording = self._record(run, inputs)
            shape.left = shape.recording is None
            if shape.recording is None:
                return None
        shape.played += 1
        return tuple(x.clone() for x in shape.recording(inputs))

    def _give_up(self, why: str) -> None:
        self.fault = why
        self._shapes.clear()
        _log.warning("%s is not replayed as a CUDA graph: %s", self._what, why)


def _find_difference(found: Outputs, wanted: Outputs) -> str:
    """In words, what is not the same bit for bit; "" if nothing."""
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"output {i} is {tuple(a.shape)} {a.dtype}, not {tuple(b.shape)} {b.dtype}"
        bits = [x.detach().contiguous().reshape(-1).view(torch.uint8) for x in (a, b)]
        if not torch.equal(*bits):
            size = b.detach().double().norm().clamp(min=1e-300)  # all may be zero
            error = float((a.detach().double() - b.detach().double()).norm() / size)
            return f"output {i} differs by {error:.1e} of its size from what is computed without"
    return ""
