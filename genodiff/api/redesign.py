"""Designs of regions under constraints, to a file: `genodiff.redesign`."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.api.guiding import check_guide, open_guided
from genodiff.errors import CheckpointError, DataError, Interrupted, UsageError
from genodiff.generate.sampling import Sampling, refuse_novel, require_positive
from genodiff.generate.screening import open_screener
from genodiff.io.counts import format_count
from genodiff.io.target import check_target, is_stream
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import choose_run

if TYPE_CHECKING:
    from genodiff.api.model import Model
    from genodiff.io.fasta import Record

_log = logging.getLogger("genodiff")


@own_defaults()
def redesign(
    run: str | Path | None = None,
    *,
    out: str | Path,
    fasta: str | Path | None = None,
    bed: str | Path | None = None,
    region: Sequence[str] = (),
    circular: Sequence[str] = (),
    template: str | Path | None = None,
    n: int | None = None,
    rules: Mapping[str, Any] | None = None,
    constraints: str | Path | None = None,
    vcf: str | Path | None = None,
    changes: str | Path | None = None,
    sampler: str | None = None,
    steps: int | None = None,
    temperature: float = 1.0,
    stride: int | None = None,
    batch_size: int | None = None,
    line_width: int = 60,
    most_states: int | None = None,
    sidecar: str | Path | None = None,
    screen: str | Sequence[str] | None = None,
    screen_timeout: float | None = None,
    label: str | None = None,
    guide: Mapping[str, Any] | None = None,
    oracle_flank: int = 0,
    memory: str | None = None,
    relatives: Sequence[str | Path] = (),
    strains: bool = False,
    seed: int = 1,
    device: str = "auto",
    plan: bool = False,
    fresh: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write `n` designs (default 1) of each region to the FASTA file `out`; what its sidecar says.

    The regions `bed` and `region` of the genome `fasta` are designed anew, their flanks being kept.
    `circular` are contigs that go round, beside those of which the file says so.
    Designs are edits along the genome: the strand of a row is not used.
    Or the open letters of `template` are, N as any base and an IUPAC code as its set. `rules` are
    constraints as the flags have them, such as `{"avoid": ["GGTCTC"], "max_edits": 5}`, and
    `constraints` is a YAML or JSON file of them. Every design satisfies all. What cannot be met is
    a `UsageError` with a minimal conflict, before the network runs.

    Of a genome, the edits go to the files `vcf` (default OUT.vcf), with a sample for each design,
    and `changes` (default OUT.bed).

    `label` is a class of a run that was trained with labels, as in `genodiff.sample`.
    `guide` are the arguments of `genodiff.api.guiding.GuideSettings`: with smc, beam, best-of-n or
    cfg every design satisfies the constraints and is guided. An oracle sees each region, and
    `oracle_flank` bases on both sides of it; of a template, all of it. `memory` is "on" (the
    network remembers its training genome, but for each region's own locus), "off", or None: on
    where it was trained with a memory.

    The other settings, `screen` among them, are those of
    `genodiff.sample`. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`,
    `Interrupted`.
    """
    how = Sampling(sampler, steps, temperature, 1.0, stride, False, batch_size, memory=memory)
    refuse_novel(how)
    require_positive("--n", n)
    require_positive("--max-states", most_states)
    screener = open_screener(screen, screen_timeout)
    check_guide(guide)
    _check_flank(oracle_flank, guide)
    if line_width < 0:
        raise UsageError(f"--line-width {line_width} is negative", fix="give 0 (one line) or more")
    target = str(out)
    _check_source(fasta, bed, region, template, vcf)
    words = _read_words(rules, constraints)
    if template is not None and words.max_edits is not None:
        what = "--max-edits counts changes of a genome, and a template has open letters"
        raise UsageError(what, fix="give --fasta and --bed, or leave --max-edits out")
    described = str(sidecar) if sidecar is not None else f"{target}.json"
    if sidecar is None and is_stream(target):
        described = "-"
    if not is_stream(target):
        vcf = f"{target}.vcf" if vcf is None and template is None else vcf
        changes = f"{target}.bed" if changes is None else changes
    if screener is not None:
        for flag, path in (("--vcf", vcf), ("--changes", changes)):
            if path is not None and is_stream(path):
                what = f"{flag} to a stream would be written before --screen has answered"
                raise UsageError(what, fix="give the name of a file")
    _check_targets(target, described, vcf, changes, force, (fasta, bed, template, constraints))
    folder, device = choose_run(run), choose_device(device)
    from genodiff.constraints.layers import MOST_STATES
    from genodiff.constraints.rule_words import make_rules
    from genodiff.design.design_regions import Source, TemplateSource
    from genodiff.design.edit_files import EditFiles
    from genodiff.design.redesign import RedesignRequest, refuse_empty_regions
    from genodiff.generate.estimate import plan_sampling
    from genodiff.generate.gaps import Gap, read_gaps
    from genodiff.generate.infill import read_templates
    from genodiff.generate.journal import SampleJournal
    from genodiff.generate.sampling_progress import SamplingProgress
    from genodiff.io.faidx import Genome
    from genodiff.models.opening import open_language

    with ExitStack() as stack:
        gaps: list[Gap] | None = None
        source: Source
        if template is not None:
            templates = list(read_templates(template))
            if not templates:
                raise DataError("holds no record", file=template, fix="give one at least")
            source = TemplateSource(templates, str(template), circular)
        else:
            source = stack.enter_context(Genome(str(fasta), goes_round=True, circular=circular))
            gaps = read_gaps(source, None if bed is None else str(bed), region, source.circular)
        held = make_rules(words, source.contigs, source.circular)
        model = open_language(folder, device, relatives, strains=strains)
        if model.alphabet.domain != "dna":
            what = f"is a {model.alphabet.domain} model"
            raise CheckpointError(what, file=model.run, fix="give a run of DNA")
        model, guiding = open_guided(model, guide, device, label)
        given = {"fasta": fasta, "bed": bed, "template": template, "rules": constraints}
        sources = {key: None if value is None else str(value) for key, value in given.items()}
        request = RedesignRequest(
            model,
            how,
            n,
            source=source,
            gaps=gaps,
            rules=held,
            sources={**sources, "regions": list(region) or None},
            files=EditFiles(None if vcf is None else str(vcf), _text(changes)),
            line_width=line_width,
            most_states=most_states or MOST_STATES,
            guiding=guiding,
            flank=oracle_flank,
        )
        refuse_empty_regions(request.designer)
        request.screener = screener
        work = request.workload()
        if plan:
            found = plan_sampling(request, work, target)
            lines = [*found.lines[:-1], f"constraints  {request.states:,} states"]
            files = [
                str(one) for one in (target, described, vcf, changes) if one not in (None, "-")
            ]
            values = found.values | {"states": request.states, "files": files}
            return values | {"lines": [*lines, f"files        {', '.join(files)}"]}
        journal = None
        if not is_stream(target) and screener is None:
            journal = SampleJournal(target, request.digest(seed))
            journal.check(fresh=fresh, force=force)
            if fresh:
                journal.start_anew()
            if journal.kept:
                _log.info(
                    "%s: goes on after %s", journal.path, format_count(journal.kept, "design")
                )
        try:
            with SamplingProgress(work, request.n, "bases") as progress:
                written = request.write(
                    sys.stdout.buffer if target == "-" else target,
                    seed,
                    sidecar=sidecar,
                    journal=journal,
                    tick=progress.tick,
                )
        except (KeyboardInterrupt, Interrupted) as stop:
            signum = stop.signum if isinstance(stop, Interrupted) else signal.SIGINT
            kept = 0 if journal is None else journal.kept
            raise Interrupted(
                f"stopped; kept: {format_count(kept, 'finished design')}",
                signum,
                fix="run the same command again" + (" to go on" if kept else ""),
            ) from None
        finally:
            if journal is not None:
                journal.leave()
    edits = sum(record["edits"] for record in written.told["records"])
    counts = [
        (written.records, "design"),
        (written.positions, "base"),
        (written.filled, "filled base"),
    ]
    counts += [(edits, "edit"), (written.evaluations, "evaluation")]
    shown = [format_count(n, noun) for n, noun in counts if n or noun != "filled base"]
    _log.info("%s: %s", target, ", ".join(shown))
    return written.told


