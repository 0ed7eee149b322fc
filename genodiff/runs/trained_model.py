"""A trained model, ready to use, with what is established of it once.

No torch is imported here: `backbone`, `diffusion` and `objective` import it when they are asked
for, and what reads no network never asks.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.alphabet import DNA, Alphabet
from genodiff.diffusion.registries import OBJECTIVES
from genodiff.errors import UsageError, did_you_mean
from genodiff.memory.memory import identify_memory
from genodiff.memory.text import Codes
from genodiff.registry import find_named
from genodiff.runs.config import DiffusionSettings, RunConfig
from genodiff.runs.no_network import (
    PlainComposition,
    RelatedComposition,
    describe_composition,
    make_composition_config,
    measure_gc,
)

if TYPE_CHECKING:
    from genodiff.backbones.backbone import Backbone
    from genodiff.diffusion.masked import MaskedDiffusion
    from genodiff.diffusion.objective import Objective
    from genodiff.runs.training_memory import OwnLoci

_BUILD = "genodiff.runs.model:build"


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained model, ready to use, with what is established of it once."""

    network: Any
    """A `Backbone`, or what stands for one in NumPy where there is none (`no_network.py`)."""
    alphabet: Alphabet
    config: RunConfig
    step: int
    digest: str
    run: Path
    data: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    """The class that its network is of; None is all."""
    relatives: dict[str, Any] | None = None
    """What an output says of the relatives that its network is told of (`related_model.py`)."""

    def _replace(self, **changes: Any) -> "TrainedModel":
        return replace(self, **changes)

    def of_class(self, label: str) -> "TrainedModel":
        """This model, sharing weights, for one of its classes. Raises `UsageError` for another."""
        number = find_class(self.config.classes, label, self.run)
        one, digest = self.backbone.of_class(number), f"{self.digest}:{label}"
        return self._replace(network=one, label=label, digest=digest)

    def in_blocks(self, size: int | None) -> "TrainedModel":
        """This model in blocks of `size` positions (None: itself). Raises `UsageError`."""
        if size is None:
            return self
        if self.kind not in ("masked", "block"):
            what = f"--block is for masked diffusion, and this is {self.objective.name}"
            raise UsageError(what, file=self.run, fix="leave it out")
        kept = ("schedule", "schedule_options", "time_sampling")
        given = {name: getattr(self.config.diffusion, name) for name in kept}
        diffusion = DiffusionSettings(objective="block", block=size, **given)
        config = self.config.model_copy(update={"diffusion": diffusion})
        config.check_together(self.run)
        return self._replace(config=config)

    @property
    def reads_network(self) -> bool:
        """Whether it has a network; `none` has not."""
        return not isinstance(self.network, PlainComposition | RelatedComposition)

    def check_network(self) -> None:
        """Raises `UsageError` for the model without a network, which has no weights."""
        if not self.reads_network:
            what = "has no network, so no weights"
            raise UsageError(what, file=self.run, fix="give a trained model")

    def adapt_to(self, windows: Codes) -> "TrainedModel":
        """This model; without a network, with the base composition of `windows` (B, L)."""
        if self.reads_network:
            return self
        return self._replace(**describe_composition(measure_gc(windows), self.network.device))

    @property
    def recalls(self) -> bool:
        """Whether its network was trained with a memory, and reads one."""
        return self.config.backbone.reads_memory

    def asks_memory(self, memory: str | None) -> bool:
        """Whether it is given the memory of its training genome, where `memory` is "on", "off", or
        None for what its network was trained with.
        """
        return self.recalls if memory is None else memory != "off"

    @cached_property
    def backbone(self) -> "Backbone":
        """The network as torch has it; that of `none` is made when it is first asked for."""
        found: Backbone = self.network if self.reads_network else self.network.to_backbone()
        return found

    @property
    def device(self) -> str:
        """Where the network is; what has none is read on the CPU."""
        return str(next(self.network.parameters()).device) if self.reads_network else "cpu"

    @cached_property
    def diffusion(self) -> "MaskedDiffusion":
        """The diffusion that the network was trained with."""
        found: MaskedDiffusion = find_named(f"{_BUILD}_diffusion")(self.config, self.alphabet)
        return found

    @cached_property
    def objective(self) -> "Objective":
        """What the network was trained with, and is to be judged by."""
        found: Objective = find_named(f"{_BUILD}_objective")(self.config, self.diffusion)
        return found

    @property
    def kind(self) -> str:
        """The kind of its objective: "masked", "block", "uniform" or "causal"."""
        masked = not self.reads_network
        return "masked" if masked else OBJECTIVES[self.config.diffusion.objective].kind

    @property
    def is_masked(self) -> bool:
        """Whether its objective is one of masked diffusion."""
        return self.kind == "masked"

    def check_fills_dna(self) -> None:
        """Raises `UsageError` for a model of text, and for one that fills no masks."""
        if self.alphabet.domain != "dna":
            what = f"the model is of {self.alphabet.domain}, and variants are of DNA"
            raise UsageError(what, fix="give a run of DNA")
        if not self.is_masked:
            self.objective.check_fills_masks()


def reopen_relatives(told: Mapping[str, Any]) -> dict[str, Any]:
    """The words that open a model again with the relatives that a sidecar tells of."""
    kept = told.get("relatives")
    return {} if not kept else {"relatives": kept["given"], "strains": kept["strains"]}


def name_memory(loci: "OwnLoci | None") -> dict[str, Any]:
    """What a request and its sidecar say of the memory of a training genome; empty without one."""
    return {} if loci is None else {"memory": identify_memory(loci.told)}


def name_relatives(model: object) -> dict[str, Any]:
    """What an output says of a model's relatives; empty without them."""
    told = getattr(model, "relatives", None)
    return {} if told is None else {"relatives": told}


def name_genomes(told: Mapping[str, Any] | None) -> str | None:
    """The names of relatives, as the header of a file has them; None without relatives."""
    if told is None:
        return None
    return "+".join(re.sub(r"[\s,;=<>\"]+", "_", one["name"]) for one in told["genomes"])


def open_composition(path: Path, device: str = "cpu") -> TrainedModel:
    """The model `none` (`no_network.py`), all bases equally frequent."""
    config, own = make_composition_config(), describe_composition(device=device)
    return TrainedModel(alphabet=DNA, config=config, step=0, run=path, **own)


def find_class(classes: tuple[str, ...], label: str, run: Any) -> int:
    """The number of a class. Raises `UsageError` for a label that the run has not learnt."""
    if not classes:
        what = f"label '{label}', and the run was trained without labels"
        raise UsageError(what, file=run, fix="train one with --labels FILE")
    if label not in classes:
        raise UsageError(f"no label '{label}'; {did_you_mean(label, list(classes))}", file=run)
    return classes.index(label)
