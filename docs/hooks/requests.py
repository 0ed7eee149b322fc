"""Verbs and methods that are made of requests, as functions with their options.

`ism = verb("ism", IsmRequest)` is an attribute to a reader of source code. What it takes and says
is asked of the object itself.
"""

import inspect
from importlib import import_module
from typing import Any

from griffe import (
    Class,
    Docstring,
    Extension,
    Function,
    Module,
    Parameter,
    ParameterKind,
    Parameters,
)

KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: ParameterKind.positional_only,
    inspect.Parameter.POSITIONAL_OR_KEYWORD: ParameterKind.positional_or_keyword,
    inspect.Parameter.KEYWORD_ONLY: ParameterKind.keyword_only,
}


class RequestsAsFunctions(Extension):
    """Puts a function in the place of each attribute that is made by `verb` or `method`."""

    def on_module_members(self, *, mod: Module, **_: Any) -> None:
        """Those of a module."""
        replace_members(mod)

    def on_class_members(self, *, cls: Class, **_: Any) -> None:
        """Those of a class."""
        replace_members(cls)


def replace_members(of: Module | Class) -> None:
    """Replace each attribute of `of` that is a verb or a method."""
    for name, member in list(of.members.items()):
        made = str(getattr(member, "value", "")) if not member.is_alias else ""
        if made.startswith(("verb(", "method(")):
            of.set_member(name, make_function(name, find_object(of, name)))


def find_object(of: Module | Class, name: str) -> Any:
    """The object itself, imported."""
    holder = import_module(of.module.path)
    return getattr(getattr(holder, of.name) if isinstance(of, Class) else holder, name)


def make_function(name: str, call: Any) -> Function:
    """What the documentation shows of a verb or method."""
    parameters = [
        Parameter(
            one.name,
            kind=KINDS[one.kind],
            annotation=inspect.formatannotation(one.annotation).replace("collections.abc.", "")
            if one.annotation is not one.empty
            else None,
            default=None if one.default is one.empty else repr(one.default),
        )
        for one in inspect.signature(call).parameters.values()
    ]
    made = Function(name, parameters=Parameters(*parameters))
    made.docstring = Docstring(inspect.cleandoc(call.__doc__), parent=made)
    return made
