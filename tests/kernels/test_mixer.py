"""The fused mixer against its definition in float64: outputs, gradients, padding."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import count_saved, needs_library
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from genodiff.kernels import library
from genodiff.kernels import mixer as native_mixer
from genodiff.kernels.direction import DirectionWeights, compute_rates
from genodiff.kernels.mixer import mixer, mixer_by_parts

pytestmark = needs_library
Inputs = dict[str, Tensor | None]
NAMES = [field.name for field in fields(DirectionWeights)]


def problem(
    batch: int, length: int, channels: int, states: int, *, d_model: int = 6, taps: int = 4,
    rank: int = 3, ways: int = 2,
    in_bias: bool = False, conv_bias: bool = True, padding: int = 0, seed: int = 0,
) -> Inputs:  # fmt: skip
    """Inputs in float64 with float32 values, so that a float32 run answers for its arithmetic
    alone.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(*shape, generator=generator)).double()

    e, d, n = channels, d_model, states
    inputs: Inputs = {"h": normal(batch, length, d), "in_weight": normal(2 * e, d, scale=d**-0.5)}
    inputs["in_bias"] = normal(2 * e) if in_bias else None
    inputs["out_weight"] = normal(d, e, scale=e**-0.5)
    for i in range(ways):
        inputs[f"{i}.conv_weight"] = normal(e, taps, scale=0.5)
        inputs[f"{i}.conv_bias"] = normal(e, scale=0.5) if conv_bias else None
        inputs[f"{i}.x_weight"] = normal(rank + 2 * n, e, scale=e**-0.5)
        inputs[f"{i}.dt_weight"] = normal(e, rank, scale=rank**-0.5)
        inputs[f"{i}.dt_bias"] = (normal(e, scale=0.5) - 3).float().double()
        inputs[f"{i}.A"] = -torch.exp(normal(e, n)).float().double()
        inputs[f"{i}.D"] = normal(e)
    lengths = torch.randint(
        max(length - padding, 1), length + 1, (batch, 1, 1), generator=generator
    )
    inputs["mask"] = (torch.arange(length)[None, :, None] < lengths).double() if padding else None
    inputs["g"] = normal(batch, length, d)
    return inputs


def run(
    inputs: Inputs,
    dtype: torch.dtype,
    function: Callable[..., Tensor] = mixer,
    reverse: tuple[bool, ...] = (False, True),
) -> dict[str, Tensor]:
    """The output and the gradient of every input."""
    x = {name: None if v is None else v.to(dtype, copy=True) for name, v in inputs.items()}
    g, mask = x.pop("g"), x.pop("mask")
    wanted = {name: value.requires_grad_() for name, value in x.items() if value is not None}
    ways = len({name.split(".")[0] for name in x if "." in name})
    directions = [DirectionWeights(*(x[f"{i}.{name}"] for name in NAMES)) for i in range(ways)]  # type: ignore[arg-type]
    given = [x[name] for name in ("h", "in_weight", "in_bias", "out_weight")]
    out = function(*given, directions, reverse[:ways], mask)
    assert g is not None
    grads = torch.autograd.grad((out.double() * g.double()).sum(), list(wanted.values()))
    return {"out": out.detach()} | dict(zip(wanted, grads, strict=True))


def assert_agrees(
    inputs: Inputs,
    monkeypatch: pytest.MonkeyPatch,
    tolerance: float = 5e-6,
    reverse: tuple[bool, ...] = (False, True),
) -> None:
    monkeypatch.setenv("GENODIFF_SCAN", "naive")
    truth = run(inputs, torch.float64, mixer_by_parts, reverse)
    monkeypatch.setenv("GENODIFF_SCAN", "native")
    used = []
    apply = native_mixer._Mixer.apply
    monkeypatch.setattr(native_mixer._Mixer, "apply", lambda *a: used.append(1) or apply(*a))
    got = run(inputs, torch.float32, reverse=reverse)
    monkeypatch.undo()
    assert used, "the fused mixer did not run"
    size = max(float(v.norm()) for v in truth.values())
    for name, wanted in truth.items():
        error = float((got[name] - wanted).norm() / max(float(wanted.norm()), 1e-3 * size))
        assert error < tolerance, (name, error)


# batch, length, channels, states; few sequences are cut by groups of channels, many are not
SHAPES: list[tuple[tuple[int, int, int, int], dict[str, int]]] = [
    *(((2, n, 12, 4), {}) for n in (1, 2, 3, 63, 64, 65, 127, 300)),
    *(((2, 70, n, 16), {"rank": 8}) for n in (1, 7, 15, 16, 17, 236)),
    *(((9, 5, n, 16), {"rank": 1, "padding": 3}) for n in (1, 7, 15, 16, 17, 236)),
    *(((2, 70, 20, n), {}) for n in (1, 8, 16, 64)),
    *(((1, 70, 150, 16), {"rank": n}) for n in (1, 7, 8, 9, 16, 19, 40)),
    *(((9, 70, 20, 16), {"rank": n, "padding": 30}) for n in (1, 7, 8, 9, 16, 19, 40)),
    *(((3, 70, 18, 5), one) for one in (
        {"in_bias": True}, {"conv_bias": False}, {"taps": 1}, {"taps": 17}, {"ways": 1},
        {"padding": 40},
    )),
]  # fmt: skip


