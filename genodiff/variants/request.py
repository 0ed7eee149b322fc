"""What `score` is asked, in memory and as a file. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.errors import UsageError, format_count
from genodiff.jobs.options import (
    OUT,
    FileRequest,
    JsonLines,
    RelativeFiles,
    ShardWords,
    Strains,
    Unit,
    choose_target,
)
from genodiff.jobs.request import Option, Request
from genodiff.jobs.shards import Shard, parse_shard
from genodiff.jobs.verbs import verb
from genodiff.scoring.methods import ScoreOptions

ENDINGS = (".vcf", ".vcf.gz", ".tsv", ".tsv.gz", ".parquet", ".jsonl")
PLACES, LEAST_PLACES = 10_000, 100
"""Places of SNVs that `--background on` draws, and the fewest that may be asked for."""

LOAD_COLUMNS = {
    "sample": "as named in the VCF",
    "class": "all variants, or the most severe consequence (--features)",
    "derived": "alleles carried that are not the ancestral base (AA)",
    "homozygous": "sites at which all copies are derived",
    "heterozygous": "sites at which some copies are derived",
    "load": "sum of GD_RS (at least 0) over derived alleles",
    "load_homozygous": "the part of load at homozygous sites",
    "score": "sum of log-likelihood ratios of derived against ancestral bases, nats",
    "ancestral": "alleles carried that are the ancestral base",
    "unjudged": "alleles of records whose AA is unknown or below 0.9",
    "missing": "missing calls",
}
"""Of `--load` (`load.py`), and what each is."""


@dataclass(frozen=True, kw_only=True)
class ScoreFields(ScoreOptions):
    """Which variants are scored, how, and what stands beside a score."""

    variants: Annotated[
        Any,
        Option(
            "VCF, BCF, CSV, TSV, JSON lines or parquet (chrom, pos, ref, alt); - for stdin.",
            is_word=True,
            is_input=True,
        ),
    ] = field(kw_only=False)
    fasta: Annotated[str | Path, Option("Genome of the variants.", is_input=True)]
    unit: Unit = "nats"
    background: Annotated[
        int | str,
        Option(
            "Compute percentiles against random variants of the genome: off, on (10,000), or "
            "their number. Cached after the first run (see --plan).",
            decides="output",
        ),
    ] = "off"
    haplotypes: Annotated[
        bool,
        Option(
            "Also score the phased variants of one copy together, from GT and PS: as FORMAT "
            "fields of a VCF, or a column of a table. This costs evaluations (see --plan)."
        ),
    ] = False
    features: Annotated[
        str | Path | None,
        Option(
            "Genes (GFF3, GTF, BED12, GenBank): adds the consequence of each variant "
            "(missense, splice donor, ...).",
            ("--features", "--genes"),
            is_input=True,
            decides="output",
        ),
    ] = None
    genetic_code: Annotated[
        Sequence[str],
        Option(
            "CONTIG=N, with --features: NCBI's number of a contig's genetic code, if the "
            "annotation does not give it; chrM=2. Repeatable.",
            decides="output",
        ),
    ] = ()
    region: Annotated[
        Sequence[str],
        Option(
            "Only variants in chr1:1,000-2,000, 1-based and inclusive; one or several.",
            ("--region", "--regions"),
        ),
    ] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.genetic_code and self.features is None:
            raise UsageError("--genetic-code without --features", fix="give an annotation")
        count_places(self.background)

    @property
    def places(self) -> int | None:
        """How many places the background draws; None without one."""
        return count_places(self.background)


@dataclass(frozen=True, kw_only=True)
class HeldScoreRequest(ScoreFields, Request[Any]):
    """Scores of variants: a row for each ALT, in their order, as `genodiff score` writes them.

    `variants` is a file (VCF, BCF, CSV, TSV, parquet), a frame of polars or pandas with chrom, pos
    (from 1), ref and alt, or rows of these four: tuples, named tuples, mappings, records of pysam.
    One row may stand alone.

    `score` is the log-likelihood of ALT minus that of REF, in `unit`: positive where ALT is
    likelier. It is null where `flags` says why there is none. `method` auto is profiles with
    relatives; else llr for one base, chain for spans of up to 8, nelbo beyond; nelbo that ends
    above `se` has the flag se_above_wanted. `background` adds percentile, z and phred. `haplotypes`
    adds a column with a row for each copy that carries the ALT. `features` adds gene, consequence,
    protein and transcripts. Raises `UsageError` for a model of text, `DataError` for variants of
    another genome.

    >>> m.score([("chr1", 1200, "A", "G")], fasta="genome.fa")["score"]
    """

    work: ClassVar[str] = "genodiff.variants.score_job:score_held"


@verb(
    "score",
    help="""
Score variants: the log-likelihood ratio of ALT to REF under a model.

