"""How well a model knows DNA: an upper bound on −log p(x) in bits per base, with an interval, for
one split.

A window x0 has n bases that count: A, C, G or T. (An N is seen, but is neither masked nor counted.)
For masks of exactly k of them, S_k is the summed cross-entropy of the masked bases and C_k its mean
over all masks. Then

    −log p(x0) ≤ NELBO(x0) = Σ_{k=1..n} C_k / k = E_{k ~ U{1..n}} [ (n / k) S_k ]
    (Ou et al. 2024, section 3)

The estimate draws k on the closed range 1..n, systematically over windows and repeats: nothing is
truncated, no base is free. The part of it that falls on some bases (upper case, say) is their share
of the bound.

`RUN/eval.json` holds one object for each split that was scored, `{"test": {...}, "valid": {...}}`.
Data that the run was not trained on stands under "SPLIT of FILE". Each object has:

    split, seed, repeats        as asked; repeats = masks for each window
    checkpoint, step            12 hex digits of the weights, and their training step
    objective, figure           what the model was trained with; "bound": nelbo_nats is an upper
                                bound, "exact" (ar): the negative log-likelihood itself
    recipe, fasta, fingerprint  the data: recipe name, file or null, hash of content and splits
    seq_len                     window length in bases
    context                     "window": each window is scored alone; "contig": within its whole
                                interval (see contigs.py)
    windows, windows_total      windows scored, and in the split (fewer with --max-windows or
                                --max-minutes)
    dropped                     what of the split made no window, and why: {reason: how many}
    tokens                      bases scored
    soft_masked                 1: soft-masked bases count like others; 0: they are masked and seen,
                                but not counted
    nelbo_nats                  the bound in nats per base; nelbo_nats_total is that of all scored
                                bases
    bits_per_base, perplexity   nelbo_nats / ln 2 and exp(nelbo_nats)
    ci95_bits [lo, hi]          95 % interval of bits_per_base over mask draws and windows (see
                                interval.py); null for a single window
    se_bits, mask_se_bits
    its standard error; the part of it due to mask draws alone (null when repeats = 1)
    uniform_bits 2.0
    markov_bits, markov_perplexity   {"0": ..., "8": ...}: Markov lines of the train split, same
                                     bases (see markov.py)
    markov_minus_model_bits     {"0": {"bits", "ci95": [lo, hi]}, ...} paired difference; above 0
                                the model is better
    markov_fitted               {"order", "pseudo": [λ of order 0, 1, ...], "bits", "perplexity",
                                "minus_model_bits": {"bits", "ci95"}}: the Markov line whose order
                                and λs were fitted on the valid split; or null
    markov_mixture              {"bits", "perplexity", "minus_model_bits": {"bits", "ci95"}}: the
                                mixture of context orders 1 to 24 (see mixture.py); null where it
                                was not counted
    source_bits                 the toy source's own −log2 P of the same windows, per base; null for
                                other data
    source_ci95_bits            its interval over windows, or null
    model_minus_source_bits     {"bits", "ci95"} paired difference (toy), or null
    contigs, regions            {name: part} with tokens, windows, nelbo_nats, bits_per_base,
                                perplexity, ci95_bits, markov_bits, markov_perplexity, fitted_bits,
                                mixture_bits, and the paired differences fitted_minus_model_bits,
                                mixture_minus_model_bits. Regions of windows, by the bases that lie
                                in 24-mers which the train split has too, on either strand: "unique"
                                none, "touched" less than a quarter, "repeat" a quarter or more.
                                Regions of bases: "upper_case", "soft_masked"
    repeat_kmer 24, repeat_share, touched_share
    shares of the windows that are "repeat" and "touched", or null
    curve                       [{"rate_lo", "rate_hi", "nats", "se", "n"}, ...]: C_k / k, what a
                                masked base costs in nats where the masked share k / n is in
                                (rate_lo, rate_hi]; n draws; nats, se or null; [] where the figure
                                draws no counts of masks (ar, d3pm, mdlm in steps)
    t_steps                     {"10": {"bits", "ci95"}, ..., "1000": ...}: the bound of sampling in
                                so many steps, from the same draws (see steps.py); {} where the
                                figure is no cross-entropy of counted masks
    seconds, device, created    wall time, where, and when (ISO 8601, UTC)

Without baselines (--no-baselines) the Markov keys hold {} and the repeat keys null; the toy has no
repeats either. Keys may be added; none of these will change its meaning.
"""

