"""Settings chosen by validation: the head, and with a budget the protocol too.

Candidates are fitted with seed 1 on its train rows and judged on its validation rows. Where these
are few, more seeds are asked, and means are compared (`choosing_seeds`). Heads are tried in short
first, and the best few for longer (`budget`). Protocols are tried in whole fits, the likeliest
first: what keeps a network from learning by heart does not show in a short fit. Last, the other
heads are fitted whole under the protocol that was chosen, for short fits may have misjudged them.
They are compared by ranks (AUROC) where the task's metric is of decisions: the error of a
difference is then about four times smaller. The best head is taken, for none is better in itself.
Where another look follows, and among protocols, the simplest within noise of the best is taken.

What is chosen is frozen for all seeds. The fits are units that never see a test part.
`search.jsonl` keeps what they found, so a sweep that was stopped makes the same choice. A whole fit
of the chosen settings is the fit of seed 1: it is made once.

Without a budget in minutes, `--head auto` tries each head for a tenth of the epochs and the best
two for a third, of at least 500 and 2,000 steps, or whole.
"""

import logging
import math
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from genodiff.counter import Purpose, generator, uniforms
from genodiff.errors import GenodiffError
from genodiff.finetuning.budget import (
    TINY,
    Budget,
    Choice,
    Trial,
    choose_candidate,
    find_shares,
    look_again,
)
from genodiff.finetuning.choosing_seeds import list_choosing_seeds, name_seeds
from genodiff.finetuning.head import list_heads
from genodiff.finetuning.pooling import HEADS
from genodiff.finetuning.progress import SweepProgress
from genodiff.finetuning.protocol import PARTS, FitSettings
from genodiff.finetuning.scored_unit import read_predictions
from genodiff.finetuning.search import Search
from genodiff.finetuning.unit import FITTED, MODEL, RESULT, VALIDATION, Unit
from genodiff.finetuning.workers import Workers, run_units
from genodiff.tasks.data_request import load_cached
from genodiff.tasks.metrics import DECISIONS, Floats, measure
from genodiff.tasks.suite import Task
from genodiff.tasks.task import seed_split

_log = logging.getLogger("genodiff")
_RESAMPLES = 200

SECOND_LOOK = 1 / 3
"""The share of a budget that is kept for the other heads under the protocol that was chosen."""

LEAST_LONG = 1_000
"""Steps of the longest fits that are tried, at least."""

EMA = 0.998
"""The decay of the average of weights that longer fits are tried with."""


class Candidate(NamedTuple):
    """Settings that are tried, and what they are called."""

    name: str
    settings: FitSettings


class Selection(NamedTuple):
    """The settings that were chosen, each choice as plain values, and the seconds that it took."""

    settings: FitSettings
    choices: list[dict[str, Any]]
    seconds: float


