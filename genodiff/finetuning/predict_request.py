"""What `predict` is asked. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge

from genodiff.errors import UsageError, format_count
from genodiff.finetuning.unit_files import check_fitted, labels_bases
from genodiff.io.input_file import open_input
from genodiff.io.target import check_new_folder, is_own_folder
from genodiff.jobs.options import OUT, FileRequest, JsonLines, Regions, ShardWords, choose_target
from genodiff.jobs.request import Option, find_named
from genodiff.jobs.shards import Shard, parse_shard
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import locate

Format = Literal["csv", "tsv", "jsonl", "parquet"]
FORMATS: tuple[Format, ...] = ("csv", "tsv", "jsonl", "parquet")
STDOUT = "-"
LABELS = "labels at each base"
"""What a shard of a model that labels bases holds."""


def find_format(path: str | Path, wanted: Format | None = None) -> Format:
    """The format of an output: `wanted`, or what its name says; CSV on stdout.

    Raises `UsageError`.
    """
    if str(path) == STDOUT:
        if wanted == "parquet":
            raise UsageError("parquet cannot be streamed to stdout", fix="give --out FILE.parquet")
        return wanted or "csv"
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        known = ", ".join(f".{name}" for name in FORMATS)
        fix = "name the output after its format"
        raise UsageError(f"'{Path(path).name}' ends in none of {known}", fix=fix)
    return ending


@verb(
    "predict",
    help="""
Apply a fine-tuned model to new sequences: classes with probabilities, or values.

RUN is the folder of `genodiff finetune`, or of one of its units (one model fitted to one task with
one seed). SEQUENCES is FASTA or GenBank (- is stdin), a table (.csv, .tsv, .parquet), intervals
(BED, with --fasta: a row on - is read as its reverse complement) or, for models of text, sentences.
With --region, parts of the genome --fasta are read instead. The fit's own protocol applies: longer
sequences are cut, and strands are treated as in training.

