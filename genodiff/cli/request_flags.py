"""A verb of the command line, made of its request: a flag for each field."""

import inspect
import json as json_module
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from cyclopts import Parameter

from genodiff.cli.common import (
    Common,
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
    answer: Callable[..., Any], say: Callable[[Mapping[str, Any]], str]
) -> Callable[..., None]:
    """The function behind a verb, whose public function is `answer`.

    `say` gives its last line on stderr, of what the sidecar says.
    """
    request: type[FileRequest] = answer.request  # type: ignore[attr-defined]
    words = [one.name for one in list_fields(request) if one.option.is_word]

    def call(*args: Any, **kwargs: Any) -> None:
        bound = call.__signature__.bind(*args, **kwargs)  # type: ignore[attr-defined]
        bound.apply_defaults()
        values = bound.arguments
        json, common = values.pop("json"), values.pop("common")
        common.prepare()
        is_plan = values["plan"]
        _check_output(values["out"], json=json and not is_plan)
        if len(words) == 2:
            check_file(Path(values["run"]), values[words[1]], f"{answer.__name__} RUN FASTA")
        for one in list_fields(request):
            if one.kind is Any and isinstance(values.get(one.name), str):
                values[one.name] = Path(values[one.name])  # letters alone would be a sequence
            if values.get(one.name, ...) is None:  # a list that is not given is an empty one
                del values[one.name]
        with stop_on_sigterm():
            told = request(**values, device=common.device).answer()
        if json:
            print(json_module.dumps(told))
        elif is_plan:
            print_plan(told)
        if not is_plan:
            took = format_duration(told["seconds"])
            _log.info("%s: %s, in %s", values["out"], say(told), took)

    defaults = {one.name: one.default for one in fields(request)}
    flags = [_make_flag(one, defaults[one.name]) for one in list_fields(request)]
    last = inspect.Parameter.KEYWORD_ONLY
    own = [one for one in flags if one is not None]
    own += [
        inspect.Parameter("json", last, default=False, annotation=Json),
        inspect.Parameter("common", last, default=Common(), annotation=Common),
    ]
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
    kind = _on_line(one)
    is_list = any(get_origin(part) is list for part in get_args(kind))
    if int in kinds and str not in kinds and not is_list:
        about["converter"] = convert_whole_number
    if default is MISSING:
        default = inspect.Parameter.empty
    return inspect.Parameter(
        one.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD
        if option.is_word
        else inspect.Parameter.KEYWORD_ONLY,
        default=None if isinstance(default, tuple) else default,
        annotation=Annotated[kind, Parameter(**about)],
    )


def _on_line(one: Field) -> Any:
    """The type that a field has on the command line: a path is a string, a sequence a list."""
    kinds = list_kinds(one.kind)
    for part in (one.kind, *get_args(one.kind)):
        if get_origin(part) is Sequence:
            return list[get_args(part)[0]] | None  # type: ignore[misc]
    if one.kind is Any or Path in kinds:
        return str | None if type(None) in kinds else str
    return one.kind


def _check_output(out: str, *, json: bool) -> None:
    """Raises `UsageError` for an output that cannot be meant."""
    if out == "" or (out != "-" and out.startswith("-")):
        raise UsageError(f"--out needs the name of a file, not {out!r}", fix="write ./-name")
    if json and out == "-":
        raise UsageError("--json and the table both go to stdout", fix="give --out FILE")
