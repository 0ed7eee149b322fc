"""A flag for every setting of a run, as `--optim.lr 0.001`, or `--lr 0.001` for short."""

from typing import Annotated, Any, get_args, get_origin

import yaml
from cyclopts import Group, Parameter
from pydantic import BaseModel, create_model
from pydantic.fields import FieldInfo

from genodiff.api.config import ALIASES, list_sections, list_short_names
from genodiff.jobs.request import list_kinds

MOST_USED = Group("Most used", sort_key=0)
"""The flags that a first training needs, of whichever part of the settings or of the verb."""
_FIRST = {"seq_len", "batch_size", "max_steps", "lr"}
_TITLES = {
    "data": "Data",
    "backbone": "Network",
    "diffusion": "Diffusion",
    "optim": "Optimiser",
    "train": "Training",
}


def _shape(annotation: Any) -> Any:
    """What the command line reads: a switch, several numbers, or words in YAML's notation."""
    kinds = [annotation, *get_args(annotation)]
    for kind in kinds:
        if get_origin(kind) is dict:
            return dict[str, str]
        if get_origin(kind) is tuple:
            return kind
    return bool if annotation is bool else str


def _choices(field: FieldInfo) -> list[str]:
    if callable(field.json_schema_extra):
        schema: dict[str, Any] = {}
        field.json_schema_extra(schema)
        return list(schema["enum"])
    return [
        value
        for part in (field.annotation, *get_args(field.annotation))
        for value in get_args(part)
        if isinstance(value, str)
    ]


def _name_type(field: FieldInfo, choices: list[str]) -> str | None:
    """The type of one value, as help shows it after the flag; None for words."""
    kinds = list_kinds(field.annotation)
    for kind, name in ((bool, "BOOL"), (float, "FLOAT"), (int, "INT")):
        if kind in kinds:
            return "|".join((name, *choices))
    return "CHOICE" if choices else None


def _flag(section: str, name: str, field: FieldInfo) -> Any:
    dashed = name.replace("_", "-")
    names = [dashed]
    if list_short_names().get(name) == (section, name):
        names.append(f"--{dashed}")
    names += [
        f"--{alias.replace('_', '-')}"
        for alias, place in ALIASES.items()
        if place == (section, name)
    ]
    about = (field.description or name.replace("_", " ")).rstrip(".")
    choices = _choices(field)
    listed = f" ({', '.join(dict.fromkeys(choices))})" if choices else ""
    default = None if field.is_required() else field.get_default(call_default_factory=True)
    shown = "" if default is None or default == {} else f" [{_as_given(default)}]"
    help_ = f"{about[:1].upper()}{about[1:]}{listed}{shown}."
    shape = _shape(field.annotation)
    negative = [f"--no-{dashed}"] if shape is bool and len(names) > 1 else ""
    return Annotated[
        shape | None,
        Parameter(
            name=names,
            help=help_,
            group=MOST_USED if name in _FIRST else _TITLES[section],
            show_default=False,
            negative=negative,
            metavar=_name_type(field, choices) if shape is str else None,
        ),
    ]


def _as_given(default: object) -> object:
    if isinstance(default, bool):
        return str(default).lower()
    return " ".join(map(str, default)) if isinstance(default, tuple) else default


def _make_model() -> type[BaseModel]:
    parts: dict[str, Any] = {}
    for section, settings in list_sections().items():
        fields: dict[str, Any] = {n: (_flag(section, n, f), None) for n, f in settings.items()}
        part = create_model(f"{section.title()}Flags", **fields)
        parts[section] = (Annotated[part, Parameter(name=section)], part())
    return create_model("SettingsFlags", **parts)


SettingsFlags = _make_model()


def collect_settings(flags: BaseModel | None) -> dict[str, Any]:
    """The settings that were given as flags, by section, for `resolve_config`."""
    given = flags.model_dump(exclude_unset=True) if flags is not None else {}
    return {
        section: {name: _value(value) for name, value in values.items()}
        for section, values in given.items()
        if values
    }


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _value(part) for name, part in value.items()}
    if not isinstance(value, str):
        return value
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError:
        return value
