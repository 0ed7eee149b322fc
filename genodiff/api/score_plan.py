"""What `genodiff score --plan` says: counts, evaluations of the network, and the time they take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from genodiff.api.score_output import request_background
from genodiff.io.target import is_stream

if TYPE_CHECKING:
    from collections import Counter

    from genodiff.api.score_settings import ScoreSettings
    from genodiff.io.variant_check import VariantSurvey
    from genodiff.runs.model import TrainedModel
    from genodiff.variants.records import VariantRun

Windows = tuple[int, int]
"""Windows with one base masked, and with many."""


def describe_plan(
    work: VariantRun,
    target: str,
    asked: ScoreSettings,
    places: int | None,
    joint: tuple[Counter[str], int] | None,
    model: TrainedModel | None,
) -> dict[str, Any]:
    """What would be scored: counts, evaluations and seconds; `places` are those of a background.

    `joint` are the haplotypes of several variants by method, and about how many windows they take.
    `evaluations` counts nelbo by the least that it takes, `evaluations_at_most` by the most. SNVs
    that share windows take fewer. Without a model the time is not known: `seconds` is None.
    """
    own = work.own_survey
    least, most = (count_windows(own, asked, n) for n in (None, asked.max_evaluations))
    twice = 1 + (asked.context == "2x")
    told: dict[str, Any] = {"evaluations": twice * sum(least)}
    if most != least:
        told["evaluations_at_most"] = twice * sum(most)
    more = [0, 0]
    if joint is not None:
        told["haplotypes"] = dict(sorted(joint[0].items()))
        told["haplotype_evaluations"] = more[1] = joint[1]
    if places is not None:
        found, cost = _describe_background(work, asked, places, model)
        told |= found
        more = [one + two for one, two in zip(more, cost, strict=True)]
    told |= {"seconds": None}
    if model is not None:
        alone, many = time_windows(work, asked, model)
        longer = 3 if twice == 2 else 1  # the second window is twice as long
        first, last = (
            longer * (n * alone + m * many) + more[0] * alone + more[1] * many
            for n, m in (least, most)
        )
        told["seconds"] = round(first, 1)
        if most != least:
            told["seconds_at_most"] = round(last, 1)
        told["device"] = str(next(model.backbone.parameters()).device)
    return {
        "records": own.records,
        "alts": own.alleles,
        "kinds": dict(sorted(own.kinds.items())),
        "unscored": {reason.value: n for reason, n in sorted(own.reasons.items())},
        **told,
        "files": [target] if is_stream(target) else [target, f"{target}.json"],
    }


def count_windows(survey: VariantSurvey, asked: ScoreSettings, most: int | None) -> Windows:
    """The windows that variants take: the least, or where `most` ends a score the most."""
    from genodiff.scoring.methods import find_method

    single = many = 0
    for widths, n in survey.sizes.items():
        method = find_method(widths, asked.method)
        if widths == (1, 1) and method.takes_sites:
            single = survey.sites
        elif most is not None and method.until_se:
            many += n * most
        else:
            many += n * method.windows(*widths)
    return single, many


def _describe_background(
    work: VariantRun, asked: ScoreSettings, places: int, model: TrainedModel | None
) -> tuple[dict[str, Any], Windows]:
    """What is said of the random variants, and the windows that they still take."""
    from genodiff.scoring.methods import find_method
    from genodiff.scoring.variant_scores import open_score_loci
    from genodiff.variants.background import BackgroundRequest, count_background, find_kinds

    request = BackgroundRequest(places, asked.seed, asked.method, {})
    if model is not None:
        options = asked.options()
        loci = open_score_loci(model, work.genome, options)
        request = request_background(model, options, places, loci)
    kinds = find_kinds(work.alleles(), work.genome)
    cost = count_background(work.genome, work.genome.sha256, kinds, request)
    shared = find_method((1, 1), asked.method).takes_sites
    single = cost.windows.get("snv", 0) if shared else 0
    total = sum(cost.windows.values())
    told: dict[str, Any] = {"background": {size.name: request.count(size) for size in kinds}}
    if cost.rare:
        told["background_rare"] = cost.rare
    return {**told, "background_evaluations": total}, (single, total - single)


def time_windows(
    work: VariantRun, asked: ScoreSettings, model: TrainedModel
) -> tuple[float, float]:
    """Seconds of a window with one base masked, and of one with many, at the file's own places."""
    from itertools import islice

    from genodiff.scoring.masked_reader import open_reader
    from genodiff.scoring.plan_time import time_evaluations
    from genodiff.scoring.variant_scores import check_model, open_score_loci

    check_model(model)
    options = asked.options()
    loci = open_score_loci(model, work.genome, options)
    reader = open_reader(model, batch_size=options.batch_size, loci=loci)
    width = asked.find_width(model.config.data.seq_len)
    lengths = work.genome.contigs
    places = [
        (one.chrom, min(one.start, lengths[one.chrom] - 1)) for one in islice(work.alleles(), 64)
    ]
    alone, many = (
        time_evaluations(reader, work.genome, model.alphabet, places, width, every)
        for every in (None, 2)
    )
    return alone, many
