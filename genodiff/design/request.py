"""What `redesign` is asked, in memory and as files. No torch."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

from annotated_types import Ge

from genodiff.constraints.design_rules import RuleWords, Words
from genodiff.errors import UsageError, format_count
from genodiff.generate.request import DrawRequest, Guide
from genodiff.generate.sampling import BatchSize, Sampling, Stride, refuse_novel
from genodiff.io.target import describe_file, is_stream, read_json_object
from genodiff.jobs.journal import Journal
from genodiff.jobs.options import COUNT, OUT, Memory, RegionsInPlace, Seed
from genodiff.jobs.request import Option, Request
from genodiff.jobs.verbs import verb

REQUEST = "genodiffRequest="
"""Stands in a file of edits before the request that it is of."""


def _make_flag(one: Any) -> tuple[str, Any, Any]:
    """A constraint in words as a flag: (name, type, field)."""
    kind, about = get_args(one.type)
    on_line = Sequence[str] | None if kind is Words else bool if kind == bool | None else kind
    return one.name, Annotated[on_line, Option(about)], field(default=None)


RuleFlags = make_dataclass("RuleFlags", [_make_flag(one) for one in fields(RuleWords)])
"""Constraints, as `constraints/design_rules.py` reads them."""


@dataclass(frozen=True, kw_only=True)
class DesignFields:
    """How designs are drawn, and what they satisfy."""

    rules: Annotated[
        Mapping[str, Any] | None,
        Option(
            'Constraints by the names of the flags, such as {"avoid": ["GGTCTC"], "max_edits": 5}.',
            group=RuleFlags,
        ),
    ] = None
    sampler: Annotated[
        str | None, Option("ancestral, confidence, first-hitting [the objective's own].")
    ] = None
    steps: Annotated[int | None, Option("Steps per window (256).")] = None
    temperature: Annotated[float, Option("1 is the model's own distribution.")] = 1.0
    from_noise: Annotated[
        float | None,
        Option(
            "Start from the original sequence, noised to this time (0.1: little, 1: all of it)."
        ),
    ] = None
    stride: Stride = None
    batch_size: BatchSize = None
    most_states: Annotated[
        int | None,
        Ge(1),
        Option(
            "States that the constraints of a region may need (default 8,388,608).",
            ("--max-states",),
            decides="nothing",
        ),
    ] = None
    guide: Guide = None
    oracle_flank: Annotated[
        int, Ge(0), Option("Bases on both sides of a region that are passed to the oracle.")
    ] = 0
    memory: Memory = None
    seed: Seed = 1

    def read_sampling(self, memory: str | None = None) -> Sampling:
        """The settings, judged; `memory` where they name none. Raises `UsageError`."""
        names = {one.name for one in fields(Sampling)} & {one.name for one in fields(self)}
        given = {name: getattr(self, name) for name in names}
        return Sampling(**{**given, "memory": self.memory or memory})

    def check_noise(self, *, stands: bool) -> None:
        """Raises `UsageError` for a time that is none, and where nothing `stands` to begin with."""
        if self.from_noise is None:
            return
        if not 0 < self.from_noise <= 1:
            what = f"--from-noise {self.from_noise:g} is no time of the noise"
            raise UsageError(what, fix="give a number above 0, such as 0.3, and 1 at most")
        if not stands:
            what = (
                "--from-noise starts from the original sequence, and a template has "
                "no bases to change"
            )
            raise UsageError(what, fix="give regions of a sequence, or leave it out")

    def check_flank(self, guide: Mapping[str, Any] | None) -> None:
        """Raises `UsageError` for a flank that nothing sees."""
        if self.oracle_flank and guide is None:
            fix = "give --guidance too, or leave it out"
            raise UsageError(f"--oracle-flank {self.oracle_flank}", fix=fix)


@dataclass(frozen=True, kw_only=True)
class HeldDesignsRequest(DesignFields, Request[Any]):
    """`n` designs of each sequence, whole, that satisfy `rules`: a list of strings.

    Of each sequence the intervals `regions` (0-based, half-open) are designed anew and judged; all
    other letters stay. Without `regions`, N is any base and an IUPAC code one of its set, and the
    whole sequence is judged. A circular `SeqRecord` or GenBank record goes round, and a region of
    it may end beyond its last base.

    With an `oracle` the designs are guided to what it likes, by SMC at strength 1; `guide` has
    further settings, such as `{"strength": 2}` or `{"guidance": "best-of-n"}`. It sees each region
    and `oracle_flank` bases on both sides. A sequence that is a contig of the training genome
    leaves each region's own locus out of its `memory`.

    One sequence gives a list, several a list of lists. Raises `UsageError` with a minimal conflict
    where nothing satisfies all, before the network runs.

    >>> m.redesign("ACGTNNNNNNACGT", 4, rules={"require": ["GAATTC"]})
    >>> m.redesign("ACGTNNNNNNACGT", oracle=lambda some: [s.count("TA") for s in some])
    """

    work: ClassVar[str] = "genodiff.design.redesign_job:design_sequences"

    sequences: Annotated[Any, Option("Sequences to design.")] = field(kw_only=False)
    n: Annotated[int, Ge(1), Option("Designs of each sequence.")] = field(default=1, kw_only=False)
    regions: Annotated[
        Sequence[tuple[int, int]] | None, Option("Intervals (start, end) of each sequence.")
    ] = None
    oracle: Annotated[
        Callable[..., Any] | str | Path | None,
        Option(
            'A callable of a list of strings, "module:function", or the folder of a fine-tuned '
            "model."
        ),
    ] = None

    def read_guide(self) -> Mapping[str, Any] | None:
        """The settings of the guidance, if there is one."""
        if self.oracle is None:
            return self.guide
        return {"guidance": "smc", **(self.guide or {}), "oracle": self.oracle}


@verb(
    "redesign",
    help="""