class Selector:
    """Chooses the settings of one model on one task. `unit` is its unit of seed 1."""

    def __init__(self, unit: Unit, task: Task, place: Workers, minutes: float | None) -> None:
        self.unit, self.task, self.place = unit, task, place._replace(final=False)
        self.log = Search(place.out, task, unit.model)
        self.minutes, self.budget = minutes, Budget(minutes)
        self.tried: dict[str, Unit] = {}
        self.chosen, self.choices = unit.settings, list[dict[str, Any]]()
        data = load_cached(place.request.to_json(), task.name)
        self.seeds = list_choosing_seeds(data, unit.seed)
        parts = [seed_split(data, seed) for seed in self.seeds]
        self.n_train, self.n_valid = len(parts[0][0]), sum(len(valid) for _, valid in parts)

    def select(self, start: FitSettings, *, head: bool) -> Selection:
        """The settings to take in place of `start`; with `head`, its head is chosen as well.

        Raises `Interrupted` after a signal, and `GenodiffError` where every candidate failed.
        """
        self.chosen, self.choices = start, []
        whole = start.method == "probe"
        protocol = self.minutes is not None and not whole
        again = head and protocol and self.n_valid >= TINY
        if head:
            heads = list_head_candidates(start)
            self._take("head", heads, self._choose(heads, whole=whole, simplest=again))
        if protocol:
            self.budget.reserved = self.budget.limit * SECOND_LOOK if again else 0.0
            protocols = list_protocol_candidates(self.chosen, self.task, self.n_train)
            found = self._choose(protocols, whole=True, simplest=True)
            self._take("protocol", protocols, found)
            self.budget.reserved = 0.0
            if again:
                self._look_again()
        self._clear(self.chosen)
        return Selection(self.chosen, self.choices, self.budget.spent)

    def _take(
        self, what: str, candidates: Sequence[Candidate], found: Choice, metric: str | None = None
    ) -> None:
        chosen = candidates[found.candidate]
        self.chosen = chosen.settings
        self.choices.append(self._describe(what, candidates, found, metric))
        name = f"{self.task.name} {self.unit.model.name}"
        _log.info("%s: %s %s: %s", name, what, chosen.name, found.why)

    def _look_again(self) -> None:
        """Whole fits of the other heads under the settings that were chosen, as many as fit in."""
        heads = list_head_candidates(self.chosen)
        heads.sort(key=lambda candidate: candidate.settings != self.chosen)  # the chosen one first
        fits = [self._list_units(candidate, 1.0) for candidate in heads]
        tried = [self._try(fits[0], compared=True)]
        for candidate, units in zip(heads[1:], fits[1:], strict=True):
            counted = units[0].key in self.tried
            if not counted and not self.budget.affords(max(seconds for _, seconds in tried)):
                break
            valid, seconds = self._try(units, compared=True)
            tried.append((valid, seconds))
            self.budget.spend(0.0 if counted else seconds)
            what = f"{self.task.name} {self.unit.model.name}: {candidate.name}"
            _log.info("%s, under the chosen settings: validation %.4f", what, valid)
        fitted = [np.isfinite(valid) for valid, _ in tried]
        metric, values = self._rank(list(zip(fits, fitted, strict=False)))
        best, why = look_again(values, metric)
        if len(values) < len(heads):
            why += f"; the budget allowed {len(values)} of {len(heads)} heads"
        trials = (Trial(i, 1.0, values[i], seconds) for i, (_, seconds) in enumerate(tried))
        self._take("head, again", heads, Choice(best, tuple(trials), why), metric)

    def _rank(self, fits: Sequence[tuple[list[Unit], bool]]) -> tuple[str, list[float]]:
        """A metric, without decisions where that is defined, and its value for each candidate.

        Each comes with whether it was fitted. The value is NaN where a fit failed; those of the
        first one did not.
        """
        metric = self.task.metrics[0]
        for name in ("auroc", metric) if metric in DECISIONS else (metric,):
            values = [self._measure(units, name) if fine else np.nan for units, fine in fits]
            if np.isfinite(values[0]):
                return name, values
        raise GenodiffError(f"{metric} is not defined on validation", fix="give --head")

    def _measure(self, units: Sequence[Unit], metric: str) -> float:
        found = []
        for unit in units:
            predicted, truth, _ = read_predictions(unit.folder(self.place.out), VALIDATION)
            found.append(measure(metric, self.task.kind, truth, predicted))
        return float(np.mean(found))

    def _clear(self, chosen: FitSettings) -> None:
        """Remove the weights of trials, except those of the fit that is seed 1's."""
        kept = self.unit.model_copy(update={"settings": chosen}).key
        for key, unit in self.tried.items():
            folder = unit.folder(self.place.out)
            if key != kept and not (folder / RESULT).exists():  # one that has a row is no trial
                for name in (MODEL, FITTED):
                    (folder / name).unlink(missing_ok=True)

    def _choose(self, candidates: Sequence[Candidate], *, whole: bool, simplest: bool) -> Choice:
        if self.n_valid < TINY:
            few = f"{self.n_valid} validation examples are too few to choose by"
            return Choice(0, (), few)
        whole = whole or self.unit.settings.method == "probe"

        def evaluate(candidate: Candidate, share: float) -> tuple[float, float]:
            valid, seconds = self._try(self._list_units(candidate, share))
            what = f"{self.task.name} {self.unit.model.name}: {candidate.name}"
            _log.info("%s, %g of a fit: validation %.4f", what, share, valid)
            return valid, seconds

        def noise(best: int, other: int, share: float) -> float:
            a, b = (self._list_units(candidates[i], share) for i in (best, other))
            return self._measure_noise(a, b, self.task.metrics[0])

        return choose_candidate(
            candidates,
            evaluate,
            self.task.metrics[0],
            budget=self.budget,
            shares=(1.0,) if whole else find_shares(self.unit.settings.steps(self.n_train)),
            noise=noise if simplest else None,
            reserve=False,
            sizes=[candidate.settings.steps(self.n_train) for candidate in candidates],
        )

    def _list_units(self, candidate: Candidate, share: float) -> list[Unit]:
        """The candidate's fits of so large a share, one for each seed that chooses."""
        change = {"settings": shorten(candidate.settings, share), "setting": "tried"}
        return [self.unit.model_copy(update=change | {"seed": seed}) for seed in self.seeds]

    def _try(self, units: Sequence[Unit], *, compared: bool = False) -> tuple[float, float]:
        """(mean validation value, seconds in all) of fits; the value is NaN where one failed."""
        tried = [self._try_seed(unit, compared=compared) for unit in units]
        return float(np.mean([valid for valid, _ in tried])), sum(seconds for _, seconds in tried)

    def _try_seed(self, unit: Unit, *, compared: bool) -> tuple[float, float]:
        """(validation value, seconds) of a fit, made now or known already.

        A fit that is `compared` is made again where its predictions were not kept.
        """
        self.tried[unit.key] = unit
        known = self.log.find(unit)
        if compared and not (unit.folder(self.place.out) / VALIDATION).exists():
            known = None
        if known is None:
            board = SweepProgress(1, {unit.key: 1.0}, set())
            try:
                (outcome,) = run_units([unit], self.place, board.tick)
            finally:
                board.close()
            if outcome.fault is not None:
                _log.warning("%s: %s", unit.model.name, outcome.fault)
            valid = float("nan") if outcome.valid is None else outcome.valid
            self.log.add(unit, valid, outcome.seconds or 0.0)
            known = valid, outcome.seconds or 0.0
        return known

    def _measure_noise(self, a: Sequence[Unit], b: Sequence[Unit], metric: str) -> float:
        """The standard error of the mean difference of fits on the same validation examples.

        Each seed is resampled alone: parts of different seeds are taken as independent.
        """
        errors = []
        for units in zip(a, b, strict=True):
            try:
                (p, truth, _), (q, _, _) = (
                    read_predictions(u.folder(self.place.out), VALIDATION) for u in units
                )
            except GenodiffError:
                return 0.0
            errors.append(measure_noise(metric, self.task.kind, truth, p, q))
        return math.hypot(*errors) / len(errors)

    def _describe(
        self, what: str, candidates: Sequence[Candidate], found: Choice, metric: str | None
    ) -> dict[str, Any]:
        return {
            "of": what,
            "chosen": candidates[found.candidate].name,
            "why": found.why,
            "by": f"validation of {name_seeds(self.seeds)}",
            "n_valid": self.n_valid,
            "metric": metric or self.task.metrics[0],
            "budget_minutes": self.minutes,
            "trials": [
                {
                    "candidate": candidates[t.candidate].name,
                    "epochs": shorten(candidates[t.candidate].settings, t.share).epochs,
                    "share": t.share,
                    "valid": t.valid if np.isfinite(t.valid) else None,
                }
                for t in found.trials
            ],
        }


