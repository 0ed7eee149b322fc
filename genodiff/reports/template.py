"""The jinja templates of the report's pages."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render_template(name: str, context: dict[str, Any]) -> str:
    """The template filled in: everything is escaped but `Markup`, an unknown name is an error."""
    environment = Environment(
        loader=PackageLoader("genodiff", "reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name).render(context)