Design regions of DNA under constraints that every design satisfies.

Unsatisfiable constraints are reported before the network runs, with a minimal conflict. With
--guidance smc, beam, best-of-n or cfg designs are guided too. The same command resumes an
interrupted one.
""",
)
@dataclass(frozen=True, kw_only=True)
class RedesignRequest(DesignFields, DrawRequest):
    """Design regions, and write the designs with their edits as VCF and BED.

    The regions `bed` and `region` of the genome `fasta` are redesigned with their flanks unchanged.
    `circular` names circular contigs, in addition to those marked in the file. Designs are edits
    along the genome: the strand of a row is not used. Alternatively, the open letters of `template`
    are designed: N is any base and an IUPAC code its set. `constraints` is a YAML or JSON file of
    rules. Every design satisfies all. Unsatisfiable constraints are a `UsageError` with a minimal
    conflict, before the network runs.

    For a genome, the edits are written to `vcf` (default OUT.vcf), with a sample for each design,
    and `changes` (default OUT.bed).

    `label` is a class of a run trained with labels, as in `genodiff.sample`. With a `guide` every
    design satisfies the constraints and is guided. An oracle sees each region, and `oracle_flank`
    bases on both sides of it; of a template, all of it. With `memory` the network retrieves from
    its training genome, excluding each region's own locus.

    Finished designs are saved in OUT.partial until `out` is complete, and the same call resumes;
    `fresh` starts anew. With `plan` nothing is drawn. Returns the sidecar. Raises `UsageError`,
    `DataError`, `CheckpointError`, `MachineError`, `Interrupted`.

    >>> genodiff.redesign("runs/demo", out="d.fa", fasta="g.fa", region=["chr1:101-160"], n=2)
    """

    holds: ClassVar[str] = "designs"
    work: ClassVar[str] = "genodiff.design.redesign_job:RedesignJob"

    out: Annotated[
        str | Path,
        Option(
            "FASTA file to write; - for stdout, .gz for BGZF. NAME.gb: GenBank of whole "
            "records with their features, and each region and edit as a feature.",
            OUT,
            decides="nothing",
        ),
    ]
    fasta: Annotated[
        str | Path | None, Option("Genome that contains the regions.", is_input=True)
    ] = None
    circular: Annotated[
        Sequence[str],
        Option(
            "A circular contig, if the GenBank file or [topology=circular] in the FASTA header"
            " does not mark it. Constraints and windows cross its origin, and so may a region,"
            " pX:290-10."
        ),
    ] = ()
    bed: Annotated[
        str | Path | None,
        Option(
            "BED file of regions to design. The strand column is not used: designs are edits "
            "along the genome, and --protein gives the direction of a gene.",
            is_input=True,
        ),
    ] = None
    region: RegionsInPlace = ()
    template: Annotated[
        str | Path | None,
        Option("FASTA file in which N is any base, an IUPAC code one of its set.", is_input=True),
    ] = None
    n: Annotated[int | None, Ge(1), Option("Designs of each region (default 1).", COUNT)] = None
    constraints: Annotated[
        str | Path | None, Option("YAML or JSON file with more constraints.", is_input=True)
    ] = None
    vcf: Annotated[
        str | Path | None,
        Option(
            "VCF of the edits, with a sample for each design (default: OUT.vcf).",
            or_stream=True,
            decides="nothing",
        ),
    ] = None
    changes: Annotated[
        str | Path | None,
        Option("BED file of changed bases (default: OUT.bed).", or_stream=True, decides="nothing"),
    ] = None

    def __post_init__(self) -> None:
        refuse_novel(self.read_sampling())
        super().__post_init__()
        self.check_flank(self.guide)
        self._check_source()
        self.check_noise(stands=self.template is None)
        for flag, path in (("--vcf", self.vcf), ("--changes", self.changes)):
            if self.screen is not None and path is not None and is_stream(path):
                what = f"{flag} to a stream would be written before --screen has answered"
                raise UsageError(what, fix="give the name of a file")

    def _check_source(self) -> None:
        if (self.fasta is None) == (self.template is None):
            neither, both = "neither --fasta nor --template", "--fasta and --template"
            fix = "give --fasta REF with --bed or --region, or --template FILE"
            raise UsageError(neither if self.fasta is None else both, fix=fix)
        if self.fasta is not None and self.bed is None and not self.region:
            raise UsageError("no region of the genome to design", fix="give --bed or --region")
        if self.template is not None and (self.bed is not None or self.region):
            what = "--bed and --region are of a genome, and a template has no bases to change"
            raise UsageError(what, fix="give --fasta in place of --template")
        if self.template is not None and self.vcf is not None:
            raise UsageError("a VCF needs a genome, not a template", fix="leave --vcf out")
        if str(self.fasta) == "-":
            raise UsageError("--fasta needs a genome in a file", fix="give --fasta FILE")

    @property
    def vcf_file(self) -> str | None:
        """Where the edits go; of a stream of designs, nowhere unless that is said."""
        is_default = self.vcf is None and self.template is None and not is_stream(str(self.out))
        return f"{self.out}.vcf" if is_default else _name(self.vcf)

    @property
    def bed_file(self) -> str | None:
        """Where the places of the edits go, likewise."""
        is_default = self.changes is None and not is_stream(str(self.out))
        return f"{self.out}.bed" if is_default else _name(self.changes)

    def list_files(self) -> list[str]:
        """All files that are written."""
        more = [one for one in (self.vcf_file, self.bed_file) if one is not None]
        return [one for one in (*super().list_files(), *more) if one != "-"]

    def is_ours(self, file: Path) -> bool:
        """As of every request; the sidecar tells of the edits, too."""
        if str(file) in (self.vcf_file, self.bed_file):
            return know_edits(file, self.sidecar_file, self.partial)
        return super().is_ours(file)

    def summarise(self, told: Mapping[str, Any]) -> str:
        """What was written, in a line."""

        def count(key: str) -> int:
            return sum(record[key] for record in told["records"])

        counts = {"design": len(told["records"]), "base": count("length")}
        counts |= {"filled base": filled} if (filled := count("filled")) else {}
        counts |= {"edit": count("edits"), "evaluation": told["evaluations"]}
        said = ", ".join(format_count(n, noun) for noun, n in counts.items())
        met = [str(one) for one in told["constraints"]]
        more = f" and {len(met) - _MOST_NAMED} more" if len(met) > _MOST_NAMED else ""
        said += f"; constraints met: {', '.join(met[:_MOST_NAMED])}{more}" if met else ""
        parts = ["the model"] * (told["run"] != "none")
        parts += ["the related genomes"] * bool(told.get("relatives"))
        source = " and ".join(parts)
        how = f"guided ({told['guidance']})" if "guidance" in told else "no score is optimised"
        said += f"; bases drawn by their probability given {source}, {how}"
        files = [one for one in (self.vcf_file, self.bed_file) if one not in (None, "-")]
        return f"{said}; edits in {' and '.join(map(str, files))}" if files else said


_MOST_NAMED = 4


def _name(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def know_edits(file: Path, sidecar: str, partial: str) -> bool:
    """Whether a file is ours: the sidecar describes it, or a request that is not done wrote it."""
    try:
        told = read_json_object(sidecar)
        said = told.get("edits") if isinstance(told.get("genodiff"), str) else None
        some = said.values() if isinstance(said, dict) else ()
        mine = describe_file(file)
        if any(isinstance(one, dict) and mine.items() <= one.items() for one in some):
            return True
        with open(file, "rb") as opened:
            lines = [line[:4096].decode("utf-8", "replace") for line in islice(opened, 4)]
    except OSError:
        return False
    marks = [line.partition(REQUEST)[2].strip() for line in lines if REQUEST in line]
    return bool(marks) and Journal.read_request(partial) in marks
