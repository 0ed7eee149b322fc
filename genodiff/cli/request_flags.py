"""A verb of the command line, made of its request: a flag for each field."""

import inspect
import json as json_module
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import Parameter, Token

from genodiff.cli.common import (
    Common,
    CommonBeside,
    Json,
    JsonRows,
    check_file,
    convert_whole_number,
    print_plan,
    read_files,
    stop_on_sigterm,
)
from genodiff.errors import UsageError
from genodiff.io.progress import format_duration
from genodiff.jobs.file_request import FileRequest
from genodiff.jobs.request import Field, list_fields, list_kinds

_log = logging.getLogger("genodiff")


def make_verb(
    answer: Callable[..., Any],
    say: Callable[[Mapping[str, Any]], str] = str,
    arrange: Callable[[dict[str, Any]], None] | None = None,
    show: Callable[[Any, dict[str, Any]], None] | None = None,
    rows: Callable[[Any, dict[str, Any]], Iterable[Any]] | None = None,
    parts: Sequence[type] = (),
    fixed: Mapping[str, Any] = MappingProxyType({}),
) -> Callable[..., None]:
    """The function behind a verb, whose public function is `answer`.

    `say` gives its last line on stderr, of what the sidecar says. `arrange` puts words in their
    places where they may stand in several. `show` prints an answer that is no file, or its plan,
    and `rows` are the lines that --json prints of it. With `parts` of the request the flags are
    those of these classes alone; `fixed` are values that the verb itself gives.
    """
    request: type[FileRequest] = answer.request  # type: ignore[attr-defined]
    listed = {one.name: one for part in parts or [request] for one in list_fields(part)}
    listed = {name: one for name, one in listed.items() if name not in fixed}
    words = [name for name, one in listed.items() if one.option.is_word]

    def call(*args: Any, **kwargs: Any) -> None:
        bound = call.__signature__.bind(*args, **kwargs)  # type: ignore[attr-defined]
        bound.apply_defaults()
        values = bound.arguments
        common = values.pop("common")
        json = values["json"] if "json" in listed else values.pop("json")
        common.prepare()
        is_plan, has_rows = values.get("plan", False), "json" in listed
        for one in listed.values():
            _check_name(one, values.get(one.name))
        if arrange is not None:
            arrange(values)
        elif len(words) == 2:
            usage = f"{answer.__name__} RUN {_name_word(listed[words[1]])}"
            check_file(Path(values["run"]), values[words[1]], usage)
        given = {name: _read(one, values) for name, one in listed.items() if one.option.on_line}
        given = {name: value for name, value in given.items() if value is not None}
        for name, one in listed.items():
            if not one.option.on_line and hasattr(common, name):
                given[name] = getattr(common, name)
        asked = request(**given, **fixed)
        out = getattr(asked, "out", None)
        if json and not is_plan and not has_rows and str(out) == "-":
            what = f"--json and {asked.holds} both go to stdout"
            raise UsageError(what, fix="give --out FILE")
        with stop_on_sigterm():
            told = asked.answer()
        lines = told.pop("lines", None)
        if json and (is_plan or not has_rows):
            for row in [told] if is_plan or rows is None else rows(asked, told):
                print(json_module.dumps(row, allow_nan=False))
        elif show is not None:
            show(asked, told)
        elif lines is not None:
            print("\n".join(lines))
        elif is_plan:
            print_plan(told)
        if is_plan and not json and (show or lines) and "seconds_of_relatives" in told:
            print(f"relatives {told['relatives']}")
        if not is_plan and show is None:
            took = f", in {format_duration(told['seconds'])}" if "seconds" in told else ""
            _log.info("%s: %s%s", told.get("out", out), say(told), took)

    defaults = {one.name: one.default for one in fields(request)}
    for name in words if arrange is not None else words[1:]:
        defaults[name] = None  # what is missing is told in our words
    flags = (_list_flags(one, defaults[name]) for name, one in listed.items())
    own = [_make_flag(*each) for some in flags for each in some]
    last = inspect.Parameter.KEYWORD_ONLY
    if "json" not in listed:
        about = Json if rows is None else JsonRows
        own.append(inspect.Parameter("json", last, default=False, annotation=about))
    of_seed = "seed" in listed and listed["seed"].option.on_line
    shared = CommonBeside if of_seed else Common
    own.append(inspect.Parameter("common", last, default=shared(), annotation=shared))
    own.sort(key=lambda one: (one.kind, one.default is not one.empty))
    call.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in own}
    call.__doc__ = (request.__doc__ or "").split("\n")[0]
    return call


