"""Scores of variants: `genodiff.score` writes a file, `genodiff.score_variants` gives a frame."""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.api.score_output import (
    fill_journal,
    prepare_background,
    write_output,
)
from genodiff.api.score_plan import describe_plan
from genodiff.api.score_settings import ScoreSettings, Unit
from genodiff.errors import DataError, UsageError
from genodiff.io.target import check_target, is_own_file, is_stream
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.scoring.methods import AUTO
from genodiff.scoring.methods import describe_methods as describe_methods
from genodiff.scoring.methods.nelbo import MAX_EVALUATIONS, STANDARD_ERROR
from genodiff.version import __version__

if TYPE_CHECKING:
    import polars as pl

    from genodiff.io.faidx import Genome
    from genodiff.io.variants import Allele
    from genodiff.runs.model import TrainedModel
    from genodiff.runs.own_loci import OwnLoci
    from genodiff.scoring.variant_scores import ScoreOptions
    from genodiff.variants.consequences import Consequences
    from genodiff.variants.records import VariantRun
    from genodiff.variants.scored_variants import ScoreFound

    Variants = Allele | Sequence[Allele]

_log = logging.getLogger("genodiff")
_AFTER_SCORES = ("unit", "background", "features")
"""Parts of a request that change what is written and no score."""


