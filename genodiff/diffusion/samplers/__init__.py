"""The samplers, one file each. A file put here is found; users see these first, in this order."""

from genodiff.diffusion.samplers import (  # noqa: F401, I001
    ancestral, first_hitting, confidence, analytic, left_to_right,
)  # fmt: skip
