"""`run(case)`: the product's own answers to a golden case, for `compare.py --fn
tests.conformance.adapter:run`.

A case is recognised by its metadata and tensors, never by its name.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent))

import adapter_diffusion
import adapter_networks
import adapter_training


def run(case: SimpleNamespace) -> dict[str, Tensor]:
    """The tensors of `case.wanted` that genodiff can produce, possibly none."""
    first = (adapter_diffusion, adapter_training)
    found = next((one for one in first if one.handles(case)), adapter_networks).run(case)
    return {name: value for name, value in found.items() if name in case.wanted}
