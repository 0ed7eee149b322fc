"""What `eval` is asked: one evaluation, one for each recipe, or the draws of a shard. No torch."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from genodiff.errors import CheckpointError, UsageError
from genodiff.evaluation.eval_options import EvalOptions
from genodiff.io.input_file import planning
from genodiff.jobs.options import OUT, RUN, RUN_NAMES, FileRequest, RelativeFiles, Strains
from genodiff.jobs.request import Option, find_named
from genodiff.jobs.shards import Shard, parse_shard
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_input, find_domain_of_run, locate


@verb(
    "eval",
    function="evaluate",
    help="""
Evaluate bits per base with a 95 % confidence interval, beside Markov baselines.

For a read-only run, RUN/eval.json is not written, with a message; use --out.
""",
)
@dataclass(frozen=True, kw_only=True)
class EvalRequest(EvalOptions, FileRequest):
    """Evaluate the split, print the result and add it to RUN/eval.json.

    The result is bits per base (for text: per byte) with interval and baselines, as plain values:
    the keys of `genodiff eval --json`; `nelbo_nats` is in nats per base. `run` may be a loaded
    model. `fasta`, `bed`, `text` and `recipe` replace the run's own data; several recipes ("NAME"
    or "NAME=FILE") give {"suite": {recipe: values}}. For another genome the test split is evaluated
    by default, so that the Markov baselines are fitted on its train part and no model has seen
    evaluated bases; `split="all"` evaluates every base, beside baselines of the run's own train
    split. With `memory` "on" the network alone is reported beside it.

    `keep` adds the result to RUN/eval.json, unless `run` is a published folder or read-only; `out`,
    a .json file, replaces it. A file there that holds no JSON object is replaced with `force` only.
    With `shard`, the draws of that part of the windows are written to `out`, and `genodiff.merge`
    combines them; finished work is saved in OUT.partial, and `fresh` starts anew. With `plan`
    nothing is evaluated, and the estimated cost is returned. Raises `UsageError`, `DataError`,
    `CheckpointError`, `MachineError`.

    >>> genodiff.evaluate("runs/demo", max_windows=100)["bits_per_base"]
    """

    work: ClassVar[str] = "genodiff.evaluation.eval_shards:EvalShardJob"

    run: Annotated[Any, Option(f"{RUN}.", RUN_NAMES, is_word=True, is_opened=True)] = field(
        kw_only=False
    )
    out: Annotated[
        str | Path,
        Option(
            "JSON file for the evaluation, instead of RUN/eval.json; with --shard the .npy "
            "file to write.",
            OUT,
            decides="nothing",
        ),
    ] = ""
    relatives: RelativeFiles = ()
    strains: Strains = False
    domain: Annotated[
        Literal["dna", "text"] | None, Option("Expected domain of the run.", decides="nothing")
    ] = None
    shard: Annotated[
        str | None,
        Option("i/n: the draws of the i-th of n parts, to --out; `genodiff merge` combines them."),
    ] = None
    keep: Annotated[
        bool, Option("Add the result to RUN/eval.json.", on_line=False, decides="nothing")
    ] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        out = "" if self.out is None else str(self.out)
        if self.shard is None and out and not out.lower().endswith(".json"):
            what = "an evaluation is written as .json"
            raise UsageError(what, file=out, fix="give --out FILE.json")
        if self.is_shard and not out.endswith(".npy"):
            what = f"{out} does not end in .npy" if out else "--shard needs --out FILE.npy"
            raise UsageError(what, fix="give the name of a .npy file")

    @property
    def is_shard(self) -> bool:
        """Whether the draws of a shard are written."""
        return self.shard is not None and not self.plan

    @property
    def part(self) -> Shard:
        """The shard, parsed."""
        return parse_shard(self.shard or "1/1")

    def list_evaluations(self) -> list["EvalRequest"]:
        """One, or one for each recipe (NAME or NAME=PATH)."""
        if not self.recipe:
            return [replace(self, recipe=None)]
        recipes = list(self.recipe)
        named = [recipe.partition("=") for recipe in recipes]
        if self.text is None:
            return [replace(self, recipe=name, text=path or None) for name, _, path in named]
        if len(named) > 1 or named[0][2]:
            what = "--text gives the file of one recipe, and there are several"
            raise UsageError(what, fix="write --recipe NAME=FILE for each")
        return [replace(self, recipe=recipes[0])]

    def check_of(self, domain: str) -> None:
        """Raises `CheckpointError` for a model of another domain than is expected."""
        if self.domain not in (None, domain):
            here = self.run if isinstance(self.run, str | Path) else None
            fix = f"give a {self.domain} run"
            raise CheckpointError(f"is a {domain} model", file=here, fix=fix)

    def check(self) -> None:
        """Raises as the function, for all that can be told without torch."""
        asked = self.list_evaluations()
        if isinstance(self.run, str | Path):
            known = find_domain_of_run(locate(self.run))
        else:
            known = self.run.alphabet.domain
        if known is not None:
            self.check_of(known)
            for one in asked:
                one.check_domain(known)
        for file in (self.fasta, self.bed, self.text):
            check_input(file)
        if self.is_shard:
            if len(asked) > 1:
                raise UsageError("--shard takes one recipe", fix="evaluate each by itself")
            self.check_files()

    def answer(self, *given: Any) -> dict[str, Any]:
        """The evaluation, its plan, or what the sidecar of a shard says."""
        if self.is_shard:
            return super().answer(*given)
        self.check()
        with planning(self.plan):
            work = find_named("genodiff.evaluation.evaluate:evaluate_request")
            found: dict[str, Any] = work(self)
        return found

    def show(self, answer: Any) -> None:
        """The tables of an evaluation, or its plan."""
        find_named("genodiff.evaluation.evaluation_tables:show_evaluation")(self, answer)

    def conclude(self, answer: Any) -> str:
        """Nothing: the tables say it."""
        return ""
