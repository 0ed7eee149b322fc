"""What `ism` and `dependencies` are asked, in memory and as files. No torch.

What `tracks` is asked, in memory and as a folder of files. No torch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from annotated_types import Ge

from genodiff.errors import UsageError, format_count
from genodiff.io.target import check_new_folder, is_own_folder
from genodiff.jobs.options import (
    OUT,
    Context,
    FileRequest,
    Genes,
    MapSequences,
    Memory,
    Regions,
    RelativeFiles,
    ShardWords,
    Strains,
    TurnedBed,
    Unit,
    WindowBatch,
)
from genodiff.jobs.request import Option, Request
from genodiff.jobs.shards import Shard, parse_shard
from genodiff.jobs.verbs import verb
from genodiff.maps.map_format import DRAWN, find_map_format
from genodiff.maps.track_format import (
    LEAST_CONTEXT,
    NO_EMAIL,
    SIDECAR,
    check_formats,
    check_hub_options,
    check_track_output,
    list_formats,
)
from genodiff.runs.run_paths import locate


@dataclass(frozen=True, kw_only=True)
class MapFields:
    """Of which regions a map is, and how a model reads them."""

    sequences: MapSequences = field(kw_only=False)
    region: Regions = ()
    bed: TurnedBed = None
    context: Context = None
    unit: Unit = "nats"
    memory: Memory = None
    batch_size: WindowBatch = 8


@dataclass(frozen=True, kw_only=True)
class SaturationFields(MapFields):
    """What saturation mutagenesis is asked beside its regions."""

    label: Annotated[
        str | None, Option("For a fine-tuned classifier: the class whose log-odds are used.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class DependencyFields(MapFields):
    """What dependency maps are asked beside their regions."""

    every: Annotated[
        int,
        Ge(2),
        Option(
            "Targets this many bases apart are masked together (approximate; the change is "
            "reported)."
        ),
    ] = 16
    exact: Annotated[bool, Option("Mask each target separately: 3 evaluations per pair.")] = False

    @property
    def apart(self) -> int | None:
        """How far apart targets are that are masked together; None where each is by itself."""
        return None if self.exact else self.every


@dataclass(frozen=True, kw_only=True)
class SaturationRequest(SaturationFields, Request[Any]):
    """Scores (4, L), float64, of every base in place of every base: saturation mutagenesis.

    Rows are A, C, G and T, as in one-hot arrays (N, 4, L). A score is log p(base | all others)
    − log p(reference | all others) in `unit`; the reference's is 0, and a column at N is NaN. Of a
    fine-tuned model it is the change of the log-odds of the class `label`, or of the value of a
    regression.

    One sequence gives one array, several a list. `sequences` may be a FASTA file; `region` or `bed`
    then say which parts, and give a list. A row of `bed` on - is read as its reverse complement, as
    if that were the sequence. Raises `UsageError` for a model of text.

    >>> m.ism("ACGTACGT").shape
    (4, 8)
    """

    work: ClassVar[str] = "genodiff.maps.ism:map_saturation"


@dataclass(frozen=True, kw_only=True)
class DependencyRequest(DependencyFields, Request[Any]):
    """The dependency map of a sequence of R bases: how a change at one base moves another.

    A map has `dependency` (R, R), float32, source by target: the largest change of the log-odds of
    a base at the target, with the target masked, by putting another base at the source. `change`
    and `base` (R, 4, R) have it for each substitution, signed, and the base that moved most. The
    diagonal is 0, rows and columns at N are NaN.

    Targets `every` bases apart are masked together, which is quicker and not exact; `exact` masks
    each by itself. One sequence gives one map, several a list; regions as in `ism`. Raises
    `UsageError` for more than 1,024 bases, and for a model of text.

    >>> m.dependencies("ACGTACGT", exact=True).dependency.shape
    (8, 8)
    """

    work: ClassVar[str] = "genodiff.maps.dependencies:map_dependencies"


@dataclass(frozen=True, kw_only=True)
class MapFileRequest(MapFields, FileRequest):
    """What a file of maps is asked."""

    out: Annotated[
        str | Path,
        Option(
            ".tsv, .parquet, .npz, .svg, .png, .pdf or .html; - for a table on stdout.",
            OUT,
            decides="nothing",
        ),
    ]
    genes: Genes = None
    relatives: RelativeFiles = ()
    strains: Strains = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_drawn("--genes", self.genes, self.ending in DRAWN, f"give --out x{DRAWN[0]}")

    @property
    def ending(self) -> str:
        """The format, as the end of a name."""
        return find_map_format(self.out)


@verb(
    "ism",
    help="""
Saturation mutagenesis: all single-base substitutions of a region, as table, arrays or picture.

