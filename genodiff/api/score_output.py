"""What `genodiff.score` does step by step: scores, random variants, the file, or the plan alone."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from genodiff.api.map_output import name_memory
from genodiff.io.target import is_stream

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from genodiff.io.variants import Allele
    from genodiff.runs.model import TrainedModel
    from genodiff.runs.own_loci import OwnLoci
    from genodiff.scoring.background import Background
    from genodiff.scoring.scored_variants import ScoreFound
    from genodiff.scoring.variant_run import VariantRun
    from genodiff.scoring.variant_scores import ScoreOptions

    Ask = Callable[[Iterable[Allele | Sequence[Allele]]], Iterator[ScoreFound]]

_log = logging.getLogger("genodiff")
_SHOWN_EVERY = 0.2  # seconds


def fill_journal(work: VariantRun, journal: Any, ask: Ask) -> None:
    """Score what the journal does not hold yet."""
    from genodiff.io.progress import ProgressDisplay, format_duration

    total = len(work) + work.joint
    things = "records and haplotypes" if work.joint else "records"
    first: list[tuple[int, float]] = []  # the network is read and tried before the first record

    with ProgressDisplay() as display:
        shown = 0.0

        def tick(done: int) -> None:
            nonlocal shown
            now = time.monotonic()
            if now - shown < _SHOWN_EVERY and done < total:
                return
            shown = now
            text = f"scored {done:,} of {total:,} {things}"
            if first and now > first[0][1]:
                pace = (done - first[0][0]) / (now - first[0][1])
                text += f" · {pace:,.1f}/s · {format_duration((total - done) / pace)} to go"
            if not first:
                first.append((done, now))
            display.show(text, done, total)

        if journal.kept < total:
            work.fill(journal, ask, tick)


def write_output(
    work: VariantRun, journal: Any, target: str, form: Any
) -> tuple[dict[str, Any] | None, bool]:
    """What a sidecar says of the file, None of a stream, and whether it has an index."""
    from genodiff.scoring.variant_output import (
        SortedWatch,
        format_lines,
        scan_frame,
        write_frame,
        write_index,
        write_lines,
    )

    if form.ending == ".parquet":
        rows = work.scored(journal)
        frame = scan_frame(rows, work.genome, form.unit, form.find_rank, form.samples)
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
    from genodiff.scoring.background import BackgroundRequest, draw_background, find_kinds

    settings = {
        "model": model.digest, "se": options.se, "most": options.most, "exact": options.exact,
        "context": options.context or model.config.data.seq_len,
        **name_memory(loci),
    }  # fmt: skip
    request = BackgroundRequest(places, options.seed, options.method, settings)
    kinds = find_kinds(work.alleles(), work.genome)
    with ProgressDisplay() as display:

        def tick(name: str, done: int, total: int) -> None:
            display.show(f"scored {done:,} of {total:,} random {name}", done, total)

        return draw_background(work.genome, work.genome.sha256, kinds, request, ask, tick)


def describe_plan(
    work: VariantRun,
    target: str,
    method: str,
    places: int | None,
    joint: tuple[Counter[str], int] | None = None,
) -> dict[str, Any]:
    """What would be scored: counts, and the random variants of a background.

    `joint` are the haplotypes of several variants by method, and about how many windows they take.
    """
    own = work.own_survey
    drawn: dict[str, Any] = {}
    if joint is not None:
        drawn["haplotypes"] = dict(sorted(joint[0].items()))
        drawn["haplotype_evaluations"] = joint[1]
    if places is not None:
        from genodiff.scoring.background import BackgroundRequest, find_classes

        request = BackgroundRequest(places, 0, method, {})
        classes = find_classes(own.sizes)
        drawn["background"] = {size.name: request.count(size) for size in classes}
        drawn["background_evaluations"] = sum(request.cost(size) for size in classes)
    return {
        "records": own.records,
        "alts": own.alleles,
        "kinds": dict(sorted(own.kinds.items())),
        "unscored": {reason.value: n for reason, n in sorted(own.reasons.items())},
        **drawn,
        "files": [target] if is_stream(target) else [target, f"{target}.json"],
    }
