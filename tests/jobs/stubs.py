"""Stubs of the verbs and methods that are made of requests: editors read source, and run nothing.

python -m tests.jobs.stubs          # writes them anew
"""

import importlib
import inspect
from pathlib import Path
from textwrap import indent
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

ROOT = Path(__file__).resolve().parents[2]
STUBBED = tuple(
    f"genodiff.api.{name}"
    for name in (
        "compare", "constraint", "embedding", "evaluate", "finetune", "finetune_bases", "judge",
        "maps", "model_maps", "model_samples", "model_scores", "predict", "redesign", "sample",
        "score", "scorecard",
    )
)  # fmt: skip
HEAD = "# Made by `python -m tests.jobs.stubs` of the requests; a test compares.\n"


def render_stub(module: str) -> str:
    """The stub of a module: each verb as a function, each method in its class."""
    holder = importlib.import_module(module)
    parts = [HEAD, "import collections.abc\nimport pathlib\nimport typing\n"]
    for name, value in vars(holder).items():
        if getattr(value, "__module__", None) == module and inspect.isclass(value):
            methods = [render(one) for one in vars(value).values() if hasattr(one, "request")]
            about = f'class {name}:\n    """{value.__doc__}"""\n'
            parts.append("\n".join([about, *(indent(one, " " * 4) for one in methods)]))
        elif hasattr(value, "request"):
            parts.append(render(value))
    return "\n".join(parts)


def render(call: Any) -> str:
    """One function with its docstring."""
    signature = inspect.signature(call)
    said = inspect.signature(call.request.answer).return_annotation
    answer = "typing.Any" if isinstance(said, TypeVar) else name_type(said)
    words, named = [], False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not named:
            words, named = [*words, "*"], True
        kind = "" if one.annotation is one.empty else f": {name_type(one.annotation)}"
        default = "" if one.default is one.empty else f" = {one.default!r}"
        words.append(f"{one.name}{kind}{default}")
        if one.kind is one.POSITIONAL_ONLY:
            words.append("/")
    doc = indent(f'"""{inspect.cleandoc(call.__doc__)}\n"""', " " * 4)
    lines = "".join(f"    {word},\n" for word in words)
    return f"def {call.__name__}(\n{lines}) -> {answer}:\n{doc}\n"


def name_type(kind: Any) -> str:
    """A type as source code, the same under every version of Python."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return f"typing.Literal[{', '.join(map(repr, parts))}]"
    if origin in (Union, UnionType):
        return " | ".join(map(name_type, parts))
    if origin is not None:
        return f"{name_type(origin)}[{', '.join(map(name_type, parts))}]"
    if kind is ...:
        return "..."
    if kind in (Any, type(None)):
        return "None" if kind is type(None) else "typing.Any"
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__.split('._')[0]}."
    return f"{module}{kind.__qualname__}"


if __name__ == "__main__":
    for stubbed in STUBBED:
        (ROOT / f"{stubbed.replace('.', '/')}.pyi").write_text(render_stub(stubbed))
