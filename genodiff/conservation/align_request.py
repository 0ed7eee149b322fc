"""What `genodiff align` is given. No torch, and nothing heavy."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.conservation.request import GenomeRequest
from genodiff.errors import UsageError, format_count
from genodiff.jobs.options import OUT
from genodiff.jobs.request import Option
from genodiff.jobs.verbs import verb

ALIGNED = "an alignment's shard"


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
