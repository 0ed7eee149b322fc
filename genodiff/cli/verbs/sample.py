"""Sample DNA to FASTA, from nothing or into a template's N."""

import json as jsonlib
import logging
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from cyclopts import Parameter, Token
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from genodiff.cli.common import Common, whole
from genodiff.diffusion.objective import OBJECTIVES
from genodiff.diffusion.sampler import SAMPLERS
from genodiff.domain import DNA, DOMAINS, TEXT, Domain
from genodiff.errors import CheckpointError, DataError, Interrupted, MachineError, UsageError
from genodiff.generate.infill import Template, read_templates
from genodiff.generate.request import DnaRequest, SampleRequest, TextRequest
from genodiff.generate.sample import (
    AUTO_STEPS,
    Sampling,
    Workload,
    at_least_one,
    bits_lost,
    fitting_batch,
)
from genodiff.io.progress import format_duration
from genodiff.runs.model import load_model

_log = logging.getLogger("genodiff")
_FIRST_WAIT, _LONGEST_WAIT = 2.0, 60.0
_HEADER_BYTES = 110
_MEMORY_PER_BASE = 32
_LARGEST_GUESS = 32


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
    common: Common = Common(),
) -> None:
    """Sample DNA to FASTA, from nothing or into a template's N."""
    device = common.apply()
    how = Sampling(
        sampler, None if steps == "auto" else steps, temperature, top_p, stride, allow_n, batch_size
    )
    at_least_one("--n", n)
    at_least_one("--length", length)
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
    check_target(target.path)
    if json is not None:
        check_target(json)
    templates = _read(template) if template is not None and not is_text else None
    if not is_text:
        sizes = [length or 1] if templates is None else [len(t.text) for t in templates]
        wanted = n or (1 if templates is not None else DNA.n_samples)
        check_room(target.path, wanted, np.array(sizes), line_width, batch_size)
    path = checkpoint if checkpoint is not None else the_run(Path("runs"))
    model = load_model(path, device=device)
    if model.alphabet.domain != target.domain.name:
        right = DOMAINS[model.alphabet.domain].output_flag
        raise CheckpointError(
            f"is a {model.alphabet.domain} model",
            file=path,
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
        check_room(target.path, request.n, np.array(request.lengths), line_width, batch_size)
    work = request.workload()
    if plan:
        print_plan(request, work, target.path)
        return
    units = target.domain.units
    with _stoppable(), _Progress(work, request.n, units) as progress:
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


def check_target(path: str) -> None:
    """Raises `MachineError` where `path` cannot become a file, before any work is done for it."""
    if path == "-":
        return
    target = Path(path)
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    except OSError as fault:
        raise MachineError(
            f"cannot be written: {fault.strerror}", file=path, fix="choose another path"
        ) from None
    if mode is not None and stat.S_ISDIR(mode):
        raise MachineError("is a directory, not a file", file=path, fix="give the name of a file")
    if (
        mode is not None
        and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode))
        and not path.startswith(("/dev/std", "/dev/fd"))
    ):
        raise MachineError(
            "is a device: a file cannot be written there",
            file=path,
            fix="give a file, or - for stdout",
        )
    folder = target.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise MachineError(
            f"cannot be written: {folder} is not a directory", file=path, fix="choose another path"
        )
    if not os.access(folder if mode is None or stat.S_ISREG(mode) else target, os.W_OK):
        raise MachineError(
            "cannot be written: permission denied",
            file=path,
            fix="choose a path that you may write to",
        )


