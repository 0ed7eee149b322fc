"""Scores of variants, in memory and as a file: `genodiff score`.

The entries of the job are the scores of a record's ALTs, and then of each haplotype of several.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from genodiff.errors import DataError
from genodiff.io.faidx import Genome
from genodiff.io.identity import sha256_file
from genodiff.io.variant_source import open_held_variants, open_variants
from genodiff.io.variants import explain_contradictions
from genodiff.jobs.job import Job, Rows
from genodiff.jobs.request import find_named
from genodiff.jobs.shards import Shard
from genodiff.models.opening import ModelHolder, open_language, refuse_fitted
from genodiff.runs.model import name_relatives
from genodiff.runs.run_paths import locate
from genodiff.runs.training_memory import name_memory
from genodiff.scoring.allele_score import AlleleScore
from genodiff.scoring.methods import SCORE_METHODS, find_method
from genodiff.variants.consequences import Consequences, parse_codes
from genodiff.variants.output import import_pysam, make_frame, write_scores
from genodiff.variants.plan import describe_plan
from genodiff.variants.records import VariantRecords, open_records
from genodiff.variants.request import HeldScoreRequest, ScoreFields, ScoreRequest
from genodiff.variants.scored_variants import ScoreTally, score_records
from genodiff.variants.scorer import VariantScorer

_DRAW_PAGE = "genodiff.reports.variant_report:report_variants"
_log = logging.getLogger("genodiff")
_TOLD = ("method", "se", "max_evaluations", "exact", "seed")


def _open_work(
    asked: ScoreFields, stack: ExitStack, part: Shard | None = None, *, mismatches: bool = False
) -> VariantRecords:
    """The records that are asked for; with `mismatches` most may be at odds with the genome."""
    genome = stack.enter_context(Genome(asked.fasta))
    opener = open_variants if isinstance(asked.variants, str | Path) else open_held_variants
    source = stack.enter_context(opener(asked.variants))
    work = stack.enter_context(open_records(source, genome, asked.region, part))
    if not mismatches:
        work.refuse_other_genome()
    if asked.haplotypes:
        work.require_samples()
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
        score = VariantScorer(asked, work, refuse_fitted(holder.inner), genes)
        form = score.make_form()
        own, joint = score_records(work.judged(), score), score(work.joint_alleles())
        return make_frame(work.join(own, joint, ScoreTally()), form)


class ScoreJob(Job[ScoreRequest]):
    """The file of `genodiff score`."""

    noun = "windows"
    _fault: DataError | None = None

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
        # Those that go on until a standard error count by the least that they take
        times = 1 + asked.double
        self._least = {
            name: times * method().windows(1, 1)
            for name, method in SCORE_METHODS.items()
            if method.until_se
        }
        sizes = self.work.survey.sizes.items()
        own = sum(n * find_method(size, asked.method).windows(*size) for size, n in sizes)
        self.total = times * (own + self.score.joint[1])

    def plan(self) -> dict[str, Any]:
        return describe_plan(self.request, self.work, self.score)

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
        return sum(self._least.get(one.method, one.evaluations) for one in _parse(entry))

    def write(self, rows: Rows) -> dict[str, Any]:
        asked, work, score, tally = self.request, self.work, self.score, ScoreTally()
        assert score is not None
        own = map(_parse, islice(rows(), len(work)))
        joint = (one for entry in islice(rows(), len(work), None) for one in _parse(entry))
        scored, form = work.join(own, joint, tally), score.make_form()
        indexed = write_scores(asked.out, scored, self.ending, work.source.header, form)
        self._fault = explain_contradictions(work.survey, work.source.shown, work.genome)
        drawn = score.background
        return {
            "format": self.ending[1:], "unit": asked.unit, "model": str(asked.run),
            "checkpoint": score.model.digest,
            "fasta": {"path": str(asked.fasta), "sha256": work.genome.sha256},
            "variants": self.name_file("variants"),
            **{name: getattr(asked, name) for name in _TOLD},
            "context": asked.context, "longest": asked.longest, "region": list(asked.region),
            "shard": None if asked.part is None else list(asked.part), "cut": list(work.cut),
            "request": self.name_request(whole=True), **tally.describe(),
            "background": drawn
            and {"n": asked.places, "seed": asked.seed, "classes": drawn.describe()},
            **({} if score.loci is None else {"memory": score.loci.told}),
            **name_relatives(score.model),
            **({} if self.genes is None else {"features": self.genes.describe_source()}),
            "indexed": indexed,
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
        if self.request.page:
            draw, asked = find_named(_DRAW_PAGE), self.request
            assert self.score is not None
            opened = self.score.model
            draw(asked.out, model=asked.run, opened=opened, fasta=asked.fasta, force=True)
        return told


def _parse(entry: bytes) -> tuple[AlleleScore, ...]:
    return tuple(AlleleScore(*one)._replace(flags=tuple(one[6])) for one in json.loads(entry))