With a model of `genodiff finetune bases`, each base of the genome SEQUENCES (FASTA) is labelled:
into x.gff3, x.bed or a folder with bigWig files, in shards with --shard.
""",
)
@dataclass(frozen=True, kw_only=True)
class PredictRequest(FileRequest):
    """Predict labels of new sequences with a fine-tuned model.

    `run` is the folder of a sweep or of one unit. In a sweep with several models, `task`, `model`,
    `method`, `setting` and `seed` select one. With `ensemble` the mean of all its seeds is given,
    and `spread`, the standard deviation between them. `sequences` are strings, `SeqRecord`s, a
    mapping from names, or a file ("-" is stdin): FASTA or GenBank, a table (.csv, .tsv, .parquet;
    `column` names its column of sequences), intervals (.bed) of a genome (`fasta`), and for models
    of text sentences, one per line or in a table. A row of BED on - is read as its reverse
    complement. Instead of `sequences`, `region` (chr1:1,000-2,000, 1-based and inclusive) selects
    parts of the genome.

    Without `out` a frame is returned: name, prediction, and p_CLASS (float32) for each class. With
    `out` (.csv, .tsv, .jsonl, .parquet, "-" for stdout in the format `form`) they are written, in
    bounded memory, with OUT.json beside them, which is returned. Predictions are saved in
    OUT.partial until `out` is complete, and the same call resumes.

    A model of `finetune bases` reads a genome (FASTA) and labels each of its bases. `out` is then
    x.gff3 or x.bed, or a folder that has these and a bigWig of each class, strand or track; with
    `shard` a .npy file of a part. Without `out` it is an array of each sequence, (bases, labels).

    Sequences longer than those of the fit are cut in the same way. A file is read to its end before
    the first prediction, so that errors are reported immediately. On a CPU the values have the same
    bits at any `batch_size` and beside any other sequences. Raises `UsageError`, `DataError` with
    file and line, `CheckpointError`, `MachineError`.

    >>> genodiff.predict("runs/labels", ["ACGTACGT", "TTTT"], seed=1)
    """

    work: ClassVar[str] = "genodiff.finetuning.predict_job:PredictJob"

    run: Annotated[
        str | Path,
        Option(
            "Folder of a sweep, of a unit (one task, model, setting and seed of it), or of "
            "`finetune bases`.",
            ("--run", "--checkpoint"),
            is_word=True,
            is_opened=True,
        ),
    ] = field(kw_only=False)
    sequences: Annotated[
        Any, Option("File of sequences; - is stdin (FASTA).", is_word=True, is_input=True)
    ] = field(default=None, kw_only=False)
    out: Annotated[
        str | Path,
        Option(
            "Output: .csv, .tsv, .parquet, .jsonl, or - for CSV on stdout; for a model that "
            "labels bases a folder, .gff3 or .bed.",
            OUT,
            decides="nothing",
        ),
    ] = ""
    form: Annotated[
        Format | None, Option("Format of stdout [csv].", on_line=False, decides="output")
    ] = None
    column: Annotated[
        Sequence[str],
        Option("Column of sequences in a table [sequence, seq]; twice for pairs of sentences."),
    ] = ()
    fasta: Annotated[
        str | Path | None, Option("Genome of a BED file, or of --region.", is_input=True)
    ] = None
    region: Regions = ()
    relatives: Annotated[
        Sequence[str | Path],
        Option(
            "For a model that labels bases with related genomes: their paths, if they were "
            "moved since training.",
            is_input=True,
            is_opened=True,
        ),
    ] = ()
    task: Annotated[str | None, Option("Task, if a sweep has several.")] = None
    model: Annotated[str | None, Option("Model's name in the sweep, or RUN itself.")] = None
    method: Annotated[str | None, Option("full, frozen or baseline.")] = None
    setting: Annotated[str | None, Option("paper, own, search-20, ...")] = None
    seed: Annotated[int | None, Ge(0), Option("Seed of the fit, if a sweep has several.")] = None
    ensemble: Annotated[
        bool, Option("Mean of all seeds, with their spread (standard deviation).")
    ] = False
    batch_size: Annotated[
        int,
        Ge(1),
        Option("Sequences per batch: affects the speed, not the values.", decides="nothing"),
    ] = 64
    shard: ShardWords = None
    json: JsonLines = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ensemble and self.seed is not None:
            raise UsageError("--seed and --ensemble exclude each other", fix="give one of them")
        if self.form is not None and not self.is_file:
            raise UsageError("form is of an output, and there is none", fix="give out")
        if self.json or self.plan:
            out = choose_target(self.out, json=self.json, plan=self.plan)
            object.__setattr__(self, "out", out)
        if self.labels_bases:
            self._check_bases()
        elif self.shard is not None or self.relatives:
            flag = "--shard" if self.shard is not None else "--relatives"
            raise UsageError(f"{flag} is of models of `finetune bases`", fix="leave it out")
        elif self.sequences is None and not self.region:
            raise UsageError("no sequences", fix="give SEQUENCES, or --region of --fasta")
        elif self.is_file:
            _ = self.ending

    def _check_bases(self) -> None:
        """Raises `UsageError` for what a model that labels bases has no use of."""
        choices = ("task", "model", "method", "setting", "seed", "column", "form")
        for name in (*choices, "json", "ensemble"):
            value = getattr(self, name)
            if value not in (None, False, ()) and not (name == "json" and self.plan):
                raise UsageError(f"--{name} is of models of whole sequences", fix="leave it out")
        if self.sequences is not None and self.fasta is not None:
            what = "--fasta is the genome, and so are the SEQUENCES"
            raise UsageError(what, fix="give one of them")
        ending = Path(self.out).suffix
        wanted = (".gff3", ".bed", "") if self.part is None else (".npy",)
        if self.is_file and not self.plan and (ending not in wanted or self.is_stream):
            what = f"'{Path(self.out).name}' is no name of labels"
            fix = "give x.npy" if self.part else "give a folder, x.gff3 or x.bed"
            raise UsageError(what, fix=fix)
        if self.is_file and not isinstance(self.genome, str | Path):
            what = "labels are written of a FASTA file, and sequences were given"
            raise UsageError(what, fix="give the file, or leave the output out")

    @property
    def labels_bases(self) -> bool:
        """Whether the model labels each base."""
        return labels_bases(locate(self.run, there=False))

    @property
    def genome(self) -> Any:
        """What a model that labels bases reads."""
        return self.fasta if self.sequences is None else self.sequences

    @property
    def part(self) -> Shard | None:
        """The shard, parsed."""
        return None if self.shard is None else parse_shard(self.shard)

    @property
    def is_file(self) -> bool:
        """Whether predictions are written; without an output they are given as a frame."""
        return bool(str(self.out))

    @property
    def ending(self) -> Format:
        """The format of the output."""
        return find_format(self.out, "jsonl" if self.json and self.is_stream else self.form)

    @property
    def folder(self) -> Path:
        """The folder of the sweep or of the unit. Raises `CheckpointError` where there is none."""
        return check_fitted(locate(self.run, there=False))

    def check(self) -> None:
        """Raises as every request of a file, `CheckpointError` for no fine-tuned model."""
        _ = self.folder
        if isinstance(self.sequences, Path):
            with open_input(self.sequences):  # a missing file is told before torch is loaded
                pass
        if self.labels_bases and self.part is None and self.is_file and not Path(self.out).suffix:
            own = is_own_folder(self.out, "labels.json")
            check_new_folder(self.out, force=self.force or own, inputs=self.list_inputs())
        elif self.is_file:
            self.check_files()

    def answer(self, *given: Any) -> Any:
        """A frame without an output; else what its sidecar says."""
        if self.is_file and not self.labels_bases:
            return super().answer(*given)
        self.check()
        if not self.labels_bases:
            return find_named("genodiff.finetuning.predict_job:predict_frame")(self)
        room = "genodiff.finetuning.base_predict_job"
        if self.is_file:
            return find_named(f"{room}:BasePredictJob")(self).run()
        return find_named(f"{room}:predict_arrays")(self)

    @classmethod
    def arrange(cls, values: dict[str, Any]) -> None:
        """Put RUN in its place, which may be given as --model RUN, and a table on stdout."""
        run, sequences, model = (values[name] for name in ("run", "sequences", "model"))
        if sequences is None and model is not None and Path(model).is_dir():
            run, sequences, model = model, run, None
        if run is None or (sequences is None and not values["region"] and not values["fasta"]):
            missing = "SEQUENCES" if run is not None and Path(run).is_dir() else "RUN"
            raise UsageError(f"{missing} is missing", fix="give genodiff predict RUN SEQUENCES")
        values |= {"run": run, "sequences": sequences, "model": model}
        values["out"] = values["out"] or ("" if values["json"] else "-")

    def summarise(self, told: Mapping[str, Any]) -> str:
        """What was written, in a line."""
        if "intervals" in told:
            of = format_count(len(told["intervals"]), "interval")
            return f"{told['kind']} of {format_count(told['bases'], 'base')} of {of}"
        seeds = ", ".join(str(unit["seed"]) for unit in told["units"])
        several = "s" * (len(told["units"]) > 1)
        about = f"{told['task']}, {told['model']}, seed{several} {seeds}"
        return f"{format_count(told['rows'], 'sequence')} ({about})"