def check_room(
    fasta: str, n: int, lengths: np.ndarray, line_width: int, batch_size: int | None
) -> None:
    """Raises `MachineError` where `n` records of each of `lengths` bases need more disk or memory
    than there is.
    """
    bases = n * int(lengths.sum())
    need = n * len(lengths) * _HEADER_BYTES + bases + (bases // line_width if line_width else 0)
    if fasta != "-":
        folder = Path(fasta).resolve().parent
        while not folder.exists():
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        need = need // 4 if fasta.endswith(".gz") else need
        if need > free:
            raise MachineError(
                f"{n * len(lengths):,} records need about {_size(need)} of disk space, "
                f"{_size(free)} are free",
                file=fasta,
                fix="give a smaller --n or --length, or another disk",
            )
    longest = int(lengths.max(initial=0))
    memory = (
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        if hasattr(os, "sysconf")
        else 1 << 62
    )
    need = min(batch_size or _LARGEST_GUESS, n * len(lengths)) * longest * _MEMORY_PER_BASE
    if need > memory:
        raise MachineError(
            f"a batch of sequences of {longest:,} bases needs about {_size(need)} of memory, "
            f"{_size(memory)} are here",
            fix="give a smaller --batch-size or --length",
        )


def the_run(folder: Path) -> Path:
    """The only run under `folder`. Raises `CheckpointError` where there is none, or a choice."""
    runs = [p for p in folder.iterdir() if (p / "config.yaml").is_file()] if folder.is_dir() else []
    if not runs:
        raise CheckpointError(
            "there is no run", file=folder, fix="give --checkpoint RUN, or `genodiff train` first"
        )
    if len(runs) > 1:
        runs.sort(key=lambda p: p.stat().st_mtime, reverse=True)
        named = ", ".join(str(p) for p in runs[:5]) + (", …" if len(runs) > 5 else "")
        raise CheckpointError(
            f"there are {len(runs)} runs: {named}", file=folder, fix=f"give --checkpoint {runs[0]}"
        )
    return runs[0]


def print_plan(request: SampleRequest, work: Workload, target: str) -> None:
    """Say on stdout what sampling would take; the time comes from one evaluation on this machine."""
    model, how, n, lengths = request.model, request.how, request.n, request.lengths
    units = request.domain.units
    window = min(model.config.data.seq_len, max(lengths))
    device = next(model.backbone.parameters()).device
    rows = min(how.batch_size or fitting_batch(model, window), n * len(lengths))
    xt = torch.full((rows, window), model.alphabet.mask_id, device=device)
    with torch.inference_mode():
        model.backbone(xt)
        began = time.perf_counter()
        model.backbone(xt).cpu()
        each = (time.perf_counter() - began) / len(xt)
    weights = sum(p.numel() for p in model.backbone.parameters())
    print(
        f"model        {weights:,} parameters, {model.alphabet.name}, trained on "
        f"{model.config.data.seq_len:,} {units}, {model.digest}"
    )
    print(f"records      {n * len(lengths):,} of {min(lengths):,} to {max(lengths):,} {units}")
    print(f"to fill      {n * work.bases:,} {units} in {n * work.windows:,} windows")
    print(f"evaluations  about {n * work.evaluations:,.0f} of the network on one window")
    print(f"time         about {format_duration(n * work.evaluations * each)} on {device}")
    curve = _curve(model.run / "eval.json")
    if curve and how.sampler == "ancestral":
        steps = how.steps or AUTO_STEPS
        lost = 1000 * bits_lost(curve, model.diffusion.schedule, steps)
        print(
            f"steps        {steps:,} cost about {lost:,.2f} bits per 1,000 {units} against one "
            f"{request.domain.unit} at a time"
        )
    print(f"files        {target}" + ("" if target == "-" else f", {target}.json"))


def _curve(path: Path) -> list[tuple[float, float]]:
    """(masked share, nats per masked base) as `genodiff eval` measured it; empty where it has not."""
    try:
        evaluations = jsonlib.loads(path.read_text(encoding="utf-8"))
        bins = evaluations.get("valid", evaluations.get("test"))["curve"]
        return [
            ((b["rate_lo"] + b["rate_hi"]) / 2, b["nats"]) for b in bins if b["nats"] is not None
        ]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []


def _read(template: str) -> list[Template]:
    templates = list(read_templates(template))
    if not templates:
        raise DataError(
            "holds no record", file=template, fix="give a FASTA file with at least one record"
        )
    return templates


@contextmanager
def _stoppable() -> Iterator[None]:
    """SIGTERM ends the work as an error does: nothing half-written stays."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Interrupted(
            "stopped by SIGTERM; no file was left half-written",
            signum,
            fix="run the same command again",
        )

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _Progress:
    """Evaluations done of those expected: a bar on a terminal's stderr, else a line every so often."""

    def __init__(self, work: Workload, n: int, unit: str) -> None:
        self.unit = unit
        self.total, self.bases = n * work.evaluations, n * work.bases
        self.done, self.began = 0, time.monotonic()
        self.wait, self.last = _FIRST_WAIT, self.began
        self.bar: Progress | None = None
        console = Console(stderr=True)
        if console.is_terminal and _log.isEnabledFor(logging.INFO):
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:.0f} %"),
            )
            self.bar = Progress(*columns, console=console, transient=True)
            self.task = self.bar.add_task("sampling", total=self.total)

    def __enter__(self) -> "_Progress":
        if self.bar is not None:
            self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def tick(self, windows: int) -> None:
        """After an evaluation of the network on this many windows."""
        self.done += windows
        passed = time.monotonic() - self.began
        part = min(1.0, self.done / max(self.total, 1.0))
        text = (
            f"{part * self.bases / max(passed, 1e-9):,.0f} {self.unit}/s · "
            f"{format_duration(passed * (1 / part - 1))} to go"
        )
        if self.bar is not None:
            self.bar.update(self.task, description=f"sampling · {text}", completed=self.done)
        elif time.monotonic() - self.last >= self.wait:
            self.last, self.wait = time.monotonic(), min(_LONGEST_WAIT, self.wait * 1.5)
            _log.info("sampling · %.0f %% · %s", 100 * part, text)


def _size(n: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n < 1000:
            return f"{n:,.0f} {unit}"
        n /= 1000
    return f"{n:,.0f} PB"
