"""Scores of variants, in memory and as a file: `genodiff score`, and what its `--plan` says.

The entries of the job are the scores of a record's ALTs, and then of each haplotype of several.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import Any

import polars as pl

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.file_kinds import sha256_file
from genodiff.io.progress import ProgressDisplay
from genodiff.io.variant_source import open_held_variants, open_variants
from genodiff.io.variants import VariantSurvey, explain_contradictions
from genodiff.jobs.job import Job, Rows
from genodiff.jobs.shards import Shard
from genodiff.models.opening import ModelHolder, open_language, refuse_fitted
from genodiff.runs.related_model import refit_model
from genodiff.runs.related_reader import RelatedReader
from genodiff.runs.relatives_plan import describe_waiting
from genodiff.runs.run_paths import locate, reads_network
from genodiff.runs.trained_model import TrainedModel, name_genomes, name_memory, name_relatives
from genodiff.scoring.allele_score import AlleleScore, Item
from genodiff.scoring.masked_reader import leave_relatives_out, open_reader
from genodiff.scoring.methods import SCORE_METHODS, find_method
from genodiff.scoring.plan_time import time_evaluations, time_related_sites, time_spans
from genodiff.scoring.related_sites import RelatedSites
from genodiff.scoring.variant_scores import open_score_loci, open_scorer
from genodiff.variants.background import (
    Background,
    BackgroundRequest,
    count_background,
    draw_background,
    find_kinds,
)
from genodiff.variants.consequences import Consequences, parse_codes
from genodiff.variants.haplotype_scores import find_span
from genodiff.variants.load import LoadTally
from genodiff.variants.output import import_pysam, make_frame, write_scores
from genodiff.variants.records import HELD, VariantRecords
from genodiff.variants.request import HeldScoreRequest, ScoreFields, ScoreRequest
from genodiff.variants.scored_variants import ScoreForm, ScoreTally, score_records
from genodiff.version import __version__


class VariantScorer:
    """What scores the variants of a request: a function of alleles, and what stands beside them."""

    def __init__(
        self,
        asked: ScoreFields,
        work: VariantRecords,
        model: TrainedModel,
        genes: Consequences | None,
    ) -> None:
        asked = asked.settle(related=model.relatives is not None)
        self.asked, self.work, self.model, self.genes = asked, work, model, genes
        self.context = asked.find_context(model.config.data.seq_len)
        self.loci = open_score_loci(model, work.genome, asked)
        self.joint: tuple[Counter[str], int] = Counter(), 0
        """The haplotypes of several variants by method, and about how many windows they take."""
        if asked.haplotypes:
            self.joint = work.ask_haplotypes(find_span(self.context), asked.method)

    def __call__(self, alleles: Iterable[Item]) -> Iterator[AlleleScore]:
        return self._scores(alleles)

    @cached_property
    def _scores(self) -> Callable[[Iterable[Item]], Iterator[AlleleScore]]:
        return open_scorer(self.model, self.work.genome, self.asked, self.loci)

    def request_background(self) -> BackgroundRequest | None:
        """What a background is asked for, and all that its scores depend on; None without one."""
        asked = self.asked
        if asked.places is None:
            return None
        settings = {
            "model": self.model.digest, "se": asked.se, "most": asked.max_evaluations,
            "exact": asked.exact, "context": self.context, **name_memory(self.loci),
        }  # fmt: skip
        return BackgroundRequest(asked.places, asked.seed, asked.method, settings)

    @cached_property
    def background(self) -> Background | None:
        """The random variants that scores are ranked among; drawn when they are first needed."""
        request, genome = self.request_background(), self.work.genome
        if request is None:
            return None
        kinds = find_kinds(self.work.alleles(), genome)
        with ProgressDisplay() as display:

            def tick(name: str, done: int, total: int) -> None:
                display.show(f"scored {done:,} of {total:,} random {name}", done, total)

            return draw_background(genome, genome.sha256, kinds, request, self, tick)

    def identify(self) -> dict[str, Any]:
        """What scores come from, as the header of a file says it."""
        asked, work = self.asked, self.work
        said = {
            "version": __version__, "model": self.model.digest, "genome": work.genome.sha256[:12],
            "method": asked.method, "se": f"{asked.se:g}",
            "max_evaluations": asked.max_evaluations, "seed": asked.seed, "unit": asked.unit,
            "context": asked.context or self.context, "longest": asked.longest,
            "exact": str(asked.exact).lower(),
            "background": asked.places, "haplotypes": work.span,
            "features": self.genes and self.genes.digest[:12],
            "memory": self.loci and self.loci.told["fingerprint"][:12],
            "relatives": name_genomes(self.model.relatives),
        }  # fmt: skip
        return {key: value for key, value in said.items() if value is not None}

    def make_form(self) -> ScoreForm:
        """How scores are shown."""
        drawn = self.background
        rank = None if drawn is None else drawn.rank
        genome, samples = self.work.genome, self.work.samples
        beside = rank, samples, self.genes, self.model.relatives is not None
        return ScoreForm(genome, self.asked.unit, self.identify(), *beside)


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
        request = score and score.request_background()
        request = request or BackgroundRequest(asked.places, asked.seed, asked.method, {})
        kinds = find_kinds(work.alleles(), work.genome)
        cost = count_background(work.genome, work.genome.sha256, kinds, request)
        total = sum(cost.windows.values())
        shared = find_method((1, 1), request.method).shares_windows
        single = cost.windows.get("snv", 0) if shared else 0
        told["background"] = {size.name: request.count(size) for size in kinds}
        told |= {"background_rare": cost.rare} if cost.rare else {}
        told["background_evaluations"] = total
        more = [more[0] + single, more[1] + total - single]
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
        told["device"] = score.model.device
        told |= describe_waiting(score.model.relatives, _time_to_prepare(score))
    return {
        "records": own.records,
        "alts": own.alleles,
        "kinds": dict(sorted(own.kinds.items())),
        "unscored": {reason.value: n for reason, n in sorted(own.reasons.items())},
        **told,
    }


def _time_to_prepare(score: VariantScorer) -> float:
    network = score.model.network if isinstance(score.model.network, RelatedReader) else None
    return find_method((1, 1), score.asked.method).time_to_prepare(network)


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


def time_windows(
    work: VariantRecords, score: VariantScorer, *, with_many: bool
) -> tuple[float, float]:
    """Seconds of a substitution's window, and of one `with_many` bases masked (else 0), at the
    file's own places.

    What relatives say of substitutions is timed as it is read: beside the network, not through it.
    """
    options, alleles = score.asked, list(islice(work.alleles(), 64))
    reader = open_reader(score.model, options.method, options.batch_size, score.loci)
    genome, alphabet, context = work.genome, score.model.alphabet, score.context
    places = [(one.chrom, min(one.start, genome.contigs[one.chrom] - 1)) for one in alleles]
    alone = many = 0.0
    method = find_method((1, 1), options.method)
    if method.takes_sites:
        of_sites = leave_relatives_out(reader)
        alone = time_evaluations(of_sites, genome, alphabet, places, context)
    if reader.related is not None:
        given = genome, alphabet, reader.related, context
        fits = _time_to_prepare(score) > 0  # a plan makes no fit
        sites = RelatedSites(*given, exact=options.exact, method=None if fits else method)
        alone += time_related_sites(sites, [one for one in alleles if one.kind == "snv"])
        if method.needs_relatives and with_many:
            spans = [one for one in alleles if one.kind != "snv" and not fits][:4]
            return alone, time_spans(reader, genome, alphabet, spans, options, context) or 2 * alone
    if with_many:
        many = time_evaluations(reader, genome, alphabet, places, context, 2)
    return alone, many


_log = logging.getLogger("genodiff")


def _open_work(
    asked: ScoreFields, stack: ExitStack, part: Shard | None = None, *, mismatches: bool = False
) -> VariantRecords:
    """The records that are asked for; with `mismatches` most may be at odds with the genome."""
    genome = stack.enter_context(Genome(asked.fasta))
    opener = open_variants if isinstance(asked.variants, str | Path) else open_held_variants
    source = stack.enter_context(opener(asked.variants))
    kept = stack.enter_context(SpooledTemporaryFile(HELD))  # noqa: SIM115
    work = VariantRecords(source, genome, asked.region, part, kept)
    if not mismatches:
        work.refuse_other_genome()
    if asked.haplotypes or getattr(asked, "load", None):
        work.list_samples()
    return work


def _open_features(asked: ScoreFields, genome: Genome) -> Consequences | None:
    if asked.features is None:
        return None
    return Consequences(asked.features, genome, parse_codes(asked.genetic_code, genome.contigs))


def score_held(asked: HeldScoreRequest, holder: ModelHolder) -> pl.DataFrame:
    """What `genodiff.Model.score_variants` gives."""
    asked = replace(asked, memory=asked.memory or holder.memory)  # type: ignore[arg-type]
    with ExitStack() as stack:
        work = _open_work(asked, stack)
        genes = _open_features(asked, work.genome)
        model = refit_model(refuse_fitted(holder.inner), work.genome)
        score = VariantScorer(asked, work, model, genes)
        form = score.make_form()
        own, joint = score_records(work.judged(), score), score(work.joint_alleles())
        return make_frame(work.join(own, joint, ScoreTally()), form)


class ScoreJob(Job[ScoreRequest]):
    """The file of `genodiff score`."""

    noun = "windows"
    _fault: DataError | None = None

    @property
    def needs_torch(self) -> bool:
        return reads_network(self.request.run)

    def open(self, stack: ExitStack) -> None:
        asked = self.request
        if str(asked.out).lower().endswith(".gz"):
            import_pysam(asked.out)
        self.work = _open_work(asked, stack, asked.part, mismatches=asked.allow_mismatches)
        self.hashes[str(asked.fasta)] = self.work.genome.sha256
        if str(asked.variants) == "-":
            self.hashes["-"] = sha256_file(self.work.source.path)
        self.ending = asked.find_form(self.work.source.format)
        self.genes = _open_features(asked, self.work.genome)
        self.score: VariantScorer | None = None
        if asked.plan and not asked.haplotypes and not locate(asked.run, there=False).exists():
            return  # without a run all but the time is counted
        model = open_language(
            asked.run, self.device, asked.relatives, strains=asked.strains, fasta=asked.fasta,
            plan=asked.plan,
        )  # fmt: skip
        self.score = VariantScorer(asked, self.work, model, self.genes)
        times = 1 + asked.double
        self.noun = "windows" if model.reads_network else "ALTs"
        sizes = self.work.survey.sizes.items()
        name = self.score.asked.method
        own = sum(n * find_method(size, name).windows(*size) for size, n in sizes)
        self.total = times * (own + self.score.joint[1])

    def plan(self) -> dict[str, Any]:
        asked = self.request.settle(related=bool(self.request.relatives))
        return describe_plan(asked, self.work, self.score)

    def identify(self) -> dict[str, Any]:
        assert self.score is not None
        return {"checkpoint": self.score.model.digest, **name_memory(self.score.loci)}

    def entries(self, first: int) -> Iterator[bytes]:
        assert self.score is not None
        records = islice(self.work.judged(), first, None)
        for scores in score_records(records, self.score):
            yield json.dumps(scores).encode()
        after = islice(self.work.joint_alleles(), max(0, first - len(self.work)), None)
        for one in self.score(after):
            yield json.dumps([one]).encode()

    def weigh(self, entry: bytes) -> int:
        return sum(map(self._weigh, _parse(entry)))

    def _weigh(self, score: AlleleScore) -> int:
        """The windows of a score; the fewest of its method if it stops at a standard error."""
        if score.method not in SCORE_METHODS or not SCORE_METHODS[score.method].until_se:
            return score.evaluations
        return (1 + self.request.double) * SCORE_METHODS[score.method]().windows(1, 1)

    def write(self, rows: Rows) -> dict[str, Any]:
        asked, work, score, tally = self.request, self.work, self.score, ScoreTally()
        assert score is not None
        own = map(_parse, islice(rows(), len(work)))
        joint = (one for entry in islice(rows(), len(work), None) for one in _parse(entry))
        scored, form = work.join(own, joint, tally), score.make_form()
        load = None if asked.load is None else LoadTally(work.list_samples(), self.genes)
        scored = scored if load is None else load.watch(scored)
        indexed = write_scores(asked.out, scored, self.ending, work.source.header, form)
        if load is not None and asked.load is not None:
            load.write(asked.load)
        self._fault = explain_contradictions(work.survey, work.source.shown, work.genome)
        drawn = score.background
        return {
            "format": self.ending[1:], "model": str(asked.run),
            "checkpoint": score.model.digest,
            "fasta": {"path": str(asked.fasta), "sha256": work.genome.sha256},
            "variants": self.name_file("variants"),
            "shard": None if asked.part is None else list(asked.part), "cut": list(work.cut),
            "request": self.name_request(whole=True), **tally.describe(),
            **work.describe_rest(),
            "background": drawn
            and {"n": asked.places, "seed": asked.seed, "classes": drawn.describe()},
            **({} if score.loci is None else {"memory": score.loci.told}),
            **name_relatives(score.model),
            **({} if self.genes is None else {"features": self.genes.describe_source()}),
            "indexed": indexed,
            **({} if load is None else {"load": load.describe()}),
        }  # fmt: skip

    def run(self) -> dict[str, Any]:
        """As every job. Raises `DataError` at its end for records that do not fit the genome."""
        told, out = super().run(), str(self.request.out)
        if self.request.plan:
            return told
        for line in self.work.survey.describe():
            _log.warning("%s: %s", self.work.source.shown, line)
        fault = self._fault
        if fault is not None and not self.request.allow_mismatches:
            if out != "-":
                fault.what += f"; {out} is whole, and they are marked in it"
            raise fault
        return told


def _parse(entry: bytes) -> tuple[AlleleScore, ...]:
    return tuple(AlleleScore(*one)._replace(flags=tuple(one[6])) for one in json.loads(entry))
