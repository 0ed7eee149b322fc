"""The flags that name labelled sequences."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from genodiff.api.sweep import Split, TaskKind
from genodiff.cli.common import convert_whole_number, read_files

DATASET = (
    "A folder (train/CLASS/*.txt and test/CLASS/*.txt, or train.csv and test.csv), its "
    "zip, a table, or SUITE/TASK."
)


TestShare = Annotated[
    float | None,
    Parameter(
        help="The share of one table that tests, such as 0.2: sequences that are alike stay "
        "together, and the same ones test each time."
    ),
]
DropMissing = Annotated[
    bool,
    Parameter(
        negative="",
        help="Leave out, and count, rows without a label, a sequence or a position (empty, NA, "
        "nan, inf).",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True)
class DataFlags:
    """Where a data set is and how to read it."""

    data: Annotated[
        Path | None, Parameter(help="For SUITE/TASK: the folder that holds the suite's data.")
    ] = None
    test: Annotated[
        Path | None, Parameter(help="The test table, where DATASET is the train table.")
    ] = None
    valid: Annotated[Path | None, Parameter(help="A validation table, used by every seed.")] = None
    split: Annotated[Split, Parameter(help="Which split to look at.")] = "official"
    similarity: Annotated[
        float | None, Parameter(help="With --split homology: alike from this share of 24-mers on.")
    ] = None
    kind: Annotated[
        TaskKind | None,
        Parameter(help="What the labels are [told by them]."),
    ] = None
    sequence: Annotated[str | None, Parameter(help="The column of sequences [sequence, seq].")] = (
        None
    )
    label: Annotated[
        list[str] | None,
        Parameter(help="The column of labels [label]; repeatable: a multi-label task."),
    ] = None
    test_share: TestShare = None
    drop_missing: DropMissing = False
    reference: Annotated[
        list[str] | None,
        Parameter(
            help="Repeatable: NAME=FASTA, your own copy of a genome, for example hg38=hg38.fa."
        ),
    ] = None
    max_length: Annotated[
        int | None,
        Parameter(
            name=["--max-length", "--seq-len"],
            converter=convert_whole_number,
            help="Longer sequences are cut.",
        ),
    ] = None

    def given(self) -> dict[str, Any]:
        """The options of `genodiff.api.labelled_data.audit`."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return values | {
            "label": self.label or (),
            "reference": read_files("--reference", self.reference or ()),
        }
