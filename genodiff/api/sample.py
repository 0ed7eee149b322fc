"""Sampling to a file: `genodiff.sample`."""

from __future__ import annotations

import logging
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from genodiff.api.guiding import check_guide, open_guided
from genodiff.diffusion.registries import SAMPLERS
from genodiff.domain import DNA, DOMAINS, TEXT
from genodiff.errors import CheckpointError, DataError, Interrupted, UsageError, did_you_mean
from genodiff.generate.sampling import Sampling, refuse_novel, require_positive
from genodiff.generate.screening import open_screener
from genodiff.io.counts import format_count
from genodiff.io.target import check_target, is_stream
from genodiff.jobs.machine import choose_device
from genodiff.kernels.defaults import own_defaults
from genodiff.runs.run_paths import choose_run

if TYPE_CHECKING:
    from genodiff.generate.infill import Template
    from genodiff.generate.journal import SampleJournal
    from genodiff.generate.output import WrittenSamples
    from genodiff.generate.request import SampleRequest
    from genodiff.runs.model import TrainedModel

_log = logging.getLogger("genodiff")
_WINDOWS = 512  # that the curve of lost bits is measured on


def list_samplers() -> list[str]:
    """The names of all samplers, without importing torch."""
    return SAMPLERS.list_names()


def check_sampler(name: str | None) -> None:
    """Raises `UsageError` for the name of no sampler."""
    if name is not None and name not in list_samplers():
        raise UsageError(f"no sampler '{name}'; {did_you_mean(name, list_samplers())}")


