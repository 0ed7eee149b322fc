"""A track hub of the UCSC Genome Browser: the files beside bigWigs that make them one.

    hub.txt        what the hub is called, and where the next file is
    genomes.txt    the genome: UCSC's name of it, or with a .2bit an assembly of its own
    trackDb.txt    the tracks: a logo and the chances as stacked `multiWig`, and three more
    chrom.sizes    contigs and their lengths, as in each bigWig

All paths are relative, so the folder may be put on any web server. Source: UCSC's Hub Track
Database Definition and Assembly Hub User Guide.
"""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from genodiff.io.atomic import write_text
from genodiff.io.two_bit import write_two_bit
from genodiff.io.value_tracks import sort_contigs
from genodiff.maps.map_regions import BASES
from genodiff.maps.track_values import TRACKS, TrackKinds
from genodiff.scoring.variant_windows import Contigs

_WIDE = "128:64:16"  # maximal, usual and minimal pixels of a track
_LONGEST = 76  # characters of a longLabel

Stanza = dict[str, str]


class BedTrack(NamedTuple):
    """A track of intervals in NAME.bb: its type in UCSC's words, what it is, a colour."""

    name: str
    kind: str
    label: str
    colour: str


class HubRequest(NamedTuple):
    """What a hub is called; `genome` is UCSC's name, None for an assembly of its own.

    `assembly` is how that is called, `view` the place that is shown first, `beds` what is written
    beside the bigWigs.
    """

    genome: str | None
    assembly: str
    email: str
    digest: str
    view: tuple[str, int, int]
    beds: tuple[BedTrack, ...] = ()


def write_hub(
    folder: Path, genome: Contigs, request: HubRequest, facts: Mapping[str, str], kinds: TrackKinds
) -> None:
    """Write the files of a hub into `folder`, where the bigWigs are of `kinds`.

    `facts` are shown on its page of description.
    """
    name = request.genome or request.assembly
    hub = {
        "hub": f"genodiff_{request.digest}",
        "shortLabel": "genodiff",
        "longLabel": _cut(f"Predictions of genodiff {request.digest} for each base of {name}"),
        "genomesFile": "genomes.txt",
        "email": request.email,
        "descriptionUrl": "description.html",
    }
    write_text(folder / "hub.txt", format_stanzas([hub]))
    write_text(folder / "genomes.txt", format_stanzas([_describe_genome(request)]))
    tracks = list_tracks(request.digest, kinds, request.beds)
    write_text(folder / "trackDb.txt", format_stanzas(tracks))
    labels = [*(one.label for one in request.beds), *(one.label for one in kinds.values())]
    write_text(folder / "description.html", _describe_hub(name, facts, labels))
    if request.genome is None:
        write_two_bit(folder / f"{name}.2bit", genome.contigs, genome.fetch)


def write_sizes(folder: Path, contigs: Mapping[str, int]) -> None:
    """Write chrom.sizes: contigs by the bytes of their names, and lengths."""
    lines = [f"{name}\t{contigs[name]}\n" for name in sort_contigs(contigs)]
    write_text(folder / "chrom.sizes", "".join(lines))


def list_tracks(
    digest: str, kinds: TrackKinds = TRACKS, beds: Sequence[BedTrack] = ()
) -> list[Stanza]:
    """The stanzas of trackDb.txt."""
    of = f" ({digest})"
    found: list[Stanza] = [
        {
            "track": f"genodiff_{one.name}", "type": one.kind, "shortLabel": one.name,
            "longLabel": _cut(one.label), "bigDataUrl": f"{one.name}.bb", "color": one.colour,
            "visibility": "pack", "priority": "1",
        }
        for one in beds
    ]  # fmt: skip
    containers: tuple[tuple[str, str, str, Stanza], ...] = (
        ("logo", "logo", "Logo: heights sum to information, in bits", {"logo": "on"}),
        ("p", "chances", "Probabilities of A, C, G and T given all other bases", {}),
    )
    for number, (key, short, long, more) in enumerate(containers, 1):
        if f"{key}_A" not in kinds:
            continue
        parent, (low, high) = f"genodiff_{key}", kinds[f"{key}_A"].limits
        stack = {"track": parent, "container": "multiWig", "type": f"bigWig {low} {high}"}
        stack |= {"shortLabel": f"genodiff {short}", "longLabel": _cut(long + of)}
        stack |= {"aggregate": "stacked", **more, "autoScale": "off", "viewLimits": f"{low}:{high}"}
        stack |= {"maxHeightPixels": _WIDE, "showSubtrackColorOnUi": "on", "noInherit": "on"}
        stack["visibility"] = "full" if key == "logo" else "hide"
        found.append(stack | {"priority": str(number)})
        for place, base in enumerate(BASES, 1):
            line = _describe_track(f"{key}_{base}", kinds, place)
            found.append({**line, "shortLabel": base, "parent": parent})
    first = ("information", "entropy", "surprisal")
    alone = [*(key for key in first if key in kinds), *(key for key in kinds if key not in TRACKS)]
    for number, key in enumerate(alone, 3):
        line = _describe_track(key, kinds, number)
        more = {"autoScale": "off", "maxHeightPixels": _WIDE, "windowingFunction": "mean"}
        low, high = kinds[key].limits
        found.append(line | more | {"viewLimits": f"{low}:{high}", "visibility": "full"})
    return found


def _describe_track(key: str, kinds: TrackKinds, priority: int) -> Stanza:
    kind = kinds[key]
    found = {"track": f"genodiff_{key}", "type": f"bigWig {kind.limits[0]} {kind.limits[1]}"}
    found |= {"shortLabel": key, "longLabel": _cut(kind.label), "bigDataUrl": f"{key}.bw"}
    return found | {"color": kind.colour, "priority": str(priority)}


def _describe_genome(request: HubRequest) -> Stanza:
    name, (contig, start, end) = request.genome or request.assembly, request.view
    found = {"genome": name, "trackDb": "trackDb.txt"}
    if request.genome is None:
        found |= {"twoBitPath": f"{name}.2bit", "organism": name, "scientificName": name}
        found["description"] = f"{name}, given to genodiff"
        found["defaultPos"] = f"{contig}:{start + 1}-{end}"
        found |= {"orderKey": "1", "htmlPath": "description.html"}
    return found


def _describe_hub(name: str, facts: Mapping[str, str], labels: Sequence[str]) -> str:
    rows = [(escape(key), escape(str(one))) for key, one in {"genome": name, **facts}.items()]
    cells = "".join(f"<tr><td>{key}</td><td>{value}</td></tr>\n" for key, value in rows)
    tracks = "".join(f"<li>{escape(one)}</li>\n" for one in labels)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>genodiff tracks of {escape(name)}</title></head>\n<body>\n"
        f"<h2>genodiff tracks of {escape(name)}</h2>\n"
        f"<ul>\n{tracks}</ul>\n<p>A base that was not read has no value.</p>\n"
        f"<table>\n{cells}</table>\n</body></html>\n"
    )


def format_stanzas(stanzas: list[Stanza]) -> str:
    """Stanzas as UCSC reads them; those of a container's tracks are set in."""
    parts = []
    for one in stanzas:
        margin = "    " if "parent" in one else ""
        parts.append("".join(f"{margin}{key} {value}\n" for key, value in one.items()))
    return "\n".join(parts)


def _cut(label: str) -> str:
    return label if len(label) <= _LONGEST else label[: _LONGEST - 3].rstrip() + "..."
