"""Train: one call, and the same call again goes on where the run was, whatever ended it.

Lightning runs the loop (devices, precision, accumulation, processes); what a step means stands in
`module` and `callbacks`. The whole data state is one integer, the step, since micro-batch k is a
function of (seed, k).
"""

import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from torch.utils.data import DataLoader

from genodiff.data.loader import BatchStream
from genodiff.errors import CheckpointError, GenodiffError, Interrupted, MachineError
from genodiff.io.atomic import clear_leftovers
from genodiff.io.file_kinds import stamp_time
from genodiff.io.process import keep_freed_memory
from genodiff.kernels.captured import find_recorder
from genodiff.kernels.gemm import routed_matmul
from genodiff.runs.checkpoint import (
    CARD,
    FOLDER,
    STATE_CARD,
    State,
    locate_checkpoint,
    publish_model,
    restore_state,
)
from genodiff.runs.config import RunConfig
from genodiff.runs.feed import (
    Feed,
    describe_soft_mask,
    measure_soft_mask,
    open_feed,
    open_train_batches,
    open_valid_batches,
    write_tokenizer,
)
from genodiff.runs.folder import (
    RunFolder,
    check_config,
    describe_session,
    has_model_of,
    prepare_folder,
    remove_unused_folder,
    write_config,
    write_provenance,
)
from genodiff.runs.lock import forget_locks, hold_lock
from genodiff.runs.model import build_backbone, build_diffusion, build_objective, fill_module
from genodiff.training.callbacks import Boundary, Counters, RunLoggers
from genodiff.training.faults import keep_batches, name_fault
from genodiff.training.horizon import open_plan
from genodiff.training.memory import open_run_memory
from genodiff.training.module import Pretraining, Rewind, SpikeWatch
from genodiff.training.optimizer import WeightAverage
from genodiff.training.ranks import TIMEOUT, World, end_process_group, join_ranks, read_world
from genodiff.training.settle import count_workers, set_gpu_arithmetic, settle_config
from genodiff.training.signals import Signals, ignore_signals
from genodiff.training.start import WarmStart, start_from_weights
from genodiff.training.teacher import open_lesson
from genodiff.training.trainer import compile_blocks, find_obstacle, make_trainer, validate

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_log = logging.getLogger("genodiff")
_NOISE = (
    r".*This DataLoader will create \d+ worker processes in total.*",
    r".*does not have many workers which may be a bottleneck.*",
    r".*`isinstance\(treespec, LeafSpec\)` is deprecated.*",
    r".*FSDP2-wrapped module \(\w+\) returned a view tensor.*",  # none is changed in place
    r".*The `srun` command is available on your system but is not used.*",  # ranks are ours
)


class RunResult(NamedTuple):
    """How a run stands when `train` returns."""

    run: Path
    step: int
    seconds: float
    tokens: int
    valid_bits: float | None
    already_done: bool


def train(
    config: RunConfig,
    out: Path,
    *,
    device: str = "cpu",
    offline: bool = False,
    argv: list[str] | None = None,
    start: WarmStart | Callable[[], WarmStart] | None = None,
    loggers: Sequence[str] = (),
    fsdp: bool = False,
) -> RunResult:
    """Train into the folder `out` until the run's limit, from where it stands.

    Returns how the run stands then. A run that has no checkpoint yet begins from `start` (or what
    reads it), where one is given. `loggers` are names of `LOGGERS` that rows also go to. With
    `fsdp` each of several ranks keeps a part of every tensor.
    Raises `UsageError` where the folder is in use or holds another configuration's run,
    `DataError` where the data is missing or has changed, `CheckpointError` where no checkpoint is
    usable or a start is not what the configuration says, `Interrupted` (its state is saved) after a
    signal, and `GenodiffError` where training fails.
    """
    start = start() if callable(start) else start
    if start is not None:
        start.check(config)
    world = read_world()
    world = world._replace(in_parts=fsdp and world.size > 1)
    config = settle_config(config, device, out)
    check_open_files(count_workers(config, device))
    with ExitStack() as stack:
        signals = stack.enter_context(Signals())
        stack.enter_context(_quiet())
        stack.enter_context(end_process_group())
        if world.rank == 0:
            made = prepare_folder(out)
            stack.enter_context(hold_lock(out))
            stack.callback(remove_unused_folder, out, made)
            check_config(out, config)
            for leftover in (*clear_leftovers(out), *clear_leftovers(out / FOLDER)):
                _log.info("removed %s, left by a run that was killed", leftover)
        state = restore_state(out)
        if state is None and (out / CARD).exists():
            what = "holds weights only, without the state of an optimizer: training cannot "
            fix = "give it as --init, and another --out"
            raise CheckpointError(f"{what}go on from it", file=out, fix=fix)
        if state is None and config.init_sha256 != (start.digest if start else None):
            what = "the initial weights differ from those in the configuration (init_sha256)"
            fix = "give the same --init as when the run was started"
            raise CheckpointError(what, file=config.init, fix=fix)
        counters = Counters() if state is None else _counters(out, state)
        if world.rank == 0 and state is not None:
            done = _finished(config, out, state, counters)
            if done is not None:
                return done
        known = None if state is None else state.counters["data"]
        feed = open_feed(config, offline=offline, remembered=known, run=out)
        if known is not None:
            feed.store.check_same(known)
        names = loggers if world.rank == 0 else ()
        curves = stack.enter_context(RunLoggers(names, out, config, counters.step, offline=offline))
        while True:
            try:
                return _fit(
                    config, out, device, argv or sys.argv, world, signals, feed, state, counters,
                    start, curves
                )  # fmt: skip
            except Rewind as spike:
                state, counters = _go_back(config, out, spike, counters)


