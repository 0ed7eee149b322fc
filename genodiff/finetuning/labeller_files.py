"""A model that labels bases, as a folder: what it is, sealed, and its weights.

    OUT/labeller.json        network, head, labels, windows, fit, measures; sealed, written last
    OUT/model.safetensors    the weights of the best epoch: network, head and chain

It needs nothing outside itself. Nothing in it is a pickle.
"""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field
from torch import Tensor

from genodiff.annotation.base_labels import Kind, mirror_names
from genodiff.annotation.gene_grammar import mirror_states
from genodiff.errors import CheckpointError, GenodiffError
from genodiff.finetuning.base_labeller import BaseLabeller
from genodiff.finetuning.base_lesson import BaseTask
from genodiff.finetuning.base_request import Ends
from genodiff.finetuning.predictor_files import NetworkShape
from genodiff.finetuning.protocol import FitSettings
from genodiff.finetuning.related_features import KeptRelatives, RelatedFeatures
from genodiff.finetuning.unit import MODEL
from genodiff.finetuning.unit_files import LABELLER
from genodiff.io import atomic
from genodiff.io.target import describe_file
from genodiff.runs.model import fill_module
from genodiff.runs.sealed_files import (
    AGAIN,
    FORMAT_VERSION,
    encode_tensors,
    read_sealed,
    read_tensors,
    seal,
    to_utf8,
)
from genodiff.settings import Settings
from genodiff.version import __version__


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
        backbone = self.network.settings.build(alphabet.padded_size, alphabet.complement)
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
    try:
        network = card.build()
        fill_module(network, tensors)
    except CheckpointError as fault:
        raise CheckpointError(fault.what, file=fault.file or folder, fix=fault.fix) from None
    except (GenodiffError, KeyError, TypeError, ValueError, RuntimeError) as fault:
        what = f"does not fit together ({type(fault).__name__}: {str(fault)[:100]})"
        raise CheckpointError(what, file=folder, fix=AGAIN) from None
    return card, network.to(device).eval()
