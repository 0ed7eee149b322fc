"""A request whose answer is a file, a folder or stdout, and what is judged of it before torch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from genodiff.errors import UsageError
from genodiff.io.target import check_target, is_own_file, is_stream
from genodiff.jobs.journal import SUFFIX, Journal
from genodiff.jobs.options import Device, Force, Plan
from genodiff.jobs.request import Option, Request, find_named, list_fields
from genodiff.runs.run_paths import locate

RUN_NAMES = ("--model", "--checkpoint", "--run")
RUN = "Run folder, checkpoint, published folder, fine-tuned run, or name of a ready model"
ONLY_RUN = f"{RUN} (default: the one run under runs/)."
Run = Annotated[str | Path, Option(f"{RUN}.", RUN_NAMES, is_word=True, is_opened=True)]
OptionalRun = Annotated[
    str | Path | None, Option(ONLY_RUN, RUN_NAMES, is_word=True, is_opened=True)
]
OUT = ("--out", "-o")
_TEXT = "genodiff.jobs.plan_text"


@dataclass(frozen=True, kw_only=True)
class FileRequest(Request[dict[str, Any]]):
    """A request that a `Job` answers: what it writes, and what may be there already.

    `holds` names what goes to stdout.
    """

    holds: ClassVar[str] = "the table"

    run: Run = field(kw_only=False)
    out: Annotated[str | Path, Option("Output; - for stdout.", OUT, decides="nothing")]
    device: Device = "auto"
    fresh: Annotated[
        bool,
        Option(
            "Do not go on after what is kept in OUT.partial.", is_general=True, decides="nothing"
        ),
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
        """Raises `UsageError` for a foreign file, an input as output, or two outputs of one name,
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
        """The answer, without the lines that are for people."""
        return [{key: value for key, value in answer.items() if key != "lines"}]

    def show(self, answer: Any) -> None:
        """The lines of an answer, or its plan; a file has been written."""
        if "lines" in answer:
            print("\n".join(answer["lines"]))
            if self.plan:
                find_named(f"{_TEXT}:print_relatives")(answer)
        elif self.plan:
            find_named(f"{_TEXT}:print_plan")(answer)

    def conclude(self, answer: Any) -> str:
        """Where the output is, and what it holds."""
        if self.plan:
            return ""
        said: str = find_named(f"{_TEXT}:describe_end")(answer, self.out, self.summarise(answer))
        return said

    def summarise(self, told: Mapping[str, Any]) -> str:
        """What an output holds, of what its sidecar says."""
        return str(told)


def choose_target(out: str | Path, *, json: bool, plan: bool) -> str | Path:
    """The output of a verb that writes JSON lines to stdout with `json`: "-" where none is given.

    Raises `UsageError` where neither is given, and where both are.
    """
    if not str(out) and not json and not plan:
        raise UsageError("no file to write", fix="give --out FILE; - is stdout")
    if json and not plan and str(out) not in ("", "-"):
        what = "--json is for stdout, and --out is a file"
        raise UsageError(what, fix="give --out x.jsonl alone")
    return out if str(out) else "-"


def check_file(run: Path, file: str | None, usage: str) -> None:
    """Judge the words of `usage`, such as "score RUN VARIANTS".

    Raises `UsageError` where one word is missing, or they stand the other way round.
    """
    if file is None:
        missing = usage.split()[2 if run.is_dir() else 1]
        raise UsageError(f"{missing} is missing", fix=f"give genodiff {usage}")
    if Path(file).is_dir() and not run.is_dir():
        what = f"{file} is a folder, and {run} is none: they stand the other way round"
        raise UsageError(what, fix=f"give genodiff {usage}")
