"""What UCSC's `hubCheck` asks of a track hub, from its documents: files, settings, parents, names.

It reads the files by itself, so that a slip of the writer is not repeated here.
"""

import re
from pathlib import Path

import pyBigWig

HUB = {"hub", "shortLabel", "longLabel", "genomesFile", "email"}
ASSEMBLY = {"twoBitPath", "organism", "scientificName", "description", "defaultPos", "orderKey"}
TRACK = {"track", "type", "shortLabel", "longLabel"}
KNOWN = {
    *TRACK, "container", "aggregate", "logo", "autoScale", "viewLimits", "maxHeightPixels",
    "showSubtrackColorOnUi", "noInherit", "visibility", "priority", "bigDataUrl", "color",
    "parent", "windowingFunction",
}  # fmt: skip
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def read_stanzas(path: Path) -> list[dict[str, str]]:
    """The stanzas of a file of settings."""
    found = []
    for text in re.split(r"\n\s*\n", path.read_text("ascii").strip()):
        pairs = [line.strip().split(" ", 1) for line in text.splitlines()]
        assert all(len(pair) == 2 and pair[1].strip() for pair in pairs), text
        keys = [pair[0] for pair in pairs]
        assert len(keys) == len(set(keys)), f"a setting stands twice: {keys}"
        found.append(dict(pairs))  # type: ignore[arg-type]
    return found


def check_hub(folder: Path) -> dict[str, dict[str, str]]:
    """The tracks of the hub by name. Fails at the first fault."""
    (hub,) = read_stanzas(folder / "hub.txt")
    assert set(hub) >= HUB
    assert NAME.fullmatch(hub["hub"])
    assert len(hub["shortLabel"]) <= 17
    assert len(hub["longLabel"]) <= 76
    assert re.fullmatch(r"\S+@\S+\.\S+", hub["email"])
    assert (folder / hub["descriptionUrl"]).is_file()
    (genome,) = read_stanzas(folder / hub["genomesFile"])
    assert set(genome) >= {"genome", "trackDb"}
    sizes = read_sizes(folder / "chrom.sizes")
    if set(genome) - {"genome", "trackDb"}:
        assert set(genome) >= ASSEMBLY
        assert (folder / genome["twoBitPath"]).is_file()
        assert (folder / genome["htmlPath"]).is_file()
        place = re.fullmatch(r"(.+):(\d+)-(\d+)", genome["defaultPos"])
        assert place
        assert 1 <= int(place[2]) <= int(place[3]) <= sizes[place[1]]
    stanzas = read_stanzas(folder / genome["trackDb"])
    tracks = {one["track"]: one for one in stanzas}
    assert len(tracks) == len(stanzas), "a track stands twice"
    for name, one in tracks.items():
        assert NAME.fullmatch(name)
        assert set(one) >= TRACK
        assert set(one) <= KNOWN
        assert len(one["longLabel"]) <= 76
        assert len(one["shortLabel"]) <= 17
        check_track(folder, one, tracks, sizes)
    return tracks


def check_track(
    folder: Path, one: dict[str, str], tracks: dict[str, dict[str, str]], sizes: dict[str, int]
) -> None:
    """One stanza: its parent stands before it, and its file has the contigs of chrom.sizes."""
    assert re.fullmatch(r"bigWig \d+ \d+", one["type"])
    if "color" in one:
        assert all(0 <= int(part) < 256 for part in one["color"].split(","))
    if "viewLimits" in one:
        low, high = map(float, one["viewLimits"].split(":"))
        assert low < high
    if "container" in one:
        assert one["container"] == "multiWig"
        assert one["aggregate"] in {"stacked", "transparentOverlay", "solidOverlay", "none"}
        assert "bigDataUrl" not in one
        children = [other for other in tracks.values() if other.get("parent") == one["track"]]
        assert children
        if one.get("logo") == "on":
            assert [other["shortLabel"] for other in children] == list("ACGT")
        return
    if "parent" in one:
        names = list(tracks)
        assert names.index(one["parent"]) < names.index(one["track"])
        assert "container" in tracks[one["parent"]]
    with pyBigWig.open(str(folder / one["bigDataUrl"])) as file:
        assert file.isBigWig()
        assert file.chroms() == sizes


def read_sizes(path: Path) -> dict[str, int]:
    """chrom.sizes."""
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert len({name for name, _ in rows}) == len(rows)
    return {name: int(length) for name, length in rows}