def shorten(settings: FitSettings, share: float) -> FitSettings:
    """The settings of a fit of a share of the epochs (or steps), at least one."""
    change: dict[str, Any] = {"epochs": max(1, round(share * settings.epochs))}
    if settings.max_steps is not None:
        change["max_steps"] = max(1, round(share * settings.max_steps))
    return settings.model_copy(update=change)


def list_head_candidates(start: FitSettings) -> list[Candidate]:
    """A candidate for each head that can be fitted, the simplest first."""
    found = []
    for name in list_heads():
        if start.method == "probe" and HEADS[name].trains:
            continue
        many = max(start.parts, 1) if start.parts > 1 else PARTS
        parts = many if name == "parts" else 1
        label = f"parts {parts}" if name == "parts" else name
        found.append(Candidate(label, start.model_copy(update={"head": name, "parts": parts})))
    return found


def list_protocol_candidates(start: FitSettings, task: Task, n_train: int) -> list[Candidate]:
    """`start`, longer fits that average their weights, then the points of a small grid.

    Some of the longer fits hide bases as well. The grid is in a fixed random order. Where twice the
    epochs are fewer steps than `LEAST_LONG`, two fits of so many steps come before all of these.
    Strands are tried one-sided, and sequences shifted, where the task is of DNA that is not
    oriented; a head that reads places is tried without shifts first, which blur them. Longer fits
    stop early: after half of the usual epochs without a better validation.
    """
    moves = task.domain == "dna" and not task.oriented
    axes: dict[str, tuple[Any, ...]] = {
        "lr": (start.lr, start.lr * 3, start.lr / 3),
        "epochs": (start.epochs, 2 * start.epochs),
        "weight_decay": tuple(dict.fromkeys((start.weight_decay, 0.01))),
        "dropout": tuple(dict.fromkeys((start.dropout, 0.2))),
    }
    if moves:
        axes["shift"] = tuple(dict.fromkeys((start.shift, 4)))
        axes["rc"] = tuple(dict.fromkeys((start.rc, "none")))
    points = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    order = np.argsort(uniforms(0, Purpose.FINETUNE_SPLIT, 2, len(points) - 1), kind="stable")
    found = [Candidate("as given", start)]
    longer = points[0] | {"epochs": 2 * start.epochs, "dropout": max(start.dropout, 0.3)}
    longer["ema"] = EMA
    first = [longer, longer | {"mask_share": 0.1}]
    if moves:
        shifted = [point | {"shift": 4} for point in first]
        first = first + shifted if HEADS[start.head].reads_places else shifted
    epochs = math.ceil(LEAST_LONG * start.epochs / start.steps(n_train))
    if start.max_steps is None and epochs > 2 * start.epochs:
        long = points[0] | {"epochs": epochs}
        first = [long, long | {"dropout": max(start.dropout, 0.3)}, *first]
    for point in [*first, *(points[i] for i in order + 1)]:
        change = {k: v for k, v in point.items() if v != getattr(start, k)}
        if "epochs" in change and start.patience is None:
            change["patience"] = max(3, start.epochs // 2)
        label = ", ".join(f"{k} {v:g}" if k != "rc" else f"rc {v}" for k, v in change.items())
        found.append(Candidate(label, start.model_copy(update=change)))
    return found


def measure_noise(metric: str, kind: str, truth: Any, a: Floats, b: Floats) -> float:
    """The bootstrap's standard error of the difference of a metric on the same examples."""
    draw, n = generator(1, Purpose.BOOTSTRAP, 1), len(truth)
    found = []
    for _ in range(_RESAMPLES):
        rows = draw.integers(n, size=n)
        value = [measure(metric, kind, truth[rows], p[rows]) for p in (a, b)]
        found.append(value[0] - value[1])
    found = [x for x in found if np.isfinite(x)]
    return float(np.std(found, ddof=1)) if len(found) > 1 else 0.0
