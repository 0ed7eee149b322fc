"""Every scan against the naive scan in float64, and the naive scan against the recurrence."""

import math
from functools import partial
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scans import PROVIDERS, Problem, call_scan, differences

from genodiff.errors import UsageError
from genodiff.kernels import dispatch, torch_scan
from genodiff.kernels.direction import ScanInputs, is_recorded
from genodiff.kernels.dispatch import Provider, prefer_provider, select_provider
from genodiff.kernels.naive import naive_scan, run_naively
from genodiff.kernels.scan import graph_scan, selective_scan

LENGTHS = [1, 2, 3, 63, 64, 65, 127, 1000]
OPTIONS = st.fixed_dictionaries(
    {n: st.booleans() for n in ("D", "z", "delta_bias", "delta_softplus", "reverse", "h0")}
)


def assert_close(problem: Problem, provider: str, *, y: float = 2e-6, grads: float = 1e-5) -> None:
    truth = problem.solve("naive")
    exact = differences(problem.solve(provider, torch.float64), truth)
    single = differences(problem.solve(provider, torch.float32), truth)
    assert max(exact.values()) < 1e-11, exact
    assert max(single["y"], single["state"]) < y, single
    assert max(single.values()) < grads, single


def test_the_naive_scan_is_the_recurrence_written_out():
    p = Problem(2, 5, 3, 2, z=True, h0=True)
    x = {name: value.tolist() for name, value in p.inputs.items()}
    y, state = naive_scan(**p.inputs, delta_softplus=True)
    for b in range(2):
        for e in range(3):
            h = list(x["h0"][b][e])
            for t in range(5):
                dt = math.log1p(math.exp(x["delta"][b][t][e] + x["delta_bias"][e]))
                u = x["u"][b][t][e]
                decays = [math.exp(dt * A) for A in x["A"][e]]
                h = [a * h[n] + dt * x["B"][b][t][n] * u for n, a in enumerate(decays)]
                plain = sum(h[n] * x["C"][b][t][n] for n in range(2)) + x["D"][e] * u
                z = x["z"][b][t][e]
                wanted = plain * z / (1 + math.exp(-z))
                assert float(y[b, t, e]) == pytest.approx(wanted, rel=1e-12)
            assert state[b, e].tolist() == pytest.approx(h, rel=1e-12)


def test_a_reversed_scan_is_the_scan_of_reversed_time():
    p = Problem(2, 9, 3, 4, z=True)
    timed = ("u", "delta", "B", "C", "z")
    y, state = naive_scan(**p.inputs, delta_softplus=True, reverse=True)
    flipped, last = naive_scan(
        **{k: v.flip(1) if k in timed else v for k, v in p.inputs.items()}, delta_softplus=True
    )
    torch.testing.assert_close(y, flipped.flip(1), rtol=1e-14, atol=1e-14)
    torch.testing.assert_close(state, last, rtol=1e-14, atol=1e-14)


@pytest.mark.few(11)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("length", "channels", "states"),
    [*((n, 17, 8) for n in LENGTHS), *product([67], [1, 7, 15, 16, 17, 236], [1, 8, 16, 64])],
)
def test_every_length_and_width_agrees_with_the_naive_scan(provider, length, channels, states):
    for reverse in (False, True):
        p = Problem(1, length, channels, states, reverse=reverse, z=reverse, h0=not reverse)
        assert_close(p, provider)


@pytest.mark.few(1)
@pytest.mark.parametrize("provider", PROVIDERS)
@settings(max_examples=25)
@given(*(st.integers(1, n) for n in (5, 80, 9, 5)), st.integers(0, 99), OPTIONS)
def test_any_shape_and_any_option_agrees_with_the_naive_scan(
    provider, batch, length, channels, states, seed, options
):
    p = Problem(batch, length, channels, states, seed, **options)
    if not options["delta_softplus"]:
        p.inputs["delta"] += 2.5  # a step size is positive
    assert_close(p, provider, y=1e-5, grads=1e-4)


native = pytest.mark.skipif("native" not in PROVIDERS, reason="the C scan is not here")


@pytest.mark.few(1)
@native
@pytest.mark.parametrize("reverse", [False, True])
def test_at_a_thousand_steps_c_has_outputs_within_2e_7_and_gradients_within_2e_6(reverse):
    p = Problem(2, 1024, 48, 16, reverse=reverse, h0=True, z=True)
    found = differences(p.solve("native", torch.float32), p.solve("naive"))
    assert found["y"] < 2e-7, found
    assert max(found.values()) < 2e-6, found


@native
@settings(max_examples=20)
@given(*(st.integers(1, n) for n in (9, 140, 40, 36)), OPTIONS)
def test_any_larger_shape_and_any_option_in_c(batch, length, channels, states, options):
    shift = -1.0 if options["delta_softplus"] else 1.0
    p = Problem(batch, length, channels, states, **options, dt_shift=shift)
    found = differences(p.solve("native", torch.float32), p.solve("naive"))
    assert max(found.values()) < 3e-5, found


