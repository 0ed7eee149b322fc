"""What `genodiff constraint` and `genodiff align` are given. No torch, and nothing heavy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Gt

from genodiff.errors import UsageError, format_count
from genodiff.io.target import check_new_folder, is_own_folder
from genodiff.jobs.options import OUT, FileRequest, Regions, RelativeFiles, ShardWords, Strains
from genodiff.jobs.request import Option
from genodiff.jobs.shards import Shard, parse_shard
from genodiff.jobs.verbs import verb
from genodiff.maps.track_format import (
    NO_EMAIL,
    check_formats,
    check_hub_options,
    check_track_output,
    list_formats,
)

SIDECAR, PAGE = "constraint.json", "constraint.html"
_FORMATS = [one for one in list_formats() if one not in ("svg", "png", "pdf", "html")]
HOLDS, ALIGNED = "constraint of the bases of a shard", "an alignment's shard"


@dataclass(frozen=True, kw_only=True)
class GenomeRequest(FileRequest):
    """A request that reads a genome with related genomes alone, whole or in regions, in shards."""

    run: str = field(default="", init=False)  # type: ignore[assignment]
    genome: Annotated[
        Any, Option("FASTA file of the genome.", ("--fasta",), is_word=True, is_input=True)
    ] = field(kw_only=False)
    relatives: RelativeFiles = ()
    region: Regions = ()
    bed: Annotated[
        str | Path | None,
        Option("BED file of regions, which are read along the genome.", is_input=True),
    ] = None
    strains: Strains = False
    shard: ShardWords = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.relatives:
            what = "no related genomes"
            raise UsageError(what, fix="give --relatives FILE, the assembly of a related species")

    @property
    def part(self) -> Shard | None:
        """The shard, parsed."""
        return None if self.shard is None else parse_shard(self.shard)

    def check(self) -> None:
        """Raises as `check_files`."""
        self.check_files()


@verb(
    "constraint",
    help="""
Evolutionary constraint of each base of a genome, from unaligned genomes of related species.

Two FASTA files in, a number for every base out: rejected substitutions, phyloP's scale, the
probability of conservation, coverage, and conserved elements, as a track hub.
""",
)
@dataclass(frozen=True, kw_only=True)
class ConstraintRequest(GenomeRequest):
    """Compute the evolutionary constraint of each base from unaligned related genomes.

    No model, alignment, tree or annotation is needed. `genome` is a FASTA file. Each related genome
    is indexed and fitted at its first use. The output folder holds tracks: rejected substitutions
    (`rs`, GERP's scale), `phylop` (phyloP's CONACC scale), `conserved` (probability of the slow
    classes), `rate` (posterior mean; 1 is neutral), `coverage` and tree `length`; elements.bed,
    conserved elements with a false discovery rate; constraint.html, a page; and a UCSC track hub. A
    base where no related genome aligns has no value. Rate 1 is that of the sites of `neutral`, else
    of fourfold sites of `genes`, else of third codon positions or the fastest class of the fitted
    model.

    Work is saved in OUT.partial until `out` is complete, and the same call resumes; `fresh` starts
    anew. With `plan` nothing is indexed, fitted or read. Returns the sidecar. Raises `UsageError`,
    `DataError`, `MachineError`.

    >>> genodiff.constraint("genome.fa", relatives=["relative.fa"], out="constraint")
    """

    work: ClassVar[str] = "genodiff.conservation.job:ConstraintJob"

    out: Annotated[
        str | Path,
        Option("Folder to write; with --shard a .npy file of the part.", OUT, decides="nothing"),
    ]
    neutral: Annotated[
        str | Path | None,
        Option("BED file of neutral sites, whose rate is 1.", is_input=True),
    ] = None
    genes: Annotated[
        str | Path | None,
        Option(
            "GFF3, GTF, BED or GenBank file: rate 1 is that of its fourfold sites, and constraint "
            "is tabulated by codon position, UTR, intron and intergenic sequence.",
            ("--genes", "--features"),
            is_input=True,
        ),
    ] = None
    fdr: Annotated[
        float, Gt(0), Option("False discovery rate of conserved elements.", decides="output")
    ] = 0.05
    maf: Annotated[
        bool,
        Option("Also write the alignment that was scored, alignment.maf.", decides="output"),
    ] = False
    formats: Annotated[
        Sequence[str] | None,
        Option(
            f"{', '.join(_FORMATS)}; one or several [bigwig].",
            ("--format",),
            decides="output",
        ),
    ] = None
    assembly: Annotated[
        str | None,
        Option(
            "UCSC's name of the genome for the hub (default: the hub includes the sequence).",
            decides="output",
        ),
    ] = None
    email: Annotated[str, Option("Contact e-mail address in the hub.", decides="output")] = NO_EMAIL

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.fdr > 1:
            raise UsageError(f"--fdr {self.fdr} is above 1", fix="give a share, such as 0.05")
        check_hub_options(self.assembly, self.email)
        check_track_output(self.out, shard=self.part is not None)
        check_formats(self.formats or ())

    def check(self) -> None:
        """Raises as every request of a file; a folder is replaced where it is genodiff's own."""
        if self.part is not None:
            super().check()
            return
        own = is_own_folder(self.out, SIDECAR)
        check_new_folder(self.out, force=self.force or own, inputs=self.list_inputs())

    def summarise(self, told: Mapping[str, Any]) -> str:
        """What was written, in a line."""
        parts = [format_count(told["bases"], "base")]
        if "scored" in told:
            share = told["scored"] / max(told["known"], 1)
            parts.append(f"{told['scored']:,} scored ({share:.1%} of known bases)")
            elements = format_count(told["elements"], "conserved element")
            parts.append(f"{elements} at FDR {told['fdr']}")
        if n := told.get("rs_values"):
            few = format_count(n, "value")
            parts.append(f"rs takes only {few}: rank bases by conserved or rate")
        return ", ".join(parts)

    def name_next(self, told: Mapping[str, Any]) -> str:
        """The page."""
        return f"open {str(self.out).rstrip('/')}/{PAGE}"


