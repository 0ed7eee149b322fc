"""Run folders, checkpoints and published weights: judged, read, written and reported."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from genodiff.errors import DataError, MachineError, UsageError, format_count
from genodiff.io.target import check_new_folder, check_target
from genodiff.jobs.machine import choose_device
from genodiff.jobs.options import OUT, RUN, RUN_NAMES, Device, Force, Offline, Run, Seed
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_may_write, locate

Layout = Literal["caduceus", "mdlm", "safetensors"]


@verb(
    "checkpoint check",
    function="check_checkpoint",
    help="""
Verify everything in a run folder or checkpoint; exit 4 if it is not sound.

Nothing is written. Published weights are checked as in `checkpoint import`.
""",
)
@dataclass(frozen=True, kw_only=True)
class CheckpointCheckRequest(Request[dict[str, Any]]):
    """Verify a run folder, a checkpoint or a published folder by reading all of it.

    For a run, returns step, digest, checkpoints and parameters; for published weights, layout,
    digest, files, config and vocabulary. Nothing is written. Raises `CheckpointError` for the first
    fault.
    """

    json_indent: ClassVar[int | None] = 2
    has_machine: ClassVar[bool] = False

    path: Annotated[str | Path, Option(f"{RUN}.", RUN_NAMES, is_word=True)] = field(kw_only=False)

    def answer(self, *given: Any) -> dict[str, Any]:
        from genodiff.hub.source import is_published, read_source
        from genodiff.runs.model import check_folder

        path = locate(self.path, there=False)
        return read_source(path).record() if is_published(path) else check_folder(path)

    def show(self, answer: Any) -> None:
        if "layout" in answer:
            said = "in a published layout; make a run folder of it: genodiff checkpoint import "
            said += str(self.path)
        else:
            steps = ", ".join(str(step) for step in answer["checkpoints"]) or "none"
            said = f"model of step {answer['step']} ({answer['digest']}), checkpoints: {steps}"
        between = "," if "layout" in answer else ";"
        print(f"{self.path}: sound{between} {said}", file=sys.stderr)


@verb(
    "checkpoint import",
    function="import_checkpoint",
    help="""
Import published weights (Caduceus, DiT, DiMamba) as a run folder.

None of their code is executed. The network is tested at the end.
""",
)
@dataclass(frozen=True, kw_only=True)
class ImportRequest(Request[dict[str, Any]]):
    """Import published weights as the run folder `out`, and test the network.

    `seq_len` is the window length for later evaluation and training (default: the source's, or
    1,024). `raw` imports the weights of a training checkpoint, not their averages. `tokenizer` (a
    name or a path) is for networks of text. With `plan` everything is checked and nothing written.
    No code among the files is executed. Raises `CheckpointError`, `UsageError`.
    """

    json_indent: ClassVar[int | None] = 2

    source: Annotated[
        str | Path,
        Option(
            "A save_pretrained folder, or a weight file with its config beside it.",
            ("SOURCE",),
            is_word=True,
        ),
    ] = field(kw_only=False)
    out: Annotated[Path | str, Option("Run folder to write.", OUT)]
    seq_len: Annotated[
        int | None,
        Option("Window length for later evaluation and training (default: the source's, or 1024)."),
    ] = None
    raw: Annotated[
        bool,
        Option("From a training checkpoint, import the weights themselves, not their averages."),
    ] = False
    tokenizer: Annotated[
        str | None,
        Option("For a network of text: bytes, text8, gpt2, bert-base-uncased, or a path."),
    ] = None
    seed: Seed = 1
    device: Device = "auto"
    offline: Offline = False
    plan: Annotated[bool, Option("Read and check, report the result, and write nothing.")] = False
    force: Force = False

    def answer(self, *given: Any) -> dict[str, Any]:
        out = Path(self.out)
        if not self.plan:
            check_new_folder(out, force=self.force)
        choose_device(self.device)
        from genodiff.hub.adopt import adopt_network, copy_model
        from genodiff.hub.source import find_published_folder, read_source
        from genodiff.runs.checkpoint import CARD

        own = find_published_folder(self.source) / CARD
        if own.exists():  # as `export --format safetensors`
            return copy_model(own.parent, out, plan=self.plan, force=self.force)
        read = read_source(
            self.source, averaged=not self.raw, tokenizer=self.tokenizer, offline=self.offline
        )
        if self.plan:
            parameters = sum(tensor.numel() for tensor in read.tensors.values())
            return read.record() | {"parameters": parameters, "out": str(out)}
        return adopt_network(
            read, out, seq_len=self.seq_len, seed=self.seed, tokenizer=self.tokenizer,
            force=self.force,
        )  # fmt: skip

    def show(self, answer: Any) -> None:
        if self.plan:
            print(json.dumps(answer, indent=2))

    def conclude(self, answer: Any) -> str:
        if self.plan:
            return ""
        probe, strands = answer["probe"], answer["probe"]["strands_differ"]
        bits = f"sanity check: {probe['bits_per_base']:.3f} bits a token on a few of the vocabulary"
        if probe["sequence"].startswith("AluY"):  # without a word, 2.2 would look like a fault
            bits = f"sanity check: {probe['bits_per_base']:.3f} bits a base on AluY, a human repeat"
            bits += " (a guess pays 2; of your genome it says nothing)"
        differ = "" if strands is None else f", strands differ by {strands:.0e}"
        made = f"{answer['parameters']:,} parameters of {answer['layout']} ({answer['digest']})"
        if unused := answer.get("unused"):
            made += f", {format_count(len(unused), 'tensor')} not read"
        return f"{self.out}: {made}; {bits}{differ}; next: genodiff embed {self.out} --fasta FILE"


@verb(
    "checkpoint export",
    "models export",
    function="export_checkpoint",
    help="""
