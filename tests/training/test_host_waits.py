"""A step waits for the device once, at its end. The device is torch's "meta", whose values cannot
be read: whoever asks for one fails.
"""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from test_step import batch
from tiny_training import tiny
from torch.utils._python_dispatch import TorchDispatchMode

from genodiff.alphabet import DNA
from genodiff.runs.model import build_backbone, build_diffusion, build_objective
from genodiff.training.module import Pretraining
from genodiff.training.optimizer import WeightAverage

META = torch.device("meta")


class Copies(TorchDispatchMode):
    """Counts copies from the host to the device."""

    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func is torch.ops.aten._to_copy.default:
            self.n += args[0].device != META and out.device == META
        return out


@pytest.mark.few(2)
@pytest.mark.parametrize(("pad", "name"), [(0, "mdlm"), (3, "mdlm"), (0, "uniform")])
def test_a_step_reads_the_device_once(monkeypatch, pad, name):
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # "meta" has none
    config = tiny(objective=name)
    backbone = build_backbone(config, DNA)
    average = WeightAverage(backbone, 0.9)
    objective = build_objective(config, build_diffusion(config, DNA))
    module = Pretraining(backbone, objective, config, 0.1).to(META)
    average.module.to(META)
    given = module.transfer_batch_to_device(batch(4, 64, pad=pad), META, 0)
    assert given.x0.device == META
    module.begin_step(0)
    module.training_step(given, 0).backward()  # tables of the alphabet are copied once, here
    with Copies() as copies:
        module.training_step(given, 1).backward()
    assert copies.n == (1 if pad else 0)  # the lengths, where windows are padded

    reads = []

    def tolist(tensor: torch.Tensor) -> list[float]:
        reads.append(tensor)
        return [1.0] * len(tensor)

    monkeypatch.setattr(torch.Tensor, "tolist", tolist)
    same = SimpleNamespace(reduce=lambda tensor, reduce_op: tensor)
    monkeypatch.setattr(Pretraining, "trainer", SimpleNamespace(strategy=same))
    module.configure_gradient_clipping()
    average.update(module.backbone)
    assert [x.device for x in reads] == [META]
    assert not module.skip
    assert module.loss > 0
