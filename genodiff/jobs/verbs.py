"""The verbs, in one registry: the command line, the door of `import genodiff`, and the
documentation list them from here.

A verb is a request with a decorator, in a file `*request*.py` of a room, or in any of `api`:

    @verb("greet")
    @dataclass(frozen=True, kw_only=True)
    class GreetRequest(Request[str]):
        \"\"\"Greet somebody by name.\"\"\"

        name: Annotated[str, Option("Who.", is_word=True)] = field(kw_only=False)

        def answer(self, *given: Any) -> str:
            return f"hello, {self.name}"

Names, help and functions are read from the source, so that a list of verbs imports no request. A
request of a plug-in is registered when the plug-in is imported.
"""

import ast
import inspect
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from genodiff.registry import Registry, load_plugins

if TYPE_CHECKING:
    from genodiff.jobs.request import Request

Asked = TypeVar("Asked", bound="type[Request[Any]]")
_REQUESTS = "genodiff.jobs.request"  # takes longer to import than a list of verbs may
_ROOT = Path(__file__).resolve().parents[1]
_DECORATED = re.compile(
    r'^@verb\((.*?)\)\n(?:@[^\n]*\n)*class (\w+)[^:]*:\n    """(.*?)"""', re.MULTILINE | re.DOTALL
)


class Verb(NamedTuple):
    """A verb whose request is imported when it is used.

    `names` are its words on the command line, none of a function alone; `function` is its name in
    `genodiff`, "" of a verb of the command line alone; `entry` is the request, "module:class".
    """

    names: tuple[str, ...]
    function: str
    entry: str
    help: str

    def open(self) -> "type[Request[Any]]":
        """Import the request."""
        found: type[Request[Any]] = import_module(_REQUESTS).find_named(self.entry)
        return found


def verb(*names: str, function: str | None = None, help: str = "") -> Callable[[Asked], Asked]:
    """Make a request a verb: `names` are its words, "data build", and others for the same.

    `function` is its name in `genodiff` (default: the words, joined), "" for none. `help` is what
    --help shows (default: the docstring of the request).
    """

    def register(request: Asked) -> Asked:
        if not request.__module__.startswith("genodiff."):  # ours are read from the source
            entry = f"{request.__module__}:{request.__qualname__}"
            _read_ours()
            _register(_make_verb(names, function, help or request.__doc__ or "", entry))
        return request

    return register


def list_verbs() -> dict[str, Verb]:
    """Every verb of the command line by its words, ours and those of plug-ins."""
    _read_ours()
    load_plugins()
    return dict(_NAMED.items())


def list_functions() -> dict[str, Verb]:
    """Every function of the door that is made of a request, by name."""
    _read_ours()
    load_plugins()
    return dict(_FUNCTIONS.items())


def find_function(name: str) -> Callable[..., Any] | None:
    """The function `name` of the door; None where no request makes it."""
    found = list_functions().get(name)
    if found is None:
        return None
    made: Callable[..., Any] = import_module(_REQUESTS).make_function(name, found.open())
    return made


_NAMED: Registry[Verb] = Registry("verb")
_FUNCTIONS: Registry[Verb] = Registry("function")


def _register(one: Verb) -> None:
    for name in one.names:
        _NAMED.add(name, one)
    if one.function:
        _FUNCTIONS.add(one.function, one)


def _make_verb(names: tuple[str, ...], function: str | None, help: str, entry: str) -> Verb:
    words = re.sub(r"\W", "_", names[0]) if function is None else function
    return Verb(names, words, entry, inspect.cleandoc(help))


@cache
def _read_ours() -> None:
    """Register what the decorators of the tree say, without importing it."""
    files = [*_ROOT.glob("api/*.py"), *_ROOT.glob("*/*request*.py")]
    for file in sorted(files):
        for one in read_verbs(file):
            _register(one)


def read_verbs(file: Path) -> list[Verb]:
    """The verbs of a file, as their decorators are written."""
    found = []
    for said, name, text in _DECORATED.findall(file.read_text(encoding="utf-8")):
        call: Any = ast.parse(f"verb({said})", mode="eval").body
        names = tuple(ast.literal_eval(one) for one in call.args)
        about = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
        entry = f"genodiff.{file.parent.name}.{file.stem}:{name}"
        found.append(_make_verb(names, about.get("function"), about.get("help") or text, entry))
    return found
