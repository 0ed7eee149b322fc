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

The object in `RUN/eval.json` has:

    split, seed, repeats        as asked; repeats = masks for each window; the split "all" is every
                                contig from end to end
    checkpoint, step            12 hex digits of the weights, and their training step
    objective, figure           what the model was trained with; "bound": nelbo_nats is an upper
                                bound, "exact" (ar): the negative log-likelihood itself
    recipe, fasta, fingerprint  the data: recipe name, file or null, hash of content and splits
    bed                         the BED that gave the splits, or null
    seq_len                     window length in bases
    memory                      null, or the memory of the training genome that was mixed in, and is
                                part of the model: {"folder", "fingerprint", "source": file or null,
                                "content": key of the store, "split", "bases", "numbers", "effort"}
    without_memory              null, or {"bits", "perplexity", "minus_model_bits": {"bits",
                                "ci95"}}: the network alone on the same masks, and the difference
    context                     "window": each window is scored alone; "contig": within its block of
                                its interval (see contigs.py), or after all of its interval that
                                is before it (measure_block_contigs)
    windows, windows_total      windows scored, and in the split (fewer with --max-windows or
                                --max-minutes)
    dropped                     what of the split made no window, and why: {reason: how many}
    bases_total                 all bases of the file, N included
    baselines_from              what the baselines are counted on, or null: {"source": file or null,
                                "own": whether it is the data that is scored, "split", "bases"}
    seen_in_training            what the model was trained on of the scored bases (see
                                runs/trained_on.py): {"bases": scored, "in_train": of contigs that
                                the training data have too, "other_bases": of other contigs,
                                "in_kmers": of those, in 24-mers of its train split, "k": 24,
                                "note": a sentence, empty for the run's own data unseen}, or
                                {"not_known": why, "note"}
    tokens                      bases scored
    soft_mask                   {"trained_weight": of a soft-masked base in training, null where it
                                is not known; "scored_weight": 1 or 0; "bases": soft-masked bases in
                                the scored windows, counted or not}
    soft_masked                 1: soft-masked bases count like others; 0: they are masked and seen,
                                but not counted
    nelbo_nats                  the bound in nats per base; nelbo_nats_total is that of all scored
                                bases
    bits_per_base, perplexity   nelbo_nats / ln 2 and exp(nelbo_nats)
    ci95_bits [lo, hi]          95 % interval of bits_per_base over mask draws and windows (see
                                interval.py); null for fewer than five windows, and in
                                blocks where fewer than 60 counts of masks, or 8 blocks, were drawn
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
    adaptive_mixture            {"bits", "perplexity", "minus_model_bits": {"bits", "ci95"}}: the
                                adaptive mixture of contexts and copies, which reads the split from
                                left to right and remembers it (see adaptive.py); null where it was
                                not counted
    adaptive_from_train         the same where it remembers the train split alone
    source_bits                 the toy source's own −log2 P of the same windows, per base; null for
                                other data
    source_ci95_bits            its interval over windows, or null
    model_minus_source_bits     {"bits", "ci95"} paired difference (toy), or null
    genomes                     of a run on many genomes: {name: part} as of contigs, which hold {}
    contigs, regions            {name: part} with tokens, windows, nelbo_nats, bits_per_base,
                                perplexity, ci95_bits, markov_bits, markov_perplexity, fitted_bits,
                                adaptive_bits, adaptive_from_train_bits, without_bits (the network
                                without its memory), and the paired differences of these four from
                                the model
                                (fitted_minus_model_bits, ...). Regions of windows, by the bases
                                that lie in 24-mers which the train split has too, on either
                                strand: "unique" none, "touched" less than a quarter, "repeat" a
                                quarter or more. Regions of bases: "upper_case", "soft_masked"
    repeat_kmer 24, repeat_share, touched_share
    shares of the windows that are "repeat" and "touched", or null
    curve                       [{"rate_lo", "rate_hi", "nats", "se", "n"}, ...]: C_k / k, what a
                                masked base costs in nats where the masked share k / n is in
                                (rate_lo, rate_hi]; n draws; nats, se or null; [] where the figure
                                draws no counts of masks (ar, d3pm, mdlm in steps)
    order                       null, or the exact likelihood of drawing the windows in the order of
                                --order (see exact_order.py): {"name", "steps" of each window, null
                                for as many as it has bases, "options" of the sampler,
                                "evaluations" of the network for each window, "complete": whether
                                these are all, "bits", "perplexity", "ci95", "minus_model_bits":
                                {"bits", "ci95"} paired difference from the bound}
    seconds, device, created    wall time, where, and when (ISO 8601, UTC)

Without baselines (--no-baselines) the Markov keys hold {} and the repeat keys null; the toy has no
repeats either. Keys may be added; none of these will change its meaning.

The bound of block diffusion on whole intervals: each block after all of its interval before it.

    −log p(x) ≤ Σ_b E_k (n_b / k) Σ over masked i in b of −log p_i(x_i | x¹ … x^(b−1), z^b)

Of the past the network keeps its states (`backbones.blocks.BlockPast`), so each base is read once
clean and once noised for each repeat, however long the past is. The network's memory does not
depend on the length; the interval's bases, masks and costs are held. What a window has of the sum
is that of its own bases, so its figures stand beside the same lines as those of windows alone.
Blocks begin where the interval does, and the first ones have a short past, as in training.
"""

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from genodiff.backbones.blocks import BlockPast
from genodiff.backbones.caduceus import Caduceus
from genodiff.backbones.streaming import stream
from genodiff.counter import Purpose, uniform_rows, uniforms
from genodiff.data.dna_windows import DnaWindows
from genodiff.data.genomes.store import GenomesWindows
from genodiff.data.loader import EvalBatches
from genodiff.data.recipe import Recipe
from genodiff.data.toy import ToySource
from genodiff.data.windows import Windows
from genodiff.diffusion.masked import times
from genodiff.diffusion.objectives.block import BlockDiffusion, mask_blocks
from genodiff.errors import DataError, UsageError
from genodiff.evaluation.bound import (
    Bound,
    Progress,
    WindowDraws,
    choose_windows,
    make_bound,
    measure_bound,
)
from genodiff.evaluation.contigs import SpanBases, find_spans, measure_contig_bound
from genodiff.evaluation.eval_data import (
    choose_mixture,
    describe_request,
    describe_work,
    find_train_store,
    find_trained_weight,
    is_toy,
    open_data,
    open_window_memory,
)
from genodiff.evaluation.exact_order import OrderScorer, describe_order, measure_order, read_order
from genodiff.evaluation.lines import (
    make_clock,
    markov_lines,
    measure_train_cover,
    plan_lines,
    source_nats,
)
from genodiff.evaluation.request import EvalOptions
from genodiff.evaluation.summary import summarise
from genodiff.io.progress import ProgressDisplay
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.trained_on import describe_seen_bases

_OF_INTERVALS = 3  # `sub_index` of these draws: 0 to 2 are those of windows and of `contigs`


@torch.no_grad()
def measure_block_contigs(
    objective: BlockDiffusion,
    network: Caduceus,
    windows: Windows,
    *,
    repeats: int = 1,
    seed: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Bound:
    """The bound of every window in its interval, once for each of the repeats.

    Raises `UsageError` for a network that cannot read blocks, `GenodiffError` where the bound is
    not finite.
    """
    spans = find_spans(windows)
    nats, tokens = np.zeros((2, repeats, len(windows))), np.zeros((2, len(windows)))
    shared = float(uniforms(seed, Purpose.EVAL_TIME, 0, 1, _OF_INTERVALS)[0])
    slots = torch.arange(len(spans) * repeats)
    t = times("systematic", torch.zeros(len(slots), dtype=torch.float64), shared, slots, len(slots))
    total, before = sum(end - start for start, end, _ in spans), 0
    for number, (start, end, rows) in enumerate(spans):
        bases, length = SpanBases(windows, start, end, rows), end - start
        tokens[:, rows] = bases.share(bases.maskable.double()[0])
        draws = slots[number * repeats : (number + 1) * repeats]
        u = uniform_rows(seed, Purpose.EVAL_MASK, draws.numpy(), length, _OF_INTERVALS)
        maskable = bases.maskable.expand(repeats, -1)
        masked, scale = mask_blocks(maskable, t[draws], torch.from_numpy(u), objective.block)
        costs, past = torch.zeros_like(scale), BlockPast(network, 1)
        for at in range(0, length, objective.block):
            here = slice(at, min(at + objective.block, length))
            read = _read_block(objective, past, bases.x0[:, here], masked[:, here])
            costs[:, here] = scale[:, here] * read.double()
            if progress is not None:
                progress(before + here.stop, total)
        before += length
        for repeat, own in enumerate(costs):
            nats[:, repeat, rows] = bases.share(own)
    return make_bound(nats, tokens, None)


def _read_block(objective: BlockDiffusion, past: BlockPast, x0: Tensor, masked: Tensor) -> Tensor:
    """(R, n): nats of each masked base of the block that follows, which then is past."""
    device = past.network.embedding.device
    clean = x0.long().to(device)
    some, masked = clean.expand(len(masked), -1), masked.to(device)
    nats = torch.zeros(masked.shape, device=device)
    if masked.any():
        every = torch.zeros(len(masked), dtype=torch.long, device=device)
        logits = past.read(objective.diffusion.mask(some, masked), every)
        nats = torch.where(masked, objective.diffusion.nll(logits, some, masked), 0.0)
    past.add(clean)
    return nats.cpu()


log = logging.getLogger("genodiff")


def evaluate_dna(
    model: TrainedModel,
    options: EvalOptions,
    progress: Progress | None = None,
    draws: WindowDraws | None = None,
) -> dict[str, Any]:
    """The bound of `model` on a split, beside what is known of the same bases: see the module.

    `draws` are those of shards, in place of drawing here.

    Raises `DataError` where nothing is left to score, `UsageError` for a context that the network
    cannot have.
    """
    _check_context(model, options)
    began = time.monotonic()
    data = open_data(model, options)
    recipe, store, all_windows, _ = data
    assert isinstance(recipe, Recipe)
    device = next(model.backbone.parameters()).device
    memory = open_window_memory(model, options, data)
    toy = is_toy(data)
    assert isinstance(all_windows, DnaWindows)
    total = len(all_windows)
    train = find_train_store(model, options, store) if options.baselines else None
    most = all_windows.spread(options.max_windows or total)
    work = plan_lines(most, train, choose_mixture(data, options), options.max_minutes)
    order = read_order(model, options)
    passes = 0.0 if order is None else order.expect(model, all_windows.seq_len)
    windows = choose_windows(model, all_windows, options, memory, taken=work.total, passes=passes)
    assert isinstance(windows, DnaWindows)
    log.info("scoring %d of %d windows of the split %s", len(windows), total, options.split)
    objective, backbone, seed = model.objective, model.backbone, options.seed
    how: Any = {"repeats": options.repeats, "seed": seed, "progress": progress}
    if draws is not None:
        bound = draws.bound(objective)
    elif options.context == "contig" and isinstance(backbone, Caduceus):
        if isinstance(objective, BlockDiffusion):
            bound = measure_block_contigs(objective, backbone, windows, **how)
        else:
            passes_of = partial(stream, backbone)
            bound = measure_contig_bound(model.diffusion, passes_of, windows, device=device, **how)
    else:
        batches = EvalBatches(windows, options.batch_size, seed, options.repeats)
        bound = measure_bound(objective, backbone, batches, device, progress, memory)
    ordered = None if draws is None else draws.ordered
    if order is not None and ordered is None:
        kept = memory and memory.of(windows)
        scorer = OrderScorer(model, order, options.batch_size, kept)
        ordered = measure_order(scorer, EvalBatches(windows, options.batch_size, seed), progress)
    markov, cover = None, None
    train = train if work.markov else None
    if train is not None:
        with ProgressDisplay() as display:
            markov = markov_lines(windows, work.mixture, train, make_clock(work, display))
        # Nothing is copied in the toy genome. Its motifs follow one another, which makes chance
        # matches of 24 bases.
        cover = None if toy else measure_train_cover(windows, train)
    source = source_nats(ToySource(), windows) if toy else None
    counted = slice(0, 2 if options.soft_masked else 1)
    if not bound.tokens[counted].any():
        what = f"every base of the split {options.split} is soft-masked"
        raise DataError(what, file=store.source.path, fix="give --soft-masked 1")
    parts: tuple[Any, Any] = (windows.contig_index, store.names)
    if isinstance(windows, GenomesWindows):
        parts = windows.genome_index, windows.store.genome_names
    figures = summarise(bound, *parts, markov, cover, source, soft_masked=options.soft_masked)
    if isinstance(windows, GenomesWindows):
        figures |= {"genomes": figures["contigs"], "contigs": {}}
    return {
        **describe_request(model, options),
        "recipe": recipe.name,
        "fasta": store.source.path,
        "bed": recipe.bed,
        "fingerprint": store.fingerprint,
        "seq_len": windows.seq_len,
        "context": options.context,
        "memory": None if memory is None else memory.loci.told,
        "windows": len(windows),
        "windows_total": total,
        "dropped": windows.dropped,
        "bases_total": int(store.offsets[-1]),
        "baselines_from": None
        if train is None
        else {
            "source": train.source.path,
            "own": train.fingerprint == store.fingerprint,
            "split": "train",
            "bases": train.splits.intervals["train"].n_bases,
        },
        "seen_in_training": describe_seen_bases(
            model, "the run", windows, bound.tokens[counted].sum(0), soft_masked=options.soft_masked
        ),
        "soft_mask": {
            "trained_weight": find_trained_weight(model),
            "scored_weight": int(options.soft_masked),
            "bases": int(bound.tokens[1].sum()),
        },
        **figures,
        "order": None
        if order is None or ordered is None
        else describe_order(order, ordered, bound.nats.mean(1), bound.tokens, counted),
        **describe_work(device, began),
    }


def _check_context(model: TrainedModel, options: EvalOptions) -> None:
    if options.context == "window":
        return
    if options.max_windows is not None or options.max_minutes is not None:
        what = "--context contig scores all windows of a split"
        raise UsageError(what, fix="leave out --max-windows and --max-minutes")
    objective = model.objective
    streams = objective.bound_counts_masks or isinstance(objective, BlockDiffusion)
    if not isinstance(model.backbone, Caduceus) or not streams:
        what = "--context contig streams a Caduceus whose bound is one of counted masks"
        raise UsageError(f"{what} (mdlm, mlm, block)", fix="leave it out")
