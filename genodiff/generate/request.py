"""What `sample` is asked, in memory and as a file, and what every drawing is asked. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt

from genodiff.domain import DOMAINS
from genodiff.errors import UsageError, format_count
from genodiff.generate.output_file import Screener
from genodiff.generate.sampling import GuideSettings, Sampling, check_guide, refuse_novel
from genodiff.io.target import is_genbank, is_stream
from genodiff.jobs.options import (
    COUNT,
    OUT,
    Block,
    FileRequest,
    OptionalRun,
    RegionsInPlace,
    RelativeFiles,
    Seed,
    Strains,
)
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import find_only_run, locate

_OTHER_FORMATS = {
    ".gbff", ".embl", ".vcf", ".bed", ".gff", ".gff3", ".gtf", ".csv",
    ".tsv", ".parquet", ".xlsx", ".html", ".pdf", ".png", ".svg", ".bam", ".2bit",
}  # fmt: skip

Out = Annotated[
    str | Path | None,
    Option("As in the command; for text the file to write.", OUT, decides="nothing"),
]
Guide = Annotated[
    Mapping[str, Any] | None,
    Option(
        "Guidance by the settings of `genodiff.generate.sampling.GuideSettings`, such as "
        '{"guidance": "smc", "oracle": score}.',
        group=GuideSettings,
    ),
]


@dataclass(frozen=True, kw_only=True)
class SampleFields(Sampling):
    """How new sequences and fillings are drawn."""

    block: Block = None
    seed: Seed = 1


@dataclass(frozen=True, kw_only=True)
class HeldSampleRequest(SampleFields, Request[list[Any]]):
    """`n` new sequences as strings, those that `genodiff sample` writes with the same settings.

    `length` is in bases, of text in tokens, and may exceed the trained length, its default.
    `prompt` is how each text begins. Record i depends on (`seed`, i) alone. With `records`, each is
    a `SampledSequence`. Raises `UsageError` for settings that contradict one another.

    >>> m.sample(4, length=200)
    """

    work: ClassVar[str] = "genodiff.generate.sample_job:draw_sequences"

    n: Annotated[int, Ge(1), Option("Number of sequences.")] = field(default=1, kw_only=False)
    length: Annotated[
        int | None, Ge(1), Option("Positions of each (default: the trained length).")
    ] = None
    prompt: Annotated[str | None, Option("For text: how each begins.")] = None
    records: Annotated[bool, Option("Also return names and evaluations.")] = False


@dataclass(frozen=True, kw_only=True)
class InfillRequest(SampleFields, Request[Any]):
    """`sequences` with every N, n and ? filled, in the form in which they were given.

    A string gives a string, a list a list, a `SeqRecord` a `SeqRecord`, a path a list of strings,
    as does a frame. Every other letter stays as it is, lower case and IUPAC codes included. It is
    what `genodiff sample --template` writes. Of text, gaps are `[[20]]`: 20 tokens. With `records`,
    each is a `SampledSequence`.

    >>> m.infill("ACGTNNNNACGT")
    """

    work: ClassVar[str] = "genodiff.generate.sample_job:fill_sequences"

    sequences: Annotated[Any, Option("Sequences with gaps.")] = field(kw_only=False)
    records: Annotated[bool, Option("Also return names and evaluations.")] = False


@dataclass(frozen=True, kw_only=True)
class DrawRequest(FileRequest):
    """What a file of records that a model draws is asked."""

    holds: ClassVar[str] = "the samples"

    run: OptionalRun = field(default=None, kw_only=False)  # type: ignore[assignment]
    line_width: Annotated[
        int, Ge(0), Option("Bases per line; 0: one line per sequence.", decides="output")
    ] = 60
    sidecar: Annotated[
        str | Path | None,
        Option("Path of the sidecar (default: OUT.json).", or_stream=True, decides="nothing"),
    ] = None
    label: Annotated[
        str | None,
        Option("Sample from this class of a run with labels; with cfg, guide towards it."),
    ] = None
    guide: Guide = None
    relatives: RelativeFiles = ()
    strains: Strains = False
    screen: Annotated[
        str | Sequence[str] | None,
        Option(
            "Command that receives the FASTA file, as its last argument, before anything is "
            "written; a non-zero exit status rejects it.",
            decides="nothing",
        ),
    ] = None
    screen_timeout: Annotated[
        float | None, Option("Time limit of --screen, in seconds [none].", decides="nothing")
    ] = None
    seed: Seed = 1

    def name_output(self) -> None:
        """Say which file is written, before it is judged."""

    def __post_init__(self) -> None:
        self.name_output()
        super().__post_init__()
        ending = Path(str(self.out)).suffix.lower()
        if ending in _OTHER_FORMATS and getattr(self, "known", None) != "text":
            what = f"--out {self.out}: sequences are written as FASTA (.fa) or GenBank (.gb)"
            raise UsageError(what, fix=f"give {Path(str(self.out)).stem}.fa")
        if is_genbank(str(self.out)) and self.screen is not None:
            raise UsageError("--screen reads FASTA", fix="give --out NAME.fa, or no --screen")
        if self.guide is not None:
            check_guide(self.guide)
        self.open_screener()

    @property
    def sidecar_file(self) -> str:
        """The file that says where the output is from; "-" where there is none."""
        if self.sidecar is not None:
            return str(self.sidecar)
        return "-" if is_stream(str(self.out)) else f"{self.out}.json"

    def list_files(self) -> list[str]:
        return [str(self.out), *(one for one in [self.sidecar_file] if one != "-")]

    def find_run(self) -> Path:
        return find_only_run() if self.run is None else locate(self.run)

    def open_screener(self) -> Screener | None:
        """What sees the records before they are written. Raises as `Screener` does."""
        if self.screen is not None:
            return Screener(self.screen, self.screen_timeout)
        if self.screen_timeout is not None:
            raise UsageError("--screen-timeout is for --screen", fix="leave it out")
        return None


@verb(
    "sample",
    help="""