Positive: ALT is likelier. Input is VCF, BCF, CSV, TSV, JSON lines or parquet, including CADD's and
this verb's own; output is VCF, TSV (in CADD's order of columns), parquet or JSON lines. Records
keep their order, and none is dropped: an ALT that cannot be scored has its reason. The same command
resumes an interrupted one.
""",
)
@dataclass(frozen=True, kw_only=True)
class ScoreRequest(ScoreFields, FileRequest):
    """Score a file of variants and write `out`; returns the sidecar.

    `variants` is VCF, BCF or a table (CSV, TSV, parquet) with chrom, pos (from 1), ref and alt; "-"
    is stdin. `out` ends in .vcf, .tsv, .parquet or .jsonl, or in .vcf.gz or .tsv.gz, which get an
    index if the records are sorted; "-" is stdout, as JSON lines with `json`. Records keep their
    order, and none is dropped: an ALT without a score has its reason.

    With `shard`, "i/n", the i-th of n parts of the records is written, and `genodiff.merge`
    combines the parts. Scores are saved in OUT.partial until `out` is complete, and the same call
    resumes; `fresh` starts anew. With `plan` nothing is computed, and counts are returned. Random
    variants of a `background` are cached.

    A file most of whose records do not fit the genome is refused. If some do not, `out` is written
    completely, they are marked in it, and `DataError` is raised at the end, unless
    `allow_mismatches`. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.score("runs/demo", "variants.vcf", fasta="genome.fa", out="scored.vcf")
    """

    work: ClassVar[str] = "genodiff.variants.score_job:ScoreJob"

    out: Annotated[
        str | Path,
        Option(
            ".vcf, .tsv, .parquet or .jsonl; .vcf.gz and .tsv.gz get an index; - for stdout.",
            OUT,
            decides="nothing",
        ),
    ] = ""
    shard: ShardWords = None
    allow_mismatches: Annotated[
        bool, Option("Mark records that do not fit the FASTA without an error.", decides="nothing")
    ] = False
    relatives: RelativeFiles = ()
    strains: Strains = False
    load: Annotated[
        str | Path | None,
        Option(
            "Also write a table of genetic load by sample, LOAD.tsv: derived alleles and their "
            "constraint, by consequence with --features. Needs --relatives and genotypes.",
            is_output=True,
            decides="output",
        ),
    ] = None
    json: JsonLines = False

    def __post_init__(self) -> None:
        if not isinstance(self.variants, str | Path):
            what = f"a {type(self.variants).__name__} is no file of variants"
            raise UsageError(what, fix="give its path; score_variants takes variants in memory")
        super().__post_init__()
        object.__setattr__(self, "out", choose_target(self.out, json=self.json, plan=self.plan))
        _ = self.part
        if self.load is not None and not self.relatives:
            raise UsageError("--load without --relatives", fix="give genomes of related species")
        if self.load is not None and self.part is not None:
            what = "--load counts all records, and --shard has some"
            raise UsageError(what, fix="leave out the shard")

    @property
    def part(self) -> Shard | None:
        """The shard, parsed."""
        return None if self.shard is None else parse_shard(self.shard)

    def is_ours(self, file: Path) -> bool:
        """A table of load may be replaced."""
        return super().is_ours(file) or (file == Path(self.load or "") and _is_load(file))

    def find_form(self, source: str) -> str:
        """The ending that says what is written; stdout is VCF for a VCF or BCF, else a TSV."""
        plain = ".tsv" if source == "table" else ".vcf"
        return find_ending(self.out) or (".jsonl" if self.json else plain)

    def list_files(self) -> list[str]:
        """With the index of what is compressed."""
        files, zipped = super().list_files(), str(self.out).lower().endswith(".gz")
        files += [] if self.load is None else [str(self.load)]
        return [*files, f"{self.out}.tbi"] if zipped and not self.is_stream else files

    def check(self) -> None:
        """As every request of a file; but a run that is not there is told after faulty variants."""
        self.check_files()
        if str(self.out) != "-" and find_ending(self.out) is None:
            what = "has none of the endings " + ", ".join(ENDINGS)
            raise UsageError(what, file=self.out, fix="give one of them, or - for stdout")

    def summarise(self, told: Mapping[str, Any]) -> str:
        unscored, records = dict(told["unscored"]), format_count(told["records"], "record")
        said = f"{records}, {format_count(told['scored'], 'ALT')} scored, "
        said += f"{sum(unscored.values()):,} not"
        why = [f"{n:,} {one}" for one, n in unscored.items()]
        if "too_long" in unscored:
            limit = f"(more than {self.longest:,} bases: --longest)"
            why = [f"{one} {limit}" if one.endswith("too_long") else one for one in why]
        said += f": {', '.join(why)}" if why else ""
        if n := told.get("outside_regions"):
            said += f"; {format_count(n, 'record')} outside of the regions left out"
        if (n := told.get("samples_not_scored")) and not str(told["format"]).startswith("vcf"):
            said += f"; {format_count(n, 'sample')} not written (--haplotypes scores them)"
        if names := told.get("columns_not_written"):
            shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
            said += f"; {format_count(len(names), 'column')} of the table not written ({shown})"
        if told.get("load"):
            samples, alleles, unjudged, _ = told["load"].values()
            said += f"; {self.load}: {format_count(samples, 'sample')}"
            said += f", {unjudged / max(alleles, 1):.0%} of alleles unjudged (AA unknown or unsure)"
            said += "" if self.is_stream else f", columns explained in {self.sidecar_file}"
        if n := told.get("rs_values"):
            said += f"; with few related genomes GD_RS takes only {format_count(n, 'value')}"
        return said


def _is_load(path: Path) -> bool:
    """Whether a file is a table of load."""
    with path.open("rb") as file:
        return file.readline().decode("utf-8", "replace").rstrip().split("\t") == [*LOAD_COLUMNS]


def find_ending(path: str | Path) -> str | None:
    """Which of `ENDINGS` a file has; None for another."""
    return next((one for one in ENDINGS if str(path).lower().endswith(one)), None)


def count_places(background: int | str) -> int | None:
    """How many places `--background` asks for, None for off. Raises `UsageError`."""
    text = str(background)
    if text in ("off", "on"):
        return PLACES if text == "on" else None
    if not text.isdecimal() or not LEAST_PLACES <= int(text) <= 10**9:
        fix = f"give off, on ({PLACES:,}), or a number from {LEAST_PLACES}"
        raise UsageError(f"--background {text} is no number of variants", fix=fix)
    return int(text)