@own_defaults()
def sample(
    run: str | Path | None = None,
    *,
    out: str | Path,
    n: int | None = None,
    length: int | None = None,
    template: str | Path | None = None,
    bed: str | Path | None = None,
    region: Sequence[str] = (),
    only_filled: bool = False,
    prompt: str | None = None,
    sampler: str | None = None,
    sampler_options: Mapping[str, float] | None = None,
    memory: str | None = None,
    relatives: Sequence[str | Path] = (),
    strains: bool = False,
    steps: int | None = None,
    bits_lost: float | None = None,
    temperature: float = 1.0,
    top_p: float = 1.0,
    stride: int | None = None,
    allow_n: bool = False,
    batch_size: int | None = None,
    line_width: int = 60,
    sidecar: str | Path | None = None,
    domain: Literal["dna", "text"] | None = None,
    label: str | None = None,
    guide: Mapping[str, Any] | None = None,
    screen: str | Sequence[str] | None = None,
    screen_timeout: float | None = None,
    seed: int = 1,
    device: str = "auto",
    plan: bool = False,
    fresh: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Write new sequences, or fillings of a template, to `out`; what its sidecar says.

    `run` is a run, a checkpoint or a published folder; None is the one run under runs/. `out` is a
    FASTA file (.gz is BGZF), of text a text file; "-" is stdout. `n` sequences (default 16, of text
    4) of `length` positions are new (default: the trained length). `template` is a FASTA file whose
    N and ? are filled, `n` times each (default 1), every other letter kept. With `bed` (a file) or
    `region` (chr1:1,000-2,000, 1-based and inclusive) only these bases of the template are filled,
    whatever stands there and on whatever strand, and `only_filled` writes them alone. Of text,
    `prompt` is how each sample begins, and a template has gaps such as [[20]]. The other settings
    are those of `genodiff.Model.sample`. `bits_lost` chooses the steps: as few as lose that many
    bits per 1,000 positions against one at a time, by the curve of the valid split. `memory` is
    "off", "on" (the network remembers its training genome) or "novel" (so too, and no record has a
    longer match with it than 9 in 10 held-out sequences). None is "on" for a run that was trained
    with a memory and "off" for any other. A window of `bed` or `region` leaves its own locus out;
    "novel" is not for them. Record i depends on (`seed`, i) alone.

    `label` is a class of a run that was trained with labels: its law is drawn from. With cfg it is
    what the law of all is guided to.
    `guide` are the arguments of `genodiff.api.guiding.GuideSettings`: guidance, strength, oracle
    and so on.

    `screen` is a command that all samples are handed to, a FASTA file as its last argument, before
    anything is written; another exit status than 0 refuses them, and `screen_timeout` is in
    seconds. Nothing is kept in OUT.partial then.

    Finished records are kept in OUT.partial until `out` is there, and the same call goes on after
    them; `fresh` starts anew. `force` replaces a file that genodiff did not write. With `plan`
    nothing is written, and evaluations and seconds are returned, with lines to read under "lines".
    Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`, `Interrupted`.
    """
    check_sampler(sampler)
    options = dict(sampler_options or {})
    how = Sampling(sampler, steps, temperature, top_p, stride, allow_n, batch_size, options, memory)
    if bits_lost is not None and steps is not None:
        raise UsageError("--bits-lost chooses the steps, and --steps gives them", fix="give one")
    if bits_lost is not None and not 0 < bits_lost < float("inf"):
        raise UsageError(f"--bits-lost {bits_lost:g}", fix="give a number above 0")
    check_guide(guide)
    screener = open_screener(screen, screen_timeout)
    require_positive("--n", n)
    require_positive("--length", length)
    target, partly = str(out), bed is not None or bool(region)
    if prompt is not None and domain == "dna":
        raise UsageError("a prompt is for text, and the domain is dna", fix="leave it out")
    known = "text" if prompt is not None else domain
    given = {"--allow-n": allow_n, "--line-width": line_width != 60, "--bed": bed is not None}
    given |= {
        "--region": bool(region),
        "--only-filled": only_filled,
        "--memory": memory not in (None, "off"),
    }
    given["--screen"] = screener is not None
    if known == "text":
        _refuse_for_text(given)
    if line_width < 0:
        raise UsageError(f"--line-width {line_width} is negative", fix="give 0 (one line) or more")
    if template is not None and length is not None:
        raise UsageError("--length and --template contradict each other", fix="leave --length out")
    if partly and template is None:
        raise UsageError(
            "regions to fill, and no genome that they are of", fix="give --template FASTA"
        )
    if partly:
        refuse_novel(how)
    if only_filled and not partly:
        raise UsageError("--only-filled is for --bed and --region", fix="give one of them")
    described = str(sidecar) if sidecar is not None else f"{target}.json"
    if sidecar is None and is_stream(target):
        described = "-"
    from genodiff.generate.journal import SampleJournal, is_sealed_output

    check_target(
        target, force=force, inputs=(template, bed), sidecar=described, known=is_sealed_output
    )
    check_target(described, force=force, inputs=(template, bed, target))
    folder, device = choose_run(run), choose_device(device)
    from genodiff.generate.estimate import check_room, plan_sampling
    from genodiff.generate.request import DnaRequest, TextRequest
    from genodiff.generate.sampling_progress import SamplingProgress
    from genodiff.models.opening import Published, open_any, refuse_fitted
    from genodiff.runs.related_model import relate_model

    templates = None
    if template is not None and known == DNA.name and not partly:
        templates = _read_templates(template)
    if known == DNA.name and not partly:
        sizes = [length or 1] if templates is None else [len(t.text) for t in templates]
        wanted = n or (1 if templates is not None else DNA.n_samples)
        check_room(target, wanted, sizes, line_width, batch_size)
    opened = open_any(folder, device)
    model, own = opened if isinstance(opened, Published) else (refuse_fitted(opened), None)
    model = relate_model(model, relatives, strains=strains)
    if known is not None and model.alphabet.domain != known:
        right = DOMAINS[model.alphabet.domain].output_flag
        raise CheckpointError(
            f"is a {model.alphabet.domain} model",
            file=folder,
            fix=f"give {right} FILE in place of {DOMAINS[known].output_flag}",
        )
    model, guiding = open_guided(model, guide, device, label)
    if guiding is not None and (model.alphabet.domain == TEXT.name or partly):
        what = "guidance fills new DNA and templates, not text and not --bed or --region"
        raise UsageError(what, fix="leave --guidance out, or cut the regions out as a template")
    if guiding is not None and memory == "novel":
        what = "--memory novel draws records again, which --guidance cannot"
        raise UsageError(what, fix="give --memory on")
    if bits_lost is not None:
        how = replace(how, steps=_find_steps(model, how, bits_lost))
    request: SampleRequest
    with ExitStack() as stack:
        if model.alphabet.domain == TEXT.name:
            _refuse_for_text(given)
            request = TextRequest(
                model,
                how,
                n,
                length=length,
                prompt=prompt,
                template=None if template is None else str(template),
                tokenizer=own,
            )
        elif template is not None and partly:
            request = _open_gaps(
                stack, model, how, n, str(template), bed, region, only_filled, line_width
            )
        else:
            if prompt is not None:
                raise UsageError("a prompt is for text, and this is DNA", fix="leave it out")
            if template is not None and templates is None:
                templates = _read_templates(template)
            request = DnaRequest(
                model,
                how,
                n,
                length=length,
                templates=templates,
                template_file=None if template is None else str(template),
                line_width=line_width,
                guiding=guiding,
            )
            check_room(target, request.n, request.lengths, line_width, batch_size)
        request.screener = screener
        work = request.workload()
        if plan:
            found = plan_sampling(request, work, target)
            return found.values | {"lines": found.lines}
        journal = None
        if not is_stream(target) and screener is None:
            journal = SampleJournal(target, request.digest(seed))
            journal.check(fresh=fresh, force=force)
            if fresh:
                journal.start_anew()
            if journal.kept:
                _log.info(
                    "%s: goes on after %s", journal.path, format_count(journal.kept, "record")
                )
        units = request.domain.units
        try:
            with SamplingProgress(work, request.n, units) as progress:
                written = request.write(
                    sys.stdout.buffer if target == "-" else target,
                    seed,
                    sidecar=sidecar,
                    journal=journal,
                    tick=progress.tick,
                )
        except (KeyboardInterrupt, Interrupted) as stop:
            raise _say_what_is_kept(stop, journal) from None
        finally:
            if journal is not None:
                journal.leave()
    _say_what_is_written(target, written, request.domain.unit)
    return written.told


def _say_what_is_written(target: str, written: WrittenSamples, unit: str) -> None:
    size = format_count(written.positions, unit)
    if written.filled != written.positions:
        size = f"{written.filled:,} of {size} filled"
    records, calls = format_count(written.records, "record"), written.evaluations
    _log.info("%s: %s, %s, %s", target, records, size, format_count(calls, "evaluation"))
    replaced = sum(record.get("invalid_utf8", 0) for record in written.told["records"])
    if replaced:
        places = format_count(replaced, "place")
        _log.warning("%s: %s that were no UTF-8 are written as U+FFFD", target, places)


def _find_steps(model: TrainedModel, how: Sampling, wanted: float) -> int:
    """The fewest steps that lose at most `wanted` bits per 1,000 positions."""
    from genodiff.api.evaluate import evaluate
    from genodiff.generate.step_choice import check_bits_lost, choose_steps, find_curve

    check_bits_lost(model, how)

    def measure() -> dict[str, Any]:
        _log.info("measuring what steps lose, once, on the valid split")
        return evaluate(model, split="valid", max_windows=_WINDOWS, baselines=False, keep=False)

    curve = find_curve(model, measure)
    steps = choose_steps(curve, model.diffusion.schedule, wanted / 1000)
    _log.info("%d steps lose at most %g bits per 1,000 positions", steps, wanted)
    return steps


def _open_gaps(
    stack: ExitStack,
    model: TrainedModel,
    how: Sampling,
    n: int | None,
    template: str,
    bed: str | Path | None,
    region: Sequence[str],
    only_filled: bool,
    line_width: int,
) -> SampleRequest:
    """The request to fill regions of the genome `template`, which `stack` closes."""
    from genodiff.generate.gap_request import GapRequest
    from genodiff.generate.gaps import read_gaps
    from genodiff.io.faidx import Genome

    if template == "-":
        raise UsageError("--bed and --region need a genome in a file", fix="give --template FILE")
    genome = stack.enter_context(Genome(template))
    gaps = read_gaps(genome, None if bed is None else str(bed), region)
    sources = {
        "template": template,
        "bed": None if bed is None else str(bed),
        "regions": list(region) or None,
    }
    return GapRequest(
        model,
        how,
        n,
        genome=genome,
        gaps=gaps,
        only_filled=only_filled,
        sources=sources,
        line_width=line_width,
    )


def _refuse_for_text(given: dict[str, bool]) -> None:
    for flag, is_given in given.items():
        if is_given:
            raise UsageError(f"{flag} is for DNA, and this is text", fix="leave it out")


def _read_templates(file: str | Path) -> list[Template]:
    from genodiff.generate.infill import read_templates
    from genodiff.io.topology import say_linear, says_circular

    templates = list(read_templates(file))
    if not templates:
        raise DataError(
            "holds no record", file=file, fix="give a FASTA file with at least one record"
        )
    say_linear(str(file), [one.name for one in templates if says_circular(one.description)])
    return templates


def _say_what_is_kept(stop: BaseException, journal: SampleJournal | None) -> Interrupted:
    signum = stop.signum if isinstance(stop, Interrupted) else signal.SIGINT
    by = "Ctrl-C" if signum == signal.SIGINT else "SIGTERM"
    if journal is None or not journal.kept:
        return Interrupted(
            f"stopped by {by}, before a record was finished",
            signum,
            fix="run the same command again",
        )
    kept = format_count(journal.kept, "finished record")
    kept += " is" if journal.kept == 1 else " are"
    what = f"stopped by {by}; {kept} kept in {journal.path}"
    return Interrupted(what, signum, fix="run the same command again to go on")
