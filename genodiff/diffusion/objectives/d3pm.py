"""D3PM, absorbing: MDLM's chain of T steps with none of its simplifications.

    L = sum over i = 1..T of E KL(q(z_s | z_t, x0) || p(z_s | z_t)) + E[-log p(x0 | z_0)],
    t = i/T, s = (i - 1)/T
    p(z_s | z_t) = q(z_s | z_t, x0 = x_theta(z_t))

x_theta is a softmax over the targets and the mask. A visible token is not carried over, so the last
term, the reconstruction, costs a second evaluation of the network on the clean window. The sum is
written out in `objectives.mdlm`. At i = 1 a common form of it is 0/0; here its limit is taken.

Source: Austin et al. 2021, arXiv 2107.03006, with x_theta predicting x0; the baseline of MDLM's
tables (T = 1000).
"""

from dataclasses import dataclass

from genodiff.diffusion.objective import OBJECTIVES
from genodiff.diffusion.objectives.mdlm import Mdlm

STEPS = 1000


@OBJECTIVES.register("d3pm")
@dataclass(frozen=True)
class D3pm(Mdlm):
    """`Mdlm` with T steps, without carry-over and without zero-masking."""

    time_steps: int | None = STEPS
    carry_over: bool = False
    zero_masking: bool = False
