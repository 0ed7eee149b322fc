"""What a run is: every setting of data, network, diffusion, optimiser and loop, typed, with its
default.

A run's identity is all of it but its limits and its machinery (`FREE`): those may change when a run
goes on, the rest may not. In a file or on the command line a setting may be written by its place
(`optim.lr`) or, where its own name is unique, by that name alone (`lr`).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, field_validator, model_validator
from pydantic.fields import FieldInfo

from genodiff.backbones.backbone import KINDS, BackboneSettings
from genodiff.backbones.presets import FIRST, PRESETS
from genodiff.data.text_recipe import load_text_recipe
from genodiff.diffusion.masked import MaskedDiffusion
from genodiff.diffusion.objectives import OBJECTIVES, objective, settings_of
from genodiff.diffusion.schedule import SCHEDULES, Linear
from genodiff.errors import GenodiffError, UsageError
from genodiff.io.identity import sha256_json
from genodiff.settings import Settings, did_you_mean, read_yaml

DEFAULT_PRESET = "caduceus-ps-470k"
DEFAULT_TEXT_PRESET = "dit-tiny-bytes"
TEXT_DEFAULTS: dict[str, Any] = {"data": {"seq_len": 128}, "train": {"batch_size": 8}}
"""What is otherwise in a run on text unless it is given: many small steps, for a CPU."""

DEFAULT_STEPS = 10_000

OWN = "own"
"""The recipe's name for a user's own file that no recipe describes."""

_OPTIONAL = ("time_steps", "carry_over", "zero_masking", "rao_blackwell", "mask_rate")

FREE = (
    "preset", "fasta", "bed", "text", "init", "train.max_steps", "train.max_minutes",
    "train.checkpoint_every", "train.keep",
    "train.workers", "train.accumulate",
)  # fmt: skip
"""What may change when a run goes on: limits, machinery, and the names of files, whose content the
store compares.

