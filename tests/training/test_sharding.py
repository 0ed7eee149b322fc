"""Networks in parts: two ranks of FSDP compute what one does, and their checkpoints are whole."""

import os
import signal
from typing import Any

import pytest
import torch
from tiny_training import TINY, read_losses, run_tiny, tiny

from genodiff.alphabet import DNA
from genodiff.backbones.backbone import Backbone
from genodiff.errors import UsageError
from genodiff.io.process import end_process
from genodiff.runs.checkpoint import read_state
from genodiff.runs.model import build_backbone, collect_tensors
from genodiff.runs.resolve import resolve_config
from genodiff.runs.sections import OptimSettings
from genodiff.training.devices import check_devices
from genodiff.training.optimizer import WeightAverage, adamw, read_moments, set_moments
from genodiff.training.ranks import all_finite, gather, gather_all, is_sharded, shard_network
from tests.training.test_launch import train, wait_for_step

KINDS: dict[str, dict[str, Any]] = {
    "caduceus paired": {},
    "caduceus single": {"strands": "single", "tie_head": False},
    "dimamba": {"kind": "dimamba", "preset": None},
    "dit": {"kind": "dit", "n_head": 2, "preset": None, "d_state": None},
}
SETTINGS = OptimSettings(lr=0.01, weight_decay=0.3)


def build(kind: str) -> Backbone:
    torch.manual_seed(3)
    asked = TINY | KINDS[kind]
    config = resolve_config({key: value for key, value in asked.items() if value is not None})
    network = build_backbone(config, DNA)
    with torch.no_grad():
        for parameter in network.parameters():  # zeros at the start would hide a part
            parameter.add_(torch.randn(parameter.shape) * 0.02)
    return network


def take_steps(network: Backbone, average: WeightAverage, rank: int, size: int) -> Any:
    """Two steps on a rank's share of a batch of four; the optimizer, and the norms."""
    optimizer = adamw(network, SETTINGS)
    x = torch.randint(7, 11, (4, 24), generator=torch.Generator().manual_seed(5))
    norms = []
    for _ in range(2):
        mine = x[rank * 4 // size : (rank + 1) * 4 // size]
        network(mine, torch.full((len(mine),), 0.4)).square().mean().backward()
        norms.append(float(gather(torch.nn.utils.clip_grad_norm_(network.parameters(), 0.5))))
        optimizer.step()
        optimizer.zero_grad()
        average.update(network)
    return optimizer, norms


def compare_with_whole(rank: int, folder: str) -> None:
    """On each of two ranks: raises where anything differs from a network that is whole."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
    )
    mesh = torch.distributed.init_device_mesh("cpu", (2,))
    for kind in KINDS:
        whole, parts = build(kind), build(kind)
        wanted = WeightAverage(whole, 0.9)
        found = WeightAverage(parts, 0.9)
        for network in (parts, found.module):
            assert isinstance(network, Backbone)
            shard_network(network, mesh)
        assert is_sharded(parts)
        assert not is_sharded(whole)
        names = dict(parts.named_parameters())
        assert names.keys() == dict(whole.named_parameters()).keys()
        here = sum(p.to_local().numel() for p in names.values())
        assert here < 0.6 * sum(p.numel() for p in whole.parameters())

        one, norms = take_steps(whole, wanted, 0, 1)
        two, others = take_steps(parts, found, rank, 2)
        assert others == pytest.approx(norms, rel=1e-5)
        assert len(one.param_groups) == 2
        for a, b in zip(one.param_groups, two.param_groups, strict=True):
            assert [p.shape for p in a["params"]] == [p.shape for p in b["params"]]
        pairs = [
            (collect_tensors(whole), collect_tensors(parts)),
            (collect_tensors(wanted.module), collect_tensors(found.module)),
            (read_moments(one, whole), read_moments(two, parts)),
        ]
        for alone, shared in pairs:
            joined = gather_all(shared, keep=True)
            assert joined.keys() == alone.keys()
            for name, tensor in alone.items():
                torch.testing.assert_close(joined[name], tensor, rtol=2e-4, atol=2e-6)
            assert gather_all(shared, keep=False) == {}

        again = adamw(parts, SETTINGS)
        moments = gather_all(read_moments(two, parts), keep=True)
        set_moments(again, parts, moments)
        for name, tensor in read_moments(again, parts).items():
            assert torch.equal(gather(tensor), moments[name]), name
        last = list(names.values())[-1]
        assert all_finite(last)
        if rank == 1:
            last.data.to_local().view(-1)[-1:] = torch.nan
        assert not all_finite(last)  # both ranks see what one has
    torch.distributed.destroy_process_group()
    end_process(0)  # as every rank ends: FSDP keeps gloo's threads, and the usual end may abort


@pytest.mark.slow
def test_two_ranks_in_parts_are_one_that_is_whole(tmp_path):
    torch.multiprocessing.spawn(compare_with_whole, (str(tmp_path),), nprocs=2)


@pytest.mark.slow
def test_a_run_in_parts_is_saved_whole_and_goes_on_in_any_layout(tmp_path):
    words = ["--max-steps", "6", "--checkpoint-every", "2", "--devices", "2", "--fsdp"]
    run_tiny(tmp_path / "one", steps=6, checkpoint_every=2)
    calm, out = tmp_path / "calm", tmp_path / "run"
    assert "view tensor" not in train(calm, *words).communicate(timeout=300)[1]
    stopped = train(out, *words)
    wait_for_step(out, 2)
    stopped.send_signal(signal.SIGTERM)
    said = stopped.communicate(timeout=120)[1]
    assert stopped.returncode == 143, said
    again = train(out, *words)
    said = again.communicate(timeout=300)[1]
    assert again.returncode == 0, said
    assert read_losses(out) == read_losses(calm)
    states = [read_state(run / "checkpoints" / "step_00000006") for run in (out, calm)]
    one = read_state(tmp_path / "one" / "checkpoints" / "step_00000006")
    for name, tensor in states[0].tensors.items():
        assert torch.equal(tensor, states[1].tensors[name]), name
        assert tensor.shape == one.tensors[name].shape
    for a, b in zip(read_losses(tmp_path / "one"), read_losses(out), strict=True):
        assert float.fromhex(a) == pytest.approx(float.fromhex(b), rel=1e-5)
    run_tiny(out, steps=7, checkpoint_every=2)  # one rank goes on from what two have saved
    assert len(read_losses(out)) == 7


def test_parts_need_several_ranks(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with pytest.raises(UsageError, match="there is one rank"):
        check_devices(1, tiny(), fsdp=True)
    check_devices(2, tiny(), fsdp=True)
    monkeypatch.setitem(os.environ, "WORLD_SIZE", "4")
    check_devices(1, tiny(), fsdp=True)
