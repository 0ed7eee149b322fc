"""Sample DNA to FASTA, from nothing or into a template's N."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter, Token

from genodiff.cli.common import Common, Force, stop_on_sigterm, whole
from genodiff.diffusion.objective import OBJECTIVES
from genodiff.diffusion.sampler import SAMPLERS
from genodiff.domain import DNA, DOMAINS, TEXT, Domain
from genodiff.errors import CheckpointError, DataError, UsageError
from genodiff.generate.estimate import check_room, describe_plan
from genodiff.generate.infill import Template, read_templates
from genodiff.generate.request import DnaRequest, SampleRequest, TextRequest
from genodiff.generate.sample import Sampling, require_positive
from genodiff.generate.sampling_progress import SamplingProgress
from genodiff.io.target import check_target, is_stream
from genodiff.runs.folder import find_only_run
from genodiff.runs.model import load_model

_log = logging.getLogger("genodiff")


def _whole_or_auto(kind: Any, tokens: Sequence[Token]) -> int | str:
    return "auto" if tokens[0].value == "auto" else whole(kind, tokens)


def sampler_help(name: str) -> str:
    """A sampler's name, with its objectives where those of masked diffusion are not among them."""
    fits = SAMPLERS[name].fits
    owners = [owner for owner, cls in OBJECTIVES.items() if cls.kind in fits]
    return name if "masked" in fits else f"{name} ({', '.join(owners)})"


