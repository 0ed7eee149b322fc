"""Lightning's trainer for a run: devices, ranks, precision, accumulation, and nothing else."""

from datetime import timedelta

import lightning.pytorch as pl
from lightning.pytorch.plugins.environments import LightningEnvironment, TorchElasticEnvironment
from lightning.pytorch.strategies import DDPStrategy, ModelParallelStrategy, Strategy

from genodiff.runs.config import RunConfig
from genodiff.training.ranks import TIMEOUT, World

_PRECISION = {"fp32": "32-true", "bf16": "bf16-mixed"}


def make_trainer(
    config: RunConfig, device: str, world: World, boundary: pl.Callback, *, in_parts: bool = False
) -> pl.Trainer:
    """The loop of one run; with `in_parts` for networks that are kept in parts by their ranks."""
    return pl.Trainer(
        accelerator="gpu" if device.startswith("cuda") else "cpu",
        devices=choose_devices(device, world),
        num_nodes=world.size // world.local,
        strategy=_choose_strategy(world, in_parts),
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


def _choose_strategy(world: World, in_parts: bool) -> Strategy | str:
    timeout = timedelta(seconds=TIMEOUT)
    if world.size == 1:
        return "auto"
    if in_parts:
        return ModelParallelStrategy(
            data_parallel_size=world.size, tensor_parallel_size=1, timeout=timeout
        )
    return DDPStrategy(timeout=timeout)


def choose_devices(device: str, world: World) -> int | list[int]:
    """What Lightning computes on: the GPU that `device` names, else as many as processes here."""
    number = device.partition(":")[2]
    return [int(number)] if number and world.size == 1 else world.local