`accumulate` changes the last bits of a sum, never what is summed.
"""

ALIASES = {"steps": ("train", "max_steps"), "model": ("backbone", "kind")}


class DataSettings(Settings):
    """Which windows a step sees."""

    seq_len: Annotated[
        int, Field(ge=2, le=1 << 20, description="Bases or tokens in a training window.")
    ] = 1024
    rc_augment: Annotated[
        bool | Literal["auto"],
        Field(description="Show windows from a random strand; auto: single-strand networks only."),
    ] = "auto"
    soft_mask_weight: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Weight of a soft-masked base in training (default: the recipe's).",
        ),
    ] = None
    max_n_fraction: Annotated[
        float | None,
        Field(
            ge=0, le=1, description="Drop windows with a larger share of N (default: the recipe's)."
        ),
    ] = None
    legacy_caduceus_tiling: Annotated[
        bool, Field(description="Stretch BED intervals as the Caduceus loader does.")
    ] = False
    tokenizer: Annotated[
        str,
        Field(
            min_length=1,
            description="Of text: bytes, text8, gpt2, bert-base-uncased, or a tokenizer's "
            "folder or file.",
        ),
    ] = "bytes"
    packing: Annotated[
        Literal["auto", "packed", "padded"],
        Field(
            description="Of text: windows through all documents, or one document each; auto: "
            "the recipe's."
        ),
    ] = "auto"
    document_attention: Annotated[
        bool, Field(description="Of packed text: tokens see their own document only.")
    ] = False


class DiffusionSettings(Settings):
    """The objective, the forward process and its estimator."""

    objective: Annotated[
        Literal["mdlm", "d3pm", "sedd", "mlm", "ar"],
        Field(
            description="Masked diffusion, its two forerunners, BERT's masked language model, "
            "or the next token"
        ),
    ] = "mdlm"
    schedule: Annotated[str, Field(description="Noise schedule.")] = "linear"
    schedule_options: dict[str, float] = Field(default_factory=dict, description="Its parameters.")
    time_sampling: Annotated[
        Literal["iid", "stratified", "systematic"],
        Field(description="How the times of a batch are spread."),
    ] = "systematic"
    exact_count: Annotated[
        bool,
        Field(description="Mask exactly k of n bases, weight n/k, rather than each by a coin."),
    ] = True
    time_steps: Annotated[
        int | None,
        Field(
            ge=1,
            le=10**6,
            description="Steps T of the chain that is trained (mdlm: none, continuous "
            "time; d3pm: 1000)",
        ),
    ] = None
    carry_over: Annotated[
        bool | None,
        Field(description="Visible tokens are given, not predicted (mdlm: true; d3pm: false)"),
    ] = None
    zero_masking: Annotated[
        bool | None, Field(description="The network cannot say 'mask' (mdlm: true; d3pm: false)")
    ] = None
    rao_blackwell: Annotated[
        bool | None,
        Field(description="Pay for a step's mean, not for a draw of it (mdlm and d3pm: true)"),
    ] = None
    mask_rate: Annotated[
        float | None, Field(gt=0, le=1, description="Share of tokens that mlm selects (mlm: 0.15)")
    ] = None

    def own(self) -> dict[str, Any]:
        """The objective's own settings, those that were given. Raises `UsageError` for one that it
        does not have.
        """
        known = settings_of(self.objective)
        given = {name: getattr(self, name) for name in _OPTIONAL if getattr(self, name) is not None}
        for name in given:
            if name not in known:
                raise UsageError(
                    f"objective {self.objective} has no setting '{name}'",
                    fix="leave it out, or give another --objective",
                )
        return given | {
            name: getattr(self, name) for name in ("time_sampling", "exact_count") if name in known
        }

    @field_validator("schedule")
    @classmethod
    def _schedule_is_known(cls, name: str) -> str:
        if name not in SCHEDULES:
            raise ValueError(f"unknown schedule; {did_you_mean(name, SCHEDULES)}")
        return name


class OptimSettings(Settings):
    """AdamW, its learning rate over the steps, and the average of the weights."""

    lr: Annotated[float, Field(gt=0, le=10, description="Highest learning rate.")] = 2e-3
    lr_schedule: Annotated[
        Literal["cosine", "constant"], Field(description="After the warm-up.")
    ] = "cosine"
    lr_min_ratio: Annotated[
        float, Field(ge=0, le=1, description="The cosine ends at lr times this.")
    ] = 0.01
    warmup_steps: Annotated[int, Field(ge=0, le=10**9, description="Steps of linear warm-up.")] = (
        100
    )
    weight_decay: Annotated[
        float, Field(ge=0, le=10, description="Not applied to norms, biases, A_log, D.")
    ] = 0.01
    betas: Annotated[tuple[float, float], Field(description="AdamW's two decay rates.")] = (
        0.9,
        0.999,
    )
    eps: Annotated[float, Field(gt=0, le=1, description="AdamW's epsilon.")] = 1e-8
    clip: Annotated[float, Field(gt=0, description="Largest gradient norm.")] = 1.0
    ema_decay: Annotated[
        float,
        Field(
            ge=0,
            lt=1,
            description="Decay of the weights' average, warmed up as min(decay, (1+n)/(10+n)).",
        ),
    ] = 0.9999

    @field_validator("betas")
    @classmethod
    def _betas_are_rates(cls, betas: tuple[float, float]) -> tuple[float, float]:
        if not all(0 <= b < 1 for b in betas):
            raise ValueError("must be two numbers of at least 0 and below 1")
        return betas


class TrainSettings(Settings):
    """The loop."""

    batch_size: Annotated[
        int, Field(ge=1, le=1 << 20, description="Windows per optimiser step, over all devices.")
    ] = 16
    accumulate: Annotated[
        int,
        Field(ge=1, le=1 << 20, description="Parts that a batch is computed in, to save memory."),
    ] = 1
    max_steps: Annotated[
        int | None,
        Field(
            ge=1,
            le=10**12,
            description="Stop after this many steps (10,000 where no limit is given).",
        ),
    ] = None
    max_minutes: Annotated[
        float | None, Field(gt=0, le=10**7, description="Stop after this many minutes of training.")
    ] = None
    precision: Annotated[
        Literal["fp32", "bf16"], Field(description="bf16: autocast, the scan stays fp32.")
    ] = "fp32"
    checkpoint_every: Annotated[
        int, Field(ge=1, le=10**12, description="Steps between checkpoints.")
    ] = 500
    validate_every: Annotated[
        int, Field(ge=1, le=10**12, description="Steps between validations.")
    ] = 500
    validate_windows: Annotated[
        int,
        Field(
            ge=0,
            le=10**9,
            description="Windows of the valid split that are used; 0: no validation.",
        ),
    ] = 64
    keep: Annotated[int, Field(ge=1, le=10**6, description="Newest checkpoints kept.")] = 2
    workers: Annotated[int, Field(ge=0, le=256, description="Processes that prepare batches.")] = 0
    max_skipped: Annotated[
        int, Field(ge=0, le=10**9, description="Non-finite steps that may be skipped.")
    ] = 3

    @model_validator(mode="after")
    def _batches_split_evenly(self) -> Self:
        if self.batch_size % self.accumulate:
            raise ValueError(
                f"batch_size {self.batch_size} is not a multiple of accumulate {self.accumulate}"
            )
        return self


class RunConfig(Settings):
    """Everything that a training run is made of; `config.yaml` of a run folder is one."""

    recipe: Annotated[str, Field(description="Recipe of the data: a name or a YAML file.")]
    fasta: Annotated[str | None, Field(description="Your FASTA in the recipe's place.")] = None
    bed: Annotated[str | None, Field(description="Your intervals with their splits.")] = None
    text: Annotated[
        str | None, Field(description="Your file or folder of text in the recipe's place.")
    ] = None
    domain: Annotated[Literal["dna", "text"], Field(description="What the sequences are.")] = "dna"
    preset: Annotated[
        str | None, Field(description="Name of the network's settings, where they have one.")
    ] = None
    init: Annotated[str | None, Field(description="Weights that the run began from.")] = None
    init_sha256: Annotated[
        str | None, Field(pattern="^[0-9a-f]{64}$", description="Their hash.")
    ] = None
    seed: Annotated[int, Field(ge=0, lt=1 << 63, description="Seed of every random draw.")] = 1
    data: DataSettings = DataSettings()
    backbone: BackboneSettings
    diffusion: DiffusionSettings = DiffusionSettings()
    optim: OptimSettings = OptimSettings()
    train: TrainSettings = TrainSettings()

    @model_validator(mode="after")
    def _fits_its_domain(self) -> Self:
        is_text = self.domain == "text"
        given = {
            "fasta": self.fasta is not None,
            "bed": self.bed is not None,
            "text": self.text is not None,
        }
        for name in ("fasta", "bed") if is_text else ("text",):
            if given[name]:
                raise ValueError(
                    f"'{name}' does not go with domain {self.domain}; give "
                    f"{'text' if is_text else 'fasta'} instead"
                )
        if is_text and self.data.rc_augment is True:
            raise ValueError("'data.rc_augment' does not go with domain text, which has one strand")
        return self

    def check_together(self, file: str | Path | None = None) -> None:
        """Raises `UsageError` where objective, network and their settings do not go together."""
        name = self.diffusion.objective
        needed = OBJECTIVES[name].causal
        if needed and not self.backbone.causal:
            what = f"objective {name} needs a network that reads one way (causal)"
            raise UsageError(
                what, file=file, fix="give --preset mamba-470k, or --preset dit-causal-470k"
            )
        if self.backbone.causal and not needed:
            what = (
                f"objective {name} needs a network that sees both sides of a mask, and this "
                f"one reads one way (causal)"
            )
            raise UsageError(what, file=file, fix="give another --preset, or --objective ar")
        objective(name, MaskedDiffusion(Linear(), 0, (1,)), **self.diffusion.own())

    def digest(self) -> str:
        """sha256 (hex) of the run's identity: equal for configurations that may share a run folder."""
        kept = {
            place: value
            for place, value in leaves(self.model_dump(mode="json"))
            if place not in FREE
        }
        return sha256_json(kept)

    def differences(self, other: "RunConfig") -> list[str]:
        """What of the identity differs, as `optim.lr: 0.001, not 0.002` (self's value first)."""
        mine, theirs = (dict(leaves(c.model_dump(mode="json"))) for c in (self, other))
        places = [p for p in [*mine, *(p for p in theirs if p not in mine)] if p not in FREE]
        return [
            f"{p}: {mine.get(p)}, not {theirs.get(p)}"
            for p in places
            if mine.get(p) != theirs.get(p)
        ]

    @property
    def unit(self) -> str:
        """What one position is called: a base or a token."""
        return "base" if self.domain == "dna" else "token"

    @property
    def rc_augment(self) -> bool:
        """Whether windows are turned at random: what `data.rc_augment` means for this network."""
        chosen = self.data.rc_augment
        if self.domain == "text":
            return False
        return not self.backbone.paired if chosen == "auto" else chosen


