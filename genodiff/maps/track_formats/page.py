"""An HTML page of all regions."""

from pathlib import Path

from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat


@FORMATS.register("html")
class TrackPage(TrackFormat):
    """A logo of each region above bars of information, entropy and surprisal."""

    suffix = ".html"
    kind = "page"

    def write(self, folder: Path, content: TrackContent) -> None:
        content.draw(folder / f"tracks{self.suffix}")
