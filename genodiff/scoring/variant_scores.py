"""Scores of variants, streamed: how much likelier a model finds the alternative, in nats.

The methods are those of `methods`. A score is a function of the model, the seed and the window's
two spellings alone.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np

from genodiff.alphabet import Alphabet
from genodiff.errors import UsageError
from genodiff.io.file_kinds import sha256_json
from genodiff.io.variants import Allele, Unscorable
from genodiff.memory.memory import identify_memory
from genodiff.runs.related_reader import RelatedReader
from genodiff.runs.trained_model import TrainedModel
from genodiff.runs.training_memory import OwnLoci, Place, open_loci
from genodiff.scoring.allele_score import AlleleScore, Item
from genodiff.scoring.masked_reader import MaskedReader, leave_relatives_out, open_reader
from genodiff.scoring.methods import ScoreOptions, choose_method, find_method
from genodiff.scoring.methods.votes import Votes
from genodiff.scoring.related_sites import RelatedSites
from genodiff.scoring.shared_sites import (
    SiteScores,
    Spacing,
    keep_spacing,
    measure_spacing,
)
from genodiff.scoring.span_scores import Estimate, Steps
from genodiff.scoring.spelling_pair import Ids, SpellingPair
from genodiff.scoring.variant_windows import (
    Contigs,
    UnscorableError,
    check_alleles,
    cut_window,
)

MOVED = 0.1
"""A score moves with its context if it changes by this share of its size, or of 1 nat."""

_VOTES = Votes()  # that stand beside each score of a model with relatives
_HELD = 4096  # scores that are computed together: in all,
_SITES_HELD, _SPANS_HELD = 4096, 64  # of one window each (shared ones count once), and of more
_BYTES_HELD = 1 << 26  # of windows that are held at once
_WINDOWS = 128  # of one score, at most, at one time


class _ScoreJob(NamedTuple):
    """One score under way."""

    steps: Steps
    method: str
    contig: str
    start: int
    end: int
    light: bool  # one window or two, and no more


def start_score(
    reader: MaskedReader, pair: SpellingPair, options: ScoreOptions, place: Place | None = None
) -> Steps:
    """The score of one pair, by the method of `options`; the same of either strand."""
    method = find_method(pair.widths, options.method)
    return method.start(reader, pair.orient(reader.complement), options, place)


def score_alleles(
    model: TrainedModel,
    genome: Contigs,
    alleles: Iterable[Item],
    options: ScoreOptions | None = None,
    loci: OwnLoci | None = None,
) -> Iterator[AlleleScore]:
    """A score for each allele, or for each sequence of alleles of one haplotype, in their order.

    A variant that cannot be scored has its reason in place of a value. Memory does not grow with
    their number. `loci` is the memory, where it is open already. Raises `UsageError` for a model of
    text or one that reads from left to right.
    """
    yield from open_scorer(model, genome, options, loci)(alleles)


def open_scorer(
    model: TrainedModel,
    genome: Contigs,
    options: ScoreOptions | None = None,
    loci: OwnLoci | None = None,
) -> Callable[[Iterable[Item]], Iterator[AlleleScore]]:
    """`score_alleles` for alleles that come at several times: all that it opens is opened once."""
    related = isinstance(model.network, RelatedReader)
    options = (options or ScoreOptions()).settle(related=related)
    context = options.find_context(model.config.data.seq_len)
    loci = loci or open_score_loci(model, genome, options)
    reader = open_reader(model, options.method, options.batch_size, loci)
    spacing = None
    if not options.exact and find_method((1, 1), options.method).takes_sites:
        spacing = find_spacing(leave_relatives_out(reader), model, genome, context)

    def score(alleles: Iterable[Item]) -> Iterator[AlleleScore]:
        alleles = iter(alleles)
        first = next(alleles, None)
        if first is None:
            return
        alleles = chain([first], alleles)
        scorer = Scorer(reader, model.alphabet, genome, options, context, spacing)
        if not options.double:
            yield from scorer.score(alleles)
            return
        wider = Scorer(reader, model.alphabet, genome, options, 2 * context, None)
        while some := list(islice(alleles, _SPANS_HELD)):
            pairs = zip(scorer.score(some), wider.score(some), strict=True)
            yield from (compare_contexts(one, two) for one, two in pairs)

    return score


def open_score_loci(model: TrainedModel, genome: Contigs, options: ScoreOptions) -> OwnLoci | None:
    """The memory that scores of a genome are given; None without one. Raises as `open_loci`."""
    model.check_fills_dna()
    if not model.asks_memory(options.memory):
        return None
    context = options.find_context(model.config.data.seq_len)
    longest = context * (1 + options.double) + options.longest
    return open_loci(model, genome, options.memory, longest=longest)


_SPACINGS: dict[tuple[str, str, int, str], Spacing | None] = {}


def find_spacing(
    reader: MaskedReader, model: TrainedModel, genome: Contigs, context: int
) -> Spacing | None:
    """`measure_spacing`, once for a model, genome and context: a file's genome has a name."""
    memory = None if reader.loci is None else identify_memory(reader.loci.told)
    name = getattr(genome, "sha256", None)
    digest = model.digest.partition("~")[0] if memory is None else model.digest  # as there
    visible = {"visible": True} if reader.visible else {}
    known = (digest, name or str(id(genome)), context, sha256_json([memory, visible]))
    if known not in _SPACINGS:
        measure = partial(measure_spacing, reader, model.alphabet, genome, context)
        key = {"model": digest, "genome": name, "context": context, "memory": memory, **visible}
        _SPACINGS[known] = keep_spacing(key, measure) if name else measure()
    return _SPACINGS[known]


