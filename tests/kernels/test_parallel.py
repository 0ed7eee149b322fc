"""Parts run on threads in order, and results do not depend on the number of threads."""

import os
import threading

import pytest
import torch
from scans import PROVIDERS, Problem, differentiate
from test_mixer import problem as make_mixer
from test_mixer import run

from genodiff.kernels import library
from genodiff.kernels.conv import causal_conv1d
from genodiff.kernels.linear import linear
from genodiff.kernels.norm import rms_norm
from genodiff.kernels.parallel import map_parts

CPU = torch.device("cpu")


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_parts_run_in_other_threads_one_torch_thread_each_and_come_back_in_order():
    meet = threading.Barrier(3, timeout=60)

    def work(part: int) -> tuple[int, int, int, bool]:
        if part < 3:
            meet.wait()
        return part, threading.get_ident(), torch.get_num_threads(), torch.is_grad_enabled()

    found = map_parts(work, range(7), CPU)
    assert [part for part, *_ in found] == list(range(7))
    assert len({ident for _, ident, *_ in found} | {threading.get_ident()}) == 4
    assert {count for _, _, count, _ in found} == {1}
    assert not any(grad for *_, grad in found)
    assert torch.get_num_threads() == 3
    seen: list[int] = []
    later = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    later.start()
    later.join()
    assert seen == [3]


@pytest.mark.usefixtures("three_threads")
def test_a_fault_in_a_part_is_raised():
    def work(part: int) -> int:
        raise KeyError(part)

    with pytest.raises(KeyError):
        map_parts(work, range(3), CPU)


@pytest.mark.usefixtures("three_threads")
def test_parts_run_under_inference_mode_where_the_caller_does():
    with torch.inference_mode():
        x = torch.zeros(3, 2)
        map_parts(lambda part: x[part].add_(part), range(3), CPU)
    assert x[:, 0].tolist() == [0, 1, 2]


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # later Pythons warn of forking beside threads
@pytest.mark.usefixtures("three_threads")
def test_a_forked_process_has_threads_of_its_own():
    assert map_parts(abs, [-1, -2, -3], CPU) == [1, 2, 3]
    child = os.fork()
    if child == 0:  # pragma: no cover
        os._exit(0 if map_parts(abs, [-1, -2, -3], CPU) == [1, 2, 3] else 1)
    assert os.waitpid(child, 0)[1] == 0


def solve(provider: str, batch: int) -> dict[str, torch.Tensor]:
    """Outputs and gradients of each kernel."""
    g = torch.Generator().manual_seed(batch)
    x, taps, bias, wide = (
        torch.randn(s, generator=g) for s in ((batch, 300, 40), (40, 4), (40,), (33, 40))
    )
    found = Problem(batch, 300, 40, 16, z=True, h0=True).solve(provider, torch.float32)
    for name, function, given in (
        ("conv", causal_conv1d, (x, taps, bias)),
        ("norm", lambda x, weight: rms_norm(x, weight, 1e-5), (x, bias)),
        ("linear", linear, (x.repeat(2, 1, 1), wide)),
    ):
        parts = differentiate(lambda *of, f=function: f(*of).square(), given)
        found |= {f"{name} {i}": value for i, value in enumerate(parts)}
    if provider == "native":
        found |= run(make_mixer(batch, 200, 100, 16, d_model=24, rank=2), torch.float32)
    return found


@pytest.mark.parametrize("batch", [1, 5, 9])
@pytest.mark.parametrize("provider", [p for p in PROVIDERS if p in ("native", "torch")])
def test_the_bits_of_no_kernel_depend_on_the_number_of_threads(
    provider, batch, threads, monkeypatch
):
    monkeypatch.setenv("GENODIFF_SCAN", provider)
    found = []
    for n in threads:
        torch.set_num_threads(n)
        found.append(solve(provider, batch))
    # torch itself shares some sums among threads, on some processors: those agree but for rounding.
    apart = 0.0 if provider == "native" else 1e-6
    for other in found[1:]:
        for name, value in other.items():
            assert (value - found[0][name]).abs().max() <= apart * value.abs().max()


def test_parts_come_in_order_each_on_one_thread_and_none_is_left_behind(monkeypatch) -> None:
    monkeypatch.setattr(library, "count_threads", lambda: 3)
    seen, made, gate = set(), [], threading.Barrier(2, timeout=60)

    def work(part: int) -> tuple[int, bool]:
        seen.add(threading.get_ident())
        if part < 2:
            gate.wait()  # two parts are worked on at a time
        return part * part, library._here.alone

    def parts():
        for i in range(40):
            made.append(i)
            yield i

    assert list(library.map_in_order(work, parts())) == [(i * i, True) for i in range(40)]
    assert 1 < len(seen) <= 3
    assert threading.get_ident() not in seen

    made.clear()
    some = library.map_in_order(lambda i: 1 // (i - 5), parts())
    with pytest.raises(ZeroDivisionError):
        list(some)
    assert len(made) < 15  # those behind a failure are not made
    stopped = library.map_in_order(str, parts())
    assert next(stopped) == "0"
    stopped.close()
    assert threading.active_count() < 20
