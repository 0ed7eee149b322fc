"""What `embed` is asked, in memory and as a file. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from genodiff.errors import UsageError, format_count
from genodiff.jobs.options import (
    OUT,
    FileRequest,
    Regions,
    RelativeFiles,
    ShardWords,
    Strains,
    TurnedBed,
)
from genodiff.jobs.request import Option, Request
from genodiff.jobs.shards import Shard, parse_shard
from genodiff.jobs.verbs import verb

FORMATS = (".npz", ".parquet", ".csv", ".tsv")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""Of the formats that are tables of text."""


def find_embedding_format(path: Path) -> str:
    """The format that a file's name asks for. Raises `UsageError`."""
    if path.suffix.lower() not in FORMATS:
        what = f"'{path.name}' ends in none of {', '.join(FORMATS)}"
        raise UsageError(what, fix="name the output after its format")
    return path.suffix.lower()


@dataclass(frozen=True, kw_only=True)
class EmbedFields:
    """Which windows are embedded, and what is kept of each."""

    sequences: Annotated[
        Any,
        Option(
            "FASTA, GenBank or EMBL file, - for stdin; each record is a window unless --bed, "
            "--region, --features or --window is given.",
            ("--fasta",),
            is_word=True,
            is_input=True,
        ),
    ] = field(kw_only=False)
    bed: TurnedBed = None
    region: Regions = ()
    features: Annotated[
        Sequence[str],
        Option(
            "CDS, or CDS=dnaA: features of a GenBank or EMBL file, by type and name, in their "
            "own direction, with joined parts as one; with --bed, rows of that GTF or GFF3 "
            "file, each separately; one or several."
        ),
    ] = ()
    window: Annotated[int | None, Ge(1), Option("Cut into pieces of this many bases.")] = None
    stride: Annotated[
        int | None, Ge(1), Option("Offset from one piece to the next (default: --window).")
    ] = None
    layer: Annotated[
        int | Sequence[int],
        Option("Layer, 0 (embedding) to n_layer; -1 is the last; one or several [-1]."),
    ] = (-1,)
    pool: Annotated[
        Literal["mean", "max", "center", "none"],
        Option("Pooling over the bases of a window; none keeps each base."),
    ] = "mean"
    strand: Annotated[
        Literal["average", "forward", "both"],
        Option("Average both strands, read the forward strand, or keep both apart."),
    ] = "average"
    batch_size: Annotated[
        int,
        Ge(1),
        Option("Windows per batch: affects the speed, not the values.", decides="nothing"),
    ] = 32

    @property
    def layers(self) -> list[int]:
        """The layers, as they are numbered by the caller."""
        return [self.layer] if isinstance(self.layer, int) else list(self.layer)


@dataclass(frozen=True, kw_only=True)
class HeldEmbeddingRequest(EmbedFields, Request[Any]):
    """Embeddings (n, D), float32, one for each sequence, as `genodiff embed` gives them.

    `sequences` may be a FASTA file; `region` or `bed` then say which parts. A row on - is read as
    its reverse complement. Several layers add an axis before D. `pool` "none" keeps each base and
    gives a list of arrays (L, D). `strand` "average" is the mean over both strands, the same for a
    sequence and its reverse complement; "both" adds an axis of two; "forward" is the sequence as it
    stands. One sequence gives (1, D). Raises `UsageError` for text, `DataError` for letters that
    are no DNA.

    >>> m.embed(["ACGTACGT", "GATTACA"]).shape
    (2, 64)
    """

    work: ClassVar[str] = "genodiff.embedding.embed_job:embed_sequences"


@verb("embed", help="Write embeddings of DNA windows to .npz, .parquet, .csv or .tsv.")
@dataclass(frozen=True, kw_only=True)
class EmbedRequest(EmbedFields, FileRequest):
    """Write the embeddings of windows, with their provenance beside them.

    `run` is a run, a checkpoint or a published folder. `sequences` are strings, `SeqRecord`s or a
    file: each record is a window, unless `bed`, `region` or `features` is given. A row of `bed` on
    - is read as its reverse complement, and so is a feature; with `features`, `bed` is GTF or GFF3.
    `genodiff.Model.embed` returns arrays in memory.

    With `relatives` (or a model loaded with them), four channels follow the network's: the share of
    the related genomes' votes for the base itself, its transition, a transversion, or nothing
    aligned.

    With `shard`, "i/n", the i-th of n parts of the windows is written, and `genodiff.merge`
    combines the parts. For a file, finished work is saved in OUT.partial, and the same call
    resumes; `fresh` starts anew. Values do not depend on the batch size. With `plan` nothing is
    computed or written, and windows, bases, shape and bytes are returned; otherwise OUT.json.
    Raises `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.embed("runs/demo", "reads.fa", out="reads.parquet", pool="max")
    """

    work: ClassVar[str] = "genodiff.embedding.embed_job:EmbedJob"

    out: Annotated[
        str | Path, Option("Output file: .npz, .parquet, .csv or .tsv.", OUT, decides="nothing")
    ]
    relatives: RelativeFiles = ()
    strains: Strains = False
    shard: ShardWords = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ending in SEPARATORS and self.pool == "none":
            what = f"{self.ending} has a row for each window, and --pool none keeps each base"
            raise UsageError(what, fix="name the output .npz or .parquet")

    @property
    def ending(self) -> str:
        """The format, as the end of a name."""
        return find_embedding_format(Path(self.out))

    @property
    def part(self) -> Shard | None:
        """The shard, parsed."""
        return None if self.shard is None else parse_shard(self.shard)

    def summarise(self, told: Mapping[str, Any]) -> str:
        return f"{format_count(told['windows'], 'window')}, {format_count(told['bases'], 'base')}"

    def name_next(self, told: Mapping[str, Any]) -> str:
        """How Python reads the file."""
        reader = {
            ".npz": "numpy.load('{}')['embeddings']", ".parquet": "polars.read_parquet('{}')",
            ".csv": "polars.read_csv('{}')", ".tsv": "polars.read_csv('{}', separator='\\t')",
        }  # fmt: skip
        return f"{reader[self.ending].format(self.out)} in Python"
