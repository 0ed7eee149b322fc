"""How to sample and to guide: settings that are checked before torch is loaded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from annotated_types import Ge

from genodiff.diffusion.registries import GUIDANCES, SAMPLERS
from genodiff.errors import UsageError, did_you_mean
from genodiff.jobs.request import Option, Options, list_fields

AUTO_STEPS = 256
LONG_STEPS = 32
"""Of each window of a sequence beyond the trained length: about 2 bits lost per 1,000 bases."""
MOST_STEPS = 1_000_000


Temperature = Annotated[
    float, Option("1 is the model's own distribution, 0 its most probable bases.")
]
Stride = Annotated[
    int | None,
    Ge(1),
    Option("New bases per window beyond the trained length (default: half of it)."),
]
BatchSize = Annotated[
    int | None,
    Ge(1),
    Option("Records per batch: affects the speed, not the output.", decides="nothing"),
]
MEMORY = (
    "on: with a memory of the training genome; novel: and no record copies more of it than 9 in "
    "10 held-out sequences (default: on for a run of train --memory). Of --bed and --region each "
    "window leaves its own locus out; novel is not for them."
)


@dataclass(frozen=True, kw_only=True)
class Sampling(Options):
    """How to sample. Raises `UsageError` for what cannot be meant.

    `sampler` None means the objective's own first. `steps` "auto" means 256 per window, and 32
    for new DNA beyond the trained length; evaluations never exceed the number of masks.
    `temperature` 0 takes the likeliest base. `stride` None means half the trained length. `allow_n`
    lets N be drawn too. `batch_size` None means as many windows as keep the device busy; it changes
    the speed only. `memory` is that of the training genome (`generate/sample_memory.py`); None is
    "on" for a network that was trained with one, and "off" for any other.
    """

    sampler: Annotated[
        str | None, Option(f"{', '.join(SAMPLERS.list_names())} [the objective's own].")
    ] = None
    sampler_options: Annotated[
        Mapping[str, float] | None,
        Option("Setting of the sampler, such as eta=0.1; one or several.", ("--sampler-option",)),
    ] = None
    steps: Annotated[
        int | Literal["auto"] | None,
        Ge(1),
        Option("Steps per window (auto: 256; 32 beyond the trained length; or --bits-lost)."),
    ] = "auto"
    temperature: Temperature = 1.0
    top_p: Annotated[
        float, Option("Draw among the most probable bases that hold this much probability.")
    ] = 1.0
    stride: Stride = None
    allow_n: Annotated[bool, Option("Allow N to be drawn as well as A, C, G and T.")] = False
    batch_size: BatchSize = None
    memory: Annotated[Literal["on", "off", "novel"] | None, Option(MEMORY)] = None

    def __post_init__(self) -> None:
        if self.sampler is not None and self.sampler not in SAMPLERS.list_names():
            known = did_you_mean(self.sampler, SAMPLERS.list_names())
            raise UsageError(f"no sampler '{self.sampler}'; {known}")
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            what = f"temperature {self.temperature} is not a finite number of 0 or more"
            fix = "give 1 for the model's own distribution, less for more probable bases"
            raise UsageError(what, fix=fix)
        if not 0 < self.top_p <= 1:
            what = f"top-p {self.top_p} is not above 0 and at most 1"
            raise UsageError(what, fix="give 1 for the model's own distribution")
        if (self.step_count or 0) > MOST_STEPS:
            what = f"steps {self.steps:,} are more than {MOST_STEPS:,}"
            raise UsageError(what, fix="give as many as there are bases")
        for name, value in self.options.items():
            if not math.isfinite(value):
                fix = "give a number such as 0.1"
                raise UsageError(f"{name} = {value} is not a finite number", fix=fix)
        super().__post_init__()

    @property
    def options(self) -> dict[str, float]:
        """The sampler's own settings by name; those that are not given are its defaults."""
        return dict(self.sampler_options or {})

    @property
    def step_count(self) -> int | None:
        """The steps per window, where they are given."""
        return None if self.steps == "auto" else self.steps

    def read_sampling(self, memory: str | None = None) -> Sampling:
        """These settings alone; `memory` where they name none."""
        own = {one.name: getattr(self, one.name) for one in fields(Sampling)}
        return Sampling(**{**own, "memory": self.memory or memory})


def refuse_novel(how: Sampling) -> None:
    """Raises `UsageError` where regions are to be novel: what stood there would be their match."""
    if how.memory == "novel":
        what = "--memory novel is for new sequences and templates, not for regions and designs"
        raise UsageError(what, fix="give --memory on or off")


Form = Literal["strings", "ids", "one-hot"]


@dataclass(frozen=True)
class GuideSettings:
    """How samples are guided.

    `oracle` is a callable, "module:function", or the folder of a fine-tuned model (with `label` for
    its log-odds of a class). `form` is what a callable takes; None: one-hot for a
    `torch.nn.Module`, else strings. `options` are the guidance's own settings.
    """

    guidance: Annotated[
        str, Option(f"Guide by an oracle or a network: {', '.join(GUIDANCES.list_names())}.")
    ]
    oracle: Annotated[
        str | Path | Callable[..., Any] | None,
        Option("Quantity to increase: MODULE:FUNCTION, or a fine-tuned unit's folder."),
    ] = None
    form: Annotated[
        Form | None,
        Option(
            "Input of the function [one-hot for a torch module, else strings].", ("--oracle-input",)
        ),
    ] = None
    label: Annotated[
        str | None,
        Option("Class of a fine-tuned model whose log-odds are used.", ("--oracle-label",)),
    ] = None
    timeout: Annotated[
        float | None,
        Option(
            "Time limit of the oracle for a batch, in seconds.",
            ("--oracle-timeout",),
            decides="nothing",
        ),
    ] = None
    strength: Annotated[
        float, Option("Strength (default 1); 0 is the sampler without guidance, bit for bit.")
    ] = 1.0
    conditional: Annotated[
        str | Path | None, Option("For cfg: the run with the desired distribution, or use --label.")
    ] = None
    options: Annotated[
        Mapping[str, float],
        Option(
            "Setting of the guidance, such as particles=32; one or several.", ("--guidance-option",)
        ),
    ] = field(default_factory=dict)
    max_calls: Annotated[
        int | None,
        Option("Refuse a request that may need more oracle calls per record.", decides="nothing"),
    ] = None


def check_guide(guide: Mapping[str, Any]) -> None:
    """Raises `UsageError` for unknown names, and for settings of a guidance that is not there."""
    known = [one.name for one in list_fields(GuideSettings)]
    for name in guide:
        if name not in known:
            raise UsageError(f"no setting '{name}' of guidance", fix=did_you_mean(name, known))
    if guide.get("guidance") is None:
        what = "an oracle or a setting of guidance, and no guidance"
        raise UsageError(what, fix="give --guidance smc, say")
    wanted, names = str(guide["guidance"]), GUIDANCES.list_names()
    if wanted not in names:
        raise UsageError(f"no guidance '{wanted}'; {did_you_mean(wanted, names)}")
    form = guide.get("form")
    if form is not None and form not in get_args(Form):
        fix = f"give {', '.join(get_args(Form))}"
        raise UsageError(f"no form '{form}' of an oracle's input", fix=fix)


def is_unit(oracle: object) -> bool:
    """Whether an oracle is the folder of a fine-tuned unit, and no function."""
    return isinstance(oracle, str | Path) and Path(oracle).is_dir()
