"""Docstrings as the reference shows them.

Lines that begin with >>> are code; Markdown would take them for a quotation. Functions and methods
that are made of requests, which the source has as assignments alone, show what they say of
themselves.
"""

import inspect
import re
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from griffe import (
    Docstring,
    Extension,
    Function,
    Module,
    Object,
    Parameter,
    ParameterKind,
    Parameters,
)

import genodiff
from genodiff.api.model import Model
from genodiff.jobs.verbs import list_functions

LINES = re.compile(r"(?:^>>> .*\n?)+", re.MULTILINE)
KINDS = {one.value: one for one in ParameterKind}


class DoctestBlocks(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = LINES.sub(fence, obj.docstring.value)


def fence(found: re.Match[str]) -> str:
    """The lines in a fence, without their prompts."""
    return "```python\n" + re.sub(r"^>>> ", "", found[0], flags=re.MULTILINE).rstrip() + "\n```\n"


class RequestFunctions(Extension):
    """Puts the signature and the help of each in the place of its assignment."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Fill the door and the class of models."""
        if pkg.name != "genodiff":
            return
        for name in list_functions():
            pkg.set_member(name, make_function(getattr(genodiff, name)))
        for name, value in vars(Model).items():
            if hasattr(value, "request"):
                pkg["api.model.Model"].set_member(name, make_function(value))


def make_function(call: Any) -> Function:
    """One function as griffe has it, of what it says of itself."""
    given = inspect.signature(call).parameters.values()
    parameters = [
        Parameter(
            one.name,
            annotation=None if one.annotation is one.empty else name_type(one.annotation),
            kind=KINDS[one.kind.description],
            default=None if one.default is one.empty else repr(one.default),
        )
        for one in given
    ]
    return Function(
        call.__name__,
        parameters=Parameters(*parameters),
        docstring=Docstring(LINES.sub(fence, inspect.cleandoc(call.__doc__)), parser="google"),
    )


def name_type(kind: Any) -> str:
    """A type as source code."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, parts))}]"
    if origin in (Union, UnionType):
        return " | ".join(map(name_type, parts))
    if origin is not None:
        return f"{name_type(origin)}[{', '.join(map(name_type, parts))}]"
    return "None" if kind is type(None) else getattr(kind, "__qualname__", str(kind))
