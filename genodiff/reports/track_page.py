"""The page of tracks: a region as logo, information, entropy and surprisal, to move about in.

The page draws on canvases from the chances that it holds, so that any part can be seen at any size.
It asks the network for nothing.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from genodiff.io.genes import Gene
from genodiff.maps.track_values import BaseTracks, list_drawn
from genodiff.reports.map_page import encode_numbers
from genodiff.reports.shapes import GLYPHS
from genodiff.reports.template import render_template


def render_track_page(
    regions: Sequence[BaseTracks], told: Mapping[str, Any], genes: Sequence[Sequence[Gene]] = ()
) -> str:
    """A page of all `regions`; `told` is what the sidecar says of the model and how it read.

    `genes` are those of each region.
    """
    drawn = list_drawn(told)
    shown = [{"name": one.title, "limits": one.limits, "strip": one.is_strip} for one in drawn]
    data: dict[str, Any] = {"glyphs": GLYPHS, "related": shown, "regions": []}
    for one, some in zip(regions, genes or [[]] * len(regions), strict=True):
        part = {"contig": one.contig, "start": one.start + 1, "letters": one.letters}
        p, *related = (
            encode_numbers(np.ascontiguousarray(values, "<f4"))
            for values in (one.p, *(one.related[track.name] for track in drawn))
        )
        part |= {"p": p, "related": related}
        data["regions"].append(part | {"genes": [_shift_gene(gene, one.start) for gene in some]})
    # "<" would end the script early
    text = json.dumps(data).replace("<", "\\u003c")
    name = regions[0].label if len(regions) == 1 else f"{len(regions):,} regions"
    context: dict[str, Any] = {"name": name, "data": Markup(text), "has_genes": any(genes)}
    context |= {"facts": _list_facts(regions, told), "labels": [one.label for one in regions]}
    context |= {"has_related": bool(told.get("relatives")), "has_values": bool(told.get("tracks"))}
    return render_template("tracks.html.jinja", context)


def _shift_gene(one: Gene, start: int) -> dict[str, Any]:
    """A gene as the page's script reads it: places from the first base of the region, 0-based."""
    parts = {"exons": one.exons, "coding": one.coding}
    return {
        "start": one.start - start, "end": one.end - start, "strand": one.strand, "name": one.name,
        **{key: [[a - start, b - start] for a, b in some] for key, some in parts.items()},
    }  # fmt: skip


def _list_facts(regions: Sequence[BaseTracks], told: Mapping[str, Any]) -> list[tuple[str, str]]:
    bases = sum(len(one.letters) for one in regions)
    every = told.get("every")
    facts = [
        ("model", f"{Path(told['model']).name} ({told['checkpoint']})"),
        ("bases", f"{bases:,}, of which {sum(int(one.known.sum()) for one in regions):,} read"),
        ("bases of a window", f"{told['context']:,}"),
        ("masked", f"every {every} bases at once" if every else "each base separately"),
    ]
    relatives = told.get("relatives")
    if relatives:
        names = [f"{one['name']} ({one['identity']:.1%} identity)" for one in relatives["genomes"]]
        strains = ["strains of the species are included"] if relatives["strains"] else []
        facts.append(("relatives", "; ".join([", ".join(names), *strains])))
    if told.get("tracks"):
        files = (f"{name} ({Path(file).name})" for name, file in told["tracks"].items())
        facts.append(("values drawn below", ", ".join(files)))
    if told.get("genes"):
        facts.append(("genes", Path(told["genes"]).name))
    company = told.get("company")
    if company:
        (median, worst), sites = company["bits"], company["sites"]
        text = (
            f"at {sites} bases information moves by {median:.3g} bits in the middle and "
            f"{worst:.3g} at most"
        )
        facts.append(("effect of masking several at once", text))
    return facts
