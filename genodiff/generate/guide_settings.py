"""Guidance by name, as flags and Python arguments give it. No torch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from genodiff.diffusion.registries import GUIDANCES
from genodiff.errors import UsageError, did_you_mean
from genodiff.jobs.request import Option, list_fields

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
