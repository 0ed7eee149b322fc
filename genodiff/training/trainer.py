"""Lightning's trainer for a run: devices, ranks, precision, accumulation, and nothing else.

The blocks of a network compiled by torch, where none of their kernels is genodiff's own.

A DiT's block on a GPU is a hundred launches of elementwise work beside its products; compiled, a
few. A Caduceus runs the Triton kernels, which torch would not look into.
"""

import importlib
import math
from datetime import timedelta
from importlib.util import find_spec

import lightning.pytorch as pl
import torch
from lightning.pytorch.plugins.environments import LightningEnvironment, TorchElasticEnvironment
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, Strategy
from torch import nn

from genodiff.backbones.backbone import Backbone
from genodiff.backbones.dit import DiT
from genodiff.data.loader import EvalBatches
from genodiff.diffusion.objective import Objective
from genodiff.runs.config import RunConfig
from genodiff.runs.denoiser import make_inputs
from genodiff.training.memory import Remember
from genodiff.training.ranks import TIMEOUT, World

_PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}


def make_trainer(config: RunConfig, device: str, world: World, boundary: pl.Callback) -> pl.Trainer:
    """The loop of one run."""
    return pl.Trainer(
        accelerator="gpu" if device.startswith("cuda") else "cpu",
        devices=choose_devices(device, world),
        num_nodes=world.size // world.local,
        strategy=_choose_strategy(world),
        plugins=[TorchElasticEnvironment() if world.size > 1 else LightningEnvironment()],
        precision=_PRECISION[config.train.precision],  # type: ignore[arg-type]
        max_epochs=1,
        accumulate_grad_batches=config.train.accumulate,
        callbacks=[boundary],
        limit_val_batches=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )


def _choose_strategy(world: World) -> Strategy | str:
    timeout = timedelta(seconds=TIMEOUT)
    if world.size == 1:
        return "auto"
    if world.in_parts:
        return ModelParallelStrategy(
            data_parallel_size=world.size, tensor_parallel_size=1, timeout=timeout
        )
    return DDPStrategy(timeout=timeout)


def choose_devices(device: str, world: World) -> int | list[int]:
    """What Lightning computes on: the GPU that `device` names, else as many as processes here."""
    number = device.partition(":")[2]
    return [int(number)] if number and world.size == 1 else world.local


@torch.no_grad()
def validate(
    objective: Objective,
    backbone: Backbone,
    batches: EvalBatches,
    device: torch.device | str,
    precision: str = "fp32",
    remember: Remember | None = None,
) -> tuple[float, float]:
    """Bits per token and its 95 % half-width over windows.

    `backbone` is used as it is; hand in the averaged one. `precision` is that of training: "bf16"
    computes under autocast. `remember` gives it a memory. The half-width takes windows as
    independent draws.
    """
    low = torch.autocast(torch.device(device).type, torch.bfloat16, enabled=precision == "bf16")
    nats, bases = [], []
    for batch in batches:
        inputs = make_inputs(batch, backbone, device)
        if remember is not None:
            inputs = inputs._replace(denoiser=remember(inputs.denoiser, batch))
        with low:
            found = objective.bound(*inputs)
        nats.append((found.scale * found.ce.sum(-1)).double())
        bases.append(batch.maskable.sum(-1).double())
    # Read at the end, once: a GPU works on the next batch meanwhile.
    total, size = torch.cat(nats).cpu(), torch.cat(bases)
    mean = float(total.sum() / size.sum())
    spread = float(((total - mean * size) ** 2).sum().sqrt() / size.sum())
    return mean / math.log(2), 1.96 * spread / math.log(2)


def find_obstacle(network: nn.Module, device: str) -> str:
    """Why the blocks of a network are not compiled on this device, in words; "" if nothing."""
    if not isinstance(network, DiT) or network.settings.norm != "layer":
        return "only a DiT with LayerNorm has blocks without kernels of genodiff's own"
    if not device.startswith("cuda"):
        return "it is for a GPU"
    if find_spec("triton") is None:
        return "triton is not installed"
    if not hasattr(importlib.import_module("torch._inductor.config"), "deterministic"):
        return f"torch {torch.__version__} chooses kernels by timing them, so bits may differ"
    return ""


def compile_blocks(network: nn.Module, backend: str = "inductor") -> None:
    """Have each block compiled when it is first called, for each shape of its inputs.

    Names and weights stay as they are. No kernel is chosen by its time, so that the same inputs
    give the same bits in every process.
    """
    options = {"deterministic": True} if backend == "inductor" else None
    for block in network.blocks:  # type: ignore[union-attr]
        block.compile(backend=backend, dynamic=False, options=options)