def _go_back(config: RunConfig, out: Path, spike: Rewind, now: Counters) -> tuple[State, Counters]:
    """The newest checkpoint, to go on from past the batches up to the spike's."""
    state = restore_state(out)
    if state is None:
        what = f"{spike.what}; there is no checkpoint to return to"
        raise GenodiffError(what, fix="give --on-spike skip, or a smaller --checkpoint-every")
    if now.rewound >= config.train.max_skipped:
        what = f"{spike.what}; the run went back {now.rewound} times before, the maximum"
        raise GenodiffError(what, fix="lower --lr, or raise --max-skipped")
    counters = _counters(out, state)
    counters.rewound = now.rewound + 1
    counters.passed = now.passed + spike.step - state.step
    _log.warning("%s: back to step %d, and past these batches", spike.what, state.step)
    return state, counters


def _counters(out: Path, state: State) -> Counters:
    fields = [key for key in Counters.__annotations__ if key in state.counters]
    needed = ("step", "tokens", "seconds", "skipped", "data", "plan", "averaged")
    lacking = [key for key in needed if key not in state.counters]
    if lacking:
        what = f"lacks '{lacking[0]}', without which training cannot resume exactly"
        file = locate_checkpoint(out, state.step) / STATE_CARD
        raise CheckpointError(what, file=file, fix="use an undamaged checkpoint")
    return Counters(**{key: state.counters[key] for key in fields})


def _finished(config: RunConfig, out: Path, state: State, counters: Counters) -> RunResult | None:
    plan = open_plan(out, config.train, state.step, counters.seconds, state.counters["plan"])
    if not plan.finished(state.step):
        return None
    if not has_model_of(out, state.step):
        publish_model(out, state.step)
    last = plan.horizon(state.step)
    _log.info("%s: already at step %d of %d: nothing to do", out, state.step, last)
    return RunResult(out, state.step, counters.seconds, counters.tokens, None, True)