_Site = tuple[Allele, AlleleScore]
"""A substitution whose window other ones read too, and its score without the value."""
_Held = _ScoreJob | _Site | AlleleScore


class Scorer:
    """Scores alleles of a genome with one reader; `spacing` None gives each site its own window."""

    def __init__(
        self,
        reader: MaskedReader,
        alphabet: Alphabet,
        genome: Contigs,
        options: ScoreOptions,
        context: int,
        spacing: Spacing | None = None,
    ) -> None:
        self.reader, self.alphabet, self.genome = reader, alphabet, genome
        self.options, self.context, self.spacing = options, context, spacing
        self._sites: SiteScores | None = None
        self._related: RelatedSites | None = None
        self._of_bases = find_method((1, 1), options.method)
        if reader.related is not None:
            given = genome, alphabet, reader.related, context
            self._related = RelatedSites(*given, exact=options.exact, method=self._of_bases)
        elif self._of_bases.needs_relatives:
            what = f"--method {options.method} needs related genomes"
            raise UsageError(what, fix="give --relatives, FASTA files or a list of genomes")
        if self._of_bases.takes_sites:
            apart = None if spacing is None else spacing.bases
            self._of_sites = leave_relatives_out(reader)
            self._sites = SiteScores(genome, alphabet, self._of_sites, context, apart)
        both = self._sites, self._related
        self._readers = [one for one in both if one is not None]

    def score(self, alleles: Iterable[Item]) -> Iterator[AlleleScore]:
        """A score for each, in their order."""
        most_windows = max(1, min(_SITES_HELD, _BYTES_HELD // self.context))
        most_spans = max(1, min(_SPANS_HELD, _BYTES_HELD // (_WINDOWS * self.context)))
        held: list[_Held] = []
        spans, sites = 0, 0
        for one in alleles:
            held.append(self._start([one] if isinstance(one, Allele) else list(one)))
            if isinstance(held[-1], _ScoreJob):
                spans, sites = spans + (not held[-1].light), sites + held[-1].light
            windows = sites + sum(len(one) for one in self._readers)
            if spans == most_spans or windows >= most_windows or len(held) == _HELD:
                yield from self._finish(held)
                held, spans, sites = [], 0, 0
        yield from self._finish(held)

    def _start(self, alleles: list[Allele]) -> "_Held":
        try:
            if not alleles:
                raise UnscorableError("no_alt", "no allele", "give one at least")
            if self._of_bases.shares_windows and len(alleles) == 1 and alleles[0].kind == "snv":
                return self._start_site(alleles[0])
            cut = cut_window(
                self.genome, self.alphabet, alleles, self.context, self.options.longest
            )
            if np.array_equal(cut.pair.ref, cut.pair.alt):
                raise UnscorableError("alt_is_ref", "both spellings are the same", "leave it out")
            place = cut.contig, cut.start, cut.end
            steps = start_score(self.reader, cut.pair, self.options, place)
        except UnscorableError as fault:
            none = AlleleScore.without(Unscorable.FAILED.value, fault.reason)
            return none._replace(method=self.options.method)
        widths, asked = cut.pair.widths, self.options.method
        light = find_method(widths, asked).windows(*widths) <= 2
        return _ScoreJob(steps, choose_method(widths, asked), *place, light)

    def _start_site(self, allele: Allele) -> _Site:
        check_alleles(self.genome, [allele])
        if allele.ref == allele.alt:
            raise UnscorableError("alt_is_ref", "both spellings are the same", "leave it out")
        method = choose_method((1, 1), self.options.method)
        places = [one.prepare(allele) for one in self._readers]
        return allele, AlleleScore(None, 0.0, method, *places[0], 1)

    def _score_site(self, allele: Allele, score: AlleleScore) -> AlleleScore:
        if self._related is not None:
            found = self._related.judge(allele)
            odds, rs = (None, None) if found is None else found
            votes = self._related.count(allele, _VOTES)
            score = score._replace(votes=votes, ancestral=odds, rs=rs)
        if self._sites is None:
            assert self._related is not None
            value = self._related.count(allele, self._of_bases)
        else:
            value = self._sites.score(allele)
            if self._related is not None and self._of_sites is not self.reader:
                value += self._related.compare(allele)
        return score._replace(value=value)

    def _finish(self, held: list["_Held"]) -> Iterator[AlleleScore]:
        for sites in self._readers:
            sites.read()
        jobs = [one for one in held if isinstance(one, _ScoreJob)]
        places = [(one.contig, one.start, one.end) for one in jobs]
        estimates = run_together([one.steps for one in jobs], self.reader, places)
        for one in held:
            if isinstance(one, AlleleScore):
                yield one
            elif isinstance(one, _ScoreJob):
                found = next(estimates)
                flags = tuple(filter(None, found.note.split("; ")))
                window = one.method, one.start, one.end, found.windows
                failed = AlleleScore(None, None, *window, (Unscorable.FAILED.value, *flags))
                score = AlleleScore(found.value, found.se, *window, flags)
                yield failed if math.isnan(found.value) else score
            else:
                yield self._score_site(*one)
        for sites in self._readers:
            sites.clear()


def run_together(
    jobs: Sequence[Steps], reader: MaskedReader, places: Sequence[Place] | None = None
) -> Iterator[Estimate]:
    """The estimates of all `jobs`, in their order; what they ask for is read together.

    `places` say where the windows of each job are from, for a memory.
    """
    found: dict[int, Estimate] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(jobs)))  # None begins a generator
    while answers:
        asked: dict[int, list[Ids]] = {}
        for number, answer in answers.items():
            try:
                asked[number] = jobs[number].send(answer)
            except StopIteration as end:
                found[number] = end.value
        windows = [window for some in asked.values() for window in some]
        own = None
        if places is not None:
            own = [places[number] for number, some in asked.items() for _ in some]
        logs = iter(reader.read(windows, own))
        answers = {number: [next(logs) for _ in some] for number, some in asked.items()}
    yield from (found[number] for number in range(len(jobs)))


def compare_contexts(one: AlleleScore, two: AlleleScore) -> AlleleScore:
    """`one`, with a flag if the score moves from the context to its double."""
    if one.value is None or two.value is None:
        return one
    scale = max(1.0, abs(one.value), abs(two.value))
    noise = 2 * math.hypot(one.se or 0.0, two.se or 0.0)
    moved = abs(two.value - one.value) > max(MOVED * scale, noise)
    flags = (*one.flags, *(["moves_with_context"] if moved else []))
    both = one.evaluations + two.evaluations
    return one._replace(flags=flags, doubled=two.value, evaluations=both)
