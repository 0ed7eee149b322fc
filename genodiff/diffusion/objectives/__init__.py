"""The objectives, one file each. A file put here is found; users see these first, in this order."""

from genodiff.diffusion.objectives import mdlm, d3pm, sedd, mlm, ar  # noqa: F401, I001
