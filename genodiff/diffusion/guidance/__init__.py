"""The guidances. A file put here is found; users see these first, in this order."""

from genodiff.diffusion.guidance import sites, population, conditional  # noqa: F401, I001
