"""A verb of the command line, made of its request: a flag for each field."""

import inspect
import json as json_module
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from cyclopts import Parameter, Token

from genodiff.cli.common import (
    Common,
    CommonBeside,
    Json,
    check_file,
    convert_whole_number,
    print_plan,
    stop_on_sigterm,
)
from genodiff.errors import UsageError
from genodiff.io.progress import format_duration
from genodiff.jobs.file_request import FileRequest
from genodiff.jobs.request import Field, list_fields, list_kinds

_log = logging.getLogger("genodiff")


def make_verb(
    answer: Callable[..., Any],
    say: Callable[[Mapping[str, Any]], str],
    arrange: Callable[[dict[str, Any]], None] | None = None,
) -> Callable[..., None]:
    """The function behind a verb, whose public function is `answer`.

    `say` gives its last line on stderr, of what the sidecar says. `arrange` puts words in their
    places where they may stand in several.
    """
    request: type[FileRequest] = answer.request  # type: ignore[attr-defined]
    listed = {one.name: one for one in list_fields(request)}
    words = [name for name, one in listed.items() if one.option.is_word]

    def call(*args: Any, **kwargs: Any) -> None:
        bound = call.__signature__.bind(*args, **kwargs)  # type: ignore[attr-defined]
        bound.apply_defaults()
        values = bound.arguments
        common = values.pop("common")
        json = values["json"] if "json" in listed else values.pop("json")
        common.prepare()
        is_plan, has_rows = values["plan"], "json" in listed
        _check_output(values["out"], json=json and not is_plan and not has_rows)
        if arrange is not None:
            arrange(values)
        elif len(words) == 2:
            usage = f"{answer.__name__} RUN {_name_word(listed[words[1]])}"
            check_file(Path(values["run"]), values[words[1]], usage)
        for name, one in listed.items():
            if one.kind is Any and isinstance(values.get(name), str):
                values[name] = Path(values[name])  # letters alone would be a sequence
            if values.get(name, ...) is None:  # a list that is not given is an empty one
                del values[name]
            if not one.option.on_line and hasattr(common, name):
                values[name] = getattr(common, name)
        with stop_on_sigterm():
            told = request(**values).answer()
        if json and (is_plan or not has_rows):
            print(json_module.dumps(told))
        elif is_plan:
            print_plan(told)
        if not is_plan:
            took = format_duration(told["seconds"])
            _log.info("%s: %s, in %s", told["out"], say(told), took)

    defaults = {one.name: one.default for one in fields(request)}
    for name in words if arrange is not None else words[1:]:
        defaults[name] = None  # what is missing is told in our words
    flags = [_make_flag(one, defaults[one.name]) for one in list_fields(request)]
    last = inspect.Parameter.KEYWORD_ONLY
    own = [one for one in flags if one is not None]
    if "json" not in listed:
        own.append(inspect.Parameter("json", last, default=False, annotation=Json))
    of_seed = "seed" in listed and listed["seed"].option.on_line
    shared = CommonBeside if of_seed else Common
    own.append(inspect.Parameter("common", last, default=shared(), annotation=shared))
    own.sort(key=lambda one: (one.kind, one.default is not one.empty))
    call.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in own}
    call.__doc__ = (request.__doc__ or "").split("\n")[0]
    return call


def _make_flag(one: Field, default: Any) -> inspect.Parameter | None:
    """The parameter of a field as cyclopts takes it; None where the command line has none."""
    option, kinds = one.option, list_kinds(one.kind)
    if not option.on_line:
        return None
    about: dict[str, Any] = {"help": option.help, "negative": ""}
    if option.names:
        about["name"] = list(option.names)
    if one.name == "out" or option.is_word:
        about["allow_leading_hyphen"] = True
    default = None if default in ((), "") else default
    kind = _on_line(one) if default is not None else _on_line(one) | None
    is_list = any(get_origin(part) is list for part in get_args(kind))
    if int in kinds and str not in kinds and not is_list:
        about["converter"] = partial(_convert_number, [w for one in kinds for w in get_args(one)])
    if default is MISSING:
        default = inspect.Parameter.empty
    return inspect.Parameter(
        one.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD
        if option.is_word
        else inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, Parameter(**about)],
    )


def _on_line(one: Field) -> Any:
    """The type that a field has on the command line: a path is a string, a sequence a list."""
    kinds = list_kinds(one.kind)
    for part in (one.kind, *get_args(one.kind)):
        if get_origin(part) is Sequence:
            return list[get_args(part)[0]] | None  # type: ignore[misc]
    if int in kinds and str in kinds:
        return str
    if one.kind is Any or Path in kinds:
        return str | None if type(None) in kinds else str
    return one.kind


def _convert_number(words: Sequence[str], kind: Any, tokens: Sequence[Token]) -> int | str:
    """A whole number, or one of `words`."""
    return value if (value := tokens[0].value) in words else convert_whole_number(kind, tokens)


def _name_word(one: Field) -> str:
    """A field as a message shows its place on the command line."""
    return (one.option.names or (one.name,))[0].lstrip("-").upper()


def _check_output(out: str | None, *, json: bool) -> None:
    """Raises `UsageError` for an output that cannot be meant."""
    if out is None:
        return
    if out == "" or (out != "-" and out.startswith("-")):
        raise UsageError(f"--out needs the name of a file, not {out!r}", fix="write ./-name")
    if json and out == "-":
        raise UsageError("--json and the table both go to stdout", fix="give --out FILE")