@pytest.mark.parametrize("reverse", [False, True])
def test_blocks_of_rows_and_times_leave_no_seam(reverse, monkeypatch):
    p = Problem(5, 43, 3, 2, z=True, h0=True, reverse=reverse)
    truth = p.solve("naive")
    for steps, numbers in ((1, 1), (2, 30), (4, 70), (7, 90), (16, 2**9), (64, 2**18)):
        monkeypatch.setattr(torch_scan, "_STEPS", steps)
        monkeypatch.setattr(torch_scan, "_NUMBERS", numbers)
        assert max(differences(p.solve("torch"), truth).values()) < 1e-12


@torch.no_grad()
def test_decays_near_one_do_not_drift_over_sixteen_thousand_steps():
    p = Problem(1, 16384, 4, 16)
    # Two channels with a memory of some 300 steps, and two with one of some 3,000.
    p.inputs["A"] = (p.inputs["A"] * torch.tensor([[0.02]] * 2 + [[0.002]] * 2)).float().double()
    x = {name: value.float() for name, value in p.inputs.items()}
    y, state = naive_scan(**p.inputs, delta_softplus=True)
    for provider in PROVIDERS:
        got, last = selective_scan(**x, delta_softplus=True, return_state=True, provider=provider)
        for channels, bound in ((slice(0, 2), 1e-6), (slice(2, 4), 3e-6)):
            pairs = (
                (got[:, :, channels], y[:, :, channels]),
                (last[:, channels], state[:, channels]),
            )
            for a, b in pairs:
                assert float((a.double() - b).norm() / b.norm()) < bound, provider


@pytest.mark.parametrize("provider", [*PROVIDERS, "naive"])
@pytest.mark.parametrize(("channels", "states"), [(1, 3), (3, 1), (1, 1), (3, 3)])
def test_no_input_and_no_incoming_gradient_is_written_to(provider, channels, states):
    p = Problem(2, 5, channels, states, z=True, h0=True)
    flow = {"gy": p.gy, "g_state": p.g_state}
    before = {name: value.clone() for name, value in (p.inputs | flow).items()}
    x = {name: value.requires_grad_() for name, value in p.inputs.items()}
    y, state = selective_scan(**x, delta_softplus=True, return_state=True, provider=provider)
    torch.autograd.grad((y, state), list(x.values()), (p.gy, p.g_state))
    for name, value in (x | flow).items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize("provider", PROVIDERS)
def test_steps_that_make_decays_underflow_or_are_tiny_keep_their_precision(provider):
    p = Problem(2, 130, 5, 16, dt_shift=30.0, decay=40.0)
    assert float((-p.inputs["A"]).max() * 30) > 1e4
    assert_close(p, provider, grads=2e-5)
    # The slope of softplus is a small number here, not a difference of large ones.
    assert_close(Problem(2, 70, 5, 4, dt_shift=-12.0), provider)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_slices_of_a_wider_tensor_and_expanded_gradients_are_taken_as_they_are(provider):
    p = Problem(3, 50, 6, 4, z=True)
    truth = p.solve(provider, torch.float32)
    wide = torch.cat([p.inputs[name] for name in ("z", "u", "delta", "B", "C")], 2).float()
    wide.requires_grad_()
    z, u, delta, B, C = wide.split([6, 6, 6, 4, 4], 2)
    rest = {name: p.inputs[name].float() for name in ("A", "D", "delta_bias")}
    y, state = selective_scan(u, delta, rest["A"], B, C, rest["D"], z, rest["delta_bias"], True,
                              return_state=True, provider=provider)  # fmt: skip
    torch.testing.assert_close(y.double(), truth["y"], rtol=1e-5, atol=1e-6)
    loss = (y * p.gy.float()).sum() + (state * p.g_state.float()).sum()
    (grad,) = torch.autograd.grad(loss, wide)
    wanted = torch.cat([truth[f"d{name}"] for name in ("z", "u", "delta", "B", "C")], 2)
    torch.testing.assert_close(grad.double(), wanted, rtol=1e-4, atol=1e-5)
    x = {name: value.float().requires_grad_() for name, value in p.inputs.items()}
    selective_scan(**x, delta_softplus=True, provider=provider).sum().backward()
    ones = p.gy.new_ones(()).expand_as(p.gy)
    p.gy, p.g_state = ones, torch.zeros_like(p.g_state)
    assert float((x["u"].grad.double() - p.solve("naive")["du"]).norm()) < 1e-3  # type: ignore[union-attr]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_autocast_changes_nothing_inside_and_low_precision_inputs_come_back_as_they_went(provider):
    p = Problem(2, 40, 8, 4)
    x = {name: value.float() for name, value in p.inputs.items()}
    plain = selective_scan(**x, delta_softplus=True, provider=provider)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(selective_scan(**x, delta_softplus=True, provider=provider), plain)
        low = x | {name: x[name].bfloat16().requires_grad_() for name in ("u", "delta", "B", "C")}
        y = selective_scan(**low, delta_softplus=True, provider=provider)
    assert y.dtype == torch.bfloat16
    y.float().sum().backward()
    assert low["u"].grad.dtype == torch.bfloat16  # type: ignore[union-attr]
    assert float((y.detach().float() - plain).norm() / plain.norm()) < 2e-2


