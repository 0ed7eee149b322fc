"""What guides, opened: an oracle, a network of a class, or both models of `cfg`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from genodiff.diffusion.registries import GUIDANCES
from genodiff.errors import UsageError
from genodiff.generate.guide_settings import GuideSettings, check_guide, is_unit
from genodiff.generate.guiding import Guiding
from genodiff.generate.oracle import Oracle, hash_callable, load_oracle
from genodiff.jobs.request import find_named
from genodiff.models.opening import open_language, open_model
from genodiff.runs.trained_model import TrainedModel


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


def open_oracle(settings: GuideSettings, device: str, flag: str = "--oracle") -> Oracle | None:
    """The oracle of the settings; None where they have none.

    Raises `UsageError`, which names the `flag` that gave it.
    """
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
    model = open_model(given, device)
    if isinstance(model, TrainedModel):
        raise UsageError(
            f"{flag} {given} is a language model, and an oracle is fine-tuned",
            fix="give a fine-tuned unit's folder, or MODULE:FUNCTION",
        )
    fitted = find_named("genodiff.finetuning.oracle:FittedOracle")(model, settings.label)

    def ask(sequences: list[str]) -> Any:
        return fitted([one.encode("ascii") for one in sequences])

    return Oracle(ask, f"{Path(given).name}@{model.digest}", "strings", settings.timeout)