import logging
import math
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from genodiff.backbones.caduceus import Caduceus
from genodiff.backbones.streaming import stream
from genodiff.data.loader import Batch, EvalBatches
from genodiff.data.recipe import Recipe
from genodiff.data.store import Store, build_store
from genodiff.data.toy import ToySource
from genodiff.data.windows import Windows
from genodiff.diffusion.masked import Denoiser
from genodiff.diffusion.mdlm import Mdlm
from genodiff.diffusion.objective import Draws, Objective
from genodiff.errors import DataError, GenodiffError, UsageError
from genodiff.io import atomic
from genodiff.io.identity import time_stamp
from genodiff.runs.checkpoint import Model
from genodiff.runs.feed import recipe_of
from genodiff.runs.folder import PROVENANCE
from genodiff.runs.weights import read_json
from genodiff.score.contigs import contig_bound
from genodiff.score.lines import markov_lines, source_nats, train_cover
from genodiff.score.steps import step_bits
from genodiff.score.summary import Lines, summarise

log = logging.getLogger("genodiff")

_SAFETY = 0.85  # of --max-minutes is planned for, from a measured pace
_PACED = 3  # batches that are measured
_SMALL = 4  # windows in such a batch on a CPU
EVAL = "eval.json"

Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]


class Bound(NamedTuple):
    """The estimated bound of windows, in nats and in the windows' order; [0] upper-case bases, [1]
    soft-masked ones.
    """

    nats: Floats  # (2, repeats, windows)
    tokens: Floats  # (2, windows)
    rate: (
        Floats | None
    )  # (repeats, windows): masked share k / n, 0 where a window has no base; None without a curve


class Data(NamedTuple):
    """What is scored."""

    recipe: Recipe
    store: Store
    windows: Windows
    total: int  # windows of the split


@torch.no_grad()
def bound_of(
    objective: Objective,
    denoiser: Denoiser,
    batches: EvalBatches,
    device: torch.device | str = "cpu",
    progress: Progress | None = None,
) -> Bound:
    """The bound of every window of `batches`, once for each of its repeats."""
    n = len(batches.windows)
    nats, tokens = np.zeros((2, batches.repeats, n)), np.zeros((2, n))
    rate = np.zeros((batches.repeats, n))
    for done, batch in enumerate(batches, 1):
        repeat, window = np.divmod(batch.index.numpy(), n)
        upper, soft, share = _batch_bound(objective, denoiser, batch, device)
        nats[0, repeat, window], nats[1, repeat, window], rate[repeat, window] = upper, soft, share
        tokens[0, window] = (batch.maskable & ~batch.soft).sum(-1).numpy()
        tokens[1, window] = (batch.maskable & batch.soft).sum(-1).numpy()
        if progress is not None:
            progress(done, len(batches))
    return _checked(Bound(nats, tokens, rate if objective.curve else None))


def _checked(bound: Bound) -> Bound:
    if not np.isfinite(bound.nats).all():
        raise GenodiffError(
            "the model's bound is not finite on some windows", fix="train with a lower --lr"
        )
    return bound


def _batch_bound(
    objective: Objective, denoiser: Denoiser, batch: Batch, device: torch.device | str
) -> tuple[Floats, Floats, Floats]:
    x0, maskable, u_mask, soft = (
        part.to(device) for part in (batch.x0, batch.maskable, batch.u_mask, batch.soft)
    )
    draws = Draws(u_mask, batch.u_time, batch.u_shared, batch.slot, batch.n_slots)
    full = bool((batch.lengths == x0.shape[1]).all())
    found = objective.bound(
        batch.denoiser(denoiser), x0, maskable, draws, None if full else batch.lengths.to(device)
    )
    of_soft = found.scale * torch.where(soft, found.ce, 0.0).sum(-1)
    upper = found.scale * torch.where(soft, 0.0, found.ce).sum(-1)
    return upper.cpu().numpy(), of_soft.cpu().numpy(), found.rate.cpu().numpy()


