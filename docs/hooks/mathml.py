"""Formulas as MathML, made at build time: a browser draws them without a script."""

import html
import re
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """The page's HTML with MathML in the place of LaTeX."""
    content = BLOCK.sub(
        lambda found: '<div class="formula">' + draw(found[1], "block") + "</div>", content
    )
    return INLINE.sub(lambda found: draw(found[1], "inline"), content)


def draw(latex: str, display: str) -> str:
    """The MathML element of a formula."""
    return convert(html.unescape(latex).strip(), display=display)