Sample DNA to FASTA: new sequences, gaps of a template, or regions of a genome.

The same command resumes an interrupted one; finished records are saved.
""",
)
@dataclass(frozen=True, kw_only=True)
class SampleRequest(SampleFields, DrawRequest):
    """Write new sequences, or fillings of a template, with their provenance.

    `run` is a run, a checkpoint or a published folder; None is the only run under runs/. The output
    is FASTA (.gz is BGZF), for text a text file; "-" is stdout. The default is 16 new sequences,
    for text 4. `template` is a FASTA file whose N and ? are filled, every other letter unchanged.
    With `bed` or `region` only these bases of the template are filled, whatever they are and on
    whatever strand, and `only_filled` writes only them. For text, `prompt` is how each sample
    begins, and a template has gaps such as [[20]].

    `bits_lost` chooses the steps by the curve of the valid split. Record i depends on (`seed`, i)
    only. `label` is a class of a run trained with labels: samples are drawn from it, or with cfg
    guided towards it. `screen` receives all samples before anything is written; nothing is saved in
    OUT.partial then.

    Finished records are saved in OUT.partial until `out` is complete, and the same call resumes;
    `fresh` starts anew. With `plan` nothing is written, and evaluations and seconds are returned,
    with printable "lines"; otherwise the sidecar. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`, `Interrupted`.

    >>> genodiff.sample("runs/demo", out="new.fa", n=4, length=200)
    """

    work: ClassVar[str] = "genodiff.generate.sample_job:SampleJob"

    fasta: Annotated[
        str | Path | None,
        Option(
            "FASTA file to write; - for stdout, .gz for BGZF, .gb for GenBank. With --bed or "
            "--region and no --template: the genome that contains them.",
            or_stream=True,
            decides="nothing",
        ),
    ] = None
    out: Out = None  # type: ignore[assignment]
    n: Annotated[
        int | None,
        Ge(1),
        Option("Sequences (default 16), or fillings of each template (default 1).", COUNT),
    ] = None
    length: Annotated[
        int | None,
        Ge(1),
        Option(
            "Bases per sequence (default: the trained length); longer sequences grow window"
            " by window."
        ),
    ] = None
    template: Annotated[
        str | Path | None,
        Option(
            "FASTA file (- for stdin) whose N and ? are filled, every other letter unchanged.",
            is_input=True,
            or_stream=True,
        ),
    ] = None
    bed: Annotated[
        str | Path | None,
        Option(
            "BED file: fill only these bases of --template, whatever they are; N elsewhere is "
            "preserved. The strand column is not used: bases are filled in place.",
            is_input=True,
        ),
    ] = None
    region: RegionsInPlace = ()
    only_filled: Annotated[
        bool, Option("Write only the regions of --bed and --region, not the genome.")
    ] = False
    prompt: Annotated[str | None, Option("For text: how each sample begins.")] = None
    bits_lost: Annotated[
        float | None,
        Gt(0),
        Option(
            "Choose the steps: the fewest that lose at most this many bits per 1,000 bases, "
            "compared with one base at a time."
        ),
    ] = None
    domain: Annotated[
        Literal["dna", "text"] | None,
        Option("Expected domain of the checkpoint.", decides="nothing"),
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bits_lost is not None and self.steps not in (None, "auto"):
            what = "--bits-lost chooses the steps, and --steps gives them"
            raise UsageError(what, fix="give one")
        if self.prompt is not None and self.domain == "dna":
            raise UsageError("a prompt is for text, and the domain is dna", fix="leave it out")
        if self.known == "text":
            self.refuse_for_text()
        if self.template is not None and self.length is not None:
            what = "--length and --template contradict each other"
            raise UsageError(what, fix="leave --length out")
        if self.is_partly and self.template is None:
            what = "no genome for the regions to fill"
            raise UsageError(what, fix="give --template FASTA")
        if self.is_partly:
            refuse_novel(self)
        if self.is_partly and not self.only_filled and is_genbank(str(self.out)):
            what = f"--out {self.out}: a filled genome is written as FASTA"
            raise UsageError(what, fix="give --out NAME.fa, or --only-filled")
        if self.only_filled and not self.is_partly:
            raise UsageError("--only-filled is for --bed and --region", fix="give one of them")

    def name_output(self) -> None:
        """Let `fasta` be `out`, and say that it is of DNA; beside regions it is the template.

        Raises `UsageError` for no file to write, or two.
        """
        if self.is_partly and self.template is None and self.known != "text":
            for name, value in (("template", self.fasta), ("fasta", None), ("domain", "dna")):
                object.__setattr__(self, name, value)
        if self.fasta is not None and self.known == "text":
            fix = "give --out FILE, or leave --domain text out"
            raise UsageError("--fasta is for DNA, and text is written to --out", fix=fix)
        if self.fasta is not None and self.out is not None:
            fix = f"a genome to fill is read with --template {self.fasta}; else give one of the two"
            raise UsageError("--fasta and --out both name the output file", fix=fix)
        if self.fasta is None and self.out is None:
            fix = "give --out FILE; - is stdout"
            raise UsageError("no file to write", fix=fix)
        if self.fasta is not None:
            for name, value in (("out", self.fasta), ("fasta", None), ("domain", "dna")):
                object.__setattr__(self, name, value)

    @property
    def known(self) -> str | None:
        """The domain, where it follows from what is asked."""
        return "text" if self.prompt is not None else self.domain

    @property
    def is_partly(self) -> bool:
        """Whether regions of the template are filled, and not its N."""
        return self.bed is not None or bool(self.region)

    def refuse_for_text(self) -> None:
        """Raises `UsageError` for what text has not."""
        dna = {
            "--allow-n": self.allow_n, "--line-width": self.line_width != 60,
            "--bed": self.bed is not None, "--region": bool(self.region),
            "--only-filled": self.only_filled, "--memory": self.memory not in (None, "off"),
            "--screen": self.screen is not None,
        }  # fmt: skip
        for flag, is_given in dna.items():
            if is_given:
                raise UsageError(f"{flag} is for DNA, and this is text", fix="leave it out")

    def summarise(self, told: Mapping[str, Any]) -> str:
        records, unit = told["records"], DOMAINS[told.get("domain", "dna")].unit
        positions = sum(record["length"] for record in records)
        filled = sum(record.get("filled", record["length"]) for record in records)
        size = format_count(positions, unit)
        size = size if filled == positions else f"{filled:,} of {size} filled"
        calls = format_count(told["evaluations"], "evaluation")
        return f"{format_count(len(records), 'record')}, {size}, {calls}"

    def name_next(self, told: Mapping[str, Any]) -> str:
        if told.get("domain", "dna") != "dna" or self.template or self.bed or self.region:
            return ""
        has_data = self.run is not None and Path(self.run).is_dir()
        real = f"--model {self.run}" if has_data else "--real GENOME.fa"
        return f"genodiff scorecard {self.out} {real}"
