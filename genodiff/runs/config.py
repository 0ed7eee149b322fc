"""What a run is: every setting of its data, network, diffusion, optimiser and loop.

The identity of a run is all of them but limits and machinery (`FREE`). Those may change when a run
is resumed, the rest may not.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from genodiff.backbones.settings import BACKBONES, BackboneSettings
from genodiff.diffusion.registries import OBJECTIVES, SCHEDULES
from genodiff.domain import DOMAINS, DomainName
from genodiff.errors import UsageError, did_you_mean
from genodiff.io.file_kinds import sha256_json
from genodiff.registry import Registry
from genodiff.runs.sections import (
    LABEL_SETTINGS,
    DataSettings,
    OptimSettings,
    TrainSettings,
    leave_unused_out,
)
from genodiff.settings import OneOf, Settings

OWN = "own"
"""The recipe's name for a user's own file that no recipe describes."""

_LATER = ("block", "mask_share", "bell", "bell_center", "bell_weighted")
"""Settings that came later: where they are not given, they are not written."""

_OPTIONAL = (
    "time_steps", "carry_over", "zero_masking", "rao_blackwell", "mask_rate", *_LATER,
)  # fmt: skip

_MAPPINGS = ("diffusion.schedule_options", "diffusion.objective_options")

FREE = (
    "preset", "fasta", "bed", "text", "genomes", "labels", "teacher", "init",
    "train.max_steps", "train.max_minutes", "train.checkpoint_every", "train.keep",
    "train.workers", "train.accumulate", "train.on_spike", "train.deterministic",
)  # fmt: skip
"""What may change when a run goes on: limits, machinery, and the names of files, whose content the
store compares.

`accumulate` changes the last bits of a sum, never what is summed.
"""


OPEN = ("train.precision", "train.batch_size", "train.accumulate")
"""What "auto" leaves open until a run begins on a machine."""


def show_choices(registry: Registry[Any]) -> Callable[[dict[str, Any]], None]:
    """For a field's `json_schema_extra`: the choices, asked for when the schema is shown."""
    return lambda schema: schema.update(enum=registry.list_names())