Write a folder that the reference's from_pretrained loads, with a model card.

The network there has the same logits.
""",
)
@dataclass(frozen=True, kw_only=True)
class ExportRequest(Request[dict[str, Any]]):
    """Export a run as a published folder with a model card, by default RUN/export.

    `format` None is the layout of the network's kind. The network that the reference's
    `from_pretrained` builds from it has the same logits. `fused` writes the form with
    fused_add_norm, or without; None is the network's own. `license` is for the card. `half` stores
    the weights of the format "safetensors" in 16 bits. Raises `CheckpointError`,
    `UsageError`, `DataError`.
    """

    json_indent: ClassVar[int | None] = 2

    run: Run = field(kw_only=False)
    format: Annotated[
        Layout | None,
        Option("A published layout (default: that of the network's kind), or genodiff's own."),
    ] = None
    out: Annotated[Path | str | None, Option("Folder to write (default: RUN/export).", OUT)] = None
    fused: Annotated[
        bool | None,
        Option(
            "Write the form with fused_add_norm, or without (default: the network's own).",
            negative="--unfused",
        ),
    ] = None
    license: Annotated[str | None, Option("Licence of the weights, for the model card.")] = None
    half: Annotated[
        bool, Option("For genodiff's own format: store weights in 16 bits, not 32.")
    ] = False
    device: Device = "auto"
    force: Force = False

    def answer(self, *given: Any) -> dict[str, Any]:
        run = locate(self.run)
        if self.out is None:
            check_may_write(run, "give --out FOLDER")
        folder = run / "export" if self.out is None else Path(self.out)
        check_new_folder(folder, force=self.force)
        choose_device(self.device)
        from genodiff.hub.export import export_model

        return export_model(
            run, folder, layout=self.format, fused=self.fused, licence=self.license,
            half=self.half, force=self.force,
        )  # fmt: skip

    def conclude(self, answer: Any) -> str:
        step = f"step {answer['step']} ({answer['checkpoint']}) as {answer['format']}"
        return f"{answer['out']}: {step}: {', '.join(answer['files'])}"


@verb(
    "checkpoint fit-memory",
    function="fit_memory",
    help="""
Fit the parameters of a run's memory on its valid split: how often and how faithfully it copies.

