"""Lines of a docstring that begin with >>> are code; Markdown would take them for a quotation."""

import re
from typing import Any

from griffe import Extension, Object

LINES = re.compile(r"(?:^>>> .*\n?)+", re.MULTILINE)


class DoctestBlocks(Extension):
    """Fences the examples of every docstring."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is not None:
            obj.docstring.value = LINES.sub(fence, obj.docstring.value)


def fence(found: re.Match[str]) -> str:
    """The lines in a fence, without their prompts."""
    return "```python\n" + re.sub(r"^>>> ", "", found[0], flags=re.MULTILINE).rstrip() + "\n```\n"