def test_lists_run_in_order_and_without_them_the_bits_are_the_same(monkeypatch):
    # Where a torch does not, the torch scan is correct but slower: find out what changed.
    assert torch_scan._foreach_is_in_order()
    p = Problem(2, 70, 5, 3, reverse=True)
    with_list = p.solve("torch", torch.float32)
    monkeypatch.setattr(torch_scan, "_foreach_is_in_order", lambda: False)
    without = p.solve("torch", torch.float32)
    assert all(torch.equal(with_list[name], without[name]) for name in with_list)


@pytest.mark.parametrize("length", [1, 2, 7, 33])
def test_what_is_recorded_of_a_scan_is_the_definition(length):
    for full, reverse in product((False, True), repeat=2):
        options = dict.fromkeys(("D", "z", "delta_bias", "delta_softplus"), full)
        # Without a state before it, A is not in the graph of one step.
        p = Problem(2, length, 3, 4, reverse=reverse, h0=full or length == 1, **options)
        recorded = p.solve(partial(call_scan, graph_scan))
        assert max(differences(recorded, p.solve("naive")).values()) < 1e-11


def test_recording_is_seen():
    assert not is_recorded()
    seen = []

    class Asks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.append(is_recorded())
            return x + 1

    torch.export.export(Asks(), (torch.ones(1),))
    assert seen[-1]
    assert not is_recorded()


def test_an_empty_sequence_or_batch_gives_an_empty_output():
    for batch, length in ((0, 5), (2, 0)):
        for provider in [*PROVIDERS, "torch"]:
            zeros = [torch.zeros(batch, length, n, requires_grad=True) for n in (3, 3, 2, 2)]
            y, state = selective_scan(zeros[0], zeros[1], -torch.ones(3, 2), zeros[2], zeros[3],
                                      delta_softplus=True, return_state=True,
                                      provider=provider)  # fmt: skip
            assert y.shape == (batch, length, 3)
            assert not state.any()
            y.sum().backward()


def test_the_environment_and_the_argument_choose_the_provider(monkeypatch):
    monkeypatch.delenv("GENODIFF_SCAN", raising=False)
    assert select_provider().name == next(
        p.name for p in dispatch.PROVIDERS.values() if p.available and p.device in (None, "cpu")
    )
    monkeypatch.setenv("GENODIFF_SCAN", "naive")
    assert select_provider().name == "naive"
    assert select_provider("torch").name == "torch"
    prefer_provider("torch")
    assert select_provider().name == "torch"
    assert select_provider("naive").name == "naive"
    prefer_provider(None)
    assert select_provider().name == "naive"
    with pytest.raises(UsageError, match="did you mean 'native'"):
        prefer_provider("natve")
    with pytest.raises(UsageError, match=r"no scan 'tritn'.*known: auto"):
        select_provider("tritn")


@pytest.mark.parametrize("fault", ["differs from the naive scan", "ValueError: no such matrix"])
def test_a_scan_that_errs_or_fails_is_not_chosen(fault, monkeypatch):
    def wrong(x: ScanInputs, *how: bool) -> tuple[torch.Tensor, torch.Tensor]:
        if fault.startswith("ValueError"):
            raise ValueError("no such matrix")
        y, state = run_naively(x, *how)
        return y * 1.01, state

    provider = Provider("wrong", "about", wrong)
    monkeypatch.setattr(dispatch, "PROVIDERS", {"wrong": provider, **dispatch.PROVIDERS})
    assert not provider.available
    assert fault in provider.reason
    assert select_provider() == next(p for p in dispatch.PROVIDERS.values() if p.available)
    with pytest.raises(UsageError, match="the scan 'wrong' cannot run here"):
        select_provider("wrong")


def test_an_operation_falls_through_to_what_accepts_its_arguments():
    x = torch.zeros(1)
    operation = dispatch.Operation(
        dispatch.Implementation("native", lambda x: "short", lambda x: len(x) < 2),
        dispatch.Implementation("torch", lambda x: "any"),
        recorded=lambda x: "recorded",
    )
    native = dispatch.PROVIDERS["native"].available
    assert operation(x) == ("short" if native else "any")
    assert operation(torch.zeros(2)) == "any"
    for provider in ("torch", "naive"):  # what stands above a provider is not tried
        assert operation.choose(x, provider=provider).run(x) == "any"