They are saved in RUN/memory.json, and --memory on uses them from then on.
""",
)
@dataclass(frozen=True, kw_only=True)
class MemoryFitRequest(Request[dict[str, Any]]):
    """Fit the eleven parameters of a run's memory on its valid split, and save them in the run.

    They describe how often and how faithfully a window copies the training genome; the defaults
    were fitted on yeast. `windows` of each class (unique, touched, repeat) are drawn, with `draws`
    masks each. Returns the content of RUN/memory.json: parameters, fingerprint of the memory, and
    bits per base of those windows without the memory, with the previous parameters, and with the
    new ones. `memory="on"` uses them from then on. With `force` a file there that genodiff did not
    write is replaced. Raises `UsageError`, `DataError`, `CheckpointError`.
    """

    json_indent: ClassVar[int | None] = 2

    run: Run = field(kw_only=False)
    windows: Annotated[int, Ge(1), Option("Windows of each class: unique, touched, repeat.")] = 60
    draws: Annotated[int, Ge(1), Option("Masks per window.")] = 3
    seed: Seed = 1
    device: Device = "auto"
    offline: Offline = False
    force: Force = False

    def answer(self, *given: Any) -> dict[str, Any]:
        here = locate(self.run)
        device = choose_device(self.device)
        from genodiff.hub.source import is_published
        from genodiff.runs.memory_fit import FILE, fit_memory, is_fitted
        from genodiff.runs.model import load_model

        if is_published(here):
            fix = "give a run folder"
            raise UsageError(f"{here} is a published folder, and is never changed", fix=fix)
        model = load_model(here, device)
        check_may_write(model.run, "give the run that it was made of")
        check_target(model.run / FILE, force=self.force, known=is_fitted)
        how = {"windows": self.windows, "draws": self.draws, "seed": self.seed}
        return fit_memory(model, **how, offline=self.offline)

    def conclude(self, answer: Any) -> str:
        told = answer["fitted_on"]
        return (
            f"{Path(self.run) / 'memory.json'}: bits per base on {told['rows']:,} masked windows "
            f"of the valid split: {told['bits_alone']:.4f} without the memory, "
            f"{told['bits_before']:.4f} with the previous parameters, "
            f"{told['bits_after']:.4f} with "
            f"these; next: genodiff eval {self.run} --memory on"
        )


@verb("report", help="Write the report of a run.")
@dataclass(frozen=True, kw_only=True)
class ReportRequest(Request[Path]):
    """Write a page about a run; return its path.

    The default for `out` is RUN/report.html; a file there that genodiff did not write is replaced
    with `force` only. `samples` is a FASTA file (for text, a file of `genodiff sample`) that is
    compared with real sequence instead of the run's own samples; the default for `out` is then
    SAMPLES.html.

    Raises `CheckpointError` if there is no run folder, `DataError` if `samples` does not exist,
    `UsageError`, `MachineError`.
    """

    json_help: ClassVar[str] = ""

    run: Annotated[str | Path, Option("Run folder.", RUN_NAMES, is_word=True)] = field(
        kw_only=False
    )
    out: Annotated[
        Path | str | None, Option("HTML file to write (default: RUN/report.html).", OUT)
    ] = None
    samples: Annotated[
        Path | str | None,
        Option(
            "Samples to compare with real sequence, instead of the run's own; the page is then"
            " SAMPLES.html."
        ),
    ] = None
    force: Force = False
    offline: Offline = True

    def answer(self, *given: Any) -> Path:
        out, samples, force = self.out, self.samples, self.force
        if out is not None:
            check_target(out, force=True)  # the place alone: what is there is judged below
        path = locate(self.run)
        if samples is not None and not Path(samples).is_file():
            raise DataError("there is no such file", file=samples, fix="give a file of samples")
        usual = f"{samples}.html" if samples else path / "report.html"
        target = Path(usual if out is None else out)
        known = _is_older_page if out is None else None
        try:
            if out is None and samples is None:
                check_may_write(path, "give --out FILE.html")
            check_target(target, force=force, inputs=(samples,), known=known)
        except MachineError as fault:
            raise MachineError(fault.what, file=target, fix="give --out FILE.html") from None
        from genodiff.reports.html import write_report

        drawn = None if samples is None else Path(samples)
        return write_report(path, target, samples=drawn, offline=self.offline)

    def show(self, answer: Any) -> None:
        print(answer)


def _is_older_page(path: Path) -> bool:
    """Whether this is a page of ours from before pages were sealed."""
    text = path.read_bytes()
    return b'name="generator" content="genodiff ' in text and b"genodiff wrote this" not in text
