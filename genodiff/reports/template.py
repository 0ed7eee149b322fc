"""The jinja templates of the report's pages, and data for their scripts."""

import base64
import json
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.io.file_kinds import hide_folders
from genodiff.version import __version__


def render_template(name: str, context: dict[str, Any]) -> str:
    """The template filled in: everything is escaped but `Markup`, an unknown name is an error.

    Pages are shown to others: paths of a machine are cut down to names, but for those in `Markup`.
    """
    environment = Environment(
        loader=PackageLoader("genodiff", "reports"),
        autoescape=True,
        finalize=_finish,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(version=__version__, **context)


def _finish(value: Any) -> Any:
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return hide_folders(value) if plain else value


def encode_numbers(values: NDArray[Any]) -> str:
    """The bytes of an array, as a page's script reads them."""
    return base64.b64encode(values.tobytes()).decode()


def encode_data(value: Any) -> Markup:
    """Plain values as JSON within a script, which "<" would end early."""
    return Markup(json.dumps(value).replace("<", "\\u003c"))