The score of a substitution is log p(base) - log p(reference), given all other bases: positive if
the model finds the other base likelier. With a fine-tuned model it is the change of the prediction.
The same command resumes an interrupted one.
""",
)
@dataclass(frozen=True, kw_only=True)
class IsmRequest(SaturationFields, MapFileRequest):
    """Write the scores of all substitutions of regions.

    `sequences` is a FASTA file, or strings and records. `region` or `bed` selects regions; without
    them each sequence is a region. A row of `bed` on - is read as its reverse complement: its
    scores run in the row's direction, and its bases are of that strand; positions are the genome's.

    A score is log p(base | all others) − log p(reference | all others) in `unit`, as `genodiff
    score --exact` gives for the same SNV. `memory` "on" adds retrieval from the training genome,
    excluding each window's own locus. With a fine-tuned model it is the change of the log-odds of
    the class `label`, or of the value of a regression, for the region alone.

    Rows are saved in OUT.partial until `out` is complete, and the same call resumes; `fresh` starts
    anew. With `plan` nothing is computed, and evaluations are counted. Returns the sidecar
    OUT.json. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.ism("runs/demo", "genome.fa", out="map.html", region=["chr1:1,000-1,200"])
    """

    work: ClassVar[str] = "genodiff.maps.ism:SaturationJob"

    def summarise(self, told: Mapping[str, Any]) -> str:
        return f"{told['scored']:,} sites of {format_count(len(told['regions']), 'region')}"


@verb(
    "dependencies",
    help="""
Dependency maps: how a substitution at one base changes the prediction at another.

The dependency of target j on source i is the largest change of the log-odds of a base at j, with j
masked, by substituting another base at i. The map of a region of up to 1,024 bases is a table,
arrays or a picture. The same command resumes an interrupted one.
""",
)
@dataclass(frozen=True, kw_only=True)
class DependenciesRequest(DependencyFields, MapFileRequest):
    """Write the dependency maps of regions.

    `sequences` is a FASTA file, or strings and records. `region` or `bed` selects regions of at
    most 1,024 bases each; without them each sequence is a region. A row of `bed` on - is read as
    its reverse complement, as in `genodiff.ism`.

    The dependency of target j on source i is the largest change of the log-odds of any base at j,
    with j masked, by substituting another base at i, in `unit`. Targets `every` bases apart are
    masked together, and the resulting change is measured and reported; `exact` masks each
    separately.

    Rows are saved in OUT.partial until `out` is complete, and the same call resumes; `fresh` starts
    anew. With `plan` nothing is computed, and evaluations are counted. Returns the sidecar
    OUT.json. Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.dependencies("runs/demo", "genome.fa", out="map.html", region=["chr1:1-200"])
    """

    work: ClassVar[str] = "genodiff.maps.dependencies:DependencyJob"

    def summarise(self, told: Mapping[str, Any]) -> str:
        regions = format_count(len(told["regions"]), "region")
        evaluations = format_count(told["evaluations"], "evaluation")
        return f"{told['scored']:,} bases of {regions}, {evaluations}"


def check_drawn(flag: str, given: object, drawn: bool, where: str) -> None:
    """Raises `UsageError` for what is drawn where nothing is; `where` says what would be."""
    if given and not drawn:
        raise UsageError(f"{flag} is drawn below a picture", fix=f"leave it out, or {where}")


@dataclass(frozen=True, kw_only=True)
class TrackFields:
    """Of which bases tracks are, and how a model reads them."""

    sequences: Annotated[
        Any,
        Option(
            "FASTA file; all of it is read unless --region or --bed is given.",
            ("--fasta",),
            is_input=True,
        ),
    ] = field(kw_only=False)
    region: Regions = ()
    bed: Annotated[
        str | Path | None,
        Option(
            "BED file of regions; the strand column is not used: tracks run along the genome.",
            is_input=True,
        ),
    ] = None
    every: Annotated[
        int | None,
        Ge(2),
        Option(
            "Mask every N-th base in one pass (approximate; default: each by itself). Smaller N "
            "is faster: 8 needs 8 passes per window, 64 needs 64."
        ),
    ] = None
    context: Annotated[
        int | None, Ge(LEAST_CONTEXT), Option("Bases of a window (default: the trained length).")
    ] = None
    memory: Memory = None
    batch_size: WindowBatch = 8


@dataclass(frozen=True, kw_only=True)
class HeldTracksRequest(TrackFields, Request[Any]):
    """What the model says of each base of a sequence given all others.

    The tracks of L bases have `p` (L, 4), float32, the chances of A, C, G and T; `logo` (L, 4), the
    heights p times information; and `entropy`, `information` and `surprisal` (L,), in bits.
    `letters` are those of the reference. N has NaN. Of a model with relatives, `related` has what
    these say, by name (`how-to/tracks.md`).

    Each base is masked by itself: L evaluations. `every=m` masks every m-th base of a tile at once,
    which is quicker and not exact. One sequence gives one object, several a list; regions as in
    `ism`, but tracks run along the genome: the strand of a row is not used. Raises `UsageError` for
    a model of text.

    >>> m.tracks("ACGTACGT").p.shape
    (8, 4)
    """

    work: ClassVar[str] = "genodiff.maps.tracks:map_tracks"


@verb(
    "tracks",
    help="""
