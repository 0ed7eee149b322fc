"""Pictures of one region: SVG, PNG and PDF."""

from pathlib import Path

from genodiff.maps.track_files import FORMATS, TrackContent, TrackFormat


@FORMATS.register("svg")
class SvgPicture(TrackFormat):
    """Vectors, for a browser."""

    suffix = ".svg"
    kind = "picture"

    def write(self, folder: Path, content: TrackContent) -> None:
        content.draw(folder / f"tracks{self.suffix}")


@FORMATS.register("png")
class PngPicture(SvgPicture):
    """Pixels."""

    suffix = ".png"


@FORMATS.register("pdf")
class PdfPicture(SvgPicture):
    """Vectors, for a paper."""

    suffix = ".pdf"