def _fit(
    config: RunConfig,
    out: Path,
    device: str,
    argv: list[str],
    world: World,
    signals: Signals,
    feed: Feed,
    state: State | None,
    counters: Counters,
    start: WarmStart | None,
    loggers: RunLoggers,
) -> RunResult:
    objective = build_objective(config, build_diffusion(config, feed.alphabet))
    backbone = build_backbone(config, feed.alphabet)
    begun: dict[str, Any] = {}
    if state is None and start is not None:
        differ = start_from_weights(backbone, start, feed.alphabet)
        begun = {"init": start.record | {"logits_differ": differ}}
        _log.info("%s: starting from %s; the logits on a probe agree", out, start.path)
    if counters.rewound:
        begun |= {"rewound": counters.rewound, "batches_passed": counters.passed}
    average = WeightAverage(backbone, config.optim.ema_decay)
    if state is not None:
        raw = {n: tensor for n, tensor in state.tensors.items() if n.startswith("weights.")}
        fill_module(backbone, {n.removeprefix("weights."): tensor for n, tensor in raw.items()})
        fill_module(average.module, state.weights)
        average.updates = state.counters["averaged"] - 1  # the copy counts too
        _log.info("%s: resuming from step %d", out, state.step)
    saved, record = state and state.counters["plan"], world.rank == 0
    plan = open_plan(out, config.train, counters.step, counters.seconds, saved, record=record)
    files = session = None
    batches = open_train_batches(feed, config, rank=world.rank, world_size=world.size)
    valid = open_valid_batches(feed, config)
    remembered = None if state is None else state.counters["data"]
    memory = open_run_memory(config, feed, batches, valid, remembered)
    lesson, taught = open_lesson(config, feed, batches, remembered)
    soft_mask = measure_soft_mask(feed) if world.rank == 0 else {}
    known = feed.store.identity() | memory.identity | taught
    identity = known | soft_mask
    if world.rank == 0:
        write_config(out, config)
        write_tokenizer(out, feed.tokenizer)
        session = describe_session(argv, device, counters.step) | begun
        write_provenance(out, config, identity, session)
        files = RunFolder(out, config, feed.alphabet, known, counters.step)
    judge = None
    if valid is not None:
        judge = partial(validate, objective, batches=valid, remember=memory.valid)
        judge = partial(judge, precision=config.train.precision)
    boundary = Boundary(config, plan, average, judge, signals, files, counters, state, loggers)
    soft = feed.recipe.soft_mask_weight
    spikes = SpikeWatch(state.counters.get("recent", ()) if state else ())
    keep = partial(keep_batches, out, world.rank)
    given = objective, config, soft, world.size, spikes, keep
    in_parts = (backbone, average.module) if world.in_parts else ()
    hooks = memory.train, find_recorder(device), in_parts, lesson
    module = Pretraining(backbone, *given, *hooks)
    if config.train.compile == "auto":
        obstacle = find_obstacle(backbone, device)
        _log.info("%s: blocks are %s", out, f"as they are: {obstacle}" if obstacle else "compiled")
        if not obstacle:
            compile_blocks(backbone)
    first = (counters.step + counters.passed) * config.train.accumulate
    rest = BatchStream(batches, first)
    loader = open_loader(rest, count_workers(config, device), device)
    join_ranks(world, device)
    trainer = make_trainer(config, device, world, boundary)
    size = sum(p.numel() for p in backbone.parameters())
    _log.info("%s: %s", out, f"{size:,} parameters, {len(feed.train):,} windows")
    if soft_mask:
        _log.info("%s: %s", out, describe_soft_mask(soft_mask))
    try:
        keep_freed_memory()
        with routed_matmul(), set_gpu_arithmetic(deterministic=config.train.deterministic):
            trainer.fit(module, loader)
    except (RuntimeError, MemoryError) as fault:
        raise name_fault(fault) from fault
    finally:
        if files is not None:
            files.metrics.close()
    if boundary.stopped_by is not None:
        name = signals.caught.name if signals.caught else "a signal"
        what = f"{out}: stopped by {name} at step {counters.step}, its state is saved"
        raise Interrupted(what, boundary.stopped_by, fix="run the same command again to resume")
    if files is not None and session is not None:
        publish_model(out, counters.step)
        ending = {
            "ended": stamp_time("milliseconds"),
            "to_step": counters.step,
            "training_seconds": round(counters.seconds, 3),
        }
        write_provenance(out, config, identity, session | ending)
    bits = boundary.last_valid[0] if boundary.last_valid else None
    return RunResult(out, counters.step, counters.seconds, counters.tokens, bits, False)


def open_loader(batches: BatchStream, workers: int, device: str) -> DataLoader[Any]:
    """The batches as processes prepare them; for a GPU in pinned memory, to be copied meanwhile."""
    return DataLoader(
        batches,
        batch_size=None,
        num_workers=workers,
        timeout=TIMEOUT if workers else 0,
        worker_init_fn=_begin_worker,
        pin_memory=device.startswith("cuda"),
    )


def check_open_files(workers: int) -> None:
    """Raises `MachineError` where so many workers need more open files than allowed."""
    if workers and resource is not None:
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if limit != resource.RLIM_INFINITY and limit < 40 + 10 * workers:
            what = f"{workers} workers need more open files than the limit of {limit}"
            raise MachineError(what, fix="give fewer --workers, or raise the limit with ulimit -n")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Lightning's banners and tips, and those of its warnings that do not apply."""
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        for text in _NOISE:
            warnings.filterwarnings("ignore", text)
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _begin_worker(_: int) -> None:
    ignore_signals()
    forget_locks()
