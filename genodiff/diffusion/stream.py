"""More uniforms for a position, from its one: a stream that is keyed by the uniform itself.

A sampler gets two uniforms for each position. One that may draw a position again needs more. Each
is a hash of the position's uniform and of a number, so it depends on neither batch nor device.

Source of the hash: Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators"
(SplitMix64, the finaliser of David Stafford's variant 13).
"""

from jaxtyping import Float
from torch import Tensor

_STEP = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def draw_again(u: Float[Tensor, "*S"], number: int | Tensor) -> Float[Tensor, "*S"]:
    """Uniforms in [0, 1) with 53 bits: those of `u` (in [0, 1)) for this `number` (0 or more).

    A tensor of numbers (int64) is one for each u.

    Numbers of one u, and the same number of two us, are independent for all that samplers do.
    """
    key = (u.double() * 2.0**53).long()
    # Two rounds: the keys of close uniforms and small numbers differ in few bits.
    if isinstance(number, Tensor):
        step: int | Tensor = (number + 1) * _wrap(_STEP)  # wraps, as the other does
    else:
        step = _wrap((number + 1) * _STEP)
    mixed = _mix(_mix(key + _wrap(_STEP)) + step)
    return _shift(mixed, 11).double() * 2.0**-53


def _mix(z: Tensor) -> Tensor:
    z = (z ^ _shift(z, 30)) * _wrap(_FIRST)
    z = (z ^ _shift(z, 27)) * _wrap(_SECOND)
    return z ^ _shift(z, 31)


def _shift(z: Tensor, by: int) -> Tensor:
    # torch shifts int64 arithmetically; the bit mask makes the shift logical.
    return (z >> by) & ((1 << (64 - by)) - 1)


def _wrap(value: int) -> int:
    """`value` modulo 2^64, as a signed 64-bit integer."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