def sample(
    *,
    fasta: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True, help="FASTA file to write; - for stdout, .gz for BGZF."
        ),
    ] = None,
    out: Annotated[
        str | None,
        Parameter(allow_leading_hyphen=True, help="Of text: the file to write; - for stdout."),
    ] = None,
    checkpoint: Annotated[
        Path | None, Parameter(help="Run folder or checkpoint (default: the one run under runs/).")
    ] = None,
    n: Annotated[
        int | None,
        Parameter(
            name=["--n", "--num"],
            converter=whole,
            help="Sequences (default 16), or fillings of each template (default 1).",
        ),
    ] = None,
    length: Annotated[
        int | None,
        Parameter(
            converter=whole,
            help="Bases per sequence (default: the trained length); more grow by windows.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        Parameter(
            allow_leading_hyphen=True,
            help="FASTA file (- for stdin) whose N and ? are filled, every other letter kept.",
        ),
    ] = None,
    prompt: Annotated[str | None, Parameter(help="Of text: how each sample begins.")] = None,
    sampler: Annotated[
        str | None,
        Parameter(help=f"{', '.join(map(sampler_help, SAMPLERS))}. [the objective's own]"),
    ] = None,
    steps: Annotated[
        int | Literal["auto"],
        Parameter(converter=_whole_or_auto, help="Steps per window (auto: 256)."),
    ] = "auto",
    temperature: Annotated[
        float, Parameter(help="1 is the model's own law, 0 its likeliest bases.")
    ] = 1.0,
    top_p: Annotated[
        float, Parameter(help="Draw among the likeliest bases that hold this much probability.")
    ] = 1.0,
    stride: Annotated[
        int | None,
        Parameter(
            converter=whole,
            help="New bases per window beyond the trained length (default: half of it).",
        ),
    ] = None,
    allow_n: Annotated[
        bool, Parameter(negative="", help="Let N be drawn as well as A, C, G and T.")
    ] = False,
    batch_size: Annotated[
        int | None,
        Parameter(converter=whole, help="Sequences at a time: changes the speed, never the bytes."),
    ] = None,
    line_width: Annotated[
        int, Parameter(converter=whole, help="Bases per line; 0: one line per sequence.")
    ] = 60,
    json: Annotated[
        str | None, Parameter(help="Where the sidecar goes (default: beside the FASTA file).")
    ] = None,
    domain: Annotated[
        Literal["dna", "text"] | None,
        Parameter(help="What the checkpoint is expected to hold.", show_default=False),
    ] = None,
    plan: Annotated[bool, Parameter(negative="", help="Say what would be done, and stop.")] = False,
    force: Force = False,
    common: Common = Common(),
) -> None:
    """Sample, and write the sequences with their sidecar."""
    device = common.apply()
    how = Sampling(
        sampler, None if steps == "auto" else steps, temperature, top_p, stride, allow_n, batch_size
    )
    require_positive("--n", n)
    require_positive("--length", length)
    target = _target(domain, fasta, out, prompt)
    is_text = target.domain is TEXT
    if is_text and (allow_n or line_width != 60):
        flag = "--allow-n" if allow_n else "--line-width"
        raise UsageError(f"{flag} is for DNA, and this is text", fix="leave it out")
    if line_width < 0:
        raise UsageError(f"--line-width {line_width} is negative", fix="give 0 (one line) or more")
    if template is not None and length is not None:
        raise UsageError("--length and --template contradict each other", fix="leave --length out")
    for flag, value in ((target.domain.output_flag, target.path), ("--template", template)):
        if value == "" or (value is not None and value != "-" and value.startswith("-")):
            raise UsageError(
                f"{flag} needs the name of a file, not {value!r}",
                fix="write ./-name for such a name",
            )
    sidecar = json or (None if is_stream(target.path) else f"{target.path}.json")
    check_target(target.path, force=force, inputs=(template,), sidecar=sidecar)
    if sidecar is not None:
        check_target(sidecar, force=force, inputs=(template, target.path))
    templates = _read(template) if template is not None and not is_text else None
    if not is_text:
        sizes = [length or 1] if templates is None else [len(t.text) for t in templates]
        wanted = n or (1 if templates is not None else DNA.n_samples)
        check_room(target.path, wanted, sizes, line_width, batch_size)
    folder = checkpoint if checkpoint is not None else find_only_run(Path("runs"))
    model = load_model(folder, device=device)
    if model.alphabet.domain != target.domain.name:
        right = DOMAINS[model.alphabet.domain].output_flag
        raise CheckpointError(
            f"is a {model.alphabet.domain} model",
            file=folder,
            fix=f"give {right} FILE in place of {target.domain.output_flag}",
        )
    request: SampleRequest
    if is_text:
        request = TextRequest(model, how, n, length=length, prompt=prompt, template=template)
    else:
        request = DnaRequest(
            model,
            how,
            n,
            length=length,
            templates=templates,
            template_file=template,
            line_width=line_width,
        )
        check_room(target.path, request.n, request.lengths, line_width, batch_size)
    work = request.workload()
    if plan:
        print("\n".join(describe_plan(request, work, target.path)))
        return
    units = target.domain.units
    with stop_on_sigterm(), SamplingProgress(work, request.n, units) as progress:
        written = request.write(
            sys.stdout.buffer if target.path == "-" else target.path,
            common.seed,
            sidecar=json,
            tick=progress.tick,
        )
    _log.info(f"%s: %d records, %d {units}, %d evaluations", target.path, *written)


class _Target(NamedTuple):
    domain: Domain
    path: str


def _target(domain: str | None, fasta: str | None, out: str | None, prompt: str | None) -> _Target:
    """What is written, and where to. Raises `UsageError` where flags contradict one another."""
    if domain != "text" and out is None and prompt is None:
        if fasta is None:
            raise UsageError(
                "no file to write",
                fix="give --fasta FILE for DNA, or --out FILE for text; - is stdout",
            )
        return _Target(DNA, fasta)
    if fasta is not None:
        raise UsageError(
            "--fasta is for DNA, and text goes to --out",
            fix="give --out FILE, or leave --domain text out",
        )
    if domain == "dna":
        raise UsageError(
            "--out and --prompt are for text, and --domain says dna", fix="give --fasta FILE"
        )
    if out is None:
        raise UsageError("no file to write", fix="give --out FILE, or --out - for stdout")
    return _Target(TEXT, out)


def _read(template: str) -> list[Template]:
    templates = list(read_templates(template))
    if not templates:
        raise DataError(
            "holds no record", file=template, fix="give a FASTA file with at least one record"
        )
    return templates
