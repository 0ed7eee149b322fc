"""New sequences from a trained model: record i depends on (seed, i) alone.

Position j of record i owns two uniforms for good, the j-th of the counter-based streams (seed,
SAMPLE_ORDER, i) and (seed, SAMPLE_TOKEN, i): the first places it in the order of unmasking, the
second draws its base. They are the same whatever the batch, the window or the length of the record,
so a longer request begins with the draws of a shorter one. A sampler is a deterministic function of
them and of the network. The network's float32 noise depends on batch size and thread count; a draw
so near to a boundary that this noise could decide it is decided by the same network in float64, on
one sequence alone. Hence the bytes depend on neither.

Texts longer than the trained window W are filled in rounds (`generate.infill.plan_rounds`).
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.diffusion.objectives.block import BlockDiffusion
from genodiff.diffusion.sampler import SAMPLERS, revealed_share
from genodiff.errors import UsageError
from genodiff.generate.block_reading import plan_blocks
from genodiff.generate.filler import DraftPart, Filler, find_device
from genodiff.generate.guiding import Guiding
from genodiff.generate.infill import plan_rounds
from genodiff.generate.sample_memory import SampleMemory
from genodiff.generate.samples import Ids, RecordParts, choose_sampler
from genodiff.generate.samples import Sample as Sample
from genodiff.generate.sampling import AUTO_STEPS
from genodiff.generate.sampling import Sampling as Sampling
from genodiff.runs.trained_model import TrainedModel

Tick = Callable[[int], None]
"""Told after each call of the network on how many windows it was."""
Planned = tuple[NDArray[np.bool_], list[tuple[int, int]]]
"""A text's gaps (True where a base is to be drawn), and its windows (start, end)."""
_LEAST_BLOCK = 64  # bases: the states of a record take about as much as these
_TOKENS_ON_CPU, _TOKENS_ON_GPU = 8192, 1 << 18


class Workload(NamedTuple):
    """What a request takes; evaluations are of the network on one window, and expected."""

    records: int
    bases: int
    windows: int
    evaluations: float


def sample(
    model: TrainedModel, n: int, length: int, *, seed: int = 1, tick: Tick | None = None, **how: Any
) -> Iterator[Sample]:
    """`n` new sequences of `length` bases, in order, as they are ready.

    `length` may exceed the trained length (see `plan_rounds`). `how` are settings of `Sampling`.
    Raises `UsageError` for impossible settings, before any work.
    """
    wanted = Sampling(**{"batch_size": choose_batch_size(model, length), **how})
    drafts = (np.full(length, model.alphabet.mask_id, np.uint8) for _ in range(n))
    return infill(model, drafts, how=wanted, seed=seed, tick=tick)


def infill(
    model: TrainedModel,
    drafts: Iterable[Ids],
    *,
    how: Sampling | None = None,
    first: int = 0,
    **more: Any,
) -> Iterator[Sample]:
    """Each draft with its masks filled, in order; every other id stays. Draft i is record i.

    A draft without masks costs no evaluation; a draft that is all masks is what `sample` fills.
    `first` is the number of the first draft's record, and `more` is as in `fill_pieces`.
    """
    how, mask = how or Sampling(), model.alphabet.mask_id
    pieces = (
        DraftPart(number, 0, draft, plan_draft(model, how, draft == mask))
        for number, draft in enumerate(drafts, first)
    )
    return fill_pieces(model, pieces, how=how, first=first, **more)


def fill_pieces(
    model: TrainedModel,
    pieces: Iterable[DraftPart],
    *,
    how: Sampling | None = None,
    seed: int = 1,
    tick: Tick | None = None,
    first: int = 0,
    guiding: Guiding | None = None,
    memory: SampleMemory | None = None,
    parts: RecordParts | None = None,
) -> Iterator[Sample]:
    """Each piece with its masks filled, in order, numbered from `first`.

    `tick` is told after each call of the network how many windows it held. With `guiding` each
    piece is guided, window after window. `memory` is that of `how`, where it is open already, and
    knows the genome of the pieces. `parts` are of records that are one piece, and not guided.
    """
    how = choose_sampler(how, model)
    window = model.config.data.seq_len
    if how.stride is not None and how.stride > window:
        fix = f"give at most {window}"
        raise UsageError(f"stride {how.stride} is above the trained length", fix=fix)
    if not 0 <= seed < 1 << 64:
        raise UsageError(f"seed {seed} is not between 0 and 2^64 - 1", fix="give a smaller number")
    particles = 1 if guiding is None else guiding.particles
    batch_size = max(1, (how.batch_size or choose_batch_size(model)) // particles)
    filler = Filler(model, how, seed, tick, guiding, memory, parts)
    filled = chain.from_iterable(map(filler.draw_all, _group(iter(pieces), batch_size)))
    return (Sample(number, *found) for number, found in enumerate(filled, first))


def _group(pieces: Iterator[DraftPart], size: int) -> Iterator[list[DraftPart]]:
    while group := list(islice(pieces, size)):
        yield group


def plan_draft(
    model: TrainedModel, how: Sampling, gaps: NDArray[np.bool_]
) -> list[tuple[int, int]]:
    """The windows (start, end) of a text's gaps, or its blocks, one after the other."""
    if isinstance(model.objective, BlockDiffusion):
        return plan_blocks(gaps, model.objective.block)
    return plan_rounds(gaps, model.config.data.seq_len, choose_stride(model, how))


def measure_workload(model: TrainedModel, how: Sampling, planned: Iterable[Planned]) -> Workload:
    """What filling the gaps of texts takes; the network is not run."""
    how = choose_sampler(how, model)
    share = revealed_share(model.diffusion.schedule, how.step_count or AUTO_STEPS)
    expected = SAMPLERS[str(how.sampler)].count_with(how.options)
    records = bases = windows = 0
    evaluations = 0.0
    for text, windows_of_text in planned:
        records += 1
        left = text.copy()
        for start, end in windows_of_text:
            n = int(left[start:end].sum())
            left[start:end] = False
            bases += n
            windows += 1
            evaluations += expected(n, share)
    return Workload(records, bases, windows, evaluations)


def choose_stride(model: TrainedModel, how: Sampling) -> int:
    """How many new bases a window adds beyond the trained length."""
    return how.stride or max(1, model.config.data.seq_len // 2)


def choose_batch_size(model: TrainedModel, length: int | None = None) -> int:
    """How many texts of `length` to fill at a time: enough work that still fits the cache.

    The default length is the trained one.
    """
    window = min(model.config.data.seq_len, length or model.config.data.seq_len)
    if isinstance(model.objective, BlockDiffusion):
        window = min(max(model.objective.block, _LEAST_BLOCK), length or window)
    tokens = _TOKENS_ON_CPU if find_device(model).type == "cpu" else _TOKENS_ON_GPU
    return max(1, tokens // window)
