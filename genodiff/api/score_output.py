"""What `genodiff.score` does step by step: scores, random variants, and the file."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from genodiff.io.target import is_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from genodiff.io.variants import Allele
    from genodiff.runs.model import TrainedModel
    from genodiff.runs.own_loci import OwnLoci
    from genodiff.scoring.variant_scores import ScoreOptions
    from genodiff.variants.background import Background, BackgroundRequest
    from genodiff.variants.records import VariantRun
    from genodiff.variants.scored_variants import AltScore, ScoreFound

    Ask = Callable[[Iterable[Allele | Sequence[Allele]]], Iterator[ScoreFound]]

_log = logging.getLogger("genodiff")
_SHOWN_EVERY = 0.2  # seconds


class ScorePace:
    """How long the rest takes, by the windows of the scores: an indel takes a hundred times those
    of an SNV.

    `expected` is about how many windows all scores take, nelbo counted by the least, on each of
    `contexts` (1 or 2). `kept` are the scores that were there before.
    """

    def __init__(
        self, expected: int, contexts: int, kept: Iterable[tuple[AltScore, ...]], began: float
    ) -> None:
        from genodiff.scoring.methods import SCORE_METHODS

        self._began = began
        self._least = {
            name: contexts * method().windows(1, 1)
            for name, method in SCORE_METHODS.items()
            if method.until_se
        }
        self._left = float(expected * contexts - sum(map(self._weigh, kept)))
        self._done = 0

    def add(self, scores: tuple[AltScore, ...]) -> None:
        """Count the scores of one record."""
        weight = self._weigh(scores)
        self._done, self._left = self._done + weight, self._left - weight

    def left(self, now: float) -> float | None:
        """Seconds to go; None before the first score."""
        if not self._done:
            return None
        return max(0.0, self._left) * (now - self._began) / self._done

    def _weigh(self, scores: tuple[AltScore, ...]) -> int:
        return sum(self._least.get(one.method, one.evaluations) for one in scores)


def fill_journal(work: VariantRun, journal: Any, ask: Ask, options: ScoreOptions) -> None:
    """Score what the journal does not hold yet."""
    from genodiff.io.progress import ProgressDisplay, format_duration
    from genodiff.scoring.methods import find_method

    total = len(work) + work.joint
    things = "records and haplotypes" if work.joint else "records"
    expected = work.joint_windows + sum(
        n * find_method(widths, options.method).windows(*widths)
        for widths, n in work.own_survey.sizes.items()
    )
    pace = ScorePace(expected, 1 + options.double, journal.scores(), time.monotonic())

    with ProgressDisplay() as display:
        shown = 0.0

        def tick(done: int, scores: tuple[AltScore, ...]) -> None:
            nonlocal shown
            pace.add(scores)
            now = time.monotonic()
            if now - shown < _SHOWN_EVERY and done < total:
                return
            shown = now
            text = f"scored {done:,} of {total:,} {things}"
            left = pace.left(now)
            if left is not None:
                text += f" · {format_duration(left)} to go"
            display.show(text, done, total)

        if journal.kept < total:
            work.fill(journal, ask, tick)


def write_output(
    work: VariantRun, journal: Any, target: str, form: Any
) -> tuple[dict[str, Any] | None, bool]:
    """What a sidecar says of the file, None of a stream, and whether it has an index."""
    from genodiff.variants.output import (
        SortedWatch,
        format_lines,
        scan_frame,
        write_frame,
        write_index,
        write_lines,
    )

    if form.ending == ".parquet":
        rows = work.scored(journal)
        frame = scan_frame(rows, work.genome, *form[1:2], *form[3:])
        return write_frame(target, frame), False
    watch = SortedWatch()
    scored = watch.watch(work.scored(journal))
    lines = format_lines(scored, work.source.header, work.genome, form)
    file = write_lines(target, lines, form.ending)
    if file is None or not form.ending.endswith(".gz"):
        return None if is_stream(target) else file, False
    if not watch.sorted:
        _log.warning("%s: no index, since the records are not sorted", target)
        return file, False
    write_index(target, max(work.genome.contigs.values()))
    return file, True


def prepare_background(
    work: VariantRun,
    model: TrainedModel,
    options: ScoreOptions,
    places: int,
    ask: Ask,
    loci: OwnLoci | None,
) -> Background:
    """The random variants that the records of `work` are compared with."""
    from genodiff.io.progress import ProgressDisplay
    from genodiff.variants.background import draw_background, find_kinds

    request = request_background(model, options, places, loci)
    kinds = find_kinds(work.alleles(), work.genome)
    with ProgressDisplay() as display:

        def tick(name: str, done: int, total: int) -> None:
            display.show(f"scored {done:,} of {total:,} random {name}", done, total)

        return draw_background(work.genome, work.genome.sha256, kinds, request, ask, tick)


def request_background(
    model: TrainedModel, options: ScoreOptions, places: int, loci: OwnLoci | None
) -> BackgroundRequest:
    """What a background is asked for, and all that its scores depend on."""
    from genodiff.runs.own_loci import name_memory
    from genodiff.variants.background import BackgroundRequest

    settings = {
        "model": model.digest, "se": options.se, "most": options.most, "exact": options.exact,
        "context": options.context or model.config.data.seq_len,
        **name_memory(loci),
    }  # fmt: skip
    return BackgroundRequest(places, options.seed, options.method, settings)
