"""The page of maps: pictures with a line that says what lies under the pointer."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup
from numpy.typing import NDArray

from genodiff.io.genes import Gene
from genodiff.reports.shapes import PlacedText, Shape, find_frame, write_svg
from genodiff.reports.template import render_template

_TURNED = " The region is read on the - strand: as its reverse complement, from right to left."
Told = Mapping[str, Any]


def encode_numbers(values: NDArray[Any]) -> str:
    """The bytes of an array, as the page's script reads them."""
    return base64.b64encode(values.tobytes()).decode()


def put_head(shapes: list[Shape], head: str) -> list[Shape]:
    """The shapes with a line of text above them."""
    frame = find_frame(shapes)
    return [PlacedText(frame.left + 4, frame.top - 6, head, 11, "ink", "start"), *shapes]


class MapDrawer(NamedTuple):
    """How the maps of a verb are drawn, by themselves or on a page; `told` is of their sidecar.

    `head` is a line above a picture, `draw` the shapes of a map with the genes of its region,
    `explain` the caption, and `pack` what the page's script reads.
    """

    verb: str
    title: str
    head: Callable[[Told], str]
    draw: Callable[[Any, Told, Sequence[Gene]], list[Shape]]
    explain: Callable[[Told], str]
    pack: Callable[[Any], dict[str, Any]]

    def list_picture(
        self, maps: Sequence[Any], told: Told, genes: Sequence[Sequence[Gene]]
    ) -> tuple[list[Shape], str]:
        """The shapes of one region, with a line above that says what they are, and a title."""
        (one,) = maps
        shapes, head = self.draw(one, told, genes[0]), f"{one.region.label} · {self.head(told)}"
        return put_head(shapes, head), f"{self.title} of {one.region.label}"

    def render_page(self, maps: Sequence[Any], told: Told, genes: Sequence[Sequence[Gene]]) -> str:
        """All regions on a page that needs no network; `genes` are those of each region."""
        sections, numbers = [], {}
        for number, (one, beside) in enumerate(zip(maps, genes, strict=True), 1):
            region, name = one.region, f"region-{number}"
            shapes = self.draw(one, told, beside)
            figure = write_svg(shapes, name, f"{self.title} of {region.label}")
            place = {"contig": region.contig, "first": region.first, "letters": region.letters}
            numbers[name] = {**place, **self.pack(one)}
            sections.append(
                {
                    "id": name, "region": region, "figure": Markup(figure), "kind": self.verb,
                    "width": f"{find_frame(shapes).width:g}",
                    "caption": self.explain(told) + _TURNED * (region.strand == "-"),
                }
            )  # fmt: skip
        # "<" would end the script early
        data = json.dumps({"unit": told["unit"], "maps": numbers}).replace("<", "\\u003c")
        name = maps[0].region.title if len(maps) == 1 else f"{len(maps)} regions"
        context = {"verb": self.verb, "title": self.title.lower(), "name": name}
        context |= {"facts": _list_facts(told), "sections": sections, "data": Markup(data)}
        return render_template("map.html.jinja", context)


def _list_facts(told: Told) -> list[tuple[str, str]]:
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
        text = (
            f"{company['pairs']} pairs by themselves differ by {company['median']:.3g} nats in "
            f"the middle and {company['worst']:.3g} at most; the strongest of them is "
            f"{company['strongest']:.3g}"
        )
        facts.append(("effect of masking targets together", text))
    if told.get("genes"):
        facts.append(("genes", Path(told["genes"]).name))
    return facts