def leaves(tree: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    """(dotted place, value) of every setting of a nested mapping; an empty mapping is a value."""
    for key, value in tree.items():
        if isinstance(value, dict) and value and f"{at}{key}" != "diffusion.schedule_options":
            yield from leaves(value, f"{at}{key}.")
        else:
            yield f"{at}{key}", value


def sections() -> dict[str, dict[str, FieldInfo]]:
    """The nested parts of a `RunConfig` and the settings of each; `backbone` has those of every
    kind of network.
    """
    parts = {
        name: field.annotation.model_fields
        for name, field in RunConfig.model_fields.items()
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
    }
    network: dict[str, FieldInfo] = {}
    for kind in KINDS.values():
        network = kind.model_fields | network
    network["kind"] = FieldInfo(
        annotation=Literal[tuple(KINDS)],  # type: ignore[arg-type]
        default=next(iter(KINDS)),
        description="kind of network",
    )
    order = [name for name in RunConfig.model_fields if name in parts or name == "backbone"]
    return {name: parts.get(name, network) for name in order}


def short_names() -> dict[str, tuple[str, ...]]:
    """Place of every setting that may be written by its own name: those in one section only, and
    the aliases.
    """
    places: dict[str, list[tuple[str, ...]]] = {}
    for section, settings in sections().items():
        for name in settings:
            places.setdefault(name, []).append((section, name))
    unique = {
        name: at[0]
        for name, at in places.items()
        if len(at) == 1 and name not in RunConfig.model_fields
    }
    return {**unique, **ALIASES}


def spread(
    values: Any, *, file: str | Path | None = None, error: type[GenodiffError] = UsageError
) -> dict[str, Any]:
    """`values` with every short name moved to its place. Raises `error` for unknown and repeated
    names.
    """
    if not isinstance(values, dict):
        raise error(
            f"expected keys and values, found "
            f"{'nothing' if values is None else type(values).__name__}",
            file=file,
            fix="see `genodiff config schema`",
        )
    short, parts = short_names(), sections()
    fields = RunConfig.model_fields
    out = {
        k: dict(v) if k in parts and isinstance(v, dict) else v
        for k, v in values.items()
        if k in fields
    }
    for key, value in values.items():
        if key in fields:
            continue
        place = tuple(str(key).split(".")) if "." in str(key) else short.get(str(key), ())
        if len(place) != 2 or place[0] not in parts or place[1] not in parts[place[0]]:
            near = did_you_mean(str(key), [*fields, *short])
            raise error(
                f"unknown setting '{key}'; {near}", file=file, fix="see `genodiff config schema`"
            )
        section = out.setdefault(place[0], {})
        if not isinstance(section, dict):
            raise error(
                f"setting '{place[0]}' has no settings below it",
                file=file,
                fix="see `genodiff config schema`",
            )
        if place[1] in section:
            raise error(
                f"setting '{key}' is given twice (also as '{'.'.join(place)}')",
                file=file,
                fix="give it once",
            )
        section[place[1]] = value
    return out


def merge(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` on top of `under`, section by section."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        out[key] = (
            merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
        )
    return out


def _kind(values: dict[str, Any]) -> str | None:
    network = values.get("backbone")
    found = network.get("kind") if isinstance(network, dict) else None
    return found if isinstance(found, str) else None


def resolve(
    given: dict[str, Any],
    *,
    file: str | Path | None = None,
    over: dict[str, Any] | None = None,
    preset: str | None = None,
) -> RunConfig:
    """The whole configuration: the preset, on top of it `given` (from `file`), on top of that
    `over` (from flags).

    A preset or another kind of network named in `over` replaces the network of `given`. Where the
    kind is named without a preset, its first preset lies below. Raises `UsageError` for whatever
    cannot be meant.
    """
    under, top = spread(given, file=file), spread(over or {})
    kind = _kind(top)
    if top.get("preset") is not None or (kind is not None and kind != (_kind(under) or kind)):
        under.pop("backbone", None)
        under.pop("preset", None)
    kind = kind or _kind(under)
    is_text = "text" in (top.get("domain"), under.get("domain"))
    usual = DEFAULT_TEXT_PRESET if is_text else DEFAULT_PRESET
    first = usual if kind == PRESETS[usual].kind else FIRST.get(kind or "", usual)
    name = top.get("preset") or under.get("preset") or preset or first
    if name not in PRESETS:
        near = did_you_mean(str(name), PRESETS)
        raise UsageError(
            f"unknown preset '{name}'; {near}", file=None if top.get("preset") else file
        )
    if kind in KINDS and kind != PRESETS[name].kind:
        raise UsageError(
            f"preset '{name}' is a {PRESETS[name].kind}, not a {kind}",
            file=file,
            fix="leave out the preset, or the kind",
        )
    below = merge(
        {"backbone": PRESETS[name].model_dump()} | (TEXT_DEFAULTS if is_text else {}), under
    )
    if top:
        RunConfig.parse(
            {"recipe": top.get("recipe", "")} | below, file=file
        )  # what the file says is the file's fault
    config = RunConfig.parse(merge(below, top), file=None if top else file)
    config.check_together(None if top else file)
    if is_text and config.data.packing == "auto":
        packing = "packed" if config.recipe == OWN else load_text_recipe(config.recipe).packing
        config = config.model_copy(
            update={"data": config.data.model_copy(update={"packing": packing})}
        )
    named = next((n for n, settings in PRESETS.items() if settings == config.backbone), None)
    if config.train.max_steps is None and config.train.max_minutes is None:
        config = config.model_copy(
            update={"train": config.train.model_copy(update={"max_steps": DEFAULT_STEPS})}
        )
    return config.model_copy(update={"preset": named})


def read_config(path: str | Path, over: dict[str, Any] | None = None) -> RunConfig:
    """The configuration in a YAML file, completed. Raises `UsageError` naming the file."""
    return resolve(read_yaml(path), file=path, over=over)
