"""A command, made of the request of its verb: a flag for each field.

What every command has, whatever its verb: threads, device, messages, and how it is stopped.
"""

import inspect
import json as json_module
import logging
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import MISSING, dataclass, fields
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge
from cyclopts import Parameter, Token

from genodiff.errors import Interrupted, UsageError
from genodiff.io.process import cut_environment
from genodiff.io.target import place_library_caches
from genodiff.jobs.machine import prepare_machine
from genodiff.jobs.options import check_file
from genodiff.jobs.request import Field, Option, Options, Request, list_fields, list_kinds


@dataclass(frozen=True, kw_only=True)
class MachineOptions(Options):
    """The options of every verb that computes."""

    threads: Annotated[
        int | None,
        Option("CPU threads (default: OMP_NUM_THREADS, else all cores of this process)."),
    ] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], Option("Device.")] = "auto"
    scan: Annotated[
        str | None, Option("Selective scan: auto, native, torch, ... (see `genodiff doctor`).")
    ] = None
    offline: Annotated[bool, Option("Never access the network.", negative="--no-offline")] = False
    quiet: Annotated[bool, Option("Only errors on stderr.", ("--quiet", "-q"))] = False
    verbose: Annotated[bool, Option("More messages on stderr.", ("--verbose", "-v"))] = False
    seed: Annotated[int | None, Ge(0), Option("Random seed.")] = 1

    def prepare(self) -> None:
        """Set threads, kernels and logging for the verb to come, without importing torch."""
        prepare_machine(self.threads, self.scan)
        place_library_caches()
        level = logging.ERROR if self.quiet else logging.DEBUG if self.verbose else logging.INFO
        log = logging.getLogger("genodiff")
        log.setLevel(level)
        if not log.handlers:
            log.addHandler(_ToStderr())
            log.handlers[0].setFormatter(logging.Formatter("genodiff: %(message)s"))
            log.propagate = False
        cut_environment()


class _ToStderr(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to the `sys.stderr` of the moment, which a progress bar replaces with its own."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


@contextmanager
def stop_on_sigterm() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C end the work as an error does, with a line that says what is left."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise _interrupted("SIGTERM", signum)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt:
        raise _interrupted("Ctrl-C", signal.SIGINT) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupted(by: str, signum: int) -> Interrupted:
    return Interrupted(f"stopped by {by}", signum, fix="run the same command again")


_log = logging.getLogger("genodiff")
_WORD, _WORDS = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL
_OPTION = inspect.Parameter.KEYWORD_ONLY
_MACHINE = {one.name: one for one in list_fields(MachineOptions)}


def make_command(verb: str, request: type[Request[Any]], *variant: str) -> Callable[..., None]:
    """The command of a verb; of a `variant`, with that word as the value of the first field."""
    listed = {
        one.name: one for part in request.flag_parts or [request] for one in list_fields(part)
    }
    fixed = dict(zip(listed, variant, strict=False))
    own = {name: one for name, one in listed.items() if name not in fixed and one.option.on_line}
    words = [name for name, one in own.items() if one.option.is_word]
    is_arranged = request.arrange.__func__ is not Request.arrange.__func__  # type: ignore[attr-defined]

    def call(*args: Any, **kwargs: Any) -> None:
        bound = call.__signature__.bind(*args, **kwargs)  # type: ignore[attr-defined]
        bound.apply_defaults()
        values = bound.arguments
        machine = {name: values.pop(name) for name in _MACHINE if name in shared}
        json = bool(values.get("json"))
        MachineOptions(**machine).prepare() if request.has_machine else None
        for name, one in own.items():
            _check_name(one, values.get(name))
        if is_arranged:
            request.arrange(values)
        elif len(words) == 2:
            names = own[words[1]].option.names or (words[1],)
            usage = f"{verb} RUN {names[0].lstrip('-').upper()}"
            check_file(Path(values["run"]), values[words[1]], usage)
        given = {name: _read(one, values) for name, one in own.items()}
        for name in listed.keys() & machine.keys():
            if machine[name] != shared[name][1]:
                given[name] = machine[name]
        given = {name: value for name, value in given.items() if value is not None}
        asked = request(**given, **fixed)
        is_plan = values.get("plan", False)
        has_rows = json and (is_plan or "json" not in own)
        if has_rows and not is_plan and str(getattr(asked, "out", "")) == "-":
            what = f"--json and {getattr(asked, 'holds', 'the output')} both go to stdout"
            raise UsageError(what, fix="give --out FILE")
        with stop_on_sigterm() if request.catches_stop else nullcontext():
            answer = asked.answer()
            if has_rows:
                for row in asked.list_rows(answer):
                    print(json_module.dumps(row, allow_nan=False, indent=request.json_indent))
            else:
                asked.show(answer)
        if said := asked.conclude(answer):
            _log.info("%s", said)

    defaults = {one.name: one.default for one in fields(request)}
    for name in words if is_arranged else words[1:]:
        defaults[name] = None  # what is missing is told in our words
    flags = [each for name, one in own.items() for each in _list_flags(one, defaults[name])]
    if "json" not in own and request.json_help:
        flags.append(("json", Field("json", bool, Option(request.json_help), ()), False))
    shared: dict[str, tuple[Field, Any]] = {}
    for one in fields(MachineOptions) if request.has_machine else ():
        if one.name in own:
            continue
        shared[one.name] = _MACHINE[one.name], one.default
        if one.name == "seed" and "seed" in listed:
            shared["seed"] = listed["seed"], defaults["seed"]
        elif one.name in listed and listed[one.name].option.is_first:
            option = _MACHINE[one.name].option._replace(is_first=True)
            shared[one.name] = _MACHINE[one.name]._replace(option=option), one.default
    flags += [(name, one, default) for name, (one, default) in shared.items()]
    made = [_make_flag(*each) for each in flags]
    made.sort(key=lambda one: (one.kind, one.default is not one.empty))
    call.__signature__ = inspect.Signature(made)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in made}
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
    option, kinds = one.option, list_kinds(one.kind)
    about: dict[str, Any] = {"help": option.help, "name": list(one.flags)}
    about["show"] = bool(option.help)
    if option.negative or bool not in kinds or default is False:
        about["negative"] = option.negative
    is_file = one.name == "out" and not option.is_word
    if is_file or option.or_stream or (option.is_word and option.is_input):
        about["allow_leading_hyphen"] = True
    if option.is_first or option.is_settings:
        from genodiff.cli.settings_flags import MOST_USED, SettingsFlags  # pydantic

        about["group"] = MOST_USED
        if option.is_settings:
            kind: Any = Annotated[SettingsFlags | None, Parameter(name="*")]
            return inspect.Parameter(name, _OPTION, default=None, annotation=kind)
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
    place: Any = _OPTION
    if option.is_word:
        is_flag = one.flags[0].startswith("-")
        place = inspect.Parameter.POSITIONAL_OR_KEYWORD if is_flag else _WORD
        if _is_several(one.kind):  # all words that stand there
            about.pop("consume_multiple", None)
            if not option.names:
                about = {"help": option.help, "name": option.names or None}
                place, kind, default = _WORDS, Path, inspect.Parameter.empty
    return inspect.Parameter(
        name, place, default=default, annotation=Annotated[kind, Parameter(**about)]
    )