@verb(
    "align",
    help="""
Align a related genome to a genome, as PAF: search once, then use it in every verb.

`--relatives FASTA:ALIGNMENT` takes the alignment in place of the search, so many large genomes need
one index in memory at a time.
""",
)
@dataclass(frozen=True, kw_only=True)
class AlignRequest(GenomeRequest):
    """Align one unaligned related genome to a genome; the output is PAF with `cg`.

    Each base of `genome` gets the likeliest base of the related genome, by the search and the model
    of insertions, deletions and rates that `constraint` and `score` use, or none where a homologous
    base is less likely than not. Stretches less than 200 bases apart in both genomes are one
    record. `relatives` is one genome, which is indexed and fitted at its first use. Give the result
    as `--relatives FASTA:ALIGNMENT` to any verb.

    Work is saved in OUT.partial until `out` is complete, and the same call resumes; `fresh` starts
    anew. With `plan` nothing is indexed, fitted or read. Returns the sidecar. Raises `UsageError`
    for several genomes, `DataError`, `MachineError`.

    >>> genodiff.align("genome.fa", relatives=["relative.fa"], out="relative.paf")
    """

    work: ClassVar[str] = "genodiff.conservation.align_job:AlignJob"
    holds: ClassVar[str] = "the alignment"

    out: Annotated[
        str | Path,
        Option("x.paf, or - for stdout; with --shard a .npy file.", OUT, decides="nothing"),
    ]

    def __post_init__(self) -> None:
        super().__post_init__()
        ending = ".npy" if self.part else ".paf"
        if not self.is_stream and Path(self.out).suffix != ending:
            raise UsageError(f"{self.out} does not end in {ending}", fix=f"give a name{ending}")

    def summarise(self, told: Mapping[str, Any]) -> str:
        """What was written, in a line."""
        share = told["aligned"] / max(told["bases"], 1)
        counted = format_count(told["bases"], "base")
        return f"{counted}, {told['aligned']:,} aligned ({share:.1%})"

    def name_next(self, told: Mapping[str, Any]) -> str:
        """A command that reads the alignment."""
        given = self.relatives[0] if Path(str(self.relatives[0])).is_file() else "FASTA"
        return f"genodiff constraint {self.genome} --relatives {given}:{self.out} -o constraint"
