"""The page of maps: pictures with a line that says what lies under the pointer."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.maps.map_regions import MapRegion
from genodiff.reports.shapes import PlacedText, Shape, find_frame
from genodiff.reports.template import render_template
from genodiff.version import __version__

_TITLES = {"ism": "saturation mutagenesis", "dependencies": "dependency map"}


def encode_numbers(values: NDArray[Any]) -> str:
    """The bytes of an array, as the page's script reads them."""
    return base64.b64encode(values.tobytes()).decode()


def put_head(shapes: list[Shape], head: str) -> list[Shape]:
    """The shapes with a line of text above them."""
    frame = find_frame(shapes)
    return [PlacedText(frame.left + 4, frame.top - 6, head, 11, "ink", "start"), *shapes]


def explain_strand(region: MapRegion) -> str:
    """What a caption says of a region on the - strand."""
    if region.strand == "+":
        return ""
    return " The region is read on the - strand: as its reverse complement, from right to left."


def render_map_page(
    verb: str, told: Mapping[str, Any], sections: Sequence[Mapping[str, Any]]
) -> str:
    """A page with a picture for each region; nothing in it asks the network."""
    facts = [
        ("model", f"{Path(told['model']).name} ({told['checkpoint']})"),
        ("score", f"{told['score']}, in {told['unit']}"),
        ("evaluations of the network", f"{told['evaluations']:,}"),
    ]
    if told.get("context"):
        facts.append(("bases of a window", f"{told['context']:,}"))
    if told.get("label"):
        facts.append(("class", str(told["label"])))
    if told.get("every"):
        facts.append(("targets masked together", f"every {told['every']} bases"))
    company = told.get("company")
    if company:
        facts.append(
            (
                "what masks that are read together change",
                f"{company['pairs']} pairs by themselves differ by {company['median']:.3g} nats in "
                f"the middle and {company['worst']:.3g} at most; the strongest of them is "
                f"{company['strongest']:.3g}",
            )
        )
    if told.get("genes"):
        facts.append(("genes", Path(told["genes"]).name))
    numbers = {section["id"]: section["numbers"] for section in sections}
    # "<" would end the script early
    data = json.dumps({"unit": told["unit"], "maps": numbers}).replace("<", "\\u003c")
    return render_template(
        "map.html.jinja",
        {
            "version": __version__,
            "verb": verb,
            "title": _TITLES[verb],
            "name": sections[0]["region"].title
            if len(sections) == 1
            else f"{len(sections)} regions",
            "facts": facts,
            "sections": sections,
            "data": Markup(data),
        },
    )
