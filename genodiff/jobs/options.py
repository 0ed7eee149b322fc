"""Options that several verbs have: their types, bounds and help."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge

from genodiff.errors import UsageError
from genodiff.jobs.request import Option

Device = Annotated[
    str,
    Option(
        "Where to compute: auto, cpu or cuda.", on_line=False, is_general=True, decides="nothing"
    ),
]
Plan = Annotated[
    bool, Option("Say what would be done, and stop.", is_general=True, decides="nothing")
]
Force = Annotated[
    bool,
    Option(
        "Overwrite a file that genodiff did not write itself.", is_general=True, decides="nothing"
    ),
]
Margin = Annotated[
    float | None,
    Option("Call two models equivalent where their difference is shown to be within this margin."),
]
Offline = Annotated[bool, Option("Never touch the network.", on_line=False, decides="nothing")]

STRAND_RULE = "a row on - is read as its reverse complement"
"""The rule of every verb that reads rows of BED in their own direction."""

Regions = Annotated[
    Sequence[str],
    Option(
        "chr1:1,000-1,200, 1-based and inclusive, read as it stands; one or several.",
        ("--region", "--regions"),
    ),
]
RegionsInPlace = Annotated[
    Sequence[str],
    Option(
        "As --bed: chr1:1,000-2,000, 1-based and inclusive; one or several.",
        ("--region", "--regions"),
    ),
]
TurnedBed = Annotated[
    str | Path | None, Option(f"BED file of regions; {STRAND_RULE}.", is_input=True)
]
MapSequences = Annotated[
    Any,
    Option(
        "FASTA file; each record is a region unless --region or --bed says so.",
        ("--fasta",),
        is_input=True,
    ),
]
Context = Annotated[int | None, Ge(2), Option("Bases of a window (default: the trained length).")]
Unit = Annotated[
    Literal["nats", "bits"],
    Option("Unit of what is written; 1 bit is 0.69 nats.", decides="output"),
]
Memory = Annotated[
    Literal["on", "off"] | None,
    Option(
        "on: with a memory of the training genome, each window's own locus left out (default: on "
        "for a run of train --memory)."
    ),
]
Genes = Annotated[
    str | Path | None,
    Option(
        "GFF3, GTF, BED or GenBank file whose genes are drawn below the picture.",
        is_input=True,
        decides="output",
    ),
]
WindowBatch = Annotated[
    int, Ge(1), Option("Windows at a time: changes the speed, never the map.", decides="nothing")
]
Block = Annotated[
    int | None,
    Ge(1),
    Option(
        "Bases of a block, which knows all before it and nothing after it (default: as trained)."
    ),
]
Seed = Annotated[int, Ge(0), Option("Seed of every random draw.", on_line=False)]
JsonLines = Annotated[
    bool,
    Option("One JSON line on stdout for each row.", is_general=True, decides="output"),
]
ShardWords = Annotated[str | None, Option("i/n: the i-th of n parts; `genodiff merge` joins them.")]
COUNT = ("--n", "-n", "--num")
"""How the flag of a number of things is spelled."""
RELATIVES = (
    "Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv), or what "
    "`genodiff data relatives` built; one or several. split:FILE reads each species of a file, or "
    "each record, as a genome of its own."
)
STRAINS = (
    "Also use genomes of the same species. Held-out evaluation is then not valid: the answers are "
    "in the reference set."
)
RelativeFiles = Annotated[Sequence[str | Path], Option(RELATIVES, is_input=True, is_opened=True)]
Strains = Annotated[bool, Option(STRAINS)]


def name_tracks(words: Iterable[str]) -> dict[str, str]:
    """Files by name, of words NAME=FILE. Raises `UsageError`.

    >>> name_tracks(["dnase=dnase.bw"])
    {'dnase': 'dnase.bw'}
    """
    found: dict[str, str] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not (name and equals and path) or name in found:
            what = f"--track {word} is no NAME=FILE of its own"
            raise UsageError(what, fix="write --track dnase=dnase.bw")
        if set("/\\") & set(name):
            what = f"the track '{name}' cannot be the name of a file"
            raise UsageError(what, fix="leave / and \\ out")
        found[name] = path
    return found
