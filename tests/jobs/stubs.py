"""Stubs of the verbs and methods that are made of requests: editors read source, and run nothing.

python -m tests.jobs.stubs          # writes them anew
"""

import ast
import importlib
import inspect
from pathlib import Path
from textwrap import indent
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import genodiff
from genodiff.jobs.verbs import list_functions

ROOT = Path(__file__).resolve().parents[2]
STUBBED = (
    "genodiff", "genodiff.api.model_maps", "genodiff.api.model_samples",
    "genodiff.api.model_scores",
)  # fmt: skip
"""The package, whose functions are those of the registry, and the modules of methods."""
HEAD = "# Made by `python -m tests.jobs.stubs` of the requests; a test compares.\n"


def find_stub(module: str) -> Path:
    """The file of a module's stub."""
    path = ROOT / module.replace(".", "/")
    return path / "__init__.pyi" if path.is_dir() else path.with_suffix(".pyi")


def render_stub(module: str) -> str:
    """The stub of a module: each verb as a function, each method in its class."""
    holder = importlib.import_module(module)
    parts = []
    if holder is genodiff:
        beside = sorted((where, name) for name, where in genodiff._BESIDE.items())
        beside.append(("genodiff.version", "__version__"))
        lines = (f"from {where} import {name} as {name}\n" for where, name in beside)
        parts.append("".join(lines) + "\n_BESIDE: dict[str, str]\n")
        parts += [render(getattr(genodiff, name)) for name in sorted(list_functions())]
    for name, value in vars(holder).items():
        if getattr(value, "__module__", None) == module and inspect.isclass(value):
            methods = [render(one) for one in vars(value).values() if hasattr(one, "request")]
            about = f'class {name}:\n    """{value.__doc__}"""\n'
            parts.append("\n".join([about, *(indent(one, " " * 4) for one in methods)]))
    imports = "".join(f"import {one}\n" for one in list_modules("\n".join(parts)))
    return "\n".join([HEAD, imports, *parts])


def list_modules(source: str) -> list[str]:
    """The modules that annotations of a source name."""
    found = {"collections.abc", "pathlib", "typing"}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node).startswith("genodiff."):
            found.add(ast.unparse(node).rpartition(".")[0])
    modules = {one for one in found if not any(other.startswith(f"{one}.") for other in found)}
    return sorted(one for one in modules if one != "genodiff")


def render(call: Any) -> str:
    """One function with its docstring."""
    signature = inspect.signature(call)
    words, named = [], False
    for one in signature.parameters.values():
        if one.kind is one.KEYWORD_ONLY and not named:
            named = True
            words += [] if any(word.startswith("*") for word in words) else ["*"]
        kind = "" if one.annotation is one.empty else f": {name_type(one.annotation)}"
        default = "" if one.default is one.empty else f" = {one.default!r}"
        star = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        words.append(f"{star}{one.name}{kind}{default}")
        if one.kind is one.POSITIONAL_ONLY:
            words.append("/")
    doc = indent(f'"""{inspect.cleandoc(call.__doc__)}\n"""', " " * 4)
    lines = "".join(f"    {word},\n" for word in words)
    return f"def {call.__name__}(\n{lines}) -> {name_answer(call.request)}:\n{doc}\n"


def name_answer(request: Any) -> str:
    """The type of a request's answer, which may be imported for type checkers alone."""
    said = inspect.signature(request.answer).return_annotation
    if isinstance(said, str):
        module = inspect.getmodule(request)
        names = {**vars(module), **read_typed_imports(inspect.getsource(module))}  # type: ignore[arg-type]
        said = eval(said, names)
    return "typing.Any" if isinstance(said, TypeVar) else name_type(said)


def read_typed_imports(source: str) -> dict[str, Any]:
    """What `if TYPE_CHECKING:` of a module imports."""
    return {
        alias.name: getattr(importlib.import_module(str(node.module)), alias.name)
        for branch in ast.parse(source).body
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


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
        find_stub(stubbed).write_text(render_stub(stubbed))