@own_defaults()
def score(
    run: str | Path,
    variants: str | Path,
    *,
    fasta: str | Path,
    out: str | Path,
    method: str = AUTO,
    se: float = STANDARD_ERROR,
    max_evaluations: int = MAX_EVALUATIONS,
    context: int | Literal["2x"] | None = None,
    exact: bool = False,
    unit: Unit = "nats",
    batch_size: int | None = None,
    region: Sequence[str] = (),
    shard: str | None = None,
    allow_mismatches: bool = False,
    background: int | str = "off",
    haplotypes: bool = False,
    features: str | Path | None = None,
    genetic_code: Sequence[str] = (),
    memory: str | None = None,
    relatives: Sequence[str | Path] = (),
    strains: bool = False,
    seed: int = 1,
    device: str = "auto",
    json: bool = False,
    plan: bool = False,
    fresh: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write the scores of a file of variants to `out`; what its sidecar says.

    `variants` is VCF, BCF or a table (CSV, TSV, parquet) with chrom, pos (from 1), ref and alt; "-"
    is stdin. `fasta` is the genome that they are of. `out` ends in .vcf, .tsv, .parquet or .jsonl,
    or in .vcf.gz or .tsv.gz, which get an index where the records are sorted; "-" is stdout, as
    JSON lines with `json`. Records stay in their order, and none is dropped: an ALT without a score
    has its reason.

    The other settings are those of `genodiff.Model.score_variants`. With `shard`, "i/n", the i-th
    of n parts of the records is written, and `genodiff.merge` puts the parts together. Scores are
    kept in OUT.partial until `out` is there, and the same call goes on after them; `fresh` starts
    anew. With `plan` nothing is computed, and counts are returned. `background`, a number of random
    variants or "on", ranks each score among those of random variants of the genome, which are kept
    in the cache folder. `haplotypes` scores the phased variants of one copy (GT, PS) together too.
    `features`, an annotation (GFF3, GTF, BED12, GenBank), puts the consequence of each ALT beside
    its score; `genetic_code` (chrM=2) says the code of a contig where the annotation does not.

    A file most of whose records do not fit the genome is refused. Where some do not, `out` is
    written whole, they are marked in it, and `DataError` is raised at the end, unless
    `allow_mismatches`. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.
    """
    if not isinstance(variants, str | Path):
        what = f"a {type(variants).__name__} is no file of variants"
        raise UsageError(what, fix="give its path; score_variants takes variants in memory")
    asked = ScoreSettings(
        method, se, max_evaluations, context, exact, unit, batch_size, seed, memory
    )
    target = str(out)
    journal_path = Path(f"{target}.partial")
    from genodiff.io.faidx import Genome
    from genodiff.io.variant_source import open_variants
    from genodiff.jobs.shards import parse_shard
    from genodiff.variants.background import parse_background
    from genodiff.variants.output import find_output_form, index_name
    from genodiff.variants.records import VariantRun
    from genodiff.variants.variant_journal import VariantJournal

    places = parse_background(background)
    part = None if shard is None else parse_shard(shard)
    inputs = (variants, fasta, *([] if features is None else [features]))

    def ours(_: Path) -> bool:
        return VariantJournal.read_request(journal_path) is not None or is_own_file(target)

    check_target(target, force=force, inputs=inputs, known=ours)
    if not is_stream(target):
        check_target(f"{target}.json", force=force, inputs=inputs)
        index = index_name(target, 0)
        if index is not None:
            check_target(index, force=force, inputs=inputs, known=ours)
    find_output_form(target, "table")
    device = choose_device(device)
    with ExitStack() as stack:
        genome = stack.enter_context(Genome(fasta))
        source = stack.enter_context(open_variants(variants))
        work = VariantRun(source, genome, region, part)
        if not allow_mismatches:
            work.refuse_other_genome()
        if haplotypes:
            work.require_samples()
        genes = _open_features(features, genome, genetic_code)
        from genodiff.models.opening import open_language

        if plan:
            joint = None
            there = haplotypes or Path(run).exists()  # without a run all but the time is counted
            trained = None
            if there:
                trained = open_language(run, device, relatives, strains=strains)
            if haplotypes and trained is not None:  # how far they reach follows from the window
                joint = _ask_haplotypes(work, trained, asked)
            return describe_plan(work, target, asked, places, joint, trained)
        model = open_language(run, device, relatives, strains=strains)
        told = _write(
            model, work, target, asked, device=device, json=json, fresh=fresh, force=force,
            region=region, run=run, fasta=fasta, variants=variants, places=places,
            haplotypes=haplotypes, genes=genes,
        )  # fmt: skip
        from genodiff.io.variant_check import explain_contradictions

        own = work.own_survey
        for line in own.describe():
            _log.warning("%s: %s", source.shown, line)
        fault = explain_contradictions(own, source.shown, genome)
    if fault is not None and not allow_mismatches:
        where = "" if target == "-" else f"; {target} is whole, and they are marked in it"
        raise DataError(
            fault.what + where, file=fault.file, line=fault.line, record=fault.record, fix=fault.fix
        )
    return told


def score_variants(
    run: str | Path, variants: Any, *, fasta: str | Path, device: str = "auto", **options: Any
) -> pl.DataFrame:
    """A row for each ALT of a file or table of variants, with its score, as a polars frame.

    It is `genodiff.load(run).score_variants(variants, fasta=fasta, ...)`.
    """
    from genodiff.api.load import load

    found: pl.DataFrame = load(run, device=device).score_variants(variants, fasta=fasta, **options)
    return found


def make_score_frame(
    model: TrainedModel,
    variants: Any,
    *,
    fasta: str | Path,
    asked: ScoreSettings,
    region: Sequence[str],
    background: int | str = "off",
    haplotypes: bool = False,
    features: str | Path | None = None,
    genetic_code: Sequence[str] = (),
) -> pl.DataFrame:
    """What `genodiff.Model.score_variants` gives."""
    from genodiff.io.faidx import Genome
    from genodiff.io.variant_source import open_held_variants, open_variants
    from genodiff.scoring.variant_scores import open_score_loci
    from genodiff.variants.background import parse_background
    from genodiff.variants.output import make_frame
    from genodiff.variants.records import VariantRun
    from genodiff.variants.scored_variants import AltScore, score_records

    options = asked.options()
    places = parse_background(background)
    opener = open_variants if isinstance(variants, str | Path) else open_held_variants
    with Genome(fasta) as genome, opener(variants) as source:
        work = VariantRun(source, genome, region, None)
        work.refuse_other_genome()
        if haplotypes:
            _ask_haplotypes(work, model, asked)
        genes = _open_features(features, genome, genetic_code)

        loci = open_score_loci(model, genome, options)

        def ask(alleles: Iterable[Variants]) -> Iterator[ScoreFound]:
            return _score_alleles(model, genome, alleles, options, loci)

        drawn = None
        if places is not None:
            drawn = prepare_background(work, model, options, places, ask, loci)
        own = score_records(work.records(), genome, ask)
        joint = (AltScore.of(one) for one in ask(work.joint_alleles()))
        rows = work.join_scores(own, joint)
        rank = drawn.rank if drawn else None
        return make_frame(rows, genome, asked.unit, rank, work.samples, genes)


def _open_features(
    features: str | Path | None, genome: Genome, codes: Sequence[str]
) -> Consequences | None:
    from genodiff.variants.consequences import Consequences, parse_codes

    if features is None and codes:
        raise UsageError("--genetic-code without --features", fix="give an annotation")
    if features is None:
        return None
    return Consequences(features, genome, parse_codes(codes, genome.contigs))


def _ask_haplotypes(
    work: VariantRun, model: TrainedModel, asked: ScoreSettings
) -> tuple[Counter[str], int]:
    from genodiff.variants.haplotype_scores import find_span

    width = asked.find_width(model.config.data.seq_len)
    return work.ask_haplotypes(find_span(width), asked.method)


def _score_alleles(
    model: TrainedModel,
    genome: Genome,
    alleles: Iterable[Variants],
    options: ScoreOptions,
    loci: OwnLoci | None,
) -> Iterator[ScoreFound]:
    from genodiff.scoring.variant_scores import score_alleles

    return score_alleles(model, genome, alleles, options, loci)


def _write(
    trained: TrainedModel,
    work: VariantRun,
    target: str,
    asked: ScoreSettings,
    *,
    device: str,
    json: bool,
    fresh: bool,
    force: bool,
    region: Sequence[str],
    run: str | Path,
    fasta: str | Path,
    variants: str | Path,
    places: int | None,
    haplotypes: bool,
    genes: Consequences | None,
) -> dict[str, Any]:
    from genodiff.io import atomic
    from genodiff.io.identity import sha256_file, sha256_json, stamp_time
    from genodiff.io.partial_output import SUFFIX
    from genodiff.kernels.allocator import keep_freed_memory
    from genodiff.runs.related_model import name_relatives
    from genodiff.scoring.variant_scores import open_score_loci
    from genodiff.variants.output import OutputForm, find_output_form
    from genodiff.variants.variant_journal import VariantJournal

    keep_freed_memory()
    options, unit = asked.options(), asked.unit
    genome, began = work.genome, time.monotonic()
    about = {
        "version": __version__, "model": trained.digest, "genome": genome.sha256[:12],
        "method": asked.method, "se": f"{asked.se:g}", "max_evaluations": asked.max_evaluations,
        "seed": asked.seed, "unit": unit, "context": asked.context or trained.config.data.seq_len,
        "exact": str(asked.exact).lower(),
    }  # fmt: skip
    if places is not None:
        about["background"] = places
    if haplotypes:
        _ask_haplotypes(work, trained, asked)
        about["haplotypes"] = work.span
    if genes is not None:
        about["features"] = genes.digest[:12]
    loci = open_score_loci(trained, genome, options)
    kept = None if loci is None else loci.told
    if kept is not None:
        about["memory"] = kept["fingerprint"][:12]
    given = {"path": str(variants), "sha256": sha256_file(work.source.path)}
    whole = {**about, "genome": genome.sha256, "variants": given["sha256"], "region": list(region)}
    if genes is not None:
        whole["features"] = genes.digest
    raw = {key: value for key, value in whole.items() if key not in _AFTER_SCORES}
    request = sha256_json({**raw, "cut": list(work.cut)})
    ending = ".jsonl" if json and target == "-" else find_output_form(target, work.source.format)

    def ask(alleles: Iterable[Variants]) -> Iterator[ScoreFound]:
        return _score_alleles(trained, genome, alleles, options, loci)

    with ExitStack() as stack:
        stream = is_stream(target)
        folder = stack.enter_context(tempfile.TemporaryDirectory()) if stream else ""
        journal = VariantJournal(
            f"{folder}/out{SUFFIX}" if stream else f"{target}{SUFFIX}", request
        )
        journal.check(fresh=fresh, force=force)
        if fresh:
            journal.start_anew()
        if journal.kept:
            _log.info("%s: goes on after %s records", journal.path, f"{journal.kept:,}")
        stack.callback(journal.close)
        fill_journal(work, journal, ask, options)
        drawn = None
        if places is not None:
            drawn = prepare_background(work, trained, options, places, ask, loci)
        rank = drawn.rank if drawn else None
        form = OutputForm(ending, unit, about, rank, work.samples, genes)
        file, indexed = write_output(work, journal, target, form)
        told = {
            "genodiff": __version__, "out": target, "format": ending[1:], "unit": unit,
            "model": str(run), "checkpoint": trained.digest,
            "fasta": {"path": str(fasta), "sha256": genome.sha256}, "variants": given,
            "method": asked.method, "se": asked.se, "max_evaluations": asked.max_evaluations,
            "context": asked.context, "exact": asked.exact, "seed": asked.seed,
            "region": list(region), "shard": list(work.shard) if work.shard else None,
            "cut": list(work.cut), "request": sha256_json(whole), **work.tally.describe(),
            "background": drawn and {"n": places, "seed": asked.seed, "classes": drawn.describe()},
            **({} if kept is None else {"memory": kept}), **name_relatives(trained),
            **({} if genes is None else {"features": genes.describe_source()}),
            "indexed": indexed, "device": device, "argv": sys.argv,
            "seconds": round(time.monotonic() - began, 3), "created": stamp_time(),
        }  # fmt: skip
        if file is not None:
            told["file"] = file
            atomic.write_json(f"{target}.json", told)
            journal.remove()
    return told
