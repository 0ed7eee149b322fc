"""Inline SVG from matplotlib, in the colours of the page's light or dark scheme.

Text stays text, and the bytes are the same every time.

Figures are drawn in stand-in colours (`INK`, `MODEL`, …) and leave here with CSS variables in their
place, so that one picture serves light, dark and print. Identifiers carry the figure's name:
several figures live in one document.
"""

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

INK, MUTED, GRID, PAPER = "#000001", "#000002", "#000003", "#000004"
MODEL, SOURCE, MARKOV, REAL, BAD = "#000005", "#000006", "#000007", "#000008", "#000009"
_VARIABLES = {
    INK: "--ink", MUTED: "--muted", GRID: "--grid", PAPER: "--paper",
    MODEL: "--model", SOURCE: "--source", MARKOV: "--markov", REAL: "--real", BAD: "--bad",
}  # fmt: skip
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "genodiff",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "xtick.major.size": 3,
    "ytick.major.size": 3,
    "text.color": INK,
    "text.parse_math": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "path.simplify": True,
}
# a name inside matplotlib's output; it never reaches the page
_XLINK = "{http://www.w3.org/1999/xlink}href"
_SVG = "{http://www.w3.org/2000/svg}"


@contextmanager
def open_canvas(width: float, height: float) -> Iterator[Figure]:
    """An empty figure of `width` × `height` inches in the report's style.

    No global state of pyplot is changed.
    """
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        yield figure


def draw_both_widths(draw: Callable[..., str], *given: Any, **options: Any) -> str:
    """A figure drawn twice, for wide pages and for phones; the page's style shows one of the two.

    `draw` takes `narrow` and gives its figure another name then.
    """
    wide, narrow = draw(*given, **options), draw(*given, **options, narrow=True)
    return f'<div class="wide">{wide}</div><div class="narrow">{narrow}</div>'


def to_svg(figure: Figure, name: str, title: str) -> str:
    """The figure as an `<svg>` element for an HTML page; screen readers read `title`.

    `name` (letters, digits and hyphens) must be unique in the page. No namespace, font or address
    is left in it.
    """
    root = ET.fromstring(_render(figure))
    wanted = {
        m
        for e in root.iter()
        for m in re.findall(r"#(\w+)", f"{e.get(_XLINK, '')} {e.get('clip-path', '')}")
    }
    for parent in root.iter():
        for child in list(parent):
            if child.tag.rsplit("}", 1)[-1] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.attrib = _attributes(element.attrib, name, wanted)
        if element.tag != "text":
            element.text = element.text if element.text and element.text.strip() else None
        element.tail = None
    root.attrib = {"viewBox": root.attrib["viewBox"], "role": "img", "aria-label": title}
    _flatten(root)
    return ET.tostring(root, encoding="unicode", short_empty_elements=True)


def _render(figure: Figure) -> bytes:
    """The figure as matplotlib writes it."""
    raw = io.BytesIO()
    figure.savefig(raw, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return raw.getvalue()


def _attributes(old: dict[str, str], name: str, wanted: set[str]) -> dict[str, str]:
    new: dict[str, str] = {}
    for key, value in old.items():
        if key == "id":
            if value in wanted:
                new["id"] = f"{name}-{value}"
        elif key == _XLINK:
            new["href"] = f"#{name}-{value.removeprefix('#')}"
        elif key == "clip-path":
            new[key] = value.replace("url(#", f"url(#{name}-")
        elif key == "style":
            new[key] = _style(value)
        elif key in ("d", "points", "x", "y", "width", "height", "transform"):
            text = re.sub(
                r"-?\d+\.\d+", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), value
            )
            if not re.fullmatch(r"rotate\(-?0 [^)]*\)", text):
                new[key] = " ".join(text.split())
        else:
            new[key] = value
    return new


def _style(value: str) -> str:
    """A style without font families, which the page gives, and with CSS variables as colours."""
    parts = [
        p.strip() for p in value.split(";") if p.strip() and not p.strip().startswith("font-family")
    ]
    text = "; ".join(parts)
    return re.sub(r"#00000[1-9]", lambda m: f"var({_VARIABLES[m[0]]})", text)


def _flatten(root: ET.Element) -> None:
    """Groups without a purpose give way to what they hold: a third of the bytes."""
    for parent in list(root.iter()):
        children: list[ET.Element] = []
        queue = list(parent)
        while queue:
            child = queue.pop(0)
            if child.tag == "g" and not child.attrib:
                queue = list(child) + queue
            else:
                children.append(child)
        parent[:] = children