@pytest.mark.few(12)
@pytest.mark.parametrize(("shape", "options"), SHAPES, ids=str)
def test_every_shape_and_option_gives_the_outputs_and_gradients_of_the_parts(
    shape, options, monkeypatch
):
    ways = ((False, True), (True, False), (False, False))[sum(shape) % 3]
    assert_agrees(problem(*shape, **options), monkeypatch, reverse=ways)  # type: ignore[arg-type]


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(*(st.integers(1, n) for n in (10, 140, 40, 20, 6, 20)), st.booleans(), st.integers(0, 60))
def test_any_shape_gives_the_outputs_and_gradients_of_the_parts(
    batch, length, channels, states, taps, rank, in_bias, padding
):
    inputs = problem(batch, length, channels, states, taps=taps, rank=rank, in_bias=in_bias,
                     padding=padding, seed=length)  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        assert_agrees(inputs, patch, 4e-5)


def small(grad: bool) -> tuple[Tensor, ...]:
    x = problem(2, 100, 20, 16, ways=1)
    names = ["h", "in_weight", "out_weight", *(f"0.{name}" for name in NAMES)]
    return tuple(x[name].float().requires_grad_(grad) for name in names)  # type: ignore[union-attr]


def apply_small(h: Tensor, w_in: Tensor, w_out: Tensor, *weights: Tensor) -> Tensor:
    return mixer(h, w_in, None, w_out, [DirectionWeights(*weights)], [False])


def test_recomputing_a_mixer_in_the_backward_pass_gives_the_same_bits():
    x = small(True)
    plain = torch.autograd.grad(apply_small(*x).square().sum(), x)
    again = torch.autograd.grad(checkpoint(apply_small, *x, use_reentrant=False).square().sum(), x)
    assert all(torch.equal(a, b) for a, b in zip(plain, again, strict=True))


def test_without_gradients_nothing_is_kept_and_no_chunk_state_is_made(monkeypatch):
    x, wanted = small(True), apply_small(*small(True)).detach()
    monkeypatch.setattr(
        native_mixer, "allocate_states", lambda *_: pytest.fail("made room for states")
    )
    with torch.no_grad():
        out = apply_small(*x)
    assert out.grad_fn is None
    assert torch.equal(out, wanted)
    with torch.inference_mode():
        assert torch.equal(apply_small(*x), wanted)


def test_autocast_and_float64_go_part_by_part_and_mean_the_same():
    x = small(False)
    exact = apply_small(*(v.double() for v in x))
    torch.testing.assert_close(apply_small(*x).double(), exact, rtol=1e-4, atol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = apply_small(*x)
    assert low.dtype == torch.bfloat16
    assert float((low.double() - exact).norm() / exact.norm()) < 0.03


def test_at_most_five_kilobytes_per_token_are_saved_at_width_128():
    def saved(length: int) -> int:
        sizes = []

        def counted(*given: Any) -> Tensor:
            sizes.append(count_saved(lambda: mixer(*given)))
            return mixer(*given)

        run(problem(2, length, 256, 16, d_model=128, rank=8), torch.float32, counted)
        return sizes[0]

    # h, x, z and the sum of the directions: 2,560; [r, B, C] of both: 320; chunk states of both:
    # 2,048.
    assert 2560 < (saved(512) - saved(256)) / (2 * 256) <= 5000


def test_sums_over_several_tasks_leave_no_seam(monkeypatch):
    monkeypatch.setattr(library, "PIECE", 37)
    monkeypatch.setattr(library, "SUM_PIECE", 41)
    monkeypatch.setattr(library, "SHARES", 100)
    assert_agrees(problem(2, 130, 21, 16, rank=8, padding=9), monkeypatch)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_rates_of_all_directions_have_the_bits_of_each_alone(dtype):
    logs = [
        torch.randn(3, 2, dtype=dtype, generator=torch.Generator().manual_seed(i)) for i in (1, 2)
    ]
    wide = torch.promote_types(dtype, torch.float32)
    gy = torch.randn(3, 2, dtype=wide, generator=torch.Generator().manual_seed(3))
    together, alone = ([x.clone().requires_grad_() for x in logs] for _ in range(2))
    found = compute_rates(together)
    sum((A * gy).sum() for A in found).backward()  # type: ignore[union-attr]
    for A, x, y in zip(found, together, alone, strict=True):
        truth = -torch.exp(y.to(wide))
        (truth * gy).sum().backward()
        assert torch.equal(A, truth)
        assert x.grad is not None
        assert torch.equal(x.grad, y.grad)
