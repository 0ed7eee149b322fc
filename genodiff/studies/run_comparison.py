"""Finished runs side by side: the same bases, differences window by window.

Windows are cut once, at the length of the longest run, from the data of the first run or from those
that the options name. A run of a shorter length reads them in pieces of its own length, so every
run is scored on the same bases. Runs of one length also meet the same masks. Runs of text are
compared where their tokens are the same.

Nats of every window are kept in OUT/scores under the weights and all that was asked, so the same
comparison again only reads.
"""

import json
import logging
import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from genodiff.data.dna_windows import DnaWindows
from genodiff.data.loader import EvalBatches
from genodiff.data.windows import Windows
from genodiff.domain import DNA, DOMAINS
from genodiff.errors import UsageError
from genodiff.evaluation.bound import Progress, measure_bound, time_window
from genodiff.evaluation.eval_data import EvalData, open_data
from genodiff.evaluation.request import EvalOptions
from genodiff.io import atomic
from genodiff.io.file_kinds import sha256_json
from genodiff.io.progress import ProgressDisplay
from genodiff.jobs.machine import choose_device
from genodiff.runs.model import TrainedModel, load_model
from genodiff.runs.run_paths import locate
from genodiff.runs.trained_on import describe_seen_bases
from genodiff.statistics.interval import BITS, Floats, compare_models, ratio
from genodiff.studies.compare_request import CompareRequest
from genodiff.studies.comparison_page import describe_pairs, write_run_page

_log = logging.getLogger("genodiff")
_MOST_ROWS, _MOST_TOKENS = 32, 32768  # in a batch
_MANY = 500  # windows


class TrialScore(NamedTuple):
    """A run's figure on each window.

    `size` is what bits are counted per: bases of DNA, bytes of text.
    """

    nats: Floats
    tokens: Floats
    size: Floats


class RunComparison(NamedTuple):
    """Runs, each under a name of its own, and the windows that all of them are scored on."""

    models: dict[str, TrainedModel]
    data: EvalData
    windows: Windows
    options: EvalOptions


def compare(asked: CompareRequest) -> dict[str, Any]:
    """What `genodiff.compare` returns."""
    comparison, folder = open_comparison(asked), {"folder": str(asked.folder)}
    if asked.plan:
        return plan_comparison(comparison) | folder
    if asked.max_windows is None and (n := len(comparison.windows)) > _MANY:
        _log.info("%s windows are read; --max-windows N reads N of them, evenly spread", f"{n:,}")
    with ProgressDisplay() as display:
        return compare_runs(comparison, asked, display.show_batches) | folder


def open_comparison(asked: CompareRequest) -> RunComparison:
    """The runs, by name, and their common windows.

    Raises `UsageError` where they cannot be compared, and as `load_model` does.
    """
    options, device = asked.options, choose_device(asked.device)
    runs = zip(asked.names, map(locate, asked.paths), strict=True)
    models = {name: load_model(path, device=device) for name, path in runs}
    (of, first), *others = models.items()
    domain, config = first.alphabet.domain, first.config
    for name, model in others:
        if model.alphabet.domain != domain:
            what = f"{name} is a run of {model.alphabet.domain}, and {of} is of {domain}"
            raise UsageError(what, fix="compare runs of one domain")
    options.check_domain(domain)
    longest = max(model.config.data.seq_len for model in models.values())
    section = config.data.model_copy(update={"seq_len": longest})
    data = open_data(first._replace(config=config.model_copy(update={"data": section})), options)
    if domain != DNA.name:
        for name, model in others:
            mine = open_data(model, options)
            a, b = config.data, model.config.data
            alike = (a.packing, a.document_attention) == (b.packing, b.document_attention)
            same = mine.store.fingerprint == data.store.fingerprint and alike
            if not same or mine.windows.seq_len != data.windows.seq_len:
                what = (
                    f"{name} reads other windows than {of} ({model.alphabet.name}, "
                    f"{b.seq_len} tokens; {first.alphabet.name}, {a.seq_len} tokens)"
                )
                fix = "compare the bits per byte that `genodiff eval` gives for each"
                raise UsageError(what, fix=fix)
    most = options.max_windows
    windows = data.windows if most is None else data.windows.spread(most)
    return RunComparison(models, data, windows, options)