def _check_flank(flank: int, guide: Mapping[str, Any] | None) -> None:
    if flank < 0 or (flank and guide is None):
        fix = "give 0 or more" if guide is not None else "give --guidance too, or leave it out"
        raise UsageError(f"--oracle-flank {flank}", fix=fix)


def _check_source(
    fasta: str | Path | None,
    bed: str | Path | None,
    region: Sequence[str],
    template: str | Path | None,
    vcf: str | Path | None,
) -> None:
    if (fasta is None) == (template is None):
        what = "neither --fasta nor --template" if fasta is None else "--fasta and --template"
        raise UsageError(what, fix="give --fasta REF with --bed or --region, or --template FILE")
    if fasta is not None and bed is None and not region:
        raise UsageError("a genome, and no region to design", fix="give --bed or --region")
    if template is not None and (bed is not None or region):
        raise UsageError(
            "--bed and --region are of a genome, and a template has open letters",
            fix="give --fasta in place of --template",
        )
    if template is not None and vcf is not None:
        raise UsageError("a VCF is of a genome, not of a template", fix="leave --vcf out")
    if str(fasta) == "-":
        raise UsageError("--fasta needs a genome in a file", fix="give --fasta FILE")


def _read_words(rules: Mapping[str, Any] | None, constraints: str | Path | None) -> Any:
    from genodiff.constraints.rule_words import RuleWords, read_rule_file, read_rule_words

    words = RuleWords() if rules is None else read_rule_words(rules)
    return words if constraints is None else words.join(read_rule_file(constraints))


