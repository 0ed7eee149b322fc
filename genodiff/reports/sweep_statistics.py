"""The statistics of a task's table: intervals, ensembles of seeds, and the pairs that are compared.

An ensemble is the mean of a line's predictions over its seeds, as one answer. The predictions are
those that each seed's unit has kept, so the test part is not read again. It is a line of its own.
It is one answer, not a mean of scores, so its interval is over test examples alone, and it is not
among the comparisons.

Compared are the lines of the highest role (pretrained networks; without them, networks from random
weights; without those, baselines) with all other lines.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from genodiff.finetuning.model_words import list_baselines
from genodiff.statistics.seeds import ONE_SEED, JointEstimate
from genodiff.tasks.metrics import measure
from genodiff.tasks.near_duplicates import number_clusters
from genodiff.tasks.paired_bootstrap import ModelPredictions, ResampledScores, resample_scores

ROLES = ("baseline", "scratch", "model")
Pair = tuple[str, str, JointEstimate]


def resample_task(
    about: dict[str, Any],
    metric: str,
    seen: dict[str, tuple[Any, Any, Any]],
    scored: dict[str, ModelPredictions],
) -> ResampledScores | None:
    """The scores of all lines whose predictions are kept; None where there are none.

    `seen` has (predictions, truth, lengths) of the first seed of each.
    """
    if not scored:
        return None
    truth = next(iter(seen.values()))[1]
    models = {
        name: of
        for name, of in scored.items()
        if all(len(p) == len(truth) for p in of.predicted) and (seen[name][1] == truth).all()
    }
    known = about.get("test_clusters")
    clusters = None if known is None else number_clusters(known, len(truth))
    return resample_scores(metric, about["kind"], truth, models, clusters=clusters)


def estimate_line(found: ResampledScores | None, name: str) -> JointEstimate | None:
    """The mean of a line over seeds and examples; of one seed, over examples alone.

    None where its predictions are not kept.
    """
    if found is None or name not in found.models:
        return None
    joint = found.estimate(name)
    return found.estimate_fixed(name) if joint.why_none == ONE_SEED else joint


def compare_lines(
    found: ResampledScores | None, lines: Sequence[tuple[str, str, float]]
) -> list[Pair]:
    """The comparisons of a table, of lines (name, role, mean, larger is better).

    The one of the higher role stands first, and of equals the better one.
    """
    known = [line for line in lines if found is not None and line[0] in found.models]
    if found is None or not known:
        return []
    ordered = sorted(known, key=lambda line: (-ROLES.index(line[1]), -line[2], line[0]))
    top = ordered[0][1]
    return [
        (a, b, found.compare(a, b))
        for i, (a, role, _) in enumerate(ordered)
        if role == top
        for b, *_ in ordered[i + 1 :]
    ]


def can_average(row: dict[str, Any]) -> bool:
    """Whether the seeds of a row's line are networks, or of a baseline that draws as they do."""
    return row["method"] != "baseline" or row["model"] in list_baselines(is_drawn=True)


def average_seeds(
    rows: Sequence[dict[str, Any]], given: Sequence[tuple[Any, Any, Any]], about: dict[str, Any]
) -> tuple[dict[str, Any], tuple[Any, Any, Any]]:
    """(row, (predictions, truth, lengths)) of the mean over seeds.

    The row has the fields of the first seed's row. `ensemble` is the number of seeds, `keys` are
    those of their rows, and `seconds` is the sum of theirs. There is no validation value: each seed
    has a validation part of its own.
    """
    predicted = np.mean([p for p, _, _ in given], axis=0)
    _, truth, lengths = given[0]
    values = {m: measure(m, about["kind"], truth, predicted) for m in rows[0]["metrics"]}
    row = rows[0] | {
        "ensemble": len(rows),
        "keys": [r["key"] for r in rows],
        "value": values[rows[0]["metric"]],
        "metrics": values,
        "valid": None,
        "seconds": float(sum(r["seconds"] for r in rows)),
    }
    return row, (predicted, truth, lengths)
