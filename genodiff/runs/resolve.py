"""From what a user gives (a preset, a file, flags) to the whole configuration of a run.

A setting may be written by its place (`optim.lr`) or, where its own name is unique, by that name
alone (`lr`).
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from genodiff.backbones.settings import BACKBONES, PRESETS
from genodiff.data.text_recipe import load_text_recipe
from genodiff.domain import DNA, DOMAINS, TEXT
from genodiff.errors import GenodiffError, UsageError, did_you_mean
from genodiff.runs.config import OWN, RunConfig
from genodiff.runs.run_paths import CONFIG
from genodiff.settings import find_kinds, read_yaml

DEFAULT_STEPS = 10_000
_SCHEMA = "see `genodiff config schema`"
RECOMPUTED = ("recompute_states", "checkpointing")
"""Settings of a network that save memory, from the cheaper to the dearer."""

ALIASES = {
    "steps": ("train", "max_steps"),
    "model": ("backbone", "kind"),
    "learning_rate": ("optim", "lr"),
}


def list_sections() -> dict[str, dict[str, FieldInfo]]:
    """The settings of each section of a `RunConfig`; `backbone` has those of every kind."""
    parts: dict[str, dict[str, FieldInfo]] = {}
    for name, field in RunConfig.model_fields.items():
        kinds = find_kinds(field)
        for settings in kinds.values():
            parts[name] = settings.model_fields | parts.get(name, {})
        if kinds:
            parts[name]["kind"] = FieldInfo(
                annotation=Literal[tuple(kinds)],  # type: ignore[arg-type]
                default=PRESETS[DNA.preset].kind,
                description=f"kind of {name}",
            )
        elif isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            parts[name] = field.annotation.model_fields
    return parts


def list_short_names() -> dict[str, tuple[str, ...]]:
    """The place of every setting whose own name is unique, and of the aliases."""
    places: dict[str, list[tuple[str, ...]]] = {}
    for section, settings in list_sections().items():
        for name in settings:
            places.setdefault(name, []).append((section, name))
    own = places.keys() - RunConfig.model_fields.keys()
    unique = {name: at[0] for name, at in places.items() if len(at) == 1 and name in own}
    return {**unique, **ALIASES}


def expand_names(
    values: Any, *, file: str | Path | None = None, error: type[GenodiffError] = UsageError
) -> dict[str, Any]:
    """`values` with short names in their places. Raises `error` for unknown and repeated names."""
    if not isinstance(values, dict):
        found = "nothing" if values is None else type(values).__name__
        raise error(f"expected keys and values, found {found}", file=file, fix=_SCHEMA)
    short, parts = list_short_names(), list_sections()
    fields = RunConfig.model_fields
    out: dict[str, Any] = {}
    for key in [key for key in values if key in fields]:
        is_section = key in parts and isinstance(values[key], dict)
        out[key] = dict(values[key]) if is_section else values[key]
    for key, value in values.items():
        if key in fields:
            continue
        place = tuple(str(key).split(".")) if "." in str(key) else short.get(str(key), ())
        if len(place) != 2 or place[0] not in parts or place[1] not in parts[place[0]]:
            near = did_you_mean(str(key), [*fields, *short])
            raise error(f"unknown setting '{key}'; {near}", file=file, fix=_SCHEMA)
        section = out.setdefault(place[0], {})
        if not isinstance(section, dict):
            what = f"setting '{place[0]}' has no settings below it"
            raise error(what, file=file, fix=_SCHEMA)
        if place[1] in section:
            what = f"setting '{key}' is given twice (also as '{'.'.join(place)}')"
            raise error(what, file=file, fix="give it once")
        section[place[1]] = value
    return out


def merge_settings(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` on top of `under`, section by section."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            out[key] = merge_settings(below, value)
        else:
            out[key] = value
    return out


def _kind(values: dict[str, Any]) -> str | None:
    network = values.get("backbone")
    found = network.get("kind") if isinstance(network, dict) else None
    return found if isinstance(found, str) else None


def resolve_config(
    given: dict[str, Any],
    *,
    file: str | Path | None = None,
    over: dict[str, Any] | None = None,
    preset: str | None = None,
    together: bool = True,
) -> RunConfig:
    """The whole configuration: a preset, over it `given`, over that `over`.

    `given` comes from `file`, `over` from flags. A preset or another kind of network named in
    `over` replaces the network of `given`. Where the kind is named without a preset, its first
    preset lies below. `together=False` leaves out `check_together`, which imports torch. Raises
    `UsageError` for settings that are unknown or contradict one another.
    """
    under, top = expand_names(given, file=file), expand_names(over or {})
    kind = _kind(top)
    if top.get("preset") is not None or (kind is not None and kind != (_kind(under) or kind)):
        under.pop("backbone", None)
        under.pop("preset", None)
    kind = kind or _kind(under)
    domain = DOMAINS.get(str(top.get("domain") or under.get("domain")), DNA)
    usual = domain.preset
    other = kind in BACKBONES and kind != PRESETS[usual].kind
    first = BACKBONES[str(kind)].usual_preset if other else usual
    name = top.get("preset") or under.get("preset") or preset or first
    if name not in PRESETS:
        near = did_you_mean(str(name), PRESETS)
        what = f"unknown preset '{name}'; {near}"
        raise UsageError(what, file=None if top.get("preset") else file)
    if kind in BACKBONES and kind != PRESETS[name].kind:
        what = f"preset '{name}' is a {PRESETS[name].kind}, not a {kind}"
        raise UsageError(what, file=file, fix="leave out the preset, or the kind")
    diffusion = merge_settings(under.get("diffusion") or {}, top.get("diffusion") or {})
    if diffusion.get("block") is not None and "objective" not in diffusion:
        under = merge_settings({"diffusion": {"objective": "block"}}, under)
    below = merge_settings({"backbone": PRESETS[name].model_dump()} | domain.settings, under)
    if top:
        # By itself first, so that a message about the file's settings names the file.
        RunConfig.parse({"recipe": top.get("recipe", "")} | below, file=file)
    config = RunConfig.parse(merge_settings(below, top), file=None if top else file)
    if together:
        config.check_together(None if top else file)
    if domain is TEXT and config.data.packing == "auto":
        packing = "packed" if config.recipe == OWN else load_text_recipe(config.recipe).packing
        config = _change_section(config, "data", packing=packing)
    shape = config.backbone
    if config.classes:  # a preset with classes is still that preset
        shape = shape.model_copy(update={"n_classes": 0})
    named = next((n for n, settings in PRESETS.items() if settings == shape), None)
    if config.train.max_steps is None and config.train.max_minutes is None:
        config = _change_section(config, "train", max_steps=DEFAULT_STEPS)
    return config.model_copy(update={"preset": named})


def _change_section(config: RunConfig, section: str, **changes: Any) -> RunConfig:
    changed = getattr(config, section).model_copy(update=changes)
    return config.model_copy(update={section: changed})


def keep_choices(folder: Path, config: RunConfig) -> RunConfig:
    """The configuration with what it leaves open ("auto") as the run in the folder has it."""
    there = folder / CONFIG
    if not there.is_file():
        return config
    begun, train = read_config(there, together=False), config.train
    open_ = [name for name in ("batch_size", "accumulate") if not getattr(train, name)]
    choices = {name: getattr(begun.train, name) for name in open_}
    if train.precision == "auto":
        choices["precision"] = begun.train.precision
    if open_:  # chosen with them
        named = [name for name in RECOMPUTED if hasattr(config.backbone, name)]
        kept = {name: getattr(begun.backbone, name, False) for name in named}
        config = _change_section(config, "backbone", **kept)
    return _change_section(config, "train", **choices)


def refuse_other_run(folder: Path, config: RunConfig) -> None:
    """As `folder.check_config`, without torch: it is asked before anything heavy is."""
    there = folder / CONFIG
    if not there.is_file():
        return
    differing = keep_choices(folder, config).differences(read_config(there, together=False))
    if differing:
        more = f" and {len(differing) - 4} more" if len(differing) > 4 else ""
        what = f"holds a run with another configuration; {'; '.join(differing[:4])}{more}"
        fix = "give the same settings to resume it, or another --out for a new run"
        raise UsageError(what, file=folder, fix=fix)


def read_config(
    path: str | Path, over: dict[str, Any] | None = None, *, together: bool = True
) -> RunConfig:
    """The configuration in a YAML file, completed. Raises `UsageError` naming the file."""
    return resolve_config(read_yaml(path), file=path, over=over, together=together)
