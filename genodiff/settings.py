"""Typed, strict settings: the pydantic base, reading and writing YAML.

Settings belong to the thing that they set: each room declares its own subclass of `Settings` beside
its code.
"""

from collections.abc import Callable, Hashable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Self, Union

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

from genodiff.errors import GenodiffError, UsageError, did_you_mean
from genodiff.io.file_kinds import HEAD, find_format, find_raw_format


class Settings(BaseModel):
    """Frozen, strict about unknown keys, and true to its types: "3" is not 3, and NaN is not a
    number.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, strict=False, validate_default=True
    )

    @classmethod
    def parse(
        cls, values: Any, *, file: str | Path | None = None, error: type[GenodiffError] = UsageError
    ) -> Self:
        """`values` (a mapping, as YAML or JSON gives it) as settings; the first fault becomes one
        `error` line.
        """
        if not isinstance(values, dict):
            what = f"expected keys and values, found {type(values).__name__}"
            raise error(what, file=file, fix="see `genodiff config schema`")
        try:
            return cls.model_validate(values)
        except ValidationError as fault:
            fix = "see `genodiff config schema`"
            raise error(_first_fault(cls, fault), file=file, fix=fix) from None


class OneOf:
    """Marks a field whose settings are of one of several kinds, told apart by their `kind`.

        network: Annotated[NetworkSettings, OneOf(kinds)]

    `kinds()` gives the classes by kind. It is asked when a value is read, so that plug-ins count.
    """

    def __init__(self, kinds: Callable[[], dict[str, type[BaseModel]]]) -> None:
        self.kinds = kinds

    def _union(self) -> TypeAdapter[Any]:
        return _union_of(tuple(self.kinds().values()))

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            lambda value: self._union().validate_python(value),
            serialization=core_schema.simple_ser_schema("any"),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: Any) -> Any:
        return handler(self._union().core_schema)


@cache
def _union_of(classes: tuple[type[BaseModel], ...]) -> TypeAdapter[Any]:
    union: Any = Annotated[Union[classes], Field(discriminator="kind")]  # noqa: UP007
    return TypeAdapter(union)


def find_kinds(field: FieldInfo | None) -> dict[str, type[BaseModel]]:
    """The settings of each kind that a field may have; none where it is of one kind."""
    marks = [mark for mark in (field.metadata if field else ()) if isinstance(mark, OneOf)]
    return marks[0].kinds() if marks else {}


_PLAIN = {
    "greater_than_equal": "must be at least {ge}",
    "greater_than": "must be greater than {gt} (> {gt})",
    "less_than_equal": "is too large: must be at most {le}",
    "less_than": "is too large: must be below {lt}",
}


def _first_fault(cls: type[BaseModel], fault: ValidationError) -> str:
    first = fault.errors()[0]
    places, around, kinds = _walk(cls, first["loc"])
    path = ".".join(places) or "the top level"
    if first["type"] == "extra_forbidden":
        return (
            f"no setting '{path}'; "
            f"{did_you_mean(places[-1], list(getattr(around, 'model_fields', {})))}"
        )
    if first["type"] == "union_tag_not_found":
        return f"setting '{path}.kind' is missing; known: {', '.join(kinds)}"
    if first["type"] == "union_tag_invalid":
        tag = first["ctx"]["tag"]
        return f"setting '{path}.kind': unknown '{tag}'; {did_you_mean(tag, kinds)}"
    if first["type"] == "missing":
        return f"setting '{path}' is missing"
    plain = _PLAIN.get(first["type"])
    limits = first.get("ctx", {})
    message = plain.format(**limits) if plain else f"{first['msg'][0].lower()}{first['msg'][1:]}"
    return f"setting '{path}': {message} (found {str(first['input'])[:60]!r})"


def _walk(
    cls: type[BaseModel], path: tuple[int | str, ...]
) -> tuple[list[str], Any, dict[str, type[BaseModel]]]:
    """The place of a fault as a user writes it, the settings around it, and the kinds it may have.

    `path` is pydantic's; it also names the kind where settings are of one of several kinds.
    """
    here: Any = cls
    around: Any = cls
    places: list[str] = []
    kinds: dict[str, type[BaseModel]] = {}
    for part in path:
        if part in kinds:
            here, kinds = kinds[str(part)], {}
            continue
        places.append(str(part))
        around = here
        field = getattr(here, "model_fields", {}).get(str(part))
        here, kinds = getattr(field, "annotation", None), find_kinds(field)
    return places, around, kinds


class _UniqueKeys(yaml.SafeLoader):
    """The safe loader, but a key given twice is an error rather than a silent choice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is a list or a mapping", key_node.start_mark
                )
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key '{key}'", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def read_yaml(path: str | Path, *, error: type[GenodiffError] = UsageError) -> Any:
    """The content of a YAML file, without tags or duplicate keys.

    Raises `error`, which names the file and the line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as fault:
        fix = "give the path of a YAML file"
        raise error(f"cannot be read ({fault.strerror})", file=path, fix=fix) from None
    except UnicodeDecodeError:
        known = find_raw_format(Path(path).read_bytes()[:HEAD], "configuration")
        what = f"is no YAML: this is {known[0]}" if known else "is not UTF-8 text"
        raise error(what, file=path, fix="save it in the encoding UTF-8") from None
    known = find_format(text[:HEAD].encode(), "JSON configuration")
    if known is not None:
        raise error(f"is no YAML: this is {known[0]}", file=path, fix=known[1] or "give YAML")
    try:
        return yaml.load(text, Loader=_UniqueKeys)
    except yaml.YAMLError as fault:
        mark = getattr(fault, "problem_mark", None)
        problem = getattr(fault, "problem", None) or "not valid YAML"
        what = f"is not valid YAML: {problem}"
        fix = "correct the file"
        raise error(what, file=path, line=mark.line + 1 if mark else None, fix=fix) from None
    except (RecursionError, ValueError):
        what = "is not valid YAML: nested too deeply or out of range"
        raise error(what, file=path, fix="correct the file") from None


def to_yaml(settings: BaseModel) -> str:
    """The settings as YAML text that `parse(read_yaml(...))` takes back unchanged."""
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