def open_data(
    model: Model,
    split: str = "test",
    *,
    fasta: str | None = None,
    bed: str | None = None,
    offline: bool = False,
) -> Data:
    """The windows of a split of the model's own data, or of `fasta` and `bed` in their place.
    Raises `DataError`.
    """
    given = {name: value for name, value in (("fasta", fasta), ("bed", bed)) if value is not None}
    config = model.config.model_copy(update=given)
    recipe = recipe_of(config)
    store = build_store(
        recipe, None if config.fasta is None else Path(config.fasta), offline=offline
    )
    legacy = config.data.legacy_caduceus_tiling
    windows = Windows(store, recipe, split, config.data.seq_len, legacy_caduceus_tiling=legacy)
    return Data(recipe, store, windows, len(windows))


def evaluate(
    model: Model,
    split: str = "test",
    *,
    fasta: str | None = None,
    bed: str | None = None,
    repeats: int = 1,
    batch_size: int = 32,
    seed: int = 1,
    soft_masked: bool = True,
    max_windows: int | None = None,
    max_minutes: float | None = None,
    baselines: bool = True,
    mixture: bool | None = None,
    context: Literal["window", "contig"] = "window",
    offline: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """The bound of `model` on a split, beside what is known of the same bases: the object that the
    module describes.

    It depends on the seed, the split and the numbers of windows and repeats, but not on the batch
    size (up to float32 error). `mixture` None counts the mixture of context orders where that takes
    little time. `max_windows` and `max_minutes` choose windows that are evenly spread over the
    split. Raises `DataError` where the data is missing or has no usable window, `UsageError` for
    numbers that cannot be meant.
    """
    for name, value in (
        ("repeats", repeats),
        ("batch-size", batch_size),
        ("max-windows", max_windows),
    ):
        if value is not None and value < 1:
            raise UsageError(f"--{name} {value} is below 1", fix="give 1 or more")
    if max_minutes is not None and not 0 < max_minutes < math.inf:
        raise UsageError(
            f"--max-minutes {max_minutes} is not above 0", fix="give a time in minutes"
        )
    backbone = model.backbone
    if context == "contig":
        if max_windows is not None or max_minutes is not None:
            raise UsageError(
                "--context contig scores all windows of a split",
                fix="leave out --max-windows and --max-minutes",
            )
        if not isinstance(backbone, Caduceus) or not isinstance(model.objective, Mdlm):
            raise UsageError(
                "--context contig streams a Caduceus trained with the objective mdlm",
                fix="leave it out",
            )
    began = time.monotonic()
    recipe, store, windows, total = open_data(model, split, fasta=fasta, bed=bed, offline=offline)
    device = next(model.backbone.parameters()).device
    if max_windows is not None:
        windows = windows.spread(max_windows)
    if max_minutes is not None:
        measured = time.monotonic()
        pace = seconds_per_window(model, windows, batch_size)
        left = 60 * max_minutes * _SAFETY - (time.monotonic() - measured)
        windows = windows.spread(max(1, int(left / (pace * repeats))))
    log.info("scoring %d of %d windows of the split %s", len(windows), total, split)
    if context == "contig" and isinstance(backbone, Caduceus):
        streamer = partial(stream, backbone)
        found = contig_bound(
            model.diffusion,
            streamer,
            windows,
            repeats=repeats,
            seed=seed,
            device=device,
            progress=progress,
        )
        bound = _checked(Bound(*found))
    else:
        bound = bound_of(
            model.objective,
            model.backbone,
            EvalBatches(windows, batch_size, seed, repeats),
            device,
            progress,
        )
    toy = recipe.generator == "toy" and store.source.path is None
    markov, cover = None, None
    if baselines:
        markov = markov_lines(windows, False if toy and mixture is None else mixture)
        # Nothing is copied in the toy genome, where motifs that follow one another make chance
        # matches of 24 bases.
        cover = None if toy else train_cover(windows)
    source = source_nats(ToySource(), windows) if toy else None
    if not bound.tokens[: 2 if soft_masked else 1].any():
        what = f"every base of the split {split} is soft-masked"
        raise DataError(what, file=store.source.path, fix="give --soft-masked 1")
    lines = Lines(markov, cover, source)
    contig = windows.contig_index
    counted = slice(0, 2 if soft_masked else 1)
    rate = bound.rate if context == "window" else None
    return {
        "split": split,
        "seed": seed,
        "repeats": repeats,
        "checkpoint": model.digest,
        "step": model.step,
        "objective": model.config.diffusion.objective,
        "figure": model.objective.figure,
        "recipe": recipe.name,
        "fasta": store.source.path,
        "fingerprint": store.fingerprint,
        "seq_len": windows.seq_len,
        "context": context,
        "windows": len(windows),
        "windows_total": total,
        "dropped": windows.dropped,
        **summarise(
            bound.nats,
            bound.tokens,
            bound.rate,
            contig,
            store.names,
            lines,
            soft_masked=soft_masked,
        ),
        "t_steps": step_bits(
            model.objective,
            bound.nats[counted].sum(0),
            bound.tokens.sum(0),
            rate,
            bound.tokens[counted].sum(0),
        ),
        "seconds": round(time.monotonic() - began, 3),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "created": time_stamp(),
    }


def seconds_per_window(model: Model, windows: Windows, batch_size: int) -> float:
    """How long one window takes here: the median of a few small batches, after one to warm up."""
    device = next(model.backbone.parameters()).device
    sample = windows.spread(
        min(len(windows), batch_size, batch_size if device.type == "cuda" else _SMALL)
    )
    elapsed = []
    for seed in range(_PACED + 1):
        start = time.monotonic()
        bound_of(model.objective, model.backbone, EvalBatches(sample, batch_size, seed), device)
        elapsed.append(time.monotonic() - start)
    return max(sorted(elapsed[1:])[_PACED // 2] / len(sample), 1e-9)


def scoring_plan(
    model: Model, split: str, windows: Windows, total: int, repeats: int, batch_size: int
) -> dict[str, Any]:
    """What scoring these of a split's `total` windows would take: network, windows, tokens,
    seconds, files.
    """
    return {
        "parameters": sum(p.numel() for p in model.backbone.parameters()),
        "checkpoint": model.digest,
        "split": split,
        "windows": len(windows),
        "windows_total": total,
        "tokens": int(windows.length.sum()) * repeats,
        "seconds": round(
            seconds_per_window(model, windows, batch_size) * len(windows) * repeats, 1
        ),
        "files": [str(model.run / EVAL)],
    }


def write_evaluation(run: Path, result: dict[str, Any]) -> str:
    """Put a result of `evaluate` into RUN/eval.json, beside those of other splits; return the name
    it stands under.

    Data that is not what the run was trained on (by its fingerprint in provenance.json) stands
    under "SPLIT of FILE", and what saw whole contigs under "SPLIT in whole contigs". Raises
    `MachineError`.
    """
    trained_on = (_read(run / PROVENANCE).get("data") or {}).get("fingerprint")
    name = str(result["split"])
    if trained_on not in (None, result["fingerprint"]):
        name += f" of {_data_name(result)}"
    if result["context"] == "contig":
        name += " in whole contigs"
    atomic.write_json(run / EVAL, {**_read(run / EVAL), name: result})
    return name


def _data_name(result: dict[str, Any]) -> str:
    if "text" in result and result["recipe"] != "own":
        return str(result["recipe"])
    return Path(result.get("fasta") or result.get("text") or result["recipe"]).name


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        return read_json(path)
    except GenodiffError as fault:
        log.warning("%s; it is passed over", fault)
        return {}