def _is_several(kind: Any) -> bool:
    return any(get_origin(part) is Sequence for part in (kind, *get_args(kind)))


def _on_line(one: Field) -> Any:
    """The type that a field has on the command line: a path is a string, a sequence a list."""
    kinds, origin = list_kinds(one.kind), get_origin(one.kind)
    if get_args(one.kind)[:1] == (Path,):  # a path that is listed first is shown as one
        return Path | None if type(None) in kinds else Path
    if one.option.alone:
        return list[one.kind]  # type: ignore[name-defined]
    if int in kinds and str in kinds:
        return str
    if one.option.is_digit:
        return Literal[0, 1]
    if one.option.is_word and _is_several(one.kind):
        return list[str]
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
    """A whole number, or one of `words`; cyclopts would round 1.5 to 2 without a word."""
    value = tokens[0].value
    try:
        return value if value in words else int(value)
    except ValueError:
        raise ValueError(f"{value!r} is not a whole number") from None


def _read(one: Field, values: Mapping[str, Any], name: str | None = None) -> Any:
    if one.option.group is not None:
        parts = list_fields(one.option.group)
        read = {part.name: _read(part, values, f"{one.name}_{part.name}") for part in parts}
        return {part: x for part, x in read.items() if x is not None and x is not False} or None
    value = values.get(name or one.name)
    if one.option.is_settings:
        from genodiff.cli.settings_flags import collect_settings  # pydantic

        return collect_settings(value)
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
            return _read_settings(value) if is_number else _read_files(one.flags[0], value)
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


def _read_files(flag: str, given: Sequence[str]) -> dict[str, Path]:
    """Files NAME=FASTA by name. Raises `UsageError` for what is none, and for a name twice."""
    files: dict[str, Path] = {}
    for one in given:
        name, _, path = one.partition("=")
        if not name or not path:
            what = f"{flag} {one}: expected NAME=FASTA"
            raise UsageError(what, fix=f"for example {flag} hg38=hg38.fa.gz")
        if name in files:
            raise UsageError(f"{flag} {name} is given twice", fix="give each its own name")
        files[name] = Path(path)
    return files


def _check_name(one: Field, value: Any) -> None:
    """Raises `UsageError` for the name of a file that cannot be meant."""
    if not isinstance(value, str) or not (one.name == "out" or one.option.or_stream):
        return
    if value == "" or (value != "-" and value.startswith("-")):
        what = f"{one.flags[0]} needs the name of a file, not {value!r}"
        raise UsageError(what, fix="write ./-name")
