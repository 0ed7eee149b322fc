"""Findings on a run: impossible figures, figures without worth, parts that do not match.

Each finding is (level, text); level "bad" means that the run's claim does not stand, "warn" that it
needs care.
"""

import math
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
    found += _of_training(folder) + _of_samples(folder) + _of_match(folder)
    return sorted(found, key=lambda f: f.level != "bad")


def list_evaluation_findings(e: Evaluation) -> list[Finding]:
    """Warnings about one evaluation; only those of the headline's stand at the top of the page."""
    said: list[str] = []
    bad: list[Finding] = []
    markov = e.markov()
    best = e.best_line()
    if is_below_source(e):
        text = (
            f"The bound on {e.split} ({e.bits_per_base:.4f} bits) is below the source's own "
            f"({e.source_bits:.4f}) by"
            " more than its interval. No model can do that on average: something leaks (split, "
            "mask or score)."
        )
        bad.append(Finding("bad", text))
    against = None if 0 not in markov else _judge_line(e, markov[0], e.markov_gap(0))
    if against is not None:
        said.append(
            f"On {e.split} composition alone {against} the model (order 0: {markov[0]:.3f} bits)."
        )
    elif best is not None and (against := _judge_line(e, best.bits, best.gap)):
        said.append(f"On {e.split} {best.kind.named} {against} the model ({best.bits:.3f} bits).")
    if e.seen_in_training is not None and e.seen_in_training.note:
        said.append(e.seen_in_training.note[:1].upper() + e.seen_in_training.note[1:] + ".")
    if e.ci95_bits is None:
        said.append(f"The figure on {e.split} has no interval: too few windows were scored.")
    if e.windows is not None and e.windows_total is not None and e.windows < e.windows_total:
        said.append(f"Only {e.windows:,} of {e.windows_total:,} windows of {e.split} were scored.")
    if e.repeat_share is not None and e.repeat_share > 0.05:
        said.append(
            f"{e.repeat_share:.0%} of the windows of {e.split} share a "
            f"{e.repeat_kmer or 24}-mer with the train split:"
            " see the line “unique” below for the rest."
        )
    return bad + [Finding("warn", text) for text in said]


def _judge_line(e: Evaluation, bits: float, gap: Difference | None) -> str | None:
    """What a line of counting is beside the model, by the paired interval; None if it is worse.

    Where there is no interval, the figures themselves are named, and no more.
    """
    if gap is None or gap.ci95 is None:
        return "has no higher figure than" if bits <= e.bits_per_base else None
    if gap.ci95[1] < 0:
        return "is ahead of"
    return "cannot be told apart from" if gap.ci95[0] <= 0 else None


def _of_training(folder: RunParts) -> list[Finding]:
    found = []
    metrics = folder.metrics or {}
    loss = metrics.get("loss_bits", [])
    broken = sum(1 for x in loss if math.isinf(x))
    if broken:
        found.append(Finding("bad", f"{broken:,} training steps have a loss that is not finite."))
    valid = [x for x in metrics.get("valid_bits", []) if math.isfinite(x)]
    if len(valid) >= 2 and valid[-1] > min(valid):
        interval = [x for x in metrics.get("valid_ci", []) if math.isfinite(x)]
        if valid[-1] - min(valid) > max(interval[-1] if interval else 0.0, 0.005):
            ends, best = f"{valid[-1]:.3f}", f"{min(valid):.3f}"
            text = (
                f"The validation bound ends at {ends} after a best of {best}: the model "
                f"may overfit."
            )
            found.append(Finding("warn", text))
    train = folder.config.get("train")
    limits = train if isinstance(train, dict) else {}
    asked = limits.get("max_steps")
    steps = [x for x in metrics.get("step", []) if math.isfinite(x)]
    if isinstance(asked, int) and steps and steps[-1] < asked:
        why = (
            "a limit of time may have ended it"
            if limits.get("max_minutes")
            else "the same command resumes it"
        )
        found.append(Finding("warn", f"Training is at step {steps[-1]:,.0f} of {asked:,}: {why}."))
    return found


def _of_samples(folder: RunParts) -> list[Finding]:
    if not folder.samples:
        return []
    found = []
    letters = folder.domain.letters
    strange = sum(1 for s in folder.samples if letters and set(s.sequence.upper()) - letters)
    if strange:
        found.append(Finding("warn", f"{strange:,} samples hold letters other than A, C, G and T."))
    twice = len(folder.samples) - len({s.sequence for s in folder.samples})
    if twice:
        found.append(Finding("warn", f"{twice:,} samples are copies of others."))
    return found


def _of_match(folder: RunParts) -> list[Finding]:
    """Parts made from other weights than the folder now holds."""
    shown = folder.evaluation
    made = {} if shown is None else {f"the evaluation of {shown.split}": shown.checkpoint}
    if folder.sidecar is not None:
        made["samples.fa"] = str(folder.sidecar.get("checkpoint") or "") or None
    digests = {d for d in made.values() if d}
    if now := folder.weights:
        stale = [name for name, digest in made.items() if digest and digest != now[: len(digest)]]
        text = "was made from other weights than model.safetensors: repeat it."
        return [Finding("warn", f"{name} {text}") for name in stale]
    if len(digests) > 1:
        text = "The evaluation and the samples were made from different weights: repeat them."
        return [Finding("warn", text)]
    return []
