"""What each implementation says it takes, it computes; what it does not say, it is not given.

Every implementation of every operation is asked with each dtype, with no rows, with odd widths and
strides. What it accepts it has to compute as float64 does, gradients too. Those of a GPU are asked
with tensors that say they are on one, and the published packages are stand-ins that check what the
real ones check.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import interpreted
import pytest
import torch
import torch.nn.functional as F
from scans import draw
from strict_peers import causal_conv1d_fn, on_gpu, selective_scan_fn
from torch import Tensor

from genodiff.errors import UsageError
from genodiff.kernels import dispatch, mamba_ssm, naive
from genodiff.kernels.conv import CONV, causal_conv1d, graph_conv
from genodiff.kernels.direction import ScanInputs, split_weights
from genodiff.kernels.dispatch import PROVIDERS, Implementation, Operation
from genodiff.kernels.linear import LINEAR
from genodiff.kernels.mixer import MIXER, mixer_by_parts
from genodiff.kernels.naive import ScanFunction, run_naively
from genodiff.kernels.norm import NORM
from genodiff.kernels.scan import SCAN
from genodiff.kernels.triton import launch

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}
TOLERANCES = {torch.float64: 1e-9, torch.float32: 2e-5, torch.bfloat16: 4e-2, torch.float16: 6e-3}
LOW = {"bfloat16", "float16"}


@pytest.fixture(autouse=True)
def _peers(monkeypatch):
    monkeypatch.setattr(mamba_ssm, "_published", lambda: (selective_scan_fn, ""))
    monkeypatch.setattr(mamba_ssm, "_published_conv", lambda: causal_conv1d_fn)


class Problem(NamedTuple):
    """An operation, its arguments by a name for what is special about them, and the truth."""

    operation: Operation
    cases: dict[str, tuple[Any, ...]]
    truth: Callable[..., Any]
    takes: dict[str, set[str]]  # cases that a provider is to accept; one left out accepts all


def _every_dtype(*arguments: Any) -> dict[str, tuple[Any, ...]]:
    return {
        name: tuple(x.to(dtype) if isinstance(x, Tensor) else x for x in arguments)
        for name, dtype in DTYPES.items()
    }


def _convolutions() -> Problem:
    x, w, b = draw(2, 6, 8), draw(8, 4), draw(8, seed=1)
    way: tuple[Any, ...] = (True, "silu")
    single, wide = [t.float() for t in (x, w, b)], draw(2, 6, 21).float()
    cases = _every_dtype(x, w, b, *way) | {
        "low inputs": (x.bfloat16(), w.float(), b.float(), *way),
        "low bias": (single[0], single[1], b.bfloat16(), *way),
        "no rows": (single[0][:0], *single[1:], *way),
        "no times": (single[0][:, :0], *single[1:], *way),
        "one time": (single[0][:, :1], *single[1:], False, None),
        "filters of 5": (single[0], draw(8, 5).float(), single[2], *way),
        "filters of 1": (draw(2, 17, 5).float(), draw(5, 1).float(), draw(5).float(), *way),
        "many times": (draw(2, 20, 9).float(), draw(9, 3).float(), None, False, "silu"),
        "7 channels": (single[0][..., :7], single[1][:7], None, *way),
        "time last": (single[0].transpose(1, 2).contiguous().transpose(1, 2), *single[1:], *way),
        "a slice": (wide[..., 1:9], *single[1:], *way),
        "a low slice": (
            draw(2, 6, 24)[..., 4:12].bfloat16(), w.bfloat16(), b.bfloat16(), False, "silu"
        ),
        "one row for all": (single[0][:1].expand(2, -1, -1), *single[1:], *way),
        "no silu": (*single, False, None),
    }  # fmt: skip
    full = set(cases) - {"float64", "no rows", "no times"}
    native = full - LOW - {"low inputs", "low bias", "a low slice"}
    triton = full - {"one time", "no silu", "filters of 5"}
    peer = full - {"low inputs", "low bias", "filters of 5", "filters of 1", "7 channels",
                   "many times"}  # fmt: skip
    takes = {"triton": triton, "mamba_ssm": peer, "native": native}
    return Problem(CONV, cases, graph_conv, takes)


def _flat(run: ScanFunction) -> Callable[..., Any]:
    """A scan that is given its inputs one by one."""
    return lambda *given: run(ScanInputs(*given[:8]), *given[8:])


def _scans() -> Problem:
    def inputs(states: int = 3, batch: int = 2) -> list[Any]:
        timed = [draw(batch, 5, 6), draw(batch, 5, 6, seed=1)]
        A = -torch.exp(draw(6, states))
        more = [draw(batch, 5, states, seed=2), draw(batch, 5, states, seed=3)]
        return [*timed, A, *more, draw(6), draw(6, seed=4)]

    how: tuple[Any, ...] = (None, True, False)
    single = [x.float() for x in inputs()]
    spread = single[:3] + [x.transpose(1, 2).contiguous().transpose(1, 2) for x in single[3:5]]
    cases = {
        name: (*(x.to(dtype) for x in inputs()), *how)
        for name, dtype in DTYPES.items()
    } | {
        "low inputs": (*(x.bfloat16() for x in single[:2]), *single[2:], *how),
        "a wide rate": (*single[:2], single[2].double(), *single[3:], *how),
        "no rows": (*(x[:0] for x in single[:2]), single[2], *(x[:0] for x in single[3:5]),
                    *single[5:], *how),
        "17 states": (*(x.float() for x in inputs(17, 1)), *how),
        "300 states": (*(x.float() for x in inputs(300, 1)), *how),
        "a first state": (*single, draw(2, 6, 3).float(), True, False),
        "time last": (*spread, *single[5:], *how),
        "a spread bias": (*single[:6], torch.stack([single[6]] * 2, 1)[:, 0], *how),
    }  # fmt: skip
    full = set(cases) - {"float64", "a wide rate", "no rows"}
    takes = {"triton": full, "native": full, "mamba_ssm": full - {"300 states", "a first state"}}
    return Problem(SCAN, cases, _flat(run_naively), takes)


def _norms() -> Problem:
    x, w = draw(2, 3, 8), draw(8)
    cases = _every_dtype(x, w, 1e-5) | {
        "no rows": (x[:0].float(), w.float(), 1e-5),
        "time last": (x.float().transpose(0, 2).contiguous().transpose(0, 2), w.float(), 1e-5),
        "5,000 channels": (draw(1, 2, 5000).float(), draw(5000).float(), 1e-5),
    }
    full = set(cases) - {"float64", "no rows"}
    takes = {"triton": full - {"5,000 channels"}, "native": full - LOW}
    return Problem(NORM, cases, lambda x, w, eps: F.rms_norm(x, w.shape, w, eps), takes)


def _products() -> Problem:
    x, w, b = draw(2, 3, 8), draw(5, 8), draw(5)
    cases = _every_dtype(x, w, b) | {
        "no rows": (x[:0].float(), w.float(), b.float()),
        "time last": (x.float().transpose(0, 2).contiguous().transpose(0, 2), w.float(), None),
        "spread": (x.float(), draw(8, 5).float().t(), draw(5, 2).float()[:, 0]),
    }
    full = set(cases) - {"float64", "no rows"}
    return Problem(LINEAR, cases, F.linear, {"native": full - LOW})


def _mixers() -> Problem:
    def weights() -> list[Tensor]:
        own = [draw(8, 4), draw(8), draw(6, 8), draw(8, 2), draw(8) - 1]
        return [*own, -torch.exp(draw(8, 2)), draw(8)]

    given = [draw(2, 5, 4), draw(16, 4) / 2, None, draw(4, 8) / 3, None, (True,), weights()]

    def cast(dtype: torch.dtype) -> list[Any]:
        return [
            x.to(dtype) if isinstance(x, Tensor) else [w.to(dtype) for w in x]
            if isinstance(x, list) else x for x in given
        ]  # fmt: skip

    cases = {name: tuple(cast(dtype)) for name, dtype in DTYPES.items()}
    single = cast(torch.float32)
    spread = single[0].transpose(0, 2).contiguous().transpose(0, 2)
    cases |= {"no rows": (single[0][:0], *single[1:]), "time last": (spread, *single[1:])}

    def truth(h: Tensor, w_in: Tensor, _: Any, w_out: Tensor, __: Any, ways: Any, own: Any) -> Any:
        return mixer_by_parts(h, w_in, None, w_out, split_weights(own), ways)

    full = set(cases) - {"float64", "no rows"}
    return Problem(MIXER, cases, truth, {"triton": full, "native": full - LOW})


PROBLEMS = {
    "conv": _convolutions, "scan": _scans, "norm": _norms, "linear": _products, "mixer": _mixers
}  # fmt: skip


def _solve(run: Callable[..., Any], arguments: tuple[Any, ...], wide: bool) -> list[Tensor]:
    """Outputs and gradients; with `wide` in float64."""

    def ready(x: Any) -> Any:
        if isinstance(x, list):
            return [ready(part) for part in x]
        if not isinstance(x, Tensor):
            return x
        return (x.double() if wide else x.detach()).requires_grad_()

    given = [ready(x) for x in arguments]
    y = run(*given)
    y = y[0] if isinstance(y, tuple) else y
    leaves = [x for x in given if isinstance(x, Tensor)]
    leaves += [x for part in given if isinstance(part, list) for x in part]
    # A sum over time: its gradient has no strides of its own.
    gradients = torch.autograd.grad(y.sum(), leaves, allow_unused=True)
    return [y.detach(), *(g for g in gradients if g is not None)]


def _as_called(operation: Operation, implementation: Implementation, arguments: Any) -> Any:
    """The arguments as the public function hands them on."""
    if operation is not SCAN or implementation.provider == "triton":
        return arguments
    wide = any(isinstance(x, Tensor) and x.dtype == torch.float64 for x in arguments)
    dtype = torch.float64 if wide else torch.float32
    return tuple(x.to(dtype) if isinstance(x, Tensor) else x for x in arguments)


def _tensors_of(operation: Operation, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """What `accepts` is asked with: of a scan its inputs."""
    return arguments[:8] if operation is SCAN else arguments


LONG = {("triton", "300 states")}
"""The interpreter computes 20 seconds on it: a slow test."""


@pytest.mark.parametrize(
    ("name", "long"),
    [*((n, False) for n in PROBLEMS), pytest.param("scan", True, marks=pytest.mark.slow)],
)
def test_what_an_implementation_accepts_it_computes_with_its_gradients(name, long):
    problem = PROBLEMS[name]()
    for implementation in problem.operation.implementations:
        provider = implementation.provider
        if provider == "triton" and (interpreted.MISSING or torch.cuda.is_available()):
            continue
        accepted = set()
        for case, arguments in problem.cases.items():
            given = tuple(map(on_gpu, arguments)) if provider == "mamba_ssm" else arguments
            if not implementation.accepts(*_tensors_of(problem.operation, given)):
                continue
            accepted.add(case)
            if ((provider, case) in LONG) != long:
                continue
            called = _as_called(problem.operation, implementation, given)
            run = implementation.run
            found = _solve(_flat(run) if name == "scan" else run, called, wide=False)
            if not arguments[0].numel():
                assert not found[0].numel(), (provider, case)
                continue
            truth = _solve(problem.truth, arguments, wide=True)
            low = max(TOLERANCES[x.dtype] for x in found)
            for got, wanted in zip(found, truth, strict=True):
                where = f"{provider}, {case}"
                assert got.shape == wanted.shape, where
                error = float((got.double() - wanted).norm() / wanted.norm().clamp(min=1e-30))
                assert error < low, (where, error)
        assert accepted == problem.takes.get(provider, set(problem.cases)), provider


@pytest.mark.parametrize("provider", ["triton", "mamba_ssm"])
def test_on_a_gpu_float64_goes_to_torch_even_where_the_published_packages_are_installed(
    provider, monkeypatch
):
    """The exact twin that decides close draws of a sampler is in float64."""
    monkeypatch.setattr(dispatch, "select_provider", lambda *_: PROVIDERS[provider])
    for name, make in PROBLEMS.items():
        problem = make()
        given = tuple(map(on_gpu, problem.cases["float64"]))
        chosen = problem.operation.choose(*_tensors_of(problem.operation, given))
        assert chosen.provider == "torch", name


def test_the_kernels_take_as_many_rows_as_a_grid_has_and_no_more():
    x, weights = on_gpu(torch.empty(1).expand(65_536, 2, 8)), [on_gpu(torch.empty(8, 4))]
    assert launch.fits(x, *weights)
    assert launch.fits(x, rows=65_535)
    assert not launch.fits(x, rows=len(x))


def test_where_the_same_bits_are_asked_for_sums_by_atomics_are_not_taken():
    problem = _convolutions()
    peer = next(i for i in CONV.implementations if i.provider == "mamba_ssm")
    given = tuple(map(on_gpu, problem.cases["float32"]))
    assert peer.accepts(*given)
    torch.use_deterministic_algorithms(True)
    try:
        assert not peer.accepts(*given)
    finally:
        torch.use_deterministic_algorithms(False)


def test_mamba_ssm_is_tested_without_the_gradient_that_it_lacks_and_never_gives_it():
    def scan(x: ScanInputs, *how: bool) -> Any:
        return mamba_ssm.mamba_ssm_scan(ScanInputs(*map(on_gpu, x)), *how)

    assert naive.find_error(scan, "cpu", (torch.float32,), of_state=False) is None
    assert PROVIDERS["mamba_ssm"].of_state is False
    x = (t.requires_grad_() for t in _scans().cases["float32"][:7])
    y, state = scan(ScanInputs(*x), True, False)
    y.sum().backward(retain_graph=True)
    with pytest.raises(UsageError, match="no gradient of the last state"):
        state.sum().backward()


def test_a_whole_convolution_is_computed_by_what_was_chosen(monkeypatch):
    monkeypatch.setattr(dispatch, "select_provider", lambda *_: PROVIDERS["mamba_ssm"])
    x, w, b, *_ = (on_gpu(t) for t in _convolutions().cases["float32"])
    y = causal_conv1d(x, w, b, before=x[:, :2])
    truth = graph_conv(torch.cat([x[:, :2], x], 1), w, b, False, "silu")[:, 2:]
    assert torch.allclose(y, truth, atol=1e-5)
