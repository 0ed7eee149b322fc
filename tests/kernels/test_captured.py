"""Functions played back as graphs, on a CPU, where recordings stand for CUDA's."""

import logging
from typing import Any

import pytest
import torch
from recordings import Breaking, Late, Played, Rounding, Stale, Unrecordable, not_faster
from torch import Tensor

from genodiff.errors import UsageError
from genodiff.kernels import captured
from genodiff.kernels.captured import Captured, CudaRecording, find_recorder, record_if_late
from genodiff.runs.denoiser import make_denoiser


class Function:
    """Two outputs of one input and a weight; `runs` counts how often it was run as it is."""

    def __init__(self, record: Any) -> None:
        self.weight, self.recorded = torch.tensor([0.3, 0.7]), 0

        def noted(function: Any, inputs: Any) -> Any:
            self.recorded += 1
            return record(function, inputs)

        self.captured = Captured(self.compute, lambda: [self.weight], "it", noted)

    def compute(self, x: Tensor, *static: Any) -> tuple[Tensor, ...]:
        return x.sum(), x * self.weight + (static[0] if static else 0)

    def call(self, i: int, rows: int = 3, **how: Any) -> None:
        """Call it on the i-th input, and see that the result is right and stays so."""
        x = torch.full((rows, 2), float(i)) / 7
        found = self.captured(x, **how)
        for got, wanted in zip(found, self.compute(x, *how.values()), strict=True):
            assert torch.equal(got, wanted)
        kept = [value.clone() for value in found]
        self.captured(x + 1, **how)
        assert all(torch.equal(a, b) for a, b in zip(found, kept, strict=True))


def test_a_graph_is_believed_after_three_equal_results(caplog):
    caplog.set_level(logging.INFO, "genodiff")
    f = Function(Played)
    for i in range(10):  # two calls each
        f.call(i)
    assert (f.recorded, f.captured.played, f.captured.fault) == (1, 20 - 3 - 3, "")
    assert [r.levelname for r in caplog.records] == ["INFO"]
    assert "gave the same bits" in caplog.text


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (Unrecordable, "RuntimeError: operation not permitted when stream is capturing"),
        (Breaking, "RuntimeError: out of memory"),
        (Stale, "output 0 differs by "),
        (Rounding, "output 1 differs by 1"),
    ],
)
def test_a_graph_with_a_fault_changes_no_result_and_is_given_up_with_one_line(record, said, caplog):
    f = Function(record)
    for i in range(10):
        f.call(i)
    assert f.recorded == 1
    assert f.captured.played == 0
    (line,) = caplog.records
    assert line.levelname == "WARNING"
    assert line.getMessage().startswith(f"it is not replayed as a CUDA graph: {said}")
    assert "more lines" not in line.getMessage()


def test_a_graph_that_fails_later_is_noticed(monkeypatch):
    monkeypatch.setattr(captured, "_EVERY", 8)
    f = Function(Late)
    for i in range(8):
        f.captured(torch.full((3, 2), float(i)))
    assert not f.captured.fault
    for i in range(20):
        f.captured(torch.full((3, 2), float(i)))
    assert "differs by" in f.captured.fault


def test_each_shape_and_each_static_value_has_a_graph_and_beyond_some_there_is_none():
    f = Function(Played)
    for rows in range(1, 12):
        for i in range(4):
            f.call(i, rows)
    assert f.recorded == captured._MOST
    g = Function(Played)
    for i in range(12):
        g.call(i, static=float(i % 2))
    assert g.recorded == 2


def test_weights_may_change_in_place_and_where_they_move_a_graph_is_recorded_anew():
    f = Function(Played)
    for i in range(6):
        f.call(i)
        f.weight.mul_(1.25)
    assert f.recorded == 1
    f.weight = f.weight + 1
    for i in range(6):
        f.call(i)
    assert f.recorded == 2


def test_errors_of_the_function_are_its_own():
    def fail(x: Tensor) -> tuple[Tensor, ...]:
        raise ValueError("no")

    f = Captured(fail, list, "it", Played)
    for _ in range(5):
        with pytest.raises(ValueError, match="no"):
            f(torch.zeros(1))


def test_where_a_graph_would_not_be_faster_the_function_is_run_as_it_is_and_asked_once():
    f = Function(not_faster)
    for i in range(6):
        f.call(i)
    assert (f.recorded, f.captured.played, f.captured.fault) == (1, 0, "")
    f.call(1, rows=2)
    f.call(2, rows=2)
    assert f.recorded == 2  # another shape is another question


@pytest.mark.parametrize(("behind", "made"), [(0.09, True), (0.11, False)])
def test_a_graph_is_made_where_the_gpu_waits_for_launches(behind, made, monkeypatch):
    now, started = [0.0], []

    def launch(x: Tensor) -> tuple[Tensor]:
        now[0] += 1.0  # the CPU's time
        started.append(now[0])
        return (x,)

    def wait(_: torch.device) -> None:
        now[0] += behind if started else 50.0  # what was launched before does not count

    monkeypatch.setattr(captured.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(torch.cuda, "synchronize", wait)
    monkeypatch.setattr(captured, "CudaRecording", Played)
    assert (record_if_late(launch, [torch.zeros(1)]) is not None) == made


def test_graphs_are_made_where_they_are_asked_for(monkeypatch):
    monkeypatch.delenv("GENODIFF_CUDA_GRAPH", raising=False)
    assert find_recorder("cuda") is record_if_late
    assert find_recorder("cpu") is None
    for asked, recorder in (("auto", record_if_late), ("on", CudaRecording), ("off", None)):
        monkeypatch.setenv("GENODIFF_CUDA_GRAPH", asked)
        assert find_recorder("cuda:1") is recorder
    monkeypatch.setenv("GENODIFF_CUDA_GRAPH", "yes")
    with pytest.raises(UsageError, match="'yes'"):
        find_recorder("cuda")


class Tokens(torch.nn.Module):
    """Logits of tokens by a table, less for shorter rows."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.calls = torch.nn.Parameter(torch.randn(5, 4)), 0

    def forward(self, xt: Tensor, sigma: Tensor | None, lengths: Tensor | None) -> Tensor:
        self.calls += 1
        found = self.table[xt] if sigma is None else self.table[xt] * sigma[:, None, None]
        return found if lengths is None else found / lengths[:, None, None]


def test_a_samplers_network_is_played_back_where_no_row_is_padded():
    net = Tokens()
    plain, graphed = make_denoiser(net, 0), make_denoiser(net, 0, None, Played)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for i in range(12):
            x = torch.randint(int(i % 3 == 0), 5, (2, 6), generator=generator)
            sigma = torch.rand(2, generator=generator)
            first = graphed(x, sigma)
            assert torch.equal(first, plain(x, sigma))
            second = graphed(x, sigma + 1)
            assert torch.equal(first, plain(x, sigma))  # guidance holds two results at once
            assert torch.equal(second, plain(x, sigma + 1))
