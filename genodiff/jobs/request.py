"""What a verb is asked, spelled once.

The fields of a request are the flags of its verb, the arguments of its function and of its method,
and what its sidecar says of them. Bounds and help stand in the type of a field:

    batch_size: Annotated[int, Ge(1), Option("Windows at a time.")] = 8

A request imports no torch. Its work is named, "module:name", and is imported when it is done, after
all that can be judged without it.
"""

import inspect
from abc import ABC
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from math import inf
from pathlib import Path
from textwrap import fill, indent
from types import UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    NamedTuple,
    ParamSpec,
    Self,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from annotated_types import Ge, Gt

from genodiff.errors import UsageError, did_you_mean
from genodiff.io.input_file import planning
from genodiff.io.target import refuse_elsewhere
from genodiff.kernels.defaults import own_defaults
from genodiff.registry import find_named as find_named

P = ParamSpec("P")
Answer = TypeVar("Answer", covariant=True)


class Option(NamedTuple):
    """What is said of a field: its help, and how it is spelled on the command line.

    `names` are its names there ("--n", "-n"), none for --field; `is_word` says that it may also be
    given without. `on_line` is False for what a command has of elsewhere (--device), or only a
    function takes. `is_input` marks what is read, and so is never written; `is_output` what is
    written, as --out is; `or_stream` an output that
    "-" may stand for; `is_row` a list whose values may follow one flag; `is_digit` what is 0 or 1
    there; `is_general` what many verbs have, and stands last. `alone` is what a flag means that no
    word follows, `negative` the flag of what is not to be. A `group` is a class of fields: they are
    flags of their own, and keys of the mapping that the field is.

    `is_first` is a flag that stands at the head of the help. `is_settings` is a mapping that a
    function takes as **settings: a flag for each.

    `decides` says what depends on the value: the "entries" of a job, so that those of another value
    are another request's; the "output" alone, which is written of the same entries; or "nothing".
    Of what `is_opened` the value does not count: `Job.identify` says what opening found there.
    """

    help: str
    names: tuple[str, ...] = ()
    is_word: bool = False
    on_line: bool = True
    is_input: bool = False
    is_output: bool = False
    or_stream: bool = False
    is_row: bool = False
    is_digit: bool = False
    is_general: bool = False
    is_first: bool = False
    is_settings: bool = False
    alone: str = ""
    negative: str = ""
    group: Any = None
    decides: Literal["entries", "output", "nothing"] = "entries"
    is_opened: bool = False


class Field(NamedTuple):
    """A field of a request: its name, its plain type, what is said of it, and its bounds."""

    name: str
    kind: Any
    option: Option
    bounds: tuple[Any, ...]

    @property
    def flags(self) -> tuple[str, ...]:
        """What it is called on the command line."""
        return self.option.names or (f"--{self.name.replace('_', '-')}",)

    @property
    def is_output(self) -> bool:
        """Whether it names what is written."""
        return not self.option.is_input and (
            "--out" in self.flags or self.option.or_stream or self.option.is_output
        )

    def check(self, value: Any) -> None:
        """Raises `UsageError` for a value that cannot be meant."""
        if self.is_output and isinstance(value, str | Path):
            refuse_elsewhere(value)
        flag, kinds = self.flags[0], list_kinds(self.kind)
        words = [w for kind in kinds if get_origin(kind) is Literal for w in get_args(kind)]
        for one in value if isinstance(value, list | tuple) else (value,):
            if isinstance(one, str) and words and str not in kinds and one not in words:
                raise UsageError(f"no {flag} '{one}'; {did_you_mean(one, words)}")
            if one is None or not self.bounds or one in words:
                continue
            if isinstance(one, bool) or not isinstance(one, int | float) or not abs(one) < inf:
                raise UsageError(f"{flag} {one!r} is no number", fix="give a number")
            for bound in self.bounds:
                least: Any = bound.ge if isinstance(bound, Ge) else bound.gt
                if isinstance(bound, Ge) and not one >= least:
                    raise UsageError(f"{flag} {one} is below {least}", fix=f"give {least} or more")
                if isinstance(bound, Gt) and not one > least:
                    raise UsageError(f"{flag} {one} is not above {least}", fix="give more")


def is_list(kind: Any) -> bool:
    """Whether a value of this type is a list, and never one word."""
    some = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    forms = {get_origin(one) or one for one in some}
    return not forms & {str, Literal} and bool(forms & {Sequence, list, tuple})


def list_kinds(kind: Any) -> list[Any]:
    """The types that a union, or a sequence of it, is made of; else the type itself."""
    if get_origin(kind) is Literal or not get_args(kind):
        return [kind]
    return [one for part in get_args(kind) for one in list_kinds(part)]


