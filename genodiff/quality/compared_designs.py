"""Designs by several methods side by side: the work of `compare_designs`.

Designs by several methods side by side: what counts is not the score that guided them.

    guided       the oracle that a method could ask: it may have been hacked
    judge        an oracle that no method asked
    bits         bits per base under a model that was not guided: lower is more natural
    difference   the share of bases in which a design differs from the nearest other one of its set
    match        the longest stretch that train has as well

Gains are in standard deviations of real sequence. `transfer` is the judge's gain over the oracle's:
1 where the judge agrees, 0 where the oracle alone was pleased. A method whose transfer is below 0.5
with 95 % certainty, while the oracle's gain is sure, is said to have hacked the oracle.

A method is on the Pareto front if no other one is as good in all of judge, bits, difference and
match, and better in one. In the last three nothing beyond what real sequence has is better: dull
sequence has few bits. The front is of point estimates: it has no interval.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from genodiff.counter import Purpose, generator
from genodiff.data.stretches import encode_bases
from genodiff.errors import DataError, UsageError
from genodiff.evaluation.generative import bound_nats, check_judge, token_nats
from genodiff.generate.guide_settings import GuideSettings, is_unit
from genodiff.generate.guided_model import open_oracle
from genodiff.io import atomic
from genodiff.io.progress import ProgressDisplay, say_slow
from genodiff.io.target import seal_page
from genodiff.jobs.machine import choose_device
from genodiff.jobs.request import find_named
from genodiff.quality.diversity import MOST, count_duplicates, measure_effective_number
from genodiff.quality.match_index import MatchIndex
from genodiff.quality.measured_scorecard import open_train, read_ids
from genodiff.quality.real_sequence import cut_windows, draw_some
from genodiff.quality.requests import DesignsRequest, OracleName, is_run, name_oracle
from genodiff.quality.sample_quality import LONG_MATCH, NEAR
from genodiff.quality.scorecard import Ids, kmer_counts
from genodiff.quality.train_text import TrainMatches, TrainText
from genodiff.runs.model import load_model
from genodiff.statistics.jackknife import describe_share, jackknife, sum_groups
from genodiff.version import __version__

Floats = NDArray[np.float64]
Score = Callable[[Sequence[Ids]], Floats]
"""A number for each sequence."""
_RESAMPLED = 2000
_HACKED = 0.5
_WORD = 6


class DesignJudges(NamedTuple):
    """What designs are measured by; `sign` is -1 where small scores are wanted."""

    guided: Score | None = None
    judge: Score | None = None
    bits: Score | None = None
    train: TrainText | None = None
    sign: int = 1
    seed: int = 1


def compare_methods(
    designs: Mapping[str, Sequence[Ids]], real: Sequence[Ids], by: DesignJudges
) -> list[dict[str, Any]]:
    """A row for each method, and one for real sequence, "real", which comes last."""
    sets = {**designs, "real": real}
    matches: list[TrainMatches | None] = [None] * len(sets)
    if by.train is not None:
        matches = list(by.train.search(list(sets.values())))
    scores = {
        name: [None if score is None else score(some) for score in (by.guided, by.judge)]
        for name, some in sets.items()
    }
    rows = []
    for (name, some), match in zip(sets.items(), matches, strict=True):
        guided, judge = scores[name]
        row = {
            "method": name,
            "n": len(some),
            "guided": _describe(guided),
            "judge": _describe(judge),
            "bits": _describe(None if by.bits is None else by.bits(some)),
            **_measure_variety(some),
            "words": jackknife(_count_words(some), _count_words(real), _correlate),
            "match": None if match is None else _describe_matches(match),
            "gains": None,
        }
        if name != "real" and guided is not None and judge is not None:
            floor = scores["real"]
            assert floor[0] is not None
            assert floor[1] is not None
            pairs = (np.stack([guided, judge]), np.stack([floor[0], floor[1]]))
            row["gains"] = measure_gains(*pairs, sign=by.sign, seed=by.seed)
        rows.append(row)
    goals = [_list_goals(row, rows[-1], by.sign) for row in rows[:-1]]
    for row, is_best in zip(rows, [*find_front(goals), False], strict=True):
        row["front"] = bool(is_best)
    return rows


def find_front(goals: Sequence[Sequence[float]]) -> list[bool]:
    """Which rows no other row dominates; in each column more is better."""
    table = np.array(goals, float)
    found = []
    for row in table:
        as_good, better = (table >= row).all(1), (table > row).any(1)
        found.append(not bool((as_good & better).any()))
    return found


def measure_gains(made: Floats, real: Floats, *, sign: int = 1, seed: int = 1) -> dict[str, Any]:
    """Gains of scores (2, n), guided and judge, over real ones (2, m), and the transfer.

    Intervals are a bootstrap over designs and over real sequences.
    """
    draws = generator(seed, Purpose.BOOTSTRAP)

    def find(a: Floats, b: Floats) -> Floats:
        spread = np.maximum(b.std(1, ddof=1), 1e-12) if b.shape[1] > 1 else np.ones(2)
        gain: Floats = sign * (a.mean(1) - b.mean(1)) / spread
        return gain

    guided, judge = find(made, real)
    again = np.stack(
        [
            find(*(part[:, draws.integers(part.shape[1], size=part.shape[1])] for part in pair))
            for pair in repeat((made, real), _RESAMPLED)
        ]
    )
    ends = np.quantile(again, [0.025, 0.975], axis=0)
    found = {
        "guided": {"value": float(guided), "ci95": ends[:, 0].tolist()},
        "judge": {"value": float(judge), "ci95": ends[:, 1].tolist()},
        "transfer": None,
        "hacked": False,
    }
    if ends[0, 0] > 0:  # a ratio means something where the oracle's gain is sure
        ratio = again[:, 1] / np.maximum(again[:, 0], 1e-12)
        low, high = np.quantile(ratio, [0.025, 0.975]).tolist()
        found["transfer"] = {"value": float(judge / guided), "ci95": [low, high]}
        found["hacked"] = high < _HACKED
    return found


def _describe(values: Floats | None) -> dict[str, Any] | None:
    if values is None:
        return None
    se = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return {"mean": float(values.mean()), "median": float(np.median(values)), "se": se}


def _measure_variety(some: Sequence[Ids]) -> dict[str, Any]:
    within = MatchIndex(some).measure_identity(some, skip_own=True)
    return {
        "difference": _describe(1 - within),
        **describe_share("near", int((within >= NEAR).sum()), len(within)),
        "effective": measure_effective_number(some) / min(len(some), MOST),
        "duplicates": count_duplicates(some),
    }


def _describe_matches(found: TrainMatches) -> dict[str, Any]:
    longest = found.longest
    return {
        "median": float(np.median(longest)),
        "max": int(longest.max()),
        **describe_share("long", int((longest >= LONG_MATCH).sum()), len(longest)),
        **describe_share("near", int((found.identity >= NEAR).sum()), len(longest)),
    }


def _count_words(some: Sequence[Ids]) -> Floats:
    return sum_groups(some, lambda part: kmer_counts(part, _WORD))


def _correlate(one: Floats, other: Floats) -> float:
    return float(np.nan_to_num(np.corrcoef(one, other)[0, 1]))


def _list_goals(row: Mapping[str, Any], real: Mapping[str, Any], sign: int) -> list[float]:
    goals = [min(row["difference"]["mean"], real["difference"]["mean"])]
    if row["judge"] is not None:
        goals.append(sign * row["judge"]["mean"])
    if row["bits"] is not None:
        goals.append(-max(row["bits"]["mean"], real["bits"]["mean"]))
    if row["match"] is not None:
        goals.append(-max(row["match"]["median"], real["match"]["median"]))
    return goals


_PAGE = "genodiff.reports.design_page:render_designs"


def compare_designs(asked: DesignsRequest) -> dict[str, Any]:
    """What `genodiff.compare_designs` returns."""
    device, train = choose_device(asked.device), asked.train
    sets = {}
    for name, given in asked.sets.items():
        some = (ids for ids in read_ids(given) if len(ids))
        sets[name], _ = draw_some(some, asked.most, asked.seed)
        if len(sets[name]) < 2:
            raise DataError(f"{name}: fewer than two designs", fix="give two or more")
    length = int(np.median([len(ids) for some in sets.values() for ids in some]))
    natural, total = draw_some(cut_windows(read_ids(asked.real), length), asked.most, asked.seed)
    if len(natural) < 2:
        what = f"real sequence has {total} windows without N of {length:,} bases"
        raise DataError(what, fix="give more of it, as long as the designs or longer")
    with ProgressDisplay() as display:
        display.show("scoring designs")
        text = open_train(train, None, asked.offline)[0] if train is not None else None
        by = DesignJudges(
            guided=_open_score(asked, asked.oracle, device, "--oracle"),
            judge=_open_score(asked, asked.judge, device, "--judge"),
            bits=None if asked.run is None else _open_bits(asked, device),
            train=text,
            sign=-1 if asked.lower else 1,
            seed=asked.seed,
        )
        rows = compare_methods(sets, natural, by)
    found = {
        "genodiff": __version__,
        "length": length,
        "oracle": name_oracle(asked.oracle),
        "judge": name_oracle(asked.judge),
        "model": None if asked.run is None else str(asked.run),
        "train": str(train) if is_run(train) or isinstance(train, Path) else None,
        "lower": asked.lower,
        "rows": rows,
    }
    if asked.html is not None:
        with say_slow(f"drawing {asked.html}"):
            atomic.write_text(Path(asked.html), seal_page(find_named(_PAGE)(found)))
    return found


def _open_score(
    asked: DesignsRequest, one: OracleName | None, device: str, flag: str
) -> Score | None:
    """An oracle as a function of sequences of any lengths."""
    if one is None:
        return None
    label = asked.label if is_unit(one) else None
    oracle = open_oracle(GuideSettings("", oracle=one, form=asked.form, label=label), device, flag)
    assert oracle is not None

    def score(sequences: Sequence[Any]) -> Any:
        found = np.zeros(len(sequences))
        lengths = np.array([len(ids) for ids in sequences])
        for length in np.unique(lengths).tolist():
            rows = np.flatnonzero(lengths == length)
            codes = np.stack([encode_bases(sequences[i]) for i in rows.tolist()])
            found[rows] = oracle(codes.astype(np.int64))
        return found

    return score


def _open_bits(asked: DesignsRequest, device: str) -> Score:
    """Bits per base of sequences under a run."""
    model = load_model(Path(str(asked.run)), device=device)
    if model.alphabet.domain != "dna":
        raise UsageError("designs are of DNA, and this is a run of text", fix="give a run of DNA")
    check_judge(model)

    def score(sequences: Sequence[Any]) -> Any:
        if model.objective.kind == "causal":
            nats = np.array([part.sum() for part in token_nats(model, sequences)])
        else:
            nats = bound_nats(model, sequences, repeats=asked.repeats, seed=asked.seed)
        return nats / np.array([len(ids) for ids in sequences]) / math.log(2)

    return score
