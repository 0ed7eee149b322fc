"""A model that labels bases: its folder, and what it says of new sequences.

    OUT/labeller.json        network, head, labels, windows, fit, measures; sealed, written last
    OUT/model.safetensors    the weights of the best epoch: network, head and chain

The folder needs nothing outside itself. Nothing in it is a pickle.

Windows are those of training. What is given of a base is a chance for each class or state, or the
value of each track. Logarithms of chances are kept as float16, of which each has 11 significant
bits: so the bits of an array, of a file and of shards are the same.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from genodiff.alphabet import Alphabet
from genodiff.annotation.base_labels import Kind, mirror_names
from genodiff.annotation.gene_grammar import mirror_states
from genodiff.backbones.settings import TO_FILL
from genodiff.errors import UsageError
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_lesson import BaseTask
from genodiff.finetuning.base_request import Ends
from genodiff.finetuning.base_windows import Span, tile_cores
from genodiff.finetuning.predictor_files import NetworkShape, rebuilding
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.related_features import KeptRelatives, RelatedFeatures
from genodiff.finetuning.unit import MODEL
from genodiff.finetuning.unit_files import LABELLER
from genodiff.io import atomic
from genodiff.io.faidx import Genome
from genodiff.io.input_file import is_file
from genodiff.io.places import list_places
from genodiff.io.sequences import read_sequences
from genodiff.io.target import describe_file
from genodiff.runs.known_contigs import LetterSource
from genodiff.runs.model import fill_module
from genodiff.runs.sealed_files import (
    FORMAT_VERSION,
    encode_tensors,
    read_sealed,
    read_tensors,
    seal,
    to_utf8,
)
from genodiff.settings import Settings
from genodiff.version import __version__

BATCH = 8
"""Windows that are read together. They are always the same ones, so that bits are."""


class LabellerCard(Settings):
    """What `labeller.json` says of a model; beside it stand the facts of its making (`told`)."""

    kind: Kind
    names: tuple[str, ...]
    loss: str = ""
    head: str
    head_options: dict[str, Any] = Field(default_factory=dict)
    chain: bool = False
    introns: tuple[int, ...] = (0, 1, 2)
    ends: Ends = "any"
    core: Annotated[int, Field(ge=1)]
    context: Annotated[int, Field(ge=0)]
    settings: FitSettings
    network: NetworkShape
    relatives: KeptRelatives | None = None
    weights_sha256: str
    told: dict[str, Any] = Field(default_factory=dict)

    @property
    def task(self) -> BaseTask:
        """What was learned."""
        return BaseTask(self.kind, self.names, self.loss, self.ends)

    @property
    def mirror(self) -> tuple[int, ...]:
        """The number of each output on the other strand."""
        return mirror_states() if self.kind == "genes" else mirror_names(self.names)

    def build(self) -> BaseLabeller:
        """The network, without its weights."""
        alphabet = self.network.read_alphabet()
        build = self.network.settings.build
        backbone = build(alphabet.padded_size, alphabet.complement, seed=TO_FILL)
        return BaseLabeller(
            backbone if self.relatives is None else RelatedFeatures(backbone),
            self.mirror,
            strands=self.settings.rc,
            complement=alphabet.complement,
            head=self.head,
            options=self.head_options,
            chain=self.chain,
            introns=self.introns,
        )


def write_labeller(
    folder: Path, values: dict[str, Any], tensors: dict[str, Tensor]
) -> dict[str, Any]:
    """Write both files into a new folder; what `labeller.json` says."""
    raw = encode_tensors(tensors)
    own = values | {"weights_sha256": hashlib.sha256(raw).hexdigest()}
    card = LabellerCard.parse(to_utf8(json.loads(json.dumps(own))))
    atomic.write_bytes(folder / MODEL, raw)
    about = {"format_version": FORMAT_VERSION, "genodiff": __version__}
    files = {MODEL: describe_file(folder / MODEL)}
    whole = seal({**about, **card.model_dump(mode="json"), "files": files})
    atomic.write_json(folder / LABELLER, whole)
    return whole


def read_labeller(folder: Path, device: str) -> tuple[LabellerCard, BaseLabeller]:
    """The model in a folder. Raises `CheckpointError`."""
    card = read_sealed(folder / LABELLER, LabellerCard)
    tensors = read_tensors(folder / MODEL, None, card.weights_sha256)
    with rebuilding(folder):
        network = card.build()
        fill_module(network, tensors)
    return card, network.to(device).eval()


class Held(NamedTuple):
    """Sequences in memory, read as a genome is."""

    letters: dict[str, bytes]

    @property
    def contigs(self) -> dict[str, int]:
        """The lengths of the sequences by name."""
        return {name: len(text) for name, text in self.letters.items()}

    def fetch(self, contig: str, start: int, end: int) -> bytes:
        """The letters of a stretch."""
        return self.letters[contig][start:end]


class KeptLabeller:
    """A network with its head, its labels and, with a chain, its steps."""

    def __init__(
        self, folder: Path, device: str = "cpu", relatives: Sequence[str | Path] = ()
    ) -> None:
        """`relatives` are those of the model, where they do not stand where they did in training.

        Raises `CheckpointError` for a folder that is damaged.
        """
        self.folder, self.relatives = folder, relatives
        self.card, self.network = read_labeller(folder, device)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of states, classes or tracks, in the order of the columns."""
        return self.card.names

    @property
    def alphabet(self) -> Alphabet:
        """Tokens and their ids."""
        return self.card.network.read_alphabet()

    @property
    def digest(self) -> str:
        """The first 12 hex digits of the sha256 of the weights."""
        return self.card.weights_sha256[:12]

    @property
    def dtype(self) -> type[np.floating]:
        """Of what `score` gives: see the module."""
        return np.float32 if self.card.kind == "values" else np.float16

    def relate(self, genome: LetterSource) -> None:
        """Open the relatives that a model reads, without those of the `genome`'s own species.

        Raises `DataError` where they are not those of training, `UsageError` for some too many.
        """
        kept, features = self.card.relatives, self.network.backbone
        if kept is not None:
            features.take(*kept.open(genome, self.relatives))  # type: ignore[operator]
        elif self.relatives:
            what = "this model was trained without related genomes"
            raise UsageError(what, file=self.folder, fix="leave --relatives out")

    def score(self, genome: Any, spans: Sequence[Span]) -> list[NDArray[Any]]:
        """Of each core, the logarithms of chances (bases, outputs), or values; after `relate`."""
        card = self.card
        scored = self.network.score_cores(genome, spans, card.core, card.context)
        read = (card.task.read(torch.from_numpy(scores)).numpy() for _, scores in scored)
        return [one.astype(self.dtype) for one in read]

    def decode(self, scores: NDArray[Any], letters: bytes) -> NDArray[np.int8]:
        """The states of a contig's bases (L,), of its scores."""
        return self.network.decode(scores, letters if self.card.ends == "codons" else None)

    def predict(
        self, sequences: Any = None, *, fasta: Any = None, region: Sequence[str] = (), **rest: Any
    ) -> dict[str, NDArray[np.float32]]:
        """Chances, or values, of the bases of each sequence or region: name to (L, outputs).

        `sequences` are a FASTA file, strings or a mapping; `region` is of `fasta`, or of the file.
        """
        if rest.get("column") or (sequences is not None and fasta is not None):
            what = "this model labels bases of sequences: it cannot read tables or intervals"
            raise UsageError(what, fix="give a FASTA file or sequences alone")
        given = fasta if sequences is None else sequences
        with ExitStack() as stack:
            if is_file(given):
                genome: LetterSource = stack.enter_context(Genome(given))
            else:
                genome = Held({one.name: one.sequence for one in read_sequences(given)})
            self.relate(genome)
            found = {}
            for name, span in list_spans(dict(genome.contigs), region):
                cores = list(tile_cores([span], self.card.core))
                rows = [one for some in batch(cores) for one in self.score(genome, some)]
                found[name] = np.concatenate(rows).astype(np.float32)
        return {name: self.read(rows) for name, rows in found.items()}

    def read(self, scores: NDArray[Any]) -> NDArray[np.float32]:
        """What `score` gave of a whole stretch as chances, those of a chain, or values."""
        if self.card.kind == "values":
            return scores.astype(np.float32)
        chain, never = self.network.chain, self.network.never
        if chain is None:
            return np.exp(scores.astype(np.float32))
        return chain.chances(scores, never=never)


def batch(cores: Sequence[Span]) -> Iterator[Sequence[Span]]:
    """The cores, `BATCH` at a time."""
    return (cores[i : i + BATCH] for i in range(0, len(cores), BATCH))


def list_spans(contigs: dict[str, int], region: Sequence[str]) -> list[tuple[str, Span]]:
    """The regions with their names; every contig that has a base, where none is given."""
    if region:
        places = list_places(contigs, region)
        return [(one.name, (one.contig, one.start, one.end)) for one in places]
    return [(name, (name, 0, length)) for name, length in contigs.items() if length]
