"""The formats of tracks, one file each. A file put here is found; users see these first."""

from genodiff.maps.track_formats import (  # noqa: F401, I001
    bigwig, bedgraph, npz, parquet, pictures, page,
)  # fmt: skip