class DiffusionSettings(Settings, use_attribute_docstrings=True):
    """The objective, the forward process and its estimator."""

    objective: Annotated[
        str,
        Field(
            description="Training objective: masked diffusion (mdlm, or in blocks), its "
            "predecessors d3pm and sedd, mlm, uniform noise, or autoregressive",
            json_schema_extra=show_choices(OBJECTIVES),
        ),
    ] = "mdlm"
    objective_options: dict[str, bool | int | float] = Field(default_factory=dict)
    """Settings of a plug-in's objective."""
    schedule: Annotated[str, Field(json_schema_extra=show_choices(SCHEDULES))] = "linear"
    """Noise schedule."""
    schedule_options: dict[str, float] = Field(default_factory=dict)
    """Its parameters."""
    time_sampling: Literal["iid", "stratified", "systematic"] = "systematic"
    """Sampling of the times of a batch."""
    exact_count: bool = True
    """Mask exactly k of n bases, weight n/k, instead of each independently."""
    time_steps: Annotated[int | None, Field(ge=1, le=10**6)] = None
    """Steps T of the chain that is trained (mdlm: none, continuous time; d3pm: 1000)"""
    carry_over: bool | None = None
    """Copy visible tokens instead of predicting them (mdlm: true; d3pm: false)"""
    zero_masking: bool | None = None
    """The network cannot predict the mask (mdlm: true; d3pm: false)"""
    rao_blackwell: bool | None = None
    """Use the expected loss of a step, not a draw of it (mdlm and d3pm: true)"""
    mask_rate: Annotated[float | None, Field(gt=0, le=1)] = None
    """Share of tokens that mlm selects (mlm: 0.15)"""

    block: Annotated[int | None, Field(ge=1)] = None
    """Positions per block (block: 64)"""
    mask_share: Annotated[float | None, Field(ge=0, le=1)] = None
    """Share of masks in the noise; the rest is uniform (uniform: 0)"""

    bell: Annotated[
        float | None,
        Field(
            gt=0,
            le=10,
            description="Train on bell-shaped mask rates: standard deviation of their logit "
            "(mdlm: none, uniform rates)",
        ),
    ] = None
    bell_center: Annotated[float | None, Field(gt=0, lt=1)] = None
    """Median mask rate of the bell (mdlm: 0.5)"""
    bell_weighted: bool | None = None
    """Weight each window by 1 / density of its rate (mdlm: false)"""

    def own(self) -> dict[str, Any]:
        """The objective's given settings. Raises `UsageError` for one that it does not have."""
        known = OBJECTIVES[self.objective].list_settings()
        given = {name: getattr(self, name) for name in _OPTIONAL if getattr(self, name) is not None}
        given |= self.objective_options
        for name in given:
            if name not in known:
                fix = "leave it out, or give another --objective"
                raise UsageError(f"objective {self.objective} has no setting '{name}'", fix=fix)
        return given | {
            name: getattr(self, name) for name in ("time_sampling", "exact_count") if name in known
        }

    @field_validator("objective", "schedule")
    @classmethod
    def _name_is_known(cls, name: str, info: ValidationInfo) -> str:
        known = OBJECTIVES if info.field_name == "objective" else SCHEDULES
        if name not in known.list_names():
            raise ValueError(f"unknown {known.noun}; {did_you_mean(name, known.list_names())}")
        return name

    @model_serializer(mode="wrap")
    def _without_empty_options(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return leave_unused_out(dump(self), "objective_options", *_LATER)


class RunConfig(Settings, use_attribute_docstrings=True):
    """Everything that a training run is made of; `config.yaml` of a run folder is one."""

    recipe: str
    """Recipe of the data: a name or a YAML file."""
    fasta: str | None = None
    """Your FASTA, GenBank or EMBL file instead of the recipe's."""
    bed: str | None = None
    """BED file of your splits."""
    text: str | None = None
    """Your file or folder of text instead of the recipe's."""
    genomes: str | None = None
    """Your list of genomes, or the folder of a built one."""
    labels: str | None = None
    """Your table or BED file of labels, for conditional training."""
    labels_sha256: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$")] = None
    """Their file's hash."""
    classes: tuple[str, ...] = ()
    """The labels' names, as the network numbers them."""
    teacher: str | None = None
    """Related genomes or tracks that the network also learns."""
    domain: DomainName = "dna"
    """Domain of the sequences."""
    preset: str | None = None
    """Network preset, if any."""
    init: str | None = None
    """Initial weights of the run."""
    init_sha256: Annotated[str | None, Field(pattern="^[0-9a-f]{64}$")] = None
    """Their hash."""
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1
    """Random seed."""
    data: DataSettings = DataSettings()
    backbone: Annotated[BackboneSettings, OneOf(lambda: dict(sorted(BACKBONES.items())))]
    diffusion: DiffusionSettings = DiffusionSettings()
    optim: OptimSettings = OptimSettings()
    train: TrainSettings = TrainSettings()

    @model_validator(mode="after")
    def _fits_its_domain(self) -> Self:
        domain = DOMAINS[self.domain]
        for other in DOMAINS.values():
            for name in other.inputs if other is not domain else ():
                if getattr(self, name) is not None:
                    what = f"'{name}' does not go with domain {domain.name}"
                    raise ValueError(f"{what}; give {domain.inputs[0]} instead")
        if self.genomes is not None and (self.fasta is not None or self.bed is not None):
            raise ValueError("'genomes' goes with neither 'fasta' nor 'bed'; leave them out")
        if self.data.temperature is not None and self.genomes is None:
            raise ValueError("'data.temperature' is for many genomes; give --genomes LIST")
        if self.genomes is not None and self.data.legacy_caduceus_tiling:
            raise ValueError("'data.legacy_caduceus_tiling' is not for many genomes")
        if self.genomes is not None and self.backbone.reads_memory:
            raise ValueError("'backbone.recalls' (--memory) is not for many genomes; leave it out")
        n_classes = getattr(self.backbone, "n_classes", 0)
        if self.classes and n_classes != len(self.classes):
            what = f"{len(self.classes)} classes of labels, and a network of {n_classes}"
            raise ValueError(f"{what}; give another --preset, or no labels")
        if self.backbone.reads_memory and not domain.has_two_strands:
            what = f"'backbone.recalls' (--memory) does not go with domain {domain.name}"
            raise ValueError(f"{what}; it is for DNA")
        if self.teacher is not None and (self.genomes is not None or not domain.has_two_strands):
            raise ValueError("'teacher' is for one genome; leave --teacher out")
        if self.teacher is None and self.data.teacher_weight is not None:
            raise ValueError("'data.teacher_weight', and no teacher; give --teacher GENOMES")
        if not self.classes and any(getattr(self.data, one) is not None for one in LABEL_SETTINGS):
            raise ValueError("settings of labels, and no labels; give --labels FILE")
        if self.data.rc_augment is True and not domain.has_two_strands:
            what = f"'data.rc_augment' does not go with domain {domain.name}, which has one strand"
            raise ValueError(what)
        return self

    @model_serializer(mode="wrap")
    def _without_unused(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """See `leave_unused_out`; files of labels go with the classes."""
        written = leave_unused_out(dump(self), "genomes", "teacher")
        of_labels = () if self.classes else ("labels", "labels_sha256", "classes")
        return {name: value for name, value in written.items() if name not in of_labels}

    def check_together(self, file: str | Path | None = None) -> None:
        """Raises `UsageError` where objective, network and settings do not fit. Imports torch."""
        name = self.diffusion.objective
        needed = OBJECTIVES[name].kind == "causal"
        if needed and not self.backbone.causal:
            what = f"objective {name} needs a network that reads one way (causal)"
            fix = "give --preset mamba-470k, or --preset dit-causal-470k"
            raise UsageError(what, file=file, fix=fix)
        if self.backbone.causal and not needed:
            what = f"objective {name} needs a network that sees both sides of a mask, and this "
            what += "one reads one way (causal)"
            raise UsageError(what, file=file, fix="give another --preset, or --objective ar")
        if OBJECTIVES[name].kind == "block" and not self.backbone.reads_blocks:
            what = f"objective {name} needs a Caduceus of single strands and without memory: a "
            what += "strand is read from left to right, block after block"
            raise UsageError(what, file=file, fix="train with --preset caduceus-ph-470k, say")
        given = {"--memory": self.backbone.reads_memory, "--teacher": self.teacher is not None}
        for flag in (flag for flag, is_given in given.items() if is_given):
            if OBJECTIVES[name].kind != "masked":
                what = f"{flag} is for masked networks, and this is {name}"
                raise UsageError(what, file=file, fix="leave it out, or give another --objective")
        if self.teacher is not None and getattr(self.backbone, "dropout", None):
            what = "--teacher is for networks without dropout"
            raise UsageError(what, file=file, fix="leave it out, or set the dropout to 0")
        if self.classes and self.backbone.causal:
            what = f"objective {name} does not support classes of windows"
            raise UsageError(what, file=file, fix="leave --labels out")
        OBJECTIVES[name].check_settings(**self.diffusion.own())

    def digest(self) -> str:
        """sha256 (hex) of the run's identity: equal where a run folder may be shared."""
        leaves = list_leaves(self.model_dump(mode="json"))
        return sha256_json({place: value for place, value in leaves if place not in FREE})

    def differences(self, other: "RunConfig") -> list[str]:
        """Differences of identity, as `optim.lr: 0.001, not 0.002`; "auto" of `other` is none."""
        mine, theirs = (dict(list_leaves(c.model_dump(mode="json"))) for c in (self, other))
        places = [p for p in [*mine, *(p for p in theirs if p not in mine)] if p not in FREE]
        return [
            f"{p}: {mine.get(p)}, not {theirs.get(p)}"
            for p in places
            if mine.get(p) != theirs.get(p) and not (p in OPEN and theirs.get(p) == "auto")
        ]

    @property
    def unit(self) -> str:
        """What one position is called: a base or a token."""
        return DOMAINS[self.domain].unit

    @property
    def rc_augment(self) -> bool:
        """Whether windows are shown from a random strand: `data.rc_augment`, resolved."""
        chosen = self.data.rc_augment
        wanted = not self.backbone.paired if chosen == "auto" else chosen
        return wanted and DOMAINS[self.domain].has_two_strands


def list_leaves(tree: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted place, value) of every setting of a nested mapping; an empty mapping is a value."""
    for key, value in tree.items():
        if isinstance(value, dict) and value and f"{at}{key}" not in _MAPPINGS:
            yield from list_leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value
