"""What an evaluation is asked for: data in the place of the run's own, windows, masks, limits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt

from genodiff.data.recipe import ALL, SPLITS
from genodiff.diffusion.registries import SAMPLERS
from genodiff.domain import DNA, DOMAINS, TEXT
from genodiff.errors import CheckpointError, UsageError, did_you_mean
from genodiff.io.input_file import planning
from genodiff.jobs.options import (
    OUT,
    RUN,
    RUN_NAMES,
    Block,
    FileRequest,
    Offline,
    RelativeFiles,
    Seed,
    Strains,
)
from genodiff.jobs.request import Option, Options, Request, find_named
from genodiff.jobs.shards import Shard, parse_shard
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_input, find_domain_of_run, locate

RANDOM = "random"
"""The order of `first-hitting`, drawn for each window by the seed."""
_OF_DNA = {"domain": DNA.name}
_OF_TEXT = {"domain": TEXT.name}


@dataclass(frozen=True, kw_only=True)
class EvalOptions(Options):
    """What is scored, and how. Options that mean something in one domain only are marked so."""

    split: Annotated[
        Literal["test", "valid", "train", "all"],
        Option("Split to evaluate; all: every base of the file."),
    ] = "test"
    fasta: Annotated[
        str | Path | None, Option("FASTA file instead of the run's training genome.", is_input=True)
    ] = field(default=None, metadata=_OF_DNA)
    text: Annotated[
        str | Path | None,
        Option("Text file or folder instead of the run's training text.", is_input=True),
    ] = field(default=None, metadata=_OF_TEXT)
    recipe: Annotated[
        Sequence[str] | None,
        Option("Zero-shot: another text recipe, NAME or NAME=FILE_OR_FOLDER; repeatable."),
    ] = field(default=None, metadata=_OF_TEXT)
    bed: Annotated[
        str | Path | None,
        Option(
            "BED file whose 4th column names the splits; the strand is not used.", is_input=True
        ),
    ] = field(default=None, metadata=_OF_DNA)
    repeats: Annotated[int, Ge(1), Option("Masks per window: more give a narrower interval.")] = 1
    max_windows: Annotated[
        int | None,
        Ge(1),
        Option("Evaluate at most this many windows, evenly spread over the split."),
    ] = None
    max_minutes: Annotated[
        float | None,
        Gt(0),
        Option(
            "Evaluate as many windows, evenly spread, as fit into about this time, including "
            "the baselines; a baseline that takes more than half of it is left out."
        ),
    ] = None
    soft_masked: Annotated[
        bool, Option("0: soft-masked bases are visible but not counted.", is_digit=True)
    ] = field(default=True, metadata=_OF_DNA)
    baselines: Annotated[
        bool, Option("Counting baselines from the train split; cached.", decides="output")
    ] = True
    mixture: Annotated[
        bool | None,
        Option(
            "Adaptive mixtures of contexts and copies (default: if they take little time).",
            decides="output",
        ),
    ] = field(default=None, metadata=_OF_DNA)
    context: Annotated[
        Literal["window", "contig"],
        Option(
            "Context of a window: itself, or also the bases around it, in blocks of 65,536 "
            "bases (or eight windows, if that is more); a model of --block sees everything "
            "before it."
        ),
    ] = field(default="window", metadata=_OF_DNA)
    memory: Annotated[
        Literal["on", "off", "exhaustive"] | None,
        Option(
            "on: with retrieval from the training genome, beside the network alone (default: "
            "on for a run of train --memory); exhaustive: compare every position of the "
            "genome, not only those that the index returns."
        ),
    ] = field(default=None, metadata=_OF_DNA)
    order: Annotated[
        str | None,
        Option(
            "Also the exact likelihood of drawing the windows in this order: left-to-right, "
            "both-ends, confidence, entropy-bounded, random, or another sampler's."
        ),
    ] = field(default=None, metadata=_OF_DNA)
    order_options: Annotated[
        Mapping[str, float] | None,
        Option(
            "Setting of the order, such as at_once=4, bound=0.5 or steps=256 (default: one "
            "base with each evaluation); one or several.",
            ("--order-option",),
        ),
    ] = field(default=None, metadata=_OF_DNA)
    order_evaluations: Annotated[
        int | None,
        Ge(1),
        Option("For a fixed order, use this many evaluations of each window, evenly spread [all]."),
    ] = field(default=None, metadata=_OF_DNA)
    block: Block = None
    batch_size: Annotated[
        int, Ge(1), Option("Windows per batch: affects the speed, not the values.")
    ] = 32
    seed: Seed = 1
    offline: Offline = False

    def check_domain(self, domain: str) -> None:
        """Raises `UsageError` for options of the other domain, and for what no bound says."""
        for option in fields(EvalOptions):
            other = option.metadata.get("domain", domain)
            if other != domain and getattr(self, option.name) != option.default:
                here = DOMAINS[domain]
                flag, fix = option.name.replace("_", "-"), f"given with {here.input_flag}"
                what = f"--{flag} is for {DOMAINS[other].title}, and this is a {here.title} run"
                raise UsageError(what, fix=f"leave it out; {here.title} is {fix}")
        if self.split == ALL and domain != DNA.name:
            what = f"--split {ALL} is for DNA, and this is a {DOMAINS[domain].title} run"
            raise UsageError(what, fix=f"choose {', '.join(SPLITS)}")
        self._check_order()
        self.check_memory(self.memory not in (None, "off"))

    def _check_order(self) -> None:
        known = [RANDOM, *SAMPLERS.list_names()]
        if self.order is not None and self.order not in known:
            raise UsageError(f"no order '{self.order}'; {did_you_mean(self.order, known)}")
        for flag, given in (
            ("--order-option", bool(self.order_options)),
            ("--order-evaluations", self.order_evaluations is not None),
        ):
            if given and self.order is None:
                raise UsageError(f"{flag} is a setting of --order", fix="give --order, too")
        if self.order is not None and self.context != "window":
            what = "--order and --context contig exclude each other"
            raise UsageError(what, fix="leave one of them out")

    def check_memory(self, mixed: bool) -> None:
        """Raises `UsageError` for options that a memory, where one is mixed in, cannot have."""
        if mixed and self.context != "window":
            what = f"--memory {self.memory or 'on'} and --context contig exclude each other"
            raise UsageError(what, fix="leave one of them out, or give --memory off")

    @property
    def one(self) -> str | None:
        """The recipe of one evaluation."""
        return self.recipe[0] if self.recipe else None

    def inputs(self) -> dict[str, Any]:
        """Settings of the run that these options replace."""
        given: dict[str, Any] = {
            name: str(value)
            for name, value in (("fasta", self.fasta), ("bed", self.bed), ("recipe", self.one))
            if value is not None
        }
        if self.text is not None or self.recipe is not None:
            given["text"] = None if self.text is None else str(Path(self.text).absolute())
        return given

    def describe(self) -> dict[str, Any]:
        """All of it as plain values, as `evaluate` takes it."""
        told = {one.name: getattr(self, one.name) for one in fields(EvalOptions)}
        told["recipe"] = self.one
        return {key: str(one) if isinstance(one, Path) else one for key, one in told.items()}


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

    work: ClassVar[str] = "genodiff.evaluation.evaluate:EvalShardJob"

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


@dataclass(frozen=True, kw_only=True)
class LikelihoodRequest(Request[Any]):
    """log p (n,) in nats of each of `sequences`, exactly: that of drawing it in an order.

    `sequences` are strings, records or a FASTA file, none longer than the trained length; one
    string is one sequence. The order is a sampler's, whose law this is: over all sequences of a
    length, e to this power sums to 1. Letters other than A, C, G and T are given, and not counted.
    Raises `UsageError`, `DataError`; `CheckpointError` where a memory is not to be had.

    >>> m.log_likelihood(["ACGTACGT", "GATTACA"], order="confidence").shape
    (2,)
    """

    work: ClassVar[str] = "genodiff.evaluation.exact_order:measure_sequences"

    sequences: Annotated[Any, Option("Strings, records or a FASTA file.")] = field(kw_only=False)
    order: Annotated[
        str, Option("left-to-right, both-ends, confidence, entropy-bounded, random, ...")
    ] = "left-to-right"
    order_options: Annotated[
        Mapping[str, float] | None,
        Option(
            'Settings of the order, such as {"at_once": 4} or {"steps": 256} [one base at a time].'
        ),
    ] = None
    memory: Annotated[
        Literal["on", "off"] | None,
        Option("Retrieval from the training genome [on for a run of train --memory]."),
    ] = None
    batch_size: Annotated[int, Ge(1), Option("Sequences per batch: affects the speed only.")] = 32
    seed: Seed = 1