def _list_flags(one: Field, default: Any) -> list[tuple[str, Field, Any]]:
    """(name in the signature, field, default) of the flags of a field, or of its group."""
    if not one.option.on_line:
        return []
    if one.option.group is None:
        return [(one.name, one, default)]
    parts = list_fields(one.option.group)
    nothing = {bool: False}
    return [(f"{one.name}_{part.name}", part, nothing.get(part.kind)) for part in parts]


def _make_flag(name: str, one: Field, default: Any) -> inspect.Parameter:
    """The parameter of a field as cyclopts takes it."""
    option, kinds = one.option, list_kinds(one.kind)
    about: dict[str, Any] = {"help": option.help, "name": list(one.flags)}
    if option.negative or bool not in kinds or default is False:
        about["negative"] = option.negative
    if one.name == "out" or option.or_stream or (option.is_word and option.is_input):
        about["allow_leading_hyphen"] = True
    default = None if default == "" or isinstance(default, tuple) else default
    kind = _on_line(one) if default is not None else _on_line(one) | None
    default = int(default) if option.is_digit else default
    is_list = any(get_origin(part) is list for part in (kind, *get_args(kind)))
    if is_list:  # --relatives A B C as well as --relatives A --relatives B
        about["consume_multiple"] = True
    if int in kinds and str not in kinds and not is_list:
        about["converter"] = partial(_convert_number, [w for one in kinds for w in get_args(one)])
    if default is MISSING:
        default = inspect.Parameter.empty
    place: Any = inspect.Parameter.KEYWORD_ONLY
    if option.is_word:
        place = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if get_origin(one.kind) is Sequence:  # all words that stand there
            about = {"help": option.help}
            place, kind, default = inspect.Parameter.VAR_POSITIONAL, Path, inspect.Parameter.empty
    return inspect.Parameter(
        name, place, default=default, annotation=Annotated[kind, Parameter(**about)]
    )


def _on_line(one: Field) -> Any:
    """The type that a field has on the command line: a path is a string, a sequence a list."""
    kinds, origin = list_kinds(one.kind), get_origin(one.kind)
    if one.option.alone:
        return list[one.kind]  # type: ignore[name-defined]
    if int in kinds and str in kinds:
        return str
    if one.option.is_digit:
        return Literal[0, 1]
    if origin not in (Sequence, Mapping) and str in get_args(one.kind):
        return str | None if type(None) in kinds else str
    for part in (one.kind, *get_args(one.kind)):
        if get_origin(part) is Sequence:
            return list[get_args(part)[0]] | None  # type: ignore[misc]
        if get_origin(part) is Mapping:
            return list[str] | None
    if one.kind is Any or Path in kinds:
        return str | None if type(None) in kinds else str
    return one.kind


def _convert_number(words: Sequence[str], kind: Any, tokens: Sequence[Token]) -> int | str:
    """A whole number, or one of `words`."""
    return value if (value := tokens[0].value) in words else convert_whole_number(kind, tokens)


def _read(one: Field, values: Mapping[str, Any], name: str | None = None) -> Any:
    """What is given for a field; None where nothing is."""
    if one.option.group is not None:
        parts = list_fields(one.option.group)
        read = {part.name: _read(part, values, f"{one.name}_{part.name}") for part in parts}
        return {part: x for part, x in read.items() if x is not None and x is not False} or None
    value = values.get(name or one.name)
    if one.kind is Any and isinstance(value, str):
        return Path(value)  # letters alone would be a sequence
    if one.option.is_digit:
        return bool(value)
    if one.option.alone and value is not None:
        if len(value) > 1:
            what = f"{one.flags[0]} takes one word"
            raise UsageError(what, fix=f"give one of {', '.join(value)}")
        return value[0] if value else one.option.alone
    for part in (one.kind, *get_args(one.kind)):
        if value and get_origin(part) is Mapping:
            is_number = get_args(part)[1] is float
            return _read_settings(value) if is_number else read_files(one.flags[0], value)
    return value


def _read_settings(given: Sequence[str]) -> dict[str, float]:
    """Settings NAME=NUMBER by name. Raises `UsageError` for what is none."""
    settings = {}
    for one in given:
        name, _, value = one.partition("=")
        try:
            settings[name] = float(value)
        except ValueError:
            what = f"the setting {one!r} is not NAME=NUMBER"
            raise UsageError(what, fix="write it as eta=0.1") from None
    return settings


def _name_word(one: Field) -> str:
    """A field as a message shows its place on the command line."""
    return (one.option.names or (one.name,))[0].lstrip("-").upper()


def _check_name(one: Field, value: Any) -> None:
    """Raises `UsageError` for the name of a file that cannot be meant."""
    if not isinstance(value, str) or not (one.name == "out" or one.option.or_stream):
        return
    if value == "" or (value != "-" and value.startswith("-")):
        what = f"{one.flags[0]} needs the name of a file, not {value!r}"
        raise UsageError(what, fix="write ./-name")
