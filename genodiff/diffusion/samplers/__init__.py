"""The samplers, one file each. A file put here is found; users see these first, in this order."""

from genodiff.diffusion.samplers import (  # noqa: F401, I001
    ancestral, first_hitting, confidence, entropy_bounded, strand_symmetric, remasking,
    path_planning, analytic, left_to_right,
)  # fmt: skip
