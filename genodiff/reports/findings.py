"""Findings on a run: impossible figures, figures without worth, parts that do not match.

Each finding is (level, text); level "bad" means that the run's claim does not stand, "warn" that it
needs care.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

from genodiff.reports.evaluation import Difference, Evaluation
from genodiff.reports.folder import RunParts

BASES = frozenset("ACGTacgt")


class Finding(NamedTuple):
    """One warning of the report."""

    level: Literal["bad", "warn"]
    text: str


def measure_gap_closed(e: Evaluation) -> float | None:
    """The share of the gap between the order-0 line and the source that the bound has closed.

    It is None without a source.
    """
    start = e.markov().get(0)
    if e.source_bits is None or start is None or start <= e.source_bits:
        return None
    return (start - e.bits_per_base) / (start - e.source_bits)


def is_below_source(e: Evaluation) -> bool:
    """Whether the bound lies below the source by more than the interval.

    No model can do that, so something leaks.
    """
    difference = e.model_minus_source_bits
    if difference is not None and difference.ci95 is not None:
        return difference.ci95[1] < 0
    high = e.ci95_bits[1] if e.ci95_bits is not None else e.bits_per_base
    return e.source_bits is not None and high < e.source_bits


def list_findings(folder: RunParts) -> list[Finding]:
    """All warnings about a run and the evaluation of its headline, the gravest first."""
    found = [
        Finding("warn", f"A part of the run could not be read. {trouble}")
        for trouble in folder.troubles
    ]
    if folder.evaluation is not None:
        found += list_evaluation_findings(folder.evaluation)
    found += _judge_training(folder)
    found += [Finding("warn", text) for text in (*_judge_samples(folder), *_judge_match(folder))]
    return sorted(found, key=lambda f: f.level != "bad")


def list_evaluation_findings(e: Evaluation) -> list[Finding]:
    """Warnings about one evaluation; only those of the headline's stand at the top of the page."""
    found = [Finding("warn", text) for text in _judge_evaluation(e)]
    if is_below_source(e):
        text = (
            f"The bound on {e.split} ({e.bits_per_base:.4f} bits) is below the source's own "
            f"({e.source_bits:.4f}) by more than its interval. No model can do that on average: "
            "something leaks (split, mask or score)."
        )
        found.insert(0, Finding("bad", text))
    return found


def _judge_evaluation(e: Evaluation) -> Iterator[str]:
    markov, best = e.markov(), e.best_line()
    against = None if 0 not in markov else _judge_line(e, markov[0], e.markov_gap(0))
    if against is not None:
        yield f"On {e.split} composition alone {against} the model (order 0: {markov[0]:.3f} bits)."
    elif best is not None and (against := _judge_line(e, best.bits, best.gap)):
        yield f"On {e.split} {best.kind.named} {against} the model ({best.bits:.3f} bits)."
    if e.seen_in_training is not None and e.seen_in_training.note:
        yield e.seen_in_training.note[:1].upper() + e.seen_in_training.note[1:] + "."
    if e.ci95_bits is None:
        yield f"The figure on {e.split} has no interval: too few windows were scored."
    if e.windows is not None and e.windows_total is not None and e.windows < e.windows_total:
        yield f"Only {e.windows:,} of {e.windows_total:,} windows of {e.split} were scored."
    if e.repeat_share is not None and e.repeat_share > 0.05:
        yield (
            f"{e.repeat_share:.0%} of the windows of {e.split} share a {e.repeat_kmer or 24}-mer "
            "with the train split: see the line “unique” below for the rest."
        )


def _judge_line(e: Evaluation, bits: float, gap: Difference | None) -> str | None:
    """What a line of counting is beside the model, by the paired interval; None if it is worse.

    Where there is no interval, the figures themselves are named, and no more.
    """
    if gap is None or gap.ci95 is None:
        return "has no higher figure than" if bits <= e.bits_per_base else None
    if gap.ci95[1] < 0:
        return "is ahead of"
    return "cannot be told apart from" if gap.ci95[0] <= 0 else None


def _judge_training(folder: RunParts) -> Iterator[Finding]:
    metrics = folder.metrics or {}
    if broken := sum(map(math.isinf, metrics.get("loss_bits", []))):
        yield Finding("bad", f"{broken:,} training steps have a loss that is not finite.")
    steps, valid, half = (
        list(filter(math.isfinite, metrics.get(name, [])))
        for name in ("step", "valid_bits", "valid_ci")
    )
    if valid and valid[-1] - min(valid) > max(half[-1] if half else 0.0, 0.005):
        text = f"ends at {valid[-1]:.3f} after a best of {min(valid):.3f}: the model may overfit."
        yield Finding("warn", f"The validation bound {text}")
    train = folder.config.get("train")
    limits = train if isinstance(train, dict) else {}
    asked = limits.get("max_steps")
    if isinstance(asked, int) and steps and steps[-1] < asked:
        why = "a limit of time may have ended it"
        why = why if limits.get("max_minutes") else "the same command resumes it"
        yield Finding("warn", f"Training is at step {steps[-1]:,.0f} of {asked:,}: {why}.")


def _judge_samples(folder: RunParts) -> Iterator[str]:
    samples, letters = folder.samples or [], folder.domain.letters
    if strange := sum(1 for s in samples if letters and set(s.sequence.upper()) - letters):
        yield f"{strange:,} samples hold letters other than A, C, G and T."
    if twice := len(samples) - len({s.sequence for s in samples}):
        yield f"{twice:,} samples are copies of others."


def _judge_match(folder: RunParts) -> Iterator[str]:
    """Parts made from other weights than the folder now holds."""
    shown = folder.evaluation
    made = {} if shown is None else {f"the evaluation of {shown.split}": shown.checkpoint}
    if folder.sidecar is not None:
        made["samples.fa"] = str(folder.sidecar.get("checkpoint") or "")
    digests = {name: digest for name, digest in made.items() if digest}
    if now := folder.weights:
        for name, digest in digests.items():
            if not now.startswith(digest):
                yield f"{name} was made from other weights than model.safetensors: repeat it."
    elif len(set(digests.values())) > 1:
        yield "The evaluation and the samples were made from different weights: repeat them."