@dataclass(frozen=True, kw_only=True)
class Options:
    """Shared fields; a word in place of a list is a list of one. Raises `UsageError`."""

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for one in list_fields(kind):
            value = getattr(self, one.name)
            if isinstance(value, str | Path) and is_list(one.kind):
                object.__setattr__(self, one.name, (value,))
            one.check(getattr(self, one.name))


@dataclass(frozen=True, kw_only=True)
class Request(Options, ABC, Generic[Answer]):
    """What a verb is asked. Raises `UsageError` for a value that cannot be meant.

    Of the command line: `json_help` is the help of --json, "" for a verb without; `json_indent`
    that of its objects. `flag_parts` are the classes whose fields are flags, where not all are.
    `has_machine` is False for a verb that computes nothing: it has no --threads. `catches_stop` is
    False where the work itself hears SIGTERM.
    """

    work: ClassVar[str]
    json_help: ClassVar[str] = "One JSON object on stdout."
    json_indent: ClassVar[int | None] = None
    flag_parts: ClassVar[tuple[type, ...]] = ()
    has_machine: ClassVar[bool] = True
    catches_stop: ClassVar[bool] = True

    @classmethod
    def make(cls, *args: Any, **kwargs: Any) -> Self:
        """The request of the arguments of a function."""
        options = {one.name: one.option for one in list_fields(cls)}
        for name, option in options.items():
            if option.is_settings:
                kwargs[name] = {key: kwargs.pop(key) for key in [*kwargs] if key not in options}
        return cls(*args, **kwargs)

    @classmethod
    def arrange(cls, values: dict[str, Any]) -> None:
        """Put the words of a command line, by field, in their places."""

    def answer(self, *given: Any) -> Answer:
        """Do the work: a function of this request and of what is `given` beside it."""
        with planning(getattr(self, "plan", False) is True):
            answer: Answer = find_named(self.work)(self, *given)
        return answer

    def list_rows(self, answer: Any) -> Iterable[Any]:
        """What --json prints of an answer, a line each."""
        return [answer]

    def show(self, answer: Any) -> None:
        """Print an answer on stdout."""

    def conclude(self, answer: Any) -> str:
        """The last line of a command, on stderr; "" for none."""
        return ""

    @classmethod
    def list_variants(cls) -> dict[str, str]:
        """Of a verb "group *": the help of each word that stands for *, the first field's value."""
        return {}


@cache
def list_fields(request: Any) -> tuple[Field, ...]:
    """The fields of a request or a group of which something is said; what many have comes last."""
    listed, hints = [], get_type_hints(request, include_extras=True)
    for one in sorted(fields(request), key=lambda one: bool(one.kw_only)):
        if get_origin(hints[one.name]) is Annotated:
            kind, *said = get_args(hints[one.name])
            option = next(part for part in said if isinstance(part, Option))
            bounds = tuple(part for part in said if isinstance(part, Ge | Gt))
            listed.append(Field(one.name, kind, option, bounds))
    return tuple(sorted(listed, key=lambda one: one.option.is_general))


def make_function(name: str, request: Callable[P, Request[Answer]]) -> Callable[P, Answer]:
    """The public function `name` of a request: the same arguments, answered."""
    kind: Any = request

    def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        return kind.make(*args, **kwargs).answer()

    return _describe(call, name, request)  # type: ignore[no-any-return]


def method(
    name: str, request: Callable[P, Request[Answer]]
) -> Callable[Concatenate[Any, P], Answer]:
    """The same as a method of a model, which the work is given beside the request."""

    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> Answer:
        return request(*args, **kwargs).answer(self)

    return _describe(
        call, name, request, inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    )


def _describe(call: Any, name: str, request: Any, *first: inspect.Parameter) -> Any:
    """`call` with the signature and the help of a request, for notebooks and the documentation."""
    said, own = list_fields(request), inspect.signature(request).parameters
    plain = (_make_parameter(own[one.name], one) for one in said)
    call = own_defaults()(call)
    call.__name__, call.__qualname__, call.__module__ = name, name, request.__module__
    call.request = request
    call.__signature__ = inspect.Signature([*first, *sorted(plain, key=lambda one: one.kind)])
    lines = (f"{one.name}: {one.option.help}" for one in said)
    helps = "\n".join(fill(line, 92, subsequent_indent="    ") for line in lines)
    call.__doc__ = f"{inspect.getdoc(request)}\n\nArgs:\n{indent(helps, ' ' * 4)}\n"
    return call


def _make_parameter(own: inspect.Parameter, one: Field) -> inspect.Parameter:
    kind = inspect.Parameter.VAR_KEYWORD if one.option.is_settings else own.kind
    if kind is own.kind:
        return own.replace(annotation=one.kind)
    return inspect.Parameter(own.name, kind, annotation=get_args(one.kind)[-1])
