"""Options that several verbs have: their types, bounds and help.

A request whose answer is a file, a folder or stdout, and what is judged of it before torch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt

from genodiff.errors import UsageError
from genodiff.io.progress import format_duration
from genodiff.io.target import check_target, format_size, is_own_file, is_stream
from genodiff.jobs.journal import SUFFIX, Journal
from genodiff.jobs.request import Option, Request, list_fields
from genodiff.runs.run_paths import locate

Device = Annotated[
    str, Option("Device: auto, cpu or cuda.", on_line=False, is_general=True, decides="nothing")
]
Plan = Annotated[
    bool, Option("Print the plan without running.", is_general=True, decides="nothing")
]
Force = Annotated[bool, Option("Overwrite existing files.", is_general=True, decides="nothing")]
Margin = Annotated[
    float | None,
    Gt(0),
    Option("Call two models equivalent if their difference is shown to be within this margin."),
]
Offline = Annotated[bool, Option("Never access the network.", on_line=False, decides="nothing")]

STRAND_RULE = "a row on - is read as its reverse complement"
"""The rule of every verb that reads rows of BED in their own direction."""

Regions = Annotated[
    Sequence[str],
    Option(
        "chr1:1,000-1,200, 1-based and inclusive, forward strand; one or several.",
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
        "FASTA file; each record is a region unless --region or --bed is given.",
        ("--fasta",),
        is_input=True,
    ),
]
Context = Annotated[int | None, Ge(2), Option("Bases of a window (default: the trained length).")]
Unit = Annotated[
    Literal["nats", "bits"], Option("Unit of the output; 1 bit is 0.69 nats.", decides="output")
]
Memory = Annotated[
    Literal["on", "off"] | None,
    Option(
        "on: with retrieval from the training genome, excluding each window's own locus "
        "(default: on for a run of train --memory)."
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
    int, Ge(1), Option("Windows per batch: affects the speed, not the values.", decides="nothing")
]
Block = Annotated[
    int | None,
    Ge(1),
    Option(
        "Bases of a block, which sees everything before it and nothing after it (default: as "
        "trained)."
    ),
]
Seed = Annotated[int, Ge(0), Option("Random seed.", on_line=False)]
JsonLines = Annotated[
    bool, Option("One JSON line on stdout for each row.", is_general=True, decides="output")
]
ShardWords = Annotated[
    str | None, Option("i/n: the i-th of n parts; `genodiff merge` combines them.")
]
COUNT = ("--n", "-n", "--num")
"""How the flag of a number of things is spelled."""
RELATIVES = (
    "Unaligned assemblies of related species: FASTA files, a list of genomes (.tsv), or what "
    "`genodiff data relatives` built; one or several. split:FILE reads each species of a file, or "
    "each record, as a genome of its own. FASTA:ALIGNMENT takes an alignment to the target (PAF, "
    "chain or MAF) instead of a search; a MAF alone is the genomes of its rows."
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


RUN_NAMES = ("--model", "--checkpoint", "--run")
RUN = "Run folder, checkpoint, published folder, fine-tuned run, or name of a pretrained model"
ONLY_RUN = f"{RUN} (default: the one run under runs/)."
Run = Annotated[str | Path, Option(f"{RUN}.", RUN_NAMES, is_word=True, is_opened=True)]
OptionalRun = Annotated[
    str | Path | None, Option(ONLY_RUN, RUN_NAMES, is_word=True, is_opened=True)
]
OUT = ("--out", "-o")


@dataclass(frozen=True, kw_only=True)
class FileRequest(Request[dict[str, Any]]):
    """A request that a `Job` answers with files; `holds` names what goes to stdout."""

    holds: ClassVar[str] = "the table"

    run: Run = field(kw_only=False)
    out: Annotated[str | Path, Option("Output file; - for stdout.", OUT, decides="nothing")]
    device: Device = "auto"
    fresh: Annotated[
        bool, Option("Do not resume from OUT.partial.", is_general=True, decides="nothing")
    ] = False
    plan: Plan = False
    force: Force = False

    @property
    def is_stream(self) -> bool:
        """Whether the output is stdout."""
        return is_stream(str(self.out)) and not Path(self.out).is_dir()

    @property
    def sidecar_file(self) -> str:
        """The file that says where the output is from."""
        return f"{self.out}.json"

    @property
    def partial(self) -> str:
        """The file that entries are kept in."""
        return f"{str(self.out).rstrip('/')}{SUFFIX}"

    def list_files(self) -> list[str]:
        """All files that are written."""
        return [str(self.out)] if self.is_stream else [str(self.out), self.sidecar_file]

    def list_inputs(self) -> list[str | Path]:
        """The files that are read."""
        named = (getattr(self, one.name) for one in list_fields(type(self)) if one.option.is_input)
        listed = [one if isinstance(one, list | tuple) else [one] for one in named]
        return [one for some in listed for one in some if isinstance(one, str | Path)]

    def is_ours(self, file: Path) -> bool:
        """Whether genodiff wrote a file: a break between it and its sidecar leaves it without."""
        if str(file) == self.sidecar_file:
            return False
        return Journal.is_sealed(self.partial) or is_own_file(self.out, self.sidecar_file)

    def check(self) -> None:
        """Raises as `check_files`, and `CheckpointError` for no run."""
        self.check_files()
        self.find_run()

    def check_files(self) -> None:
        """Raises `UsageError` for foreign files, inputs as outputs and names given twice,
        `MachineError` for no place.
        """
        files = self.list_files()
        for file in files:
            if files.count(file) > 1:
                what = f"{file} is the name of two outputs"
                raise UsageError(what, fix="give different names")
            check_target(file, force=self.force, inputs=self.list_inputs(), known=self.is_ours)

    def find_run(self) -> Path:
        """The folder of the run. Raises `CheckpointError` where there is none."""
        return locate(self.run)

    def answer(self, *given: Any) -> dict[str, Any]:
        """Do the work, after `check`."""
        self.check()
        job: Any = super().answer(*given)
        answer: dict[str, Any] = job.run()
        return answer

    def list_rows(self, answer: Any) -> Iterable[Any]:
        return [{key: value for key, value in answer.items() if key != "lines"}]

    def show(self, answer: Any) -> None:
        """The lines of an answer, or its plan; a file has been written."""
        if "lines" in answer:
            print("\n".join(answer["lines"]))
            if self.plan:
                print_relatives(answer)
        elif self.plan:
            print_plan(answer)

    def conclude(self, answer: Any) -> str:
        """Where the output is, and what it holds."""
        if self.plan:
            return ""
        took = f", in {format_duration(answer['seconds'])}" if "seconds" in answer else ""
        said = f"{answer.get('out', self.out)}: {self.summarise(answer)}{took}"
        if getattr(self, "shard", None):
            after = "genodiff merge, with all shards"
        else:
            after = "" if str(self.out) == "-" else self.name_next(answer)
        return f"{said}; next: {after}" if after else said

    def name_next(self, told: Mapping[str, Any]) -> str:
        """What to do with an output, in a few words, such as a command; "" for nothing."""
        return ""

    def summarise(self, told: Mapping[str, Any]) -> str:
        """What an output holds, of what its sidecar says."""
        return "written"


def choose_target(out: str | Path, *, json: bool, plan: bool) -> str | Path:
    """The output; "-" with `json` and no file. Raises `UsageError` for neither and for both."""
    if not str(out) and not json and not plan:
        raise UsageError("no file to write", fix="give --out FILE; - is stdout")
    if json and not plan and str(out) not in ("", "-"):
        what = "--json is for stdout, and --out is a file"
        raise UsageError(what, fix="give --out x.jsonl alone")
    return out if str(out) else "-"


def check_file(run: Path, file: str | None, usage: str) -> None:
    """Raises `UsageError` where a word of `usage`, "score RUN VARIANTS", is missing or swapped."""
    if file is None:
        missing = usage.split()[2 if run.is_dir() else 1]
        raise UsageError(f"{missing} is missing", fix=f"give genodiff {usage}")
    if Path(file).is_dir() and not run.is_dir():
        what = f"{file} is a folder, and {run} is none: they are swapped"
        raise UsageError(what, fix=f"give genodiff {usage}")


_PLAN_WORDS = {
    "alts": "ALT alleles", "bytes": "size of the array", "cut": "shortened",
    "fit_seconds": "of it preparing", "journal_bytes": "working file", "names": "labels",
    "on_minus": "read on minus", "to_index": "genomes to prepare", "trained": "trained weights",
}  # fmt: skip
"""What a key of a plan is called, where its own words do not say it."""


def print_plan(told: Mapping[str, Any]) -> None:
    """A plan as lines, a name and its value each; times and sizes in their units."""
    shown: dict[str, str] = {}
    first = told.get("seconds_of_relatives", 0.0)
    for key, value in told.items():
        most = told.get(f"{key}_at_most")
        if key == "seconds":
            later = None if most is None else most + first
            whole = None if value is None else value + first
            shown["time"] = _say_time(whole, later, told.get("device"))
        elif key not in ("device", "seconds_of_relatives") and not key.endswith("_at_most"):
            text = _say(value, key) + (f" to {_say(most, key)}" if most is not None else "")
            shown[_PLAN_WORDS.get(key, key.replace("_", " "))] = text
    _print_rows(shown)


def print_relatives(told: Mapping[str, Any]) -> None:
    """What relatives of a plan take, below lines of its own."""
    if "seconds_of_relatives" in told:
        _print_rows({"relatives   ": told["relatives"]})


def _print_rows(rows: Mapping[str, str]) -> None:
    wide = max(map(len, rows))
    print("\n".join(f"{key:<{wide}} {value}" for key, value in rows.items()))


def _say_time(seconds: float | None, most: float | None, device: str | None) -> str:
    if seconds is None:
        return "not known: the run is not there"
    upto = "" if most is None else f" to {format_duration(most)}"
    return f"about {format_duration(seconds)}{upto} on {device}"


def _say(value: Any, key: str) -> str:
    if isinstance(value, str):
        return value
    if key.endswith("bytes"):
        return format_size(value)
    if key.endswith("seconds"):
        return format_duration(value)
    if key == "shape":
        return " × ".join(f"{n:,}" for n in value)
    if isinstance(value, dict):
        return ", ".join(f"{n:,} {name}" for name, n in value.items()) or "none"
    if isinstance(value, list):
        return " ".join(value) if all(isinstance(one, str) for one in value) else str(value)
    return f"{value:,}"
