"""Guidance by name, as flags and Python arguments give it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genodiff.diffusion.registries import GUIDANCES
from genodiff.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from genodiff.generate.guiding import Guiding
    from genodiff.generate.oracle import Oracle
    from genodiff.runs.model import TrainedModel

FORMS = ("strings", "ids", "one-hot")


@dataclass(frozen=True)
class GuideSettings:
    """How samples are guided.

    `oracle` is a callable, "module:function", or the folder of a fine-tuned model (with `label` for
    its log-odds of a class). `form` is what a callable takes: "strings", "ids" or "one-hot";
    None: one-hot for a `torch.nn.Module`, else strings. `conditional` is a run, for `cfg`.
    `options` are the guidance's own settings. `max_calls` bounds the oracle's sequences for each
    record, `timeout` its seconds for a batch.
    """

    guidance: str
    strength: float = 1.0
    oracle: str | Path | Callable[..., Any] | None = None
    form: str | None = None
    label: str | None = None
    conditional: str | Path | None = None
    options: Mapping[str, float] = field(default_factory=dict)
    max_calls: int | None = None
    timeout: float | None = None


def list_guidances() -> list[str]:
    """The names of all guidances, without importing torch."""
    return GUIDANCES.list_names()


def check_guide(guide: Mapping[str, Any] | None) -> None:
    """Raises `UsageError` for unknown names, before torch is loaded."""
    if guide is None:
        return
    known = [one.name for one in fields(GuideSettings)]
    for name in guide:
        if name not in known:
            raise UsageError(f"no setting '{name}' of guidance", fix=did_you_mean(name, known))
    wanted = str(guide.get("guidance"))
    if wanted not in list_guidances():
        raise UsageError(f"no guidance '{wanted}'; {did_you_mean(wanted, list_guidances())}")
    form = guide.get("form")
    if form is not None and form not in FORMS:
        raise UsageError(f"no form '{form}' of an oracle's input", fix=f"give {', '.join(FORMS)}")


def open_guided(
    model: TrainedModel, guide: Mapping[str, Any] | None, device: str, label: str | None = None
) -> tuple[TrainedModel, Guiding | None]:
    """The model that draws, and its guidance with oracle and network opened; None without `guide`.

    A `label` makes the model that of a class. With cfg it stays that of all, and the class is what
    it is guided to: of `conditional`, or else of the model itself. Raises `UsageError`,
    `CheckpointError`.
    """
    if guide is None:
        return (model if label is None else model.of_class(label)), None
    check_guide(guide)
    from genodiff.generate.guiding import Guiding
    from genodiff.models.opening import open_language

    settings = GuideSettings(**guide)
    conditional = None
    if settings.conditional is not None:
        conditional = open_language(settings.conditional, device)
    if GUIDANCES[settings.guidance].needs == "conditional" and label is not None:
        conditional = (conditional or model).of_class(label)
    elif label is not None:
        model = model.of_class(label)
    return model, Guiding(
        settings.guidance,
        float(settings.strength),
        open_oracle(settings, device),
        conditional,
        settings.options,
        settings.max_calls,
    )


def is_unit(oracle: object) -> bool:
    """Whether an oracle is the folder of a fine-tuned unit, and no function."""
    return isinstance(oracle, str | Path) and Path(oracle).is_dir()


def open_oracle(settings: GuideSettings, device: str, flag: str = "--oracle") -> Oracle | None:
    """The oracle of the settings; None where they have none.

    Raises `UsageError`, which names the `flag` that gave it.
    """
    from genodiff.generate.oracle import Oracle, load_oracle
    from genodiff.generate.oracle_source import hash_callable

    given, form = settings.oracle, settings.form
    if given is None:
        return None
    if settings.label is not None and not is_unit(given):
        what = f"a label ({settings.label}) is of a fine-tuned oracle, and {flag} names a function"
        raise UsageError(what, fix="leave --oracle-label out")
    if not isinstance(given, str | Path):
        name = getattr(given, "__qualname__", type(given).__name__)
        digest = hash_callable(given)
        return Oracle(given, name, form, settings.timeout, digest)  # type: ignore[arg-type]
    if not is_unit(given):
        return load_oracle(str(given), form, settings.timeout, flag)  # type: ignore[arg-type]
    from genodiff.finetuning.oracle import FittedOracle
    from genodiff.models.opening import open_model
    from genodiff.runs.model import TrainedModel

    model = open_model(given, device)
    if isinstance(model, TrainedModel):
        raise UsageError(
            f"{flag} {given} is a language model, and an oracle is fine-tuned",
            fix="give a fine-tuned unit's folder, or MODULE:FUNCTION",
        )
    fitted = FittedOracle(model, settings.label)

    def ask(sequences: list[str]) -> Any:
        return fitted([one.encode("ascii") for one in sequences])

    return Oracle(ask, f"{Path(given).name}@{model.digest}", "strings", settings.timeout)