Tracks of a genome: the prediction of each base, as bigWig, track hub, table or page.

They are p(A), p(C), p(G) and p(T) given all other bases, a logo, entropy, information, and the
surprisal of the reference. A base that was not read, or is N, has no value. The same command
resumes an interrupted one.
""",
)
@dataclass(frozen=True, kw_only=True)
class TracksRequest(TrackFields, FileRequest):
    """Write the tracks of a genome, or of regions of it.

    Tracks are p(A), p(C), p(G) and p(T) given all other bases, the heights of a logo, entropy,
    information and the surprisal of the reference, in bits; with `relatives` also the prediction by
    the related genomes alone, the share of their votes that agree, and each related genome.
    `sequences` is a FASTA file, or strings and records. `region` or `bed` selects regions; without
    them everything is read. Each base is read once, wherever regions overlap. Tracks run along the
    genome: the strand of a row is not used.

    A hub is for UCSC's `genome`, such as hg38, with its contig names, or without it includes its
    own sequence; `email` is its contact address. Each base is masked separately, or with `every=m`
    every m-th base of a tile in one pass, which is faster; the difference is measured and reported.

    Finished work is saved in OUT.partial until `out` is complete, and the same call resumes;
    `fresh` starts anew. With `plan` nothing is computed. `force` renames a folder that genodiff did
    not write. Returns the sidecar. Raises `UsageError`, `DataError`, `CheckpointError`,
    `MachineError`.

    >>> genodiff.tracks("runs/demo", "genome.fa", out="tracks", region=["chr1:1,000-9,000"])
    """

    work: ClassVar[str] = "genodiff.maps.tracks:TracksJob"

    out: Annotated[
        str | Path,
        Option("Folder to write; with --shard a .npy file of the part.", OUT, decides="nothing"),
    ]
    formats: Annotated[
        Sequence[str] | None,
        Option(
            f"{', '.join(list_formats())}; bigwig comes with a track hub, svg, png and pdf are of "
            "one region; one or several [bigwig, and html up to 100,000 bases].",
            ("--format",),
            decides="output",
        ),
    ] = None
    genome: Annotated[
        str | None,
        Option(
            "UCSC's name of the genome, such as hg38, for the hub, with its contig names "
            "(default: the hub includes the sequence).",
            decides="output",
        ),
    ] = None
    email: Annotated[str, Option("Contact e-mail address in the hub.", decides="output")] = NO_EMAIL
    genes: Genes = None
    track: Annotated[
        Sequence[str],
        Option(
            "NAME=FILE: values drawn below, bigWig or bedGraph; or a folder written by "
            "`genodiff predict`: all its values and genes; one or several.",
            decides="output",
        ),
    ] = ()
    relatives: RelativeFiles = ()
    strains: Strains = False
    shard: ShardWords = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_hub_options(self.genome, self.email)
        check_track_output(self.out, shard=self.part is not None)
        check_formats(self.formats or ())

    @property
    def part(self) -> Shard | None:
        """The shard, parsed."""
        return None if self.shard is None else parse_shard(self.shard)

    def check(self) -> None:
        """As every request of a file; a folder is replaced where it is as genodiff wrote it."""
        if self.part is not None:
            super().check()
            return
        own = is_own_folder(self.out, SIDECAR)
        check_new_folder(self.out, force=self.force or own, inputs=self.list_inputs())
        locate(self.run)

    def summarise(self, told: Mapping[str, Any]) -> str:
        spans = format_count(len(told["intervals"]), "interval")
        parts = [f"{format_count(told['bases'], 'base')} of {spans}"]
        if "read" in told:
            parts.append(f"{told['read']:,} read")
            parts.append(f"{told['mean_information_bits']:.4f} bits of information a base")
        if company := told.get("company"):
            median, worst = company["bits"]
            parts.append(
                f"--every {told['every']} moves information by {median:.2g} bits (median, at most "
                f"{worst:.2g} at {company['sites']} bases)"
            )
        return ", ".join(parts)

    def name_next(self, told: Mapping[str, Any]) -> str:
        return f"open {self.out}/tracks.html" if "tracks.html" in told["files"] else ""
