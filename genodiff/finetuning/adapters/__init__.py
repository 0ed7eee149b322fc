"""Adapters: few weights that change many, W ↦ f(W), while the network's own stay as they are.

`--adapter lora:r=8,on=in_proj+out_proj` names one, with its options. A file that is put here is
found.
"""

from typing import TYPE_CHECKING

from genodiff.registry import Registry

if TYPE_CHECKING:
    from genodiff.finetuning.adapters.adapter import Adapter

ADAPTERS: "Registry[type[Adapter]]" = Registry("adapter", package=__name__)
"""The adapters by name."""
