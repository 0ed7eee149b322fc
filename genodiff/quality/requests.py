"""What `judge`, `scorecard` and `compare_designs` are asked. No torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from genodiff.errors import UsageError
from genodiff.generate.guide_settings import Form, is_unit
from genodiff.io.target import check_target, is_stream
from genodiff.jobs.options import RUN_NAMES, Device, Force, Offline, Seed
from genodiff.jobs.request import Option, Request, find_named, list_fields
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_input, locate

OracleName = str | Path | Callable[..., Any]
_READ_COLUMNS = "genodiff.io.containers:read_columns"


@verb(
    "judge",
    help="""
Compute the generative perplexity of samples, with entropy and diversity.

The judge is another model: autoregressive for an exact value, or masked for an upper bound. A low
perplexity alone says little, since repetitive sequences have it too; entropy and diversity are
therefore always shown. `judge` evaluates samples under a model; `scorecard` uses no model, and
compares the statistics of generated and real DNA.
""",
)
@dataclass(frozen=True, kw_only=True)
class JudgeRequest(Request[dict[str, Any]]):
    """Compute the perplexity of samples under the model `judge`, with entropy and diversity.

    `samples` is a file as `genodiff sample` writes it, or sequences of DNA as strings or records.
    `figure` is "exact" for an autoregressive judge, and "bound" for a masked one: an upper bound on
    the perplexity, estimated from `repeats` masks per window. `real` holds the same for as many
    real windows of the judge's test split, `sampling` the samples' sidecar. Raises `UsageError`,
    `DataError`, `CheckpointError`.

    >>> genodiff.judge("samples.fa", judge="runs/ar")["samples"]["perplexity"]
    """

    work: ClassVar[str] = "genodiff.quality.judge:judge_samples"

    samples: Annotated[
        Any,
        Option(
            "FASTA of DNA, or text with <|endoftext|> lines between samples, as `sample` writes "
            "it.",
            is_word=True,
            is_input=True,
        ),
    ] = field(kw_only=False)
    judge: Annotated[
        str | Path,
        Option(
            "Run folder of the judge: autoregressive (exact) or masked (an upper bound).",
            ("--judge", *RUN_NAMES),
            is_word=True,
        ),
    ]
    reference: Annotated[
        bool, Option("Also evaluate as many real windows of the judge's test split.")
    ] = True
    repeats: Annotated[int, Ge(1), Option("Masks per window, for a masked judge.")] = 8
    seed: Seed = 1
    device: Device = "auto"
    offline: Offline = False

    def answer(self, *given: Any) -> dict[str, Any]:
        """The figures, after what can be judged without torch."""
        locate(self.judge)
        check_input(self.samples if isinstance(self.samples, Path) else None)
        return super().answer(*given)

    @classmethod
    def arrange(cls, values: dict[str, Any]) -> None:
        """Put samples and a judge in their places, in whichever order they stood."""
        for name in ("samples", "judge"):
            if values[name] is None:
                usage = "genodiff judge SAMPLES JUDGE"
                raise UsageError(f"{name.upper()} is missing", fix=f"give {usage}")
        _order_samples(values, "judge")

    def show(self, answer: Any) -> None:
        """The figures as a table."""
        find_named("genodiff.quality.terminal:show_judged")(self, answer)


@dataclass(frozen=True, kw_only=True)
class BesideReal(Request[dict[str, Any]]):
    """Generated DNA is set beside real DNA: which, how much of it, and the page."""

    run: Annotated[
        str | Path | None,
        Option(
            "Run whose held-out split is the real sequence, and whose train split is searched "
            "for copies; with --designs, the unguided model.",
            RUN_NAMES,
            is_word=True,
        ),
    ] = None
    real: Annotated[
        Any, Option("FASTA file of real sequence, instead of a run's.", is_input=True)
    ] = None
    train: Annotated[
        Any,
        Option("With --real: training data of the generator, a FASTA file or run.", is_input=True),
    ] = None
    most: Annotated[int, Ge(2), Option("Samples to measure, drawn from a larger file.")] = 1000
    html: Annotated[str | Path | None, Option("Page to write, with pictures.", is_output=True)] = (
        None
    )
    seed: Seed = 1
    device: Device = "auto"
    offline: Offline = False
    force: Force = False

    def list_inputs(self) -> list[Any]:
        """What is read: files, or sequences."""
        return [self.real, self.train]

    def check(self) -> None:
        """Raises for what is not there, and for a page that must not be written."""
        if self.run is not None:
            locate(self.run)
        for given in self.list_inputs():
            check_input(given if isinstance(given, Path) else None)
        if self.html is not None:
            if is_stream(self.html):
                raise UsageError("--html needs the name of a file", fix="give --html page.html")
            given = [one for one in self.list_inputs() if isinstance(one, str | Path)]
            check_target(self.html, force=self.force, inputs=given)

    def answer(self, *given: Any) -> dict[str, Any]:
        """The figures, after what can be judged without torch."""
        self.check()
        return super().answer(*given)


@verb(function="scorecard")
@dataclass(frozen=True, kw_only=True)
class ScorecardRequest(BesideReal):
    """Compare generated with real DNA, beside a floor and Markov sequence.

    `samples` is a file, or sequences as strings or records; `most` of them are drawn by `seed` in
    one pass. Real sequence is the `split` of the data of `run` (a run folder; `fasta` is its genome
    if it was moved), or `real`. In the latter case `train`, a run folder or sequences, is used for
    Markov models and searched for copies. `motifs` is a MEME, JASPAR or TRANSFAC file. `embed` is a
    run whose embeddings are compared (default: `run`). `cnn` adds a convolutional discriminator,
    which takes minutes.

    `sets` holds the same figures for the samples, for other real sequence of the same size, and for
    Markov sequence of orders 1, 5 and 8; `findings` lists where samples are off the floor. `html`
    is a page to write, and `force` replaces a file there that genodiff did not write. Raises
    `UsageError`, `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.scorecard("samples.fa", run="runs/demo")["findings"]
    """

    work: ClassVar[str] = "genodiff.quality.measured_scorecard:measure_scorecard"

    samples: Annotated[Any, Option("FASTA file of generated DNA.", is_word=True, is_input=True)] = (
        field(default=None, kw_only=False)
    )
    motifs: Annotated[
        str | Path | None,
        Option("MEME, JASPAR or TRANSFAC file of motifs to count.", is_input=True),
    ] = None
    embed: Annotated[
        str | Path | None,
        Option("Run whose embeddings are compared (default: that of --model)."),
    ] = None
    split: Annotated[Literal["test", "valid"], Option("Held-out split of the run's data.")] = "test"
    fasta: Annotated[
        str | Path | None, Option("The run's FASTA file, if it was moved.", is_input=True)
    ] = None
    cnn: Annotated[bool, Option("Add a convolutional discriminator (minutes).")] = False

    def list_inputs(self) -> list[Any]:
        """What is read: files, or sequences."""
        return [self.samples, *super().list_inputs(), self.fasta, self.motifs]

    def check(self) -> None:
        """Raises `UsageError` for what does not go together."""
        if self.samples is None:
            raise UsageError("no samples", fix="give a FASTA file, or --designs NAME=FASTA")
        if (self.run is None) == (self.real is None):
            raise UsageError(
                "real sequence comes from a run or from a file",
                fix="give --model RUN, or --real FASTA with --train FASTA",
            )
        if self.run is not None and self.train is not None:
            raise UsageError("--train is for --real", fix="leave it out: the run has a train split")
        if self.fasta is not None and self.run is None and not is_run(self.train):
            raise UsageError("--fasta is for --model and --train RUN", fix="leave it out")
        if self.embed is not None:
            locate(self.embed)
        super().check()


@verb(function="compare_designs")
@dataclass(frozen=True, kw_only=True)
class DesignsRequest(BesideReal):
    """Compute a Pareto table of `designs`, sequences by the name of their method.

    `oracle` guided them and `judge` is an oracle that did not: callables, "module:function", or
    folders of fine-tuned models (with `label` for the log-odds of a class; `form` is a callable's
    input). `lower` means that low scores are desired. `run` is an unguided model: its bits per
    base, an upper bound from `repeats` masks, measure naturalness. `real` are natural sequences, of
    the designs' length or longer, and `train` is searched for copies: sequences or a run. From each
    set, `most` are drawn by `seed`.

    `rows` has a row for each method, then "real". `html` is a page to write. Raises `UsageError`,
    `DataError`, `CheckpointError`, `MachineError`.

    >>> genodiff.compare_designs({"smc": "smc.fa", "ga": "ga.fa"}, real="promoters.fa")["rows"]
    """

    work: ClassVar[str] = "genodiff.quality.compared_designs:compare_designs"

    designs: Annotated[
        Mapping[str, Any] | None,
        Option("NAME=FASTA: designs of a method; repeatable, with --real."),
    ] = field(default=None, kw_only=False)
    oracle: Annotated[
        OracleName | None,
        Option(
            "With --designs: the oracle that guided them, MODULE:FUNCTION or a fine-tuned unit."
        ),
    ] = None
    judge: Annotated[
        OracleName | None, Option("With --designs: an oracle that guided none of them.")
    ] = None
    form: Annotated[
        Form | None,
        Option(
            "Input of the functions [one-hot for a torch module, else strings].",
            ("--oracle-input",),
        ),
    ] = None
    label: Annotated[
        str | None,
        Option("Class of fine-tuned oracles whose log-odds are used.", ("--oracle-label",)),
    ] = None
    lower: Annotated[bool, Option("With --designs: low scores are desired.")] = False
    repeats: Annotated[int, Ge(1), Option("Masks per sequence.", on_line=False)] = 8

    @property
    def sets(self) -> Mapping[str, Any]:
        """The designs by the name of their method; a frame has a column for each."""
        given: Any = self.designs
        return given if isinstance(given, Mapping) else find_named(_READ_COLUMNS)(given) or {}

    def list_inputs(self) -> list[Any]:
        """What is read: files, or sequences."""
        return [*self.sets.values(), *super().list_inputs()]

    def check(self) -> None:
        """Raises `UsageError` for what does not go together."""
        if not self.sets:
            raise UsageError("no designs to compare", fix="give --designs NAME=FASTA")
        if "real" in self.sets:
            raise UsageError("'real' is the row of --real", fix="give the designs another name")
        if self.real is None:
            raise UsageError("--designs needs --real", fix="give natural sequences")
        if self.judge is not None and (self.judge is self.oracle or self.judge == self.oracle):
            raise UsageError(
                f"--judge and --oracle are both {name_oracle(self.judge)}",
                fix="give a judge that guided none of the designs, or leave it out",
            )
        if self.label is not None and not any(is_unit(one) for one in (self.oracle, self.judge)):
            what = f"--oracle-label {self.label} is of a fine-tuned oracle, and there is none"
            raise UsageError(what, fix="leave it out")
        super().check()


@verb(
    "scorecard",
    function="",
    help="""
Compare generated with real DNA: k-mers, motifs, embeddings, a discriminator, copies, diversity.

Every figure of the samples is printed beside that of other real sequence (the floor), and of
sequence drawn from Markov models. Real sequence is the held-out split of a run, or a FASTA file.
Figures off the floor are listed. No model evaluates the samples; for their likelihood under one,
use `genodiff judge`.

With --designs it is a Pareto table of designs by several methods: the score that guided them, an
independent judge, naturalness, diversity, and copies.
""",
)
@dataclass(frozen=True, kw_only=True)
class EitherRequest(DesignsRequest, ScorecardRequest):
    """Print the figures of samples, of real sequence and of Markov sequence."""

    def answer(self, *given: Any) -> dict[str, Any]:
        """What is asked: a scorecard, or with --designs their table."""
        chosen = ScorecardRequest if self.designs is None else DesignsRequest
        own = {one.name: getattr(self, one.name) for one in list_fields(chosen)}
        usual = {one.name: one.default for one in fields(self)}
        for one in list_fields(EitherRequest):
            name, flag = one.name, one.flags[0]
            if name in own or name == "designs" or getattr(self, name) in (None, usual[name]):
                continue
            if self.designs is None:
                raise UsageError(f"{flag} is for --designs", fix="give --designs NAME=FASTA")
            flag = "a FASTA file" if name == "samples" else flag
            raise UsageError(f"--designs and {flag} do not go together", fix="give one of them")
        return chosen(**own).answer(*given)

    @classmethod
    def arrange(cls, values: dict[str, Any]) -> None:
        """Put samples and a run in their places, in whichever order they stood."""
        _order_samples(values, "run")

    def show(self, answer: Any) -> None:
        """The figures as tables, and what is off."""
        find_named("genodiff.quality.terminal:show_scorecard")(self, answer)


def is_run(given: Any) -> bool:
    """Whether `given` is a folder: a run or a checkpoint."""
    return isinstance(given, str | Path) and Path(given).is_dir()


def name_oracle(oracle: OracleName | None) -> str | None:
    """What a table calls an oracle."""
    if oracle is None or isinstance(oracle, str | Path):
        return None if oracle is None else str(oracle)
    return str(getattr(oracle, "__qualname__", type(oracle).__name__))


def _order_samples(values: dict[str, Any], other: str) -> None:
    """Samples and a model may stand in either order: a model is a folder."""
    samples, run = values["samples"], values[other]
    both = samples is not None and run is not None
    if both and Path(samples).is_dir() and not Path(run).is_dir():
        values["samples"], values[other] = run, samples