def _check_targets(
    target: str,
    described: str,
    vcf: str | Path | None,
    changes: str | Path | None,
    force: bool,
    inputs: Sequence[str | Path | None],
) -> None:
    from genodiff.design.edit_files import know_edits
    from genodiff.generate.journal import SUFFIX, is_sealed_output

    names = [str(one) for one in (target, described, vcf, changes) if one not in (None, "-")]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{name} is the name of two outputs", fix="give different names")
    check_target(target, force=force, inputs=inputs, sidecar=described, known=is_sealed_output)
    check_target(described, force=force, inputs=(*inputs, target))
    known = know_edits(described, f"{target}{SUFFIX}")
    for edits in (vcf, changes):
        if edits is not None:
            check_target(edits, force=force, inputs=inputs, known=known)


def _text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def design_sequences(
    model: Model,
    given: Sequence[Record],
    n: int,
    how: Sampling,
    regions: Sequence[tuple[int, int]] | None,
    rules: Mapping[str, Any] | None,
    seed: int,
    most_states: int | None,
    guide: Mapping[str, Any] | None = None,
    flank: int = 0,
) -> list[list[str]]:
    """`n` designs of each record: whole sequences. Raises `UsageError`, `DataError`."""
    from genodiff.constraints.layers import MOST_STATES
    from genodiff.constraints.rule_words import make_rules
    from genodiff.design.design_regions import TemplateSource
    from genodiff.design.redesign import RedesignRequest
    from genodiff.generate.gaps import Gap
    from genodiff.generate.infill import Template

    require_positive("number of designs", n)
    # Numbered: names of sequences in memory may repeat.
    names = [one.name if len(given) == 1 else f"{i}_{one.name}" for i, one in enumerate(given)]
    pairs = zip(names, given, strict=True)
    templates = [Template(name, one.description, one.sequence) for name, one in pairs]
    source = TemplateSource(templates, "sequences in memory")
    gaps = None
    if regions is not None:
        gaps = [Gap(name, start, end) for name in names for start, end in regions]
        for gap in gaps:
            size = source.contigs[gap.contig]
            last = gap.start + size if gap.contig in source.circular else size
            if not (0 <= gap.start < gap.end <= last and gap.start < size):
                raise UsageError(
                    f"region ({gap.start}, {gap.end}) is empty or not within the sequence",
                    fix="give 0-based intervals (start, end)",
                )
    _check_flank(flank, guide)
    trained, guiding = model.trained, None
    if guide is not None:
        check_guide(guide)
        trained, guiding = open_guided(trained, guide, str(model.device))
    request = RedesignRequest(
        trained,
        how,
        n,
        source=source,
        gaps=gaps,
        rules=make_rules(_read_words(rules, None), source.contigs, source.circular),
        most_states=most_states or MOST_STATES,
        guiding=guiding,
        flank=flank,
    )
    letters = {
        name: [bytearray(source.fetch(name, 0, length)) for _ in range(n)]
        for name, length in source.contigs.items()
    }
    for group, copy, after in request.draw_designs(seed):
        text, size = letters[group.contig][copy], source.contigs[group.contig]
        for at in range(group.start, group.end, size):  # once, but round a circle
            part = after[at - group.start : at - group.start + size]
            first = min(len(part), size - at % size)
            text[at % size : at % size + first] = part[:first]
            text[: len(part) - first] = part[first:]
    return [[text.decode("ascii") for text in letters[name]] for name in names]
