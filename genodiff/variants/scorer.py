"""What scores the variants of a request, and what stands beside their scores."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Any

from genodiff.io.progress import ProgressDisplay
from genodiff.runs.model import TrainedModel, name_genomes
from genodiff.runs.training_memory import name_memory
from genodiff.scoring.allele_score import AlleleScore, Item
from genodiff.scoring.variant_scores import open_score_loci, open_scorer
from genodiff.variants.background import (
    Background,
    BackgroundRequest,
    draw_background,
    find_kinds,
)
from genodiff.variants.consequences import Consequences
from genodiff.variants.haplotype_scores import find_span
from genodiff.variants.records import VariantRecords
from genodiff.variants.request import ScoreFields
from genodiff.variants.scored_variants import ScoreForm
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
