"""What `genodiff score --plan` says: counts, evaluations of the network, and the time they take."""

from itertools import islice
from typing import Any

from genodiff.io.variants import VariantSurvey
from genodiff.runs.related_model import RelatedBackbone
from genodiff.runs.relatives_plan import describe_waiting
from genodiff.scoring.masked_reader import leave_relatives_out, open_reader
from genodiff.scoring.methods import find_method
from genodiff.scoring.plan_time import time_evaluations, time_related_sites
from genodiff.scoring.related_sites import RelatedSites
from genodiff.variants.background import BackgroundRequest, count_background, find_kinds
from genodiff.variants.records import VariantRecords
from genodiff.variants.request import ScoreFields
from genodiff.variants.scorer import VariantScorer

Windows = tuple[int, int]
"""Windows with one base masked, and with many."""


def describe_plan(
    asked: ScoreFields, work: VariantRecords, score: VariantScorer | None
) -> dict[str, Any]:
    """What would be scored: counts, evaluations and seconds.

    `evaluations` counts nelbo by the least that it takes, `evaluations_at_most` by the most. SNVs
    that share windows take fewer. Without a model the time is not known: `seconds` is None.
    """
    own = work.survey
    least, most = (count_windows(own, asked.method, n) for n in (None, asked.max_evaluations))
    twice = 1 + asked.double
    told: dict[str, Any] = {"evaluations": twice * sum(least)}
    if most != least:
        told["evaluations_at_most"] = twice * sum(most)
    more = [0, 0]
    if score is not None and asked.haplotypes:
        told["haplotypes"] = dict(sorted(score.joint[0].items()))
        told["haplotype_evaluations"] = more[1] = score.joint[1]
    if asked.places is not None:
        request = BackgroundRequest(asked.places, asked.seed, asked.method, {})
        found, cost = _describe_background(work, (score and score.request_background()) or request)
        told |= found
        more = [one + two for one, two in zip(more, cost, strict=True)]
    told |= {"seconds": None}
    if score is not None:
        alone, many = time_windows(work, score, with_many=most[1] + more[1] > 0)
        longer = 3 if twice == 2 else 1  # the second window is twice as long
        first, last = (
            longer * (n * alone + m * many) + more[0] * alone + more[1] * many
            for n, m in (least, most)
        )
        told["seconds"] = round(first, 1)
        if most != least:
            told["seconds_at_most"] = round(last, 1)
        told["device"] = str(next(score.model.backbone.parameters()).device)
        told |= describe_waiting(score.model.relatives)
    return {
        "records": own.records,
        "alts": own.alleles,
        "kinds": dict(sorted(own.kinds.items())),
        "unscored": {reason.value: n for reason, n in sorted(own.reasons.items())},
        **told,
    }


def count_windows(survey: VariantSurvey, name: str, most: int | None) -> Windows:
    """The windows that variants take: the least, or where `most` ends a score the most."""
    single = many = 0
    for widths, n in survey.sizes.items():
        method = find_method(widths, name)
        if widths == (1, 1) and method.shares_windows:
            single = survey.sites
        elif most is not None and method.until_se:
            many += n * most
        else:
            many += n * method.windows(*widths)
    return single, many


def _describe_background(
    work: VariantRecords, request: BackgroundRequest
) -> tuple[dict[str, Any], Windows]:
    """What is said of the random variants, and the windows that they still take."""
    kinds = find_kinds(work.alleles(), work.genome)
    cost = count_background(work.genome, work.genome.sha256, kinds, request)
    shared = find_method((1, 1), request.method).shares_windows
    single = cost.windows.get("snv", 0) if shared else 0
    total = sum(cost.windows.values())
    told: dict[str, Any] = {"background": {size.name: request.count(size) for size in kinds}}
    if cost.rare:
        told["background_rare"] = cost.rare
    return {**told, "background_evaluations": total}, (single, total - single)


def time_windows(
    work: VariantRecords, score: VariantScorer, *, with_many: bool
) -> tuple[float, float]:
    """Seconds of a substitution's window, and of one `with_many` bases masked (else 0), at the
    file's own places.

    What relatives say of substitutions is timed as it is read: beside the network, not through it.
    """
    options, alleles = score.asked, list(islice(work.alleles(), 64))
    reader = open_reader(score.model, batch_size=options.batch_size, loci=score.loci)
    genome, alphabet, context = work.genome, score.model.alphabet, score.context
    places = [(one.chrom, min(one.start, genome.contigs[one.chrom] - 1)) for one in alleles]
    alone = many = 0.0
    method = find_method((1, 1), options.method)
    if method.takes_sites:
        of_sites = leave_relatives_out(reader)
        alone = time_evaluations(of_sites, genome, alphabet, places, context)
    if isinstance(reader.denoiser, RelatedBackbone):
        given = genome, alphabet, reader.denoiser, context
        sites = RelatedSites(*given, exact=options.exact, change=method.needs_change)
        alone += time_related_sites(sites, [one for one in alleles if one.kind == "snv"])
    if with_many:
        many = time_evaluations(reader, genome, alphabet, places, context, 2)
    return alone, many
