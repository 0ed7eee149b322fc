"""What `finetune bases` is asked. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, Gt

from genodiff.errors import UsageError
from genodiff.finetuning.unit_files import LABELLER
from genodiff.io.target import check_new_folder, is_own_folder
from genodiff.jobs.options import OUT, FileRequest, RelativeFiles, Strains, check_file, name_tracks
from genodiff.jobs.request import Option
from genodiff.jobs.verbs import verb
from genodiff.runs.run_paths import check_input, locate

Loss = Literal["poisson", "mse"]
Ends = Literal["codons", "any"]
_HELD = "a contig, or a part of one (chr1:1-50,000); one or several"


@verb(
    "finetune bases",
    help="""
Fine-tune on labels at each base of a genome: genes, classes, or values of tracks.

RUN is a run or a pretrained model, FASTA the genome. The model is saved in the folder --out, which
`genodiff predict` reads. The same command resumes an interrupted one.
""",
)
@dataclass(frozen=True, kw_only=True)
class BasesRequest(FileRequest):
    """Fine-tune a network to label each base of a genome, and save the model in the folder `out`.

    `fasta` is the genome. One of three arguments gives the labels: `genes` (GFF3, GTF, GenBank or
    BED12; the states of coding genes, on both strands), `classes` (the names of BED rows, or rows
    of GFF3 and GTF of the `types`) or `track` (NAME=FILE, bigWig or bedGraph; NAME+ and NAME- are
    the strands of one). Contigs absent from a file are unknown, and so are letters other than A, C,
    G and T. `within` restricts labels to intervals.

    Labels are learned in windows: a scored core, with context on both sides that is only read.
    `valid` chooses the epoch, `test` is evaluated once, at the end; both are contigs or parts of
    them, whose labels training never sees. Without `valid` it is the last tenth of each contig.
    With `relatives` the head also reads how many related genomes have each base, which `predict`
    then needs as well. With `chain`, genes are decoded by a linear-chain CRF.

    An interrupted fit resumes from OUT.partial to the same bits. Returns OUT/labeller.json.
    `genodiff predict` and `genodiff.load` read the folder. Raises `UsageError`, `DataError` with
    file and line, `CheckpointError`, `MachineError`.

    >>> genodiff.finetune_bases("yeast", "genome.fa", genes="genes.gff3", out="runs/genes",
    ...                         test=["chrXVI"], epochs=2)
    """

    work: ClassVar[str] = "genodiff.finetuning.base_job:BasesJob"
    holds: ClassVar[str] = "the model"

    fasta: Annotated[
        str | Path, Option("FASTA file of the genome.", ("--fasta",), is_word=True, is_input=True)
    ] = field(kw_only=False)
    out: Annotated[str | Path, Option("Folder for the model.", OUT, decides="nothing")]
    genes: Annotated[
        str | Path | None,
        Option("Coding genes: GFF3, GTF, GenBank, EMBL or BED12.", is_input=True),
    ] = None
    classes: Annotated[
        str | Path | None,
        Option("Classes of bases: BED by its names, or GFF3 and GTF with --types.", is_input=True),
    ] = None
    track: Annotated[
        Sequence[str],
        Option("NAME=FILE: values of bases, bigWig or bedGraph; one or several."),
    ] = ()
    types: Annotated[
        Sequence[str], Option("Rows of --classes to read, such as exon.", is_row=True)
    ] = ()
    all_as: Annotated[str, Option("One name for all rows of --classes.")] = ""
    stranded: Annotated[bool, Option("Two classes of each: on + and on -.")] = False
    mask_shared: Annotated[
        bool, Option("Treat bases of two classes as unknown instead of an error.")
    ] = False
    fill: Annotated[
        bool, Option("Set bases without a value to 0, on contigs where their --track has any.")
    ] = False
    within: Annotated[
        str | Path | None, Option("BED file: labels elsewhere are unknown.", is_input=True)
    ] = None
    valid: Annotated[
        Sequence[str],
        Option(f"Contigs that choose the epoch: {_HELD} [the last tenth of each].", is_row=True),
    ] = ()
    test: Annotated[Sequence[str], Option(f"Held-out test contigs: {_HELD}.", is_row=True)] = ()
    head: Annotated[
        Literal["linear", "conv", "unet"], Option("Head on the network's features.")
    ] = "conv"
    relatives: RelativeFiles = ()
    strains: Strains = False
    chain: Annotated[bool, Option("Decode genes with a linear-chain CRF.")] = False
    ends: Annotated[
        Ends, Option("Genes begin with ATG and end with a stop codon, or anywhere.")
    ] = "codons"
    loss: Annotated[
        Loss | None, Option("For --track: poisson (counts, the default) or mse (any values).")
    ] = None
    class_power: Annotated[
        float, Ge(0), Option("Weight of a class: 0 weights bases equally, 1 classes equally.")
    ] = 0.0
    core: Annotated[int, Ge(1), Option("Scored bases of a window.")] = 4096
    context: Annotated[int, Ge(0), Option("Bases beside the core, on each side.")] = 1024
    method: Annotated[
        Literal["full", "frozen"], Option("full: all weights; frozen: only the head.")
    ] = "full"
    adapter: Annotated[
        str | None,
        Option("Train few weights instead of all: lora, or lora:r=8,on=in_proj+out_proj."),
    ] = None
    scratch: Annotated[bool, Option("Random weights instead of RUN's.")] = False
    epochs: Annotated[int, Ge(1), Option("Passes over the training windows.")] = 3
    max_steps: Annotated[
        int | None, Ge(1), Option("Maximum number of steps, instead of epochs.")
    ] = None
    batch_size: Annotated[int, Ge(1), Option("Windows per step.")] = 4
    lr: Annotated[float, Gt(0), Option("Highest learning rate.")] = 1e-3
    patience: Annotated[
        int | None, Ge(1), Option("Stop after this many epochs without a better validation.")
    ] = None
    ema: Annotated[
        float, Ge(0), Option("Decay of the moving average of weights that is evaluated and saved.")
    ] = 0.0
    seed: Annotated[int, Ge(0), Option("Random seed.")] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        given = [bool(self.genes), bool(self.classes), bool(self.track)]
        if sum(given) != 1:
            what = "no labels" if not any(given) else "labels of two kinds"
            raise UsageError(what, fix="give one of --genes, --classes and --track")
        of_classes = ("types", "all_as", "stranded", "mask_shared")
        for kind, names in (("classes", of_classes), ("track", ("fill", "loss"))):
            for name in names:
                if getattr(self, name) and not getattr(self, kind):
                    flag = f"--{name.replace('_', '-')}"
                    raise UsageError(f"{flag} is of --{kind}", fix="leave it out")
        if self.chain and not self.genes:
            raise UsageError("--chain is for --genes", fix="leave it out")
        if self.class_power and (self.track or self.chain):
            what = "--class-power weighs classes, and here is none"
            raise UsageError(what, fix="leave it out")
        if self.strains and not self.relatives:
            raise UsageError("--strains is for --relatives", fix="leave it out")
        if self.ema >= 1:
            raise UsageError(f"--ema {self.ema} is not below 1", fix="give less, such as 0.99")
        if self.adapter is not None and self.method == "frozen":
            what = "--adapter adapts the network, and --method frozen leaves it as it is"
            raise UsageError(what, fix="give one of them")
        _ = self.tracks

    @property
    def tracks(self) -> dict[str, str]:
        """The files of values by name. Raises `UsageError`."""
        return name_tracks(self.track)

    @property
    def label_files(self) -> list[str | Path]:
        """The files of labels."""
        return [one for one in (self.genes, self.classes, *self.tracks.values()) if one is not None]

    def list_inputs(self) -> list[str | Path]:
        """The files that are read."""
        return [*super().list_inputs(), *self.tracks.values()]

    def list_files(self) -> list[str]:
        """All files that are written."""
        return [f"{str(self.out).rstrip('/')}/{name}" for name in ("model.safetensors", LABELLER)]

    @property
    def state_file(self) -> Path:
        """The file that says where an unfinished fit is."""
        return Path(f"{self.partial}.safetensors")

    def check(self) -> None:
        """As every request of a file; a folder is replaced where it is as genodiff wrote it."""
        if str(self.out) == "-":
            raise UsageError("a model is a folder, not a stream", fix="give --out FOLDER")
        own = is_own_folder(self.out, LABELLER)
        check_new_folder(self.out, force=self.force or own, inputs=self.list_inputs())
        for one in self.list_inputs():
            check_input(one)
        locate(self.run)

    @classmethod
    def arrange(cls, values: dict[str, Any]) -> None:
        """Refuse words that are missing, or stand the other way round."""
        check_file(Path(values["run"] or ""), values["fasta"], "finetune bases RUN FASTA")

    def summarise(self, told: Mapping[str, Any]) -> str:
        """What was written, in a line."""
        parts = [f"best epoch {told['best_epoch'] + 1} of {len(told['history'])}"]
        for part, found in told["measured"].items():
            some = [f"{name} {value:.3f}" for name, value in found.items() if value is not None]
            parts.append(f"{part}: {', '.join(some)}")
        return "\n  ".join(parts)
