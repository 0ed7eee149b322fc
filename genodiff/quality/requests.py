"""What `scorecard` is asked. No torch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from genodiff.errors import UsageError
from genodiff.io.target import check_target, is_stream
from genodiff.jobs.options import RUN_NAMES, Device, Force, Offline, Seed
from genodiff.jobs.request import Option, Request, find_named
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_input, locate


@verb(
    "scorecard",
    help="""
Compare generated with real DNA: k-mers, motifs, embeddings, a discriminator, copies, diversity.

Every figure of the samples is printed beside that of other real sequence (the floor), and of
sequence drawn from Markov models. Real sequence is the held-out split of a run, or a FASTA file.
Figures off the floor are listed. No model evaluates the samples; for their likelihood under one,
use `genodiff.load(RUN).bits("samples.fa")` in Python.
""",
)
@dataclass(frozen=True, kw_only=True)
class ScorecardRequest(Request[dict[str, Any]]):
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
    run: Annotated[
        str | Path | None,
        Option(
            "Run whose held-out split is the real sequence, and whose train split is searched "
            "for copies.",
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
    motifs: Annotated[
        str | Path | None,
        Option("MEME, JASPAR or TRANSFAC file of motifs to count.", is_input=True),
    ] = None
    embed: Annotated[
        str | Path | None, Option("Run whose embeddings are compared (default: that of --model).")
    ] = None
    split: Annotated[Literal["test", "valid"], Option("Held-out split of the run's data.")] = "test"
    fasta: Annotated[
        str | Path | None, Option("The run's FASTA file, if it was moved.", is_input=True)
    ] = None
    cnn: Annotated[bool, Option("Add a convolutional discriminator (minutes).")] = False

    def list_inputs(self) -> list[Any]:
        """What is read: files, or sequences."""
        return [self.samples, self.real, self.train, self.fasta, self.motifs]

    def check(self) -> None:
        """Raises for what does not go together, is not there, or must not be written."""
        if self.samples is None:
            raise UsageError("no samples", fix="give a FASTA file")
        if (self.run is None) == (self.real is None):
            what = "real sequence comes from a run or from a file"
            raise UsageError(what, fix="give --model RUN, or --real FASTA with --train FASTA")
        if self.run is not None and self.train is not None:
            raise UsageError("--train is for --real", fix="leave it out: the run has a train split")
        if self.fasta is not None and self.run is None and not is_run(self.train):
            raise UsageError("--fasta is for --model and --train RUN", fix="leave it out")
        for folder in (self.embed, self.run):
            if folder is not None:
                locate(folder)
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

    @classmethod
    def arrange(cls, values: dict[str, Any]) -> None:
        """Samples and a run may stand in either order: a run is a folder."""
        samples, run = values["samples"], values["run"]
        both = samples is not None and run is not None
        if both and Path(samples).is_dir() and not Path(run).is_dir():
            values["samples"], values["run"] = run, samples

    def show(self, answer: Any) -> None:
        """The figures as a table, and what is off."""
        find_named("genodiff.quality.scorecard_figures:show_scorecard")(answer)


def is_run(given: Any) -> bool:
    """Whether `given` is a folder: a run or a checkpoint."""
    return isinstance(given, str | Path) and Path(given).is_dir()