def plan_comparison(comparison: RunComparison) -> dict[str, Any]:
    """What `compare_runs` would take: windows, tokens, and the seconds of each run."""
    windows, repeats = comparison.windows, comparison.options.repeats
    runs = []
    for name, model in comparison.models.items():
        pieces, _ = windows.pieces(model.config.data.seq_len)
        rows = max(1, min(_MOST_ROWS, _MOST_TOKENS // pieces.seq_len))
        seconds = time_window(model, pieces, rows) * len(pieces) * repeats
        weights = sum(p.numel() for p in model.backbone.parameters())
        runs.append({"name": name, "parameters": weights, "seconds": round(seconds, 1)})
    tokens = int(windows.length.sum()) * repeats
    return {"runs": runs, "windows": len(windows), "tokens": tokens}


def compare_runs(
    comparison: RunComparison, asked: CompareRequest, progress: Progress
) -> dict[str, Any]:
    """Score the runs, write table.md, compare.html and results.json; return the results.

    Raises as `evaluate` does.
    """
    models, out = comparison.models, asked.folder
    scores = {name: _score(comparison, name, out, progress) for name in models}
    first = next(iter(models))
    against = asked.against or first
    rows = [
        _row(name, model, scores[name]) | {"minus": _difference(scores, name, against)}
        for name, model in models.items()
    ]
    nats = {name: score.nats[None] for name, score in scores.items()}
    pairs = describe_pairs(compare_models(nats, scores[first].size, margin=asked.margin))
    source = comparison.data.store.source.path
    results = {
        "unit": DOMAINS[models[first].alphabet.domain].size_unit,
        "split": comparison.options.split,
        "data": comparison.data.recipe.name if source is None else Path(source).name,
        "fingerprint": comparison.data.store.fingerprint,
        "windows": len(comparison.windows),
        "windows_total": len(comparison.data.windows),
        "tokens": int(scores[first].tokens.sum()),
        "repeats": comparison.options.repeats,
        "seed": comparison.options.seed,
        "against": against,
        "rows": rows,
        "pairs": pairs,
        "notes": _find_notes(comparison, scores[first].tokens),
    }
    write_run_page(results, out)
    return results


def _score(comparison: RunComparison, name: str, out: Path, progress: Progress) -> TrialScore:
    """Nats of each common window, read from OUT/scores where the same was scored before."""
    windows, options, model = comparison.windows, comparison.options, comparison.models[name]
    asked = {
        "checkpoint": model.digest,
        "fingerprint": comparison.data.store.fingerprint,
        "split": options.split,
        "windows": [len(windows), len(comparison.data.windows), windows.seq_len],
        "repeats": options.repeats,
        "seed": options.seed,
    }
    file = out / "scores" / f"{model.digest}-{sha256_json(asked)[:12]}.json"
    if (kept := read_score(file, asked)) is not None:
        _log.info("%s: scored before, %s", name, file)
        return kept
    pieces, owner = windows.pieces(model.config.data.seq_len)
    of_pieces, counted = score_windows(model, pieces, options.seed, options.repeats, progress)
    nats, tokens = (
        np.bincount(owner, part, len(windows)).astype(np.float64) for part in (of_pieces, counted)
    )
    size = windows.bytes()
    score = TrialScore(nats, tokens, tokens if size is None else size)
    _log.info("%s: %d windows scored", name, len(windows))
    write_score(file, asked, score)
    return score


def _row(name: str, model: TrainedModel, score: TrialScore) -> dict[str, Any]:
    bits = ratio(score.nats, score.size).scaled(BITS)
    return {
        "name": name,
        "run": str(model.run),
        "checkpoint": model.digest,
        "step": model.step,
        "objective": model.objective.name,
        "figure": model.objective.figure,
        "parameters": sum(p.numel() for p in model.backbone.parameters()),
        "seq_len": model.config.data.seq_len,
        "bits": bits.value,
        "ci95_bits": bits.ci95,
        "perplexity": math.exp(score.nats.sum() / score.tokens.sum()),
    }


def _difference(scores: dict[str, TrialScore], a: str, b: str) -> dict[str, Any] | None:
    """Bits of `a` minus bits of `b`, in pairs: below 0 `a` is better."""
    if a == b:
        return None
    gap = ratio(scores[a].nats - scores[b].nats, scores[a].size).scaled(BITS)
    return {"run": b, "bits": gap.value, "ci95": gap.ci95}


def _find_notes(comparison: RunComparison, counted: Floats) -> list[str]:
    """What a reader must know before believing a difference."""
    models = comparison.models
    notes = []
    if len({model.objective.figure for model in models.values()}) > 1:
        notes.append(
            "Exact likelihoods stand beside upper bounds: what a bound lacks counts against it."
        )
    lengths = {model.config.data.seq_len for model in models.values()}
    if len(lengths) > 1:
        shown = " and ".join(f"{n:,}" for n in sorted(lengths))
        units = DOMAINS[next(iter(models.values())).alphabet.domain].units
        notes.append(
            f"The runs read {shown} {units} at a time: the bases are the same, the context is not."
        )
    store, windows = comparison.data.store, comparison.windows
    for name, model in models.items():
        if isinstance(windows, DnaWindows):
            notes.append(describe_seen_bases(model, name, windows, counted)["note"])
            continue
        known = model.data
        if known.get("fingerprint") in (None, store.fingerprint):
            continue
        if known.get("source_sha256") == store.source.sha256:
            notes.append(
                f"{name} was trained on other splits of this file: what is scored may have been "
                f"in its train split."
            )
        else:
            notes.append(f"{name} was trained on other data.")
    return list(filter(None, notes))


def score_windows(
    model: TrainedModel, windows: Windows, seed: int, repeats: int, progress: Progress | None = None
) -> tuple[Floats, Floats]:
    """Nats (mean over repeats) and tokens of each window. Raises as `measure_bound`."""
    device = next(model.backbone.parameters()).device
    rows = max(1, min(_MOST_ROWS, _MOST_TOKENS // windows.seq_len))
    batches = EvalBatches(windows, rows, seed, repeats)
    found = measure_bound(model.objective, model.backbone, batches, device, progress)
    return found.nats.sum(0).mean(0), found.tokens.sum(0)


def read_score(file: Path, asked: dict[str, Any]) -> TrialScore | None:
    """What `write_score` kept, if the same was asked; else None."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        if kept["asked"] == asked:
            return TrialScore(*(np.array(kept[name]) for name in TrialScore._fields))
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


def write_score(file: Path, asked: dict[str, Any], score: TrialScore) -> None:
    """Keep a score under what was asked. Raises `MachineError`."""
    arrays = {name: getattr(score, name).tolist() for name in TrialScore._fields}
    atomic.write_json(file, {"asked": asked} | arrays)
